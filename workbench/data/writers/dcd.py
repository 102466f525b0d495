"""DCD files of CHARMM and NAMD: positions in float32, and cells as lengths and angles."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from workbench.data.readers.dcd import PICOSECONDS
from workbench.data.readers.libraries import library
from workbench.data.trajectory import Trajectory
from workbench.data.writers.written import Output, Written, six


def write_dcd(trajectory: Trajectory, path: Path, within: float | None) -> Written:
    """Write all frames, in ångströms; steps and times must rise evenly, or they are numbered from 0 on."""
    module = library("MDAnalysis.lib.formats.libdcd", "DCD files")
    output = Output(trajectory, "angstrom", ("cells", "times", "steps"), ())
    start, every, length, left = _times(trajectory)
    with module.DCDFile(str(path), "w") as file:
        file.write_header(
            remarks="Created by Lossbench", natoms=trajectory.n_atoms, istart=start, nsavc=every, delta=length,
            is_periodic=int("cells" in trajectory.arrays),
        )
        for block in output.blocks():
            boxes = np.zeros((len(block.positions), 6)) if block.edges is None else six(block.edges)
            for positions, (a, b, c, alpha, beta, gamma) in zip(block.positions, boxes.tolist(), strict=True):
                single = output.cast(positions, np.dtype(np.float32))
                file.write(single, np.array([a, gamma, b, beta, alpha, c]))
    done = output.done()
    return Written(done.rounding, (*done.left_out, *left), done.notes)


def _times(trajectory: Trajectory) -> tuple[int, int, float, tuple[str, ...]]:
    """The first step, the steps between frames, the time of a step in the unit of CHARMM; what the header cannot say."""
    stated = trajectory.metadata.get("steps")
    steps, times = trajectory.steps, trajectory.times
    apart = 1.0 if times is None or len(times) < 2 else float(times[1] - times[0])
    first = 0.0 if times is None or not apart > 0 else float(times[0]) / apart
    counted = np.arange(len(trajectory)) + (round(first) if abs(first) < 2**31 else 0)
    known = counted if steps is None else steps.astype(np.int64)
    every = int(known[1] - known[0]) if len(known) > 1 else 1
    even = every > 0 and bool((np.diff(known) == every).all()) and min(known[0], every) >= 0
    even = even and known[-1] < 2**31
    if not math.isfinite(apart):
        apart = 1.0
    if not even:
        return 0, 1, apart / PICOSECONDS, ("times and steps, which do not rise evenly",)
    length = apart / every / PICOSECONDS
    if isinstance(stated, dict) and isinstance(stated.get("length"), int | float):
        length = float(stated["length"])
    of_header = known * (length * PICOSECONDS)
    as_stated = times is None or np.allclose(of_header, times, rtol=1e-6, atol=1e-5 * abs(apart))
    return int(known[0]), every, length, () if as_stated else ("times, which do not rise evenly with the steps",)
