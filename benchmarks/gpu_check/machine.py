"""The machine that runs the kernels: a GPU through CuPy, or the stand-in for CuPy, whose kernels run on the CPU."""

from __future__ import annotations

import atexit
import importlib
import multiprocessing
import os
import platform
import re
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import workbench as wb
from gpu_check import ROOT
from gpu_check.budget import Budget
from workbench import backend, host_library
from workbench.backend import Array
from workbench.device_code import CACHE
from workbench.errors import WorkbenchError

LEAST_RUNS, MOST_RUNS = 3, 9
COPIED = 2**30   # bytes; well above the largest cache of a card
LEAST_CUPY = 13
MOST_TOLD = 200  # letters of an error message


@dataclass(frozen=True)
class Machine:
    """CuPy or its stand-in, and what differs between them."""

    xp: Any
    real: bool

    @property
    def kernels(self) -> str:
        """What is launched on the stand-in."""
        chosen = importlib.import_module("executed").CHOSEN
        return f"the code of a card (PTX), {chosen} on this CPU" if chosen else "the CPU's build of the kernels"

    @classmethod
    def card(cls) -> Machine:
        """The first GPU that is visible on this computer, on which one kernel has run; an error says what is missing."""
        there = cls(backend.gpu(), real=True)
        if int(there.xp.__version__.split(".")[0]) < LEAST_CUPY:   # before, it does not know NumPy 2
            raise WorkbenchError(f"the GPU needs CuPy {LEAST_CUPY} or newer; got {there.xp.__version__}")
        if not writable(Path(os.environ.get(CACHE, "~/.cupy/kernel_cache")).expanduser()):
            os.environ[CACHE] = tempfile.mkdtemp(prefix="gpu-check-")
        there.require_a_kernel()
        return there

    @classmethod
    def stand_in(cls) -> Machine:
        """The stand-in for CuPy that the tests use, in CuPy's place."""
        sys.path.insert(0, str(ROOT / "tests"))
        fake = importlib.import_module("fake_cupy").module()
        sys.modules["cupy"] = fake
        made = tempfile.TemporaryDirectory(prefix="gpu-check-")   # what the stand-in compiles is of no use elsewhere
        atexit.register(made.cleanup)
        os.environ[CACHE] = made.name
        return cls(fake, real=False)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """The time in which kernels are launched; the stand-in may need the CPU's layout of arrays."""
        if self.real:
            yield
            return
        with mock.patch.object(backend, "constant", importlib.import_module("fake_cupy").constant):
            yield

    def require_a_kernel(self) -> None:
        """Compile and run a small kernel: without that, nothing else needs to be tried."""
        points = np.array([[0.25, 0.5], [0.75, 0.125]])
        try:
            found = wb.Particles(self.moved(points)).upper.tolist()
        except Exception as error:
            raise WorkbenchError(
                f"no kernel can be compiled and run on this GPU (compute capability {self._capability()}): {told(error)}; "
                "it takes CuPy with NVRTC for a version of CUDA that the driver supports and that still knows this card"
            ) from error
        if found != [0.75, 0.5]:
            raise WorkbenchError(f"the largest coordinates are [0.75, 0.5]; the first kernel on this GPU found {found}")

    def _capability(self) -> str:
        try:
            digits = str(self.xp.cuda.Device().compute_capability)
        except Exception as error:   # nothing works on this card
            return told(error)
        return f"{digits[:-1]}.{digits[-1]}"

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
            return {"card": f"none: the stand-in for CuPy with {self.kernels}", **told}
        runtime, device = self.xp.cuda.runtime, self.xp.cuda.Device()
        properties = runtime.getDeviceProperties(device.id)
        return {
            "card": properties["name"].decode(),
            "cards": f"the first of {runtime.getDeviceCount()} that are visible; CUDA_VISIBLE_DEVICES chooses",
            "memory": f"{device.mem_info[1] / 2**30:.1f} GiB",
            "multiprocessors": str(properties["multiProcessorCount"]),
            "compute capability": self._capability(),
            "driver": _version(runtime.driverGetVersion()),
            "CUDA runtime": _version(runtime.runtimeGetVersion()),
            "NVRTC": ".".join(map(str, self.xp.cuda.nvrtc.getVersion())),
            "cupy": str(self.xp.__version__),
            **told,
        }


def _version(number: int) -> str:
    """CUDA's version numbers as people write them.

    >>> _version(12090)
    '12.9'
    """
    return f"{number // 1000}.{number % 1000 // 10}"


def told(error: BaseException) -> str:
    """An error in one line.

    >>> told(ValueError("no such card"))
    'ValueError: no such card'
    """
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"[:MOST_TOLD]


def missing_package(error: BaseException) -> str | None:
    """The package whose absence is the cause of an error, if it is.

    >>> missing_package(ModuleNotFoundError("No module named 'pcodec'", name="pcodec")), missing_package(ValueError("no"))
    ('pcodec', None)
    """
    if isinstance(error, ModuleNotFoundError):
        return error.name
    if isinstance(error, WorkbenchError) and (named := re.search(r"needs (\w+), which is not installed", str(error))):
        return named[1]
    before = error.__cause__ or error.__context__
    return None if before is None else missing_package(before)


def writable(folder: Path) -> bool:
    """Whether files can be written to a folder, which is made if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@dataclass
class Compiling:
    """The seconds that each variant of each file took, and what went wrong before its first use."""

    seconds: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    left: int = 0   # variants for which there was no time; they are compiled when they are first used


def compile_all(budget: Budget) -> Compiling:
    """Compile every kernel in several processes, which fill CuPy's cache on disk, until the time is used up."""
    sources = sorted(path.stem for path in host_library.kernel_folder().glob("*.cu"))
    jobs = [(source, real, n) for source in sources for real in host_library.REALS for n in host_library.DIMENSIONS]
    found, workers = Compiling(), min(len(os.sched_getaffinity(0)), 8)
    with multiprocessing.get_context("spawn").Pool(workers, _ignore_interrupts) as pool:   # which ends them when it is left
        results = pool.imap_unordered(_compiled, jobs)
        try:
            for _ in jobs:
                name, seconds, wrong = results.next(timeout=budget.left())
                found.seconds[name] = seconds
                if wrong:
                    found.failed[name] = wrong
        except multiprocessing.TimeoutError:
            found.left = len(jobs) - len(found.seconds)
    return found


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)   # the process that started this one ends it


def _compiled(job: tuple[str, str, int]) -> tuple[str, float, str]:
    """Compile one variant of one file, as the launcher does; its name, the seconds that it took, and what went wrong."""
    source, real, dimensions = job
    begin, wrong = time.perf_counter(), ""
    try:
        capability = int(backend.gpu().cuda.Device().compute_capability)
        backend._device_module(source, real, dimensions, capability).compile()
    except Exception as error:   # the report names it; the cases that need this kernel fail
        wrong = told(error)
    return f"{source} {host_library.variant(real, dimensions)}", time.perf_counter() - begin, wrong


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
    library, where = host_library.LIBRARY, ""
    if not writable(library.parent):
        library = Path(tempfile.mkdtemp(prefix="gpu-check-")) / library.name
        where = f" to {library}, as the checkout cannot be written to"
    try:
        host_library.build(library)
    except (SystemExit, OSError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        return HostKernels(False, f"none, so stored results of the CPU are compared: {first}")
    if where:
        os.environ["LOSSBENCH_HOST_LIBRARY"] = str(library)   # also for the programs that are started
    return HostKernels(True, f"compiled in {time.perf_counter() - begin:.0f} s{where}")


def _usable() -> bool:
    """Whether the library is there and was made from these sources."""
    try:
        return backend.threads() > 0
    except WorkbenchError:
        return False
