"""TRR files: frames in big-endian XDR, in the precision of the trajectory, so that nothing is rounded."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from workbench.data.readers.trr import BEGINNING, BLOCKS
from workbench.data.trajectory import Trajectory
from workbench.data.writers.written import INT32, Output, Written


def write_trr(trajectory: Trajectory, path: Path, within: float | None) -> Written:
    """Write all frames, in nanometres and picoseconds."""
    output = Output(trajectory, "nm", ("velocities", "cells", "times", "steps"), (), INT32)
    floats, number = trajectory.dtype.newbyteorder(">"), 0
    with path.open("xb") as file:
        for block in output.blocks():
            for at, positions in enumerate(block.positions):
                vectors = {"x": positions}
                if block.velocities is not None:
                    vectors["v"] = block.velocities[at]
                if block.edges is not None:
                    vectors["box"] = block.edges[at]
                written = {name: array.astype(floats) for name, array in vectors.items()}
                output.rounded(positions, written["x"])
                step = number if block.steps is None else int(block.steps[at])
                time = float(number if block.times is None else block.times[at])
                sizes = [written[name].nbytes if name in written else 0 for name in BLOCKS]
                header = struct.pack(">13i", *sizes, len(positions), step, 0)
                file.write(BEGINNING + header + np.array([time, 0.0], floats).tobytes())
                file.writelines(written[name].tobytes() for name in BLOCKS if name in written)
                number += 1
    return output.done()
