"""GPU workers: one process for each card, and how particles get there.

The arrays of a subdomain become CuPy arrays where its search begins, and stay there until it ends. Two copies cross the
bus: positions to the card, labels back. Everything between takes what it is given (`backend.py`), and mixing is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench import backend
from workbench.arguments import whole_number
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.run.patience import GPU

INSTALL = "pip install 'lossbench[dask,gpu]' 'dask-cuda[cu12]>=26.10' 'cuda-bindings<13'"
PROTOCOLS = ("tcp", "ucx")


def local_gpus(
    devices: Sequence[int] | None = None, *, memory: str | float = "auto", protocol: str = "tcp", folder: str | None = None
) -> Any:
    """A `dask_cuda.LocalCUDACluster` on the loopback interface: one worker of one thread for each card of this machine.

    `devices` are the numbers of the cards (by default, all), `memory` is the limit of each worker's memory on the host,
    `protocol` "ucx" uses links between cards where ucxx is installed, and `folder` is for the files of the workers.

    >>> with local_gpus() as cluster, dask.distributed.Client(cluster) as client:   # doctest: +SKIP
    ...     groups = wb.friends_of_friends("positions.npy", client=client)
    """
    options = cluster_options(devices, memory, protocol, folder)
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError as error:
        raise WorkbenchError(f"GPU workers need dask-cuda, which cannot be imported ({error}): {INSTALL}") from None
    backend.gpu()   # says what is missing, which dask-cuda does not
    return LocalCUDACluster(**options)


def cluster_options(
    devices: Sequence[int] | None = None, memory: str | float = "auto", protocol: str = "tcp", folder: str | None = None
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
        "host": "127.0.0.1",
        "dashboard_address": "127.0.0.1:0",
        "pre_import": "cupy",      # each worker makes the context of its card before work arrives
    }
    if devices is not None:
        numbers = [whole_number("each device", device, least=0) for device in devices]
        if not numbers or len(set(numbers)) < len(numbers):
            raise WorkbenchError(f"devices must name at least one card, and each once; got {list(devices)}")
        options["CUDA_VISIBLE_DEVICES"] = numbers
    if folder is not None:
        options["local_directory"] = folder
    return options


def on_card(positions: np.ndarray) -> Array:
    """These positions where this worker computes: on its GPU if it has the resource, else as they are."""
    return backend.gpu().asarray(positions) if has_gpu() else positions


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
