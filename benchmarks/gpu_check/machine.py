"""The machine that runs the kernels: a GPU through CuPy, or the stand-in for CuPy, whose kernels run on the CPU."""

from __future__ import annotations

import importlib
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from typing import Any
from unittest import mock

import numpy as np

from gpu_check import ROOT
from workbench import backend, host_library
from workbench.backend import Array
from workbench.errors import WorkbenchError

LEAST_RUNS, MOST_RUNS = 3, 9
COPIED = 2**30   # bytes; well above the largest cache of a card


@dataclass(frozen=True)
class Machine:
    """CuPy or its stand-in, and what differs between them."""

    xp: Any
    real: bool

    @classmethod
    def card(cls) -> Machine:
        """The GPU of this computer; an error says what is missing."""
        return cls(backend.gpu(), real=True)

    @classmethod
    def stand_in(cls) -> Machine:
        """The stand-in for CuPy that the tests use, in CuPy's place."""
        sys.path.insert(0, str(ROOT / "tests"))
        fake = importlib.import_module("fake_cupy").module()
        sys.modules["cupy"] = fake
        return cls(fake, real=False)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """The time in which kernels are launched; the stand-in needs the CPU's layout of arrays."""
        if self.real:
            yield
            return
        declared = backend.constant
        with mock.patch.object(backend, "constant", lambda file, name: declared(file, name.replace("_ON_GPU", "_ON_CPU"))):
            yield

    def moved(self, array: np.ndarray) -> Array:
        """A copy of an array in the memory of this machine."""
        return self.xp.asarray(array)

    def finish(self) -> None:
        """Wait until all that was started is done."""
        if self.real:
            self.xp.cuda.get_current_stream().synchronize()

    def seconds(self, run: Callable[[], object], most_seconds: float = 10.0) -> float:
        """The median time of several runs, after one that is not counted; fewer runs where they take long."""
        run()
        self.finish()
        times: list[float] = []
        while len(times) < LEAST_RUNS or (len(times) < MOST_RUNS and sum(times) < most_seconds):
            times.append(self._timed(run))
            if sum(times) > most_seconds:
                break
        return statistics.median(times)

    def _timed(self, run: Callable[[], object]) -> float:
        if not self.real:
            begin = time.perf_counter()
            run()
            return time.perf_counter() - begin
        start, end = self.xp.cuda.Event(), self.xp.cuda.Event()
        start.record()
        run()
        end.record()
        end.synchronize()
        return float(self.xp.cuda.get_elapsed_time(start, end)) / 1e3

    def free_bytes(self) -> int:
        """The free memory, with what CuPy keeps for later arrays given back."""
        if not self.real:
            return 2**30
        self.xp.get_default_memory_pool().free_all_blocks()
        return int(self.xp.cuda.Device().mem_info[0])

    def pool_bytes(self) -> int:
        """The memory that CuPy holds."""
        return int(self.xp.get_default_memory_pool().total_bytes()) if self.real else 0

    def out_of_memory(self) -> type[BaseException]:
        """The error of an allocation that does not fit."""
        return self.xp.cuda.memory.OutOfMemoryError if self.real else MemoryError

    def copy_bandwidth(self) -> float:
        """Bytes per second of a copy within the memory of this machine, read and written ones together."""
        size = min(COPIED, self.free_bytes() // 4) if self.real else 2**22
        source = self.xp.zeros(size // 8, np.float64)
        target = self.xp.empty_like(source)

        def copy() -> None:
            target[...] = source

        return 2 * source.nbytes / self.seconds(copy, 2.0)

    def description(self) -> dict[str, str]:
        """What the results depend on."""
        told = {
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "processor": f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores",
        }
        if not self.real:
            return {"card": "none: the stand-in for CuPy, no GPU code is run", **told}
        runtime, device = self.xp.cuda.runtime, self.xp.cuda.Device()
        properties = runtime.getDeviceProperties(device.id)
        nvrtc = importlib.import_module("cupy.cuda.nvrtc")
        return {
            "card": properties["name"].decode(),
            "memory": f"{device.mem_info[1] / 2**30:.1f} GiB",
            "multiprocessors": str(properties["multiProcessorCount"]),
            "compute capability": str(device.compute_capability),
            "driver": _version(runtime.driverGetVersion()),
            "CUDA runtime": _version(runtime.runtimeGetVersion()),
            "NVRTC": ".".join(map(str, nvrtc.getVersion())),
            "cupy": str(self.xp.__version__),
            **told,
        }


def _version(number: int) -> str:
    """CUDA's version numbers as people write them.

    >>> _version(12090)
    '12.9'
    """
    return f"{number // 1000}.{number % 1000 // 10}"


def compile_all() -> dict[str, float]:
    """Compile every kernel in several processes, which fill CuPy's cache on disk; the seconds of each variant."""
    sources = sorted(path.stem for path in host_library.kernel_folder().glob("*.cu"))
    jobs = [(source, real, n) for source in sources for real in host_library.REALS for n in host_library.DIMENSIONS]
    with ProcessPoolExecutor(min(len(os.sched_getaffinity(0)), 8), get_context("spawn")) as pool:
        times = pool.map(_compiled, jobs)
        return {f"{source} {host_library.variant(real, n)}": t for (source, real, n), t in zip(jobs, times, strict=True)}


def _compiled(job: tuple[str, str, int]) -> float:
    """Compile one variant of one file, as the launcher does; the seconds that it took."""
    source, real, dimensions = job
    begin, cupy = time.perf_counter(), backend.gpu()
    options = (*backend.DEVICE_FLAGS, *host_library.definitions(real, dimensions))
    cupy.RawModule(code=backend.device_source(source), options=options).compile()
    return time.perf_counter() - begin


@dataclass(frozen=True)
class HostKernels:
    """Whether the CPU's build of the kernels is there to compare with, and how that came about."""

    present: bool
    told: str


def host_kernels() -> HostKernels:
    """The CPU's build of the kernels, compiled now if it is missing or stale; without a compiler there is none."""
    begin = time.perf_counter()
    if _usable():
        return HostKernels(True, "the library that was there")
    try:
        host_library.build()
    except SystemExit as error:
        return HostKernels(False, f"none, so stored results of the CPU are compared: {str(error).splitlines()[0]}")
    return HostKernels(True, f"compiled in {time.perf_counter() - begin:.0f} s")


def _usable() -> bool:
    """Whether the library is there and was made from these sources."""
    try:
        return backend.threads() > 0
    except WorkbenchError:
        return False
