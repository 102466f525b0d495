"""Fair timing: what is compared runs in turn in one process, and only ratios from one run are quoted."""

from __future__ import annotations

import os
import platform
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping

import numpy as np


def machine() -> str:
    """One line that says what the figures were measured on."""
    cores = len(os.sched_getaffinity(0))
    return f"{platform.machine()}, {cores} cores, Python {platform.python_version()}, NumPy {np.__version__}"


def seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """The median time of several runs, after one that is not counted."""
    return interleaved({"run": run}, repeats)["run"]


def interleaved(runs: Mapping[str, Callable[[], object]], repeats: int = 5) -> dict[str, float]:
    """The median time of each run; all of them once a round, so that a slow spell of the machine meets all."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for round_number in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if round_number:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def peak_bytes(run: Callable[[], object]) -> int:
    """The most memory that NumPy arrays took at once during a run, beyond what was there before."""
    tracemalloc.start()
    try:
        result = run()
        _, peak = tracemalloc.get_traced_memory()
        del result
    finally:
        tracemalloc.stop()
    return peak


def table(header: list[str], rows: list[list[object]]) -> str:
    """A Markdown table."""
    lines: list[list[object]] = [[*header], ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"
