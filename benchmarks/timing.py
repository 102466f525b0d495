"""Fair timing: compared functions take turns in one run, and only ratios from one run are quoted."""

from __future__ import annotations

import multiprocessing
import os
import platform
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np

Result = TypeVar("Result")


def machine() -> str:
    """One line that describes the machine of the measurements."""
    cores = len(os.sched_getaffinity(0))
    return f"{platform.machine()}, {cores} cores, Python {platform.python_version()}, NumPy {np.__version__}"


def seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """The median time of several runs in this process, after one that is not counted."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def interleaved(runs: Mapping[str, Callable[[], object]], repeats: int = 5) -> dict[str, float]:
    """The median time of each run; all of them once a round, so that a slow spell of the machine meets all.

    Every run has a process of its own, which ends before the next begins: some libraries keep threads that go on using
    the processor after they are done. It makes one run that is not counted, then the one that is. Runs must be picklable.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            times[name].append(in_fresh_process(partial(_second_run, run)))
    return {name: statistics.median(values) for name, values in times.items()}


def in_fresh_process(run: Callable[[], Result]) -> Result:
    """The result of a run in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(run).result()


def _second_run(run: Callable[[], object]) -> float:
    run()
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def peak_bytes(run: Callable[[], object]) -> int:
    """The peak memory of NumPy arrays during a run, beyond the memory before it."""
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


def targets(rows: Sequence[tuple[str, float, str, float]]) -> str:
    """What must be reached: (what, measured, "<=" or ">=", the target) as a Markdown table that says whether it is.

    >>> print(targets([("trials/s", 60.0, ">=", 50.0)]))
    | what | measured | must be | reached |
    | --- | --- | --- | --- |
    | trials/s | 60 | >= 50 | yes |
    <BLANKLINE>
    """
    lines: list[list[object]] = []
    for what, measured, sign, limit in rows:
        reached = measured <= limit if sign == "<=" else measured >= limit
        lines.append([what, f"{measured:.4g}", f"{sign} {limit:g}", "yes" if reached else "NO"])
    return table(["what", "measured", "must be", "reached"], lines)
