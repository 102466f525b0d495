"""The stand-in for CuPy as a package, with a card that is none: the check of a GPU runs as on a real one.

With this folder on the path, `import cupy` finds it in a process of its own. The variable FAKE_CARD names what is wrong
with the card. Kernels are what `fake_cupy.run_by` gives.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2]))
import fake_cupy
from workbench import backend

WRONG = os.environ.get("FAKE_CARD", "")
FREE = 2**24   # bytes of the card's memory
globals().update(vars(fake_cupy.module()))   # below is only what CuPy has beyond it
__name__, __version__ = "cupy", "12.3.0" if WRONG == "old CuPy" else "14.2.0"


class CUDARuntimeError(RuntimeError):
    """What CUDA reports."""


class OutOfMemoryError(MemoryError):
    """An allocation that does not fit."""


class Event:
    """A moment."""

    def record(self) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        pass


class RawModule(fake_cupy.RawModule):
    """A module for a card with one of several faults."""

    def compile(self) -> None:
        if WRONG == "slow compiler":
            time.sleep(60)

    def get_function(self, symbol: str) -> Any:
        return Function(super().get_function(symbol))


def compile_program(program: fake_cupy.Program, options: tuple[str, ...]) -> None:
    """What an old compiler says to a new card."""
    if WRONG == "unknown architecture":
        raise fake_cupy.NVRTCError("nvrtc: error: invalid value for --gpu-architecture (-arch)\nand more")
    program.compile(options)


LAUNCHES: Iterator[int] = count()


class Function:
    """A kernel of a card with one of several faults."""

    def __init__(self, run: fake_cupy.Function) -> None:
        self.run = run

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...]) -> None:
        number = next(LAUNCHES)
        if WRONG == "illegal access" and number > 50:
            raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")
        if WRONG == "little memory" and self.run.symbol.startswith("link_f") and number > 50:
            raise OutOfMemoryError("Out of memory allocating 1,024 bytes")
        if WRONG == "interrupt" and number == 50:
            os.kill(os.getpid(), signal.SIGINT)
        self.run(grid, block, args)
        if WRONG == "wrong bit" and self.run.symbol.startswith("gather_rows"):
            args[-1]._held.reshape(-1)[-1:].view(np.uint8)[0] ^= 1


def get_device_count() -> int:
    if WRONG == "old driver":
        raise CUDARuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version")
    return 0 if WRONG == "no card" else 2


def is_available() -> bool:
    """As CuPy has it: errors are swallowed."""
    try:
        return get_device_count() > 0
    except CUDARuntimeError:
        return False


if WRONG == "broken installation":
    raise ImportError("\n====\nFailed to import CuPy: libcublas.so.12 is missing\n")


def get_default_memory_pool() -> SimpleNamespace:
    return POOL


POOL = SimpleNamespace(free_all_blocks=lambda: None, total_bytes=lambda: 0)
cuda = SimpleNamespace(
    Event=Event, get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None),
    get_elapsed_time=lambda start, end: 1e3 * (end.at - start.at),
    runtime=SimpleNamespace(
        getDeviceCount=get_device_count, getDeviceProperties=lambda _: {"name": b"No card", "multiProcessorCount": 1},
        driverGetVersion=lambda: 12090, runtimeGetVersion=lambda: 12090,
    ),
    Device=lambda: SimpleNamespace(id=0, mem_info=(FREE, 2 * FREE), compute_capability=fake_cupy.CAPABILITY),
    memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError), set_allocator=lambda _: None,
    nvrtc=SimpleNamespace(**{**vars(fake_cupy.compiler()), "compileProgram": compile_program}),
)
backend.constant = fake_cupy.constant   # type: ignore[assignment]
