"""GPU workers: one process for each card, others beside them, and how particles get there.

The arrays of a subdomain become CuPy arrays where its search begins, and stay there until it ends. Two copies cross the
bus: positions to the card, labels back. Everything between takes what it is given (`backend.py`), and mixing is an error.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from workbench import backend
from workbench.arguments import whole_number
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.run.local import LOOPBACK
from workbench.run.patience import GPU

INSTALL = "pip install 'lossbench[dask,gpu]' 'dask-cuda[cu12]>=26.10' 'cuda-bindings<13'"
PROTOCOLS = ("tcp", "ucx")
NAME = re.compile(r"(GPU|MIG)-[0-9A-Za-z/-]+")
POOL = 0.5   # the share of a card's memory that RMM's pool takes at first; it grows


def local_gpus(
    devices: Sequence[int | str] | None = None, *, memory: str | float = "auto", protocol: str = "tcp",
    folder: str | None = None, cpu_workers: int | None = None,
) -> Any:
    """A `dask_cuda.LocalCUDACluster` on the loopback interface: a worker for each card, and others beside them.

    `devices` are the numbers of the cards, or their names as `nvidia-smi -L` lists them ("GPU-...", "MIG-..."); by default,
    all. `cpu_workers` send and compare particles while cards search; by default, one for each core that no card's worker
    needs. `memory` is the limit of each worker's memory on the host; by default, all have the same share. `protocol` "ucx"
    uses links between cards where ucxx is installed, and `folder` is for the files of the workers. Where RMM is installed,
    the memory of cards comes from its pool.

    >>> with local_gpus() as cluster, dask.distributed.Client(cluster) as client:   # doctest: +SKIP
    ...     groups = wb.friends_of_friends("positions.npy", client=client)
    """
    options = cluster_options(devices, memory, protocol, folder)
    if cpu_workers is not None:
        whole_number("cpu_workers", cpu_workers, least=0)
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError as error:
        raise WorkbenchError(f"GPU workers need dask-cuda, which cannot be imported ({error}): {INSTALL}") from None
    from dask.system import CPU_COUNT
    from distributed import Nanny
    from distributed.system import MEMORY_LIMIT

    runtime = backend.gpu().cuda.runtime   # says what is missing, which dask-cuda does not
    cards = runtime.getDeviceCount() if devices is None else len(devices)
    beside = max(CPU_COUNT - cards, 1) if cpu_workers is None else cpu_workers
    if memory == "auto":
        options["memory_limit"] = MEMORY_LIMIT // (cards + beside)
    if importlib.util.find_spec("rmm") is not None:
        options["rmm_pool_size"] = POOL
    cluster = LocalCUDACluster(**options)
    spec = {"cls": Nanny, "options": _without_card(options)}
    cluster.worker_spec.update({f"cpu-{number}": spec for number in range(beside)})
    cluster.sync(cluster._correct_state)
    return cluster


def cluster_options(
    devices: Sequence[int | str] | None = None, memory: str | float = "auto", protocol: str = "tcp",
    folder: str | None = None,
) -> dict[str, Any]:
    """What `dask_cuda.LocalCUDACluster` is asked for.

    >>> cluster_options([0, 3])["CUDA_VISIBLE_DEVICES"], cluster_options()["resources"]
    ([0, 3], {'GPU': 1})
    """
    if protocol not in PROTOCOLS:
        raise WorkbenchError(f"protocol must be one of {', '.join(PROTOCOLS)}; got {protocol!r}")
    options: dict[str, Any] = {
        "threads_per_worker": 1,   # a card runs one search at a time
        "resources": {GPU: 1},
        "memory_limit": memory,
        "protocol": protocol,
        "host": LOOPBACK,
        "dashboard_address": f"{LOOPBACK}:0",
        "pre_import": "cupy",      # each worker makes the context of its card before work arrives
    }
    if devices is not None:
        names = [_checked_device(device) for device in devices]
        if not names or len(set(names)) < len(names):
            raise WorkbenchError(f"devices must name at least one card, and each once; got {list(devices)}")
        options["CUDA_VISIBLE_DEVICES"] = names
    if folder is not None:
        options["local_directory"] = folder
    return options


def _checked_device(device: Any) -> int | str:
    """The number of a card, or its name."""
    if not isinstance(device, str):
        return whole_number("each device", device, least=0)
    if not NAME.fullmatch(device):
        raise WorkbenchError(
            f'each device must be a number, or a name such as "GPU-1f2a..." or "MIG-1f2a..."; got {device!r}: '
            "`nvidia-smi -L` lists them"
        )
    return device


def _without_card(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a worker beside the cards, which sees none of them."""
    shared = {name: options[name] for name in ("memory_limit", "protocol", "host", "local_directory") if name in options}
    return {**shared, "nthreads": 1, "dashboard": False, "env": {"CUDA_VISIBLE_DEVICES": ""}}


def on_card(positions: np.ndarray) -> Array:
    """These positions where this worker computes: on its GPU if it has the resource, else as they are."""
    if not has_gpu():
        return positions
    cupy = backend.gpu()
    _share_memory(cupy)
    return cupy.asarray(positions)


@functools.cache
def _share_memory(cupy: ModuleType) -> None:
    """Let CuPy take memory from RMM's pool, if this worker has one, and say what helps when the card is full."""
    cupy.cuda.set_allocator(_explaining(_of_rmm() or cupy.get_default_memory_pool().malloc))


def _of_rmm() -> Callable[[int], Any] | None:
    """RMM's allocator, if there is a pool: without one, RMM asks the driver for each array, as CuPy's own pool does not."""
    rmm = sys.modules.get("rmm")   # who made the pool has imported it
    if rmm is None or type(rmm.mr.get_current_device_resource()).__name__ == "CudaMemoryResource":
        return None
    from rmm.allocators.cupy import rmm_cupy_allocator

    allocate: Callable[[int], Any] = rmm_cupy_allocator
    return allocate


def _explaining(allocate: Callable[[int], Any]) -> Callable[[int], Any]:
    """The same, with an error that says what to do; no other worker would have more room, so it is not behind the error."""
    def allocated(size: int) -> Any:
        try:
            return allocate(size)
        except MemoryError as error:
            why = str(error)
        raise WorkbenchError(f"the GPU has no room for {size:,} bytes more ({why}): give more parts")

    return allocated


def has_gpu() -> bool:
    """Whether this code runs on a Dask worker with a GPU.

    >>> has_gpu()
    False
    """
    dask = sys.modules.get("distributed")   # a worker has imported it
    try:
        return dask is not None and GPU in dask.get_worker().state.total_resources
    except ValueError:   # not on a worker
        return False
