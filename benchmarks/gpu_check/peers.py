"""Finders and codecs of other packages on the same card, each in a process of its own, where they can be imported.

A process of its own, because JAX and RAPIDS keep memory of the card, and because a peer that fails must not end the run.
Each is called as its authors document it, on the case that jztree's documentation measures: uniform particles with links of
0.7 mean spacings. cuML's DBSCAN knows no periodic box, and CuPy's tree only lists pairs: the table says so.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_check import ROOT
from gpu_check.budget import Budget
from gpu_check.cases import typed, uniform
from gpu_check.speed import JZTREE_LENGTH, Row

RUNS = 3
# The module that must be there, and how the result differs from friends of friends in a periodic box.
PEERS = {
    "jztree": ("jztree", "float32 distances, labels in the order of its tree"),
    "cuml": ("cuml", "open boundaries"),
    "cupy": ("cupyx.scipy.spatial", "a list of pairs only, open boundaries"),
}


def peer_rows(count: int, budget: Budget) -> list[Row]:
    """One row for each peer: its time, or why there is none."""
    rows = []
    for name, (module, note) in PEERS.items():
        what = f"{name}, uniform, b = {JZTREE_LENGTH}"
        if not _is_there(module):
            rows.append(Row("peers", what, count, None, note="not installed"))
            continue
        rows.append(_measured(name, what, count, note, budget.part(budget.seconds / len(PEERS))))
    return rows


def _measured(name: str, what: str, count: int, note: str, budget: Budget) -> Row:
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), "--peer", name, "--sizes", str(count)]
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=max(budget.left(), 1), env=environment, cwd=ROOT
        )
    except subprocess.TimeoutExpired:
        return Row("peers", what, count, None, note=f"stopped after {budget.seconds:.0f} s")
    if ended.returncode:
        told = next((line for line in reversed(ended.stderr.splitlines()) if line.strip()), "no message")
        return Row("peers", what, count, None, note=f"failed: {told}"[:160])
    seconds = float(json.loads(ended.stdout.splitlines()[-1])["seconds"])
    return Row("peers", what, count, seconds, f"{count / seconds / 1e6:.1f} M particles/s", note=note)


def run_peer(name: str, count: int) -> dict[str, Any]:
    """The median time of one peer, in this process."""
    points, length = typed(uniform(count, 3), np.float32), JZTREE_LENGTH * count ** (-1 / 3)
    run = {"jztree": _jztree, "cuml": _cuml, "cupy": _cupy}[name](points, length)
    run()
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return {"peer": name, "seconds": sorted(times)[RUNS // 2]}


def _jztree(points: np.ndarray, length: float) -> Callable[[], object]:
    jax, jztree = importlib.import_module("jax"), importlib.import_module("jztree")
    there = jax.numpy.asarray(points)
    return lambda: jax.block_until_ready(jztree.fof.fof_labels.jit(there, rlink=length, boxsize=1.0))


def _cuml(points: np.ndarray, length: float) -> Callable[[], object]:
    cupy, cuml = importlib.import_module("cupy"), importlib.import_module("cuml")
    there = cupy.asarray(points)

    def run() -> None:
        cuml.cluster.DBSCAN(eps=length, min_samples=1).fit_predict(there)
        cupy.cuda.get_current_stream().synchronize()

    return run


def _cupy(points: np.ndarray, length: float) -> Callable[[], object]:
    cupy, spatial = importlib.import_module("cupy"), importlib.import_module("cupyx.scipy.spatial")
    there = cupy.asarray(points)

    def run() -> None:
        spatial.KDTree(there).query_pairs(length)
        cupy.cuda.get_current_stream().synchronize()

    return run


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
