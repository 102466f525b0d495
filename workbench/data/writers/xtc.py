"""XTC files: positions rounded to the precision of the file, which GROMACS compresses without further loss."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from workbench.data.readers.libraries import library
from workbench.data.readers.xtc import MOST_PLAIN
from workbench.data.trajectory import Trajectory
from workbench.data.writers.written import INT32, Output, Written, precision_for
from workbench.errors import WorkbenchError

MOST = 2**31 - 2   # of a rounded coordinate


def write_xtc(trajectory: Trajectory, path: Path, within: float | None) -> Written:
    """Write all frames, in nanometres and picoseconds."""
    formats = library("MDAnalysis.lib.formats.libmdaxdr", "xtc files")
    output = Output(trajectory, "nm", ("cells", "times", "steps"), (), INT32)
    precision, number = np.float32(precision_for(trajectory, within, output.factor)), 0
    with formats.XTCFile(str(path), "w") as file:
        for block in output.blocks():
            count = len(block.positions)
            boxes = np.zeros((count, 3, 3)) if block.edges is None else block.edges
            times = np.arange(number, number + count) if block.times is None else block.times
            steps = np.arange(number, number + count) if block.steps is None else block.steps
            for positions, box, time, step in zip(block.positions, boxes, times, steps, strict=True):
                _require_small(positions, precision)
                single = positions.astype(np.float32)
                file.write(single, box.astype(np.float32), int(step), np.float32(time), precision)
                output.rounded(positions, single if len(single) <= MOST_PLAIN else _rounded(single, precision))
            number += count
    return output.done()


def _rounded(single: np.ndarray, precision: np.float32) -> np.ndarray:
    """What reading the file returns: the library rounds in this way."""
    scaled = single * precision
    whole = np.where(scaled >= 0, scaled + np.float32(0.5), scaled - np.float32(0.5)).astype(np.int64)
    return whole.astype(np.float32) * (np.float32(1) / precision)


def _require_small(positions: np.ndarray, precision: np.float32) -> None:
    largest = float(np.abs(positions).max(initial=0.0))
    if not largest * float(precision) < MOST:
        raise WorkbenchError(
            f"an xtc file of precision {precision:g} holds coordinates up to {MOST / float(precision):g} nm; got "
            f"{largest:g}: write .trr"
        )
