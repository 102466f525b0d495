"""GROMACS `.xtc` trajectories, already lossy; MDAnalysis implements their published compression.

The frames are read one after the other up to the one asked for. The random access of MDAnalysis would leave an index
file beside the data, in folders that may be read-only.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.format import Format
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import noted, other_frames
from workbench.data.readers.libraries import library
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, chosen_frame, particles
from workbench.data.readers.source import Source
from workbench.errors import WorkbenchError

MAGICS = tuple(number.to_bytes(4, "big") for number in (1995, 2023))   # the second one for more than 300 million atoms


def read(source: Source, *, frame: int = 0, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
    """One frame, in nanometres."""
    wanted = chosen_frame(frame)
    found, frames = _frame(source, wanted)
    edges = np.asarray(found.box, np.float64)
    metadata = {
        "format": "GROMACS xtc",
        "frame": wanted,
        "frames": frames,
        "step": int(found.step),
        "time": float(found.time),
        "precision": float(found.prec),
        "units": {"length": "nm", "time": "ps"},
    }
    cell = Cell(tuple(np.diag(edges).tolist()), tilted=bool(np.count_nonzero(edges - np.diag(np.diag(edges)))))
    metadata = noted(metadata, other_frames(wanted, frames))
    return particles(np.array(found.x), cell, box, metadata=metadata, images=Images.ANY, wrap=wrap)


def _frame(source: Source, wanted: int) -> tuple[Any, int]:
    """A frame, and how many there are."""
    formats = library("MDAnalysis.lib.formats.libmdaxdr", "xtc files")
    with source.read_by("MDAnalysis"), formats.XTCFile(str(source.path)) as frames:
        found = next(itertools.islice(frames, wanted, None), None)
        total = len(frames)
    if found is None:
        raise WorkbenchError(f"frame {wanted} does not exist: {source.name} has fewer frames (counted from 0)")
    return found, total


XTC = Format("xtc", "GROMACS trajectory (.xtc)", lambda source: source.starts_with(*MAGICS), read)
