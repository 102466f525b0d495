"""GROMACS `.xtc` trajectories, already lossy; MDAnalysis implements their published compression.

Where the frames begin is found once and remembered (`frame_index.py`). The readers of MDAnalysis would leave an index file
beside the data, in folders that may be read-only.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.format import Format
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import noted, other_frames
from workbench.data.readers.libraries import library
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, chosen_frame, particles
from workbench.data.readers.other_process import arrays_of_frame
from workbench.data.readers.source import Source
from workbench.errors import WorkbenchError

MAGICS = tuple(number.to_bytes(4, "big") for number in (1995, 2023))   # the second one for more than 300 million atoms


def read(source: Source, *, frame: int = 0, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
    """One frame, in nanometres."""
    wanted = chosen_frame(frame)
    found = arrays_of_frame(source, __name__, "frame_at", wanted)
    frames = int(found["frames"])
    metadata = {
        "format": "GROMACS xtc",
        "frame": wanted,
        "frames": frames,
        "step": int(found["step"]),
        "time": float(found["time"]),
        "precision": float(found["precision"]),
        "units": {"length": "nm", "time": "ps"},
    }
    metadata = noted(metadata, other_frames(wanted, frames))
    cell = Cell.of_edges(found["box"])
    return particles(found["positions"], cell, box, metadata=metadata, images=Images.ANY, wrap=wrap)


def frame_at(path: str, wanted: int) -> dict[str, Any]:
    """A frame, and how many there are. Forged bytes can crash the process that calls this."""
    formats = library("MDAnalysis.lib.formats.libmdaxdr", "xtc files")
    name, state = Path(path).name, Path(path).stat()
    starts = _starts(path, state.st_mtime_ns, state.st_size)
    if not len(starts):
        raise WorkbenchError(f"{name} is truncated or damaged: it has no complete frame")
    if wanted >= len(starts):
        raise WorkbenchError(f"frame {wanted} does not exist: {name} has fewer frames (counted from 0)")
    with formats.XTCFile(path) as frames:
        frames.set_offsets(starts)
        frames.seek(wanted)
        found = frames.read()
    described = {"positions": found.x, "box": found.box, "step": found.step, "time": found.time, "precision": found.prec}
    return {**described, "frames": len(starts)}


@functools.lru_cache(maxsize=32)
def _starts(path: str, *state: int) -> np.ndarray:
    """Where each frame begins: only their headers are read for it."""
    formats = library("MDAnalysis.lib.formats.libmdaxdr", "xtc files")
    with formats.XTCFile(path) as frames:
        return np.array(frames.calc_offsets())


XTC = Format("xtc", "GROMACS trajectory (.xtc)", lambda source: source.starts_with(*MAGICS), read)
