"""DCD trajectories of CHARMM and NAMD, which MDAnalysis reads without loss; it writes no index files beside them.

Lengths are in ångströms, in float32 as in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.format import Format
from workbench.data.readers.frames import trajectory as all_frames
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import noted, other_frames
from workbench.data.readers.libraries import library
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, chosen_frame, particles
from workbench.data.readers.other_process import arrays_of_frame
from workbench.data.readers.source import Source
from workbench.data.trajectory import Frames, Trajectory
from workbench.data.triclinic import edges_of, lengths_and_angles
from workbench.errors import WorkbenchError

PICOSECONDS = 0.0488882129   # in the unit of time of CHARMM


def recognises(source: Source) -> bool:
    """A Fortran record of 84 bytes that begins with CORD."""
    return source.starts_with(b"T\0\0\0CORD", b"\0\0\0TCORD")


def read(source: Source, *, frame: int = 0, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
    """One frame of a trajectory."""
    wanted = chosen_frame(frame)
    found = arrays_of_frame(source, __name__, "frame_at", wanted)
    positions, total = found["positions"], int(found["frames"])
    a, gamma, b, beta, alpha, c = found["cell"].tolist()
    metadata: dict[str, Any] = {"format": "DCD", "frame": wanted, "frames": total, "units": {"length": "angstrom"}}
    cell = _cell((a, b, c, alpha, beta, gamma))
    metadata = noted(metadata, other_frames(wanted, total))
    return particles(positions, cell, box, metadata=metadata, images=Images.ANY, wrap=wrap)


def frame_at(path: str, wanted: int) -> dict[str, Any]:
    """A frame, and how many there are. Forged bytes can crash the process that calls this."""
    module = library("MDAnalysis.lib.formats.libdcd", "DCD files")
    with module.DCDFile(path) as frames:
        total = len(frames)
        frames.seek(chosen_frame(wanted, total))
        found = frames.read()
    return {"positions": found.xyz, "cell": np.asarray(found.unitcell, np.float64), "frames": total}


def _cell(edges: Any) -> Cell | None:
    """The cell of lengths and angles, or nothing where the file states none.

    Angles are in degrees, or in NAMD's files their cosines; newer files of CHARMM have a symmetric matrix of edges instead.
    """
    if edges is None or not np.any(edges[:3]):
        return None
    lengths, angles = np.asarray(edges[:3], np.float64), np.asarray(edges[3:], np.float64)
    if not lengths.all():
        return Cell(tuple(lengths.tolist()))
    if (angles < -1).any() or (angles > 180).any():
        alpha, beta, gamma = angles
        return Cell.of_edges([[lengths[0], gamma, beta], [gamma, lengths[1], alpha], [beta, alpha, lengths[2]]])
    degrees = np.degrees(np.arccos(angles)) if (abs(angles) <= 1).all() else angles
    return Cell.of_edges(edges_of(lengths, degrees))


class DcdFrames(Frames):
    """The frames of a file, which the library reads in another process."""

    def __init__(self, source: Source, about: dict[str, Any]) -> None:
        self.source, self.count = source, int(about["frames"])
        self.start, self.every, self.length = int(about["start"]), int(about["every"]), float(about["length"])
        float64 = np.dtype(np.float64)
        self.arrays = {
            "positions": (about["positions"].shape[1:], np.dtype(np.float32)),
            **({"cells": ((6,), float64)} if about["cells"].any() else {}),
            "times": ((), float64), "steps": ((), np.dtype(np.int64)),
        }

    def read(self, begin: int, end: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        """These arrays of the frames from `begin` to `end`."""
        steps = self.start + self.every * np.arange(begin, end, dtype=np.int64)
        found: dict[str, np.ndarray] = {"steps": steps, "times": steps * (self.length * PICOSECONDS)}
        if {"positions", "cells"} & set(names):
            found |= arrays_of_frame(self.source, __name__, "frames_between", [begin, end])
            found["cells"] = np.array([_lengths_and_angles(one) for one in found["cells"]])
        return {name: found[name] for name in names}


def trajectory(source: Source) -> Trajectory:
    """All frames, in ångströms and picoseconds."""
    about = arrays_of_frame(source, __name__, "frames_between", [0, 1])
    frames = DcdFrames(source, about)
    metadata = {
        "format": "DCD", "frames": frames.count, "units": {"length": "angstrom", "time": "ps"},
        "steps": {"start": frames.start, "every": frames.every, "length": frames.length},
    }
    stated = int(np.frombuffer(source.head, ">i4" if source.head[:1] == b"\0" else "<i4", 1, 8)[0])
    missing = stated - frames.count
    note = [f"{missing:,} of {stated:,} frames that the header states: the file is cut short"] if missing > 0 else []
    return all_frames(frames, {}, metadata, note)


def frames_between(path: str, ends: list[int]) -> dict[str, Any]:
    """Some frames, and what the header states. Forged bytes can crash the process that calls this."""
    module = library("MDAnalysis.lib.formats.libdcd", "DCD files")
    with module.DCDFile(path) as frames:
        chosen_frame(ends[1] - 1, total := len(frames))
        found = frames.readframes(start=ends[0], stop=ends[1], order="fac")
        header = frames.header
    cells = np.asarray(found.unitcell, np.float64)
    if not header["is_periodic"]:
        cells = np.zeros(cells.shape)   # the library returns memory that it has not written
    return {
        "positions": found.xyz, "cells": cells, "frames": total, "start": header["istart"],
        "every": header["nsavc"], "length": header["delta"],
    }


def _lengths_and_angles(stated: np.ndarray) -> list[float]:
    """Lengths and angles in degrees of a cell as a file states it (see `_cell`)."""
    a, gamma, b, beta, alpha, c = stated.tolist()
    angles = np.array([alpha, beta, gamma])
    if not (a and b and c) or not ((angles < -1).any() or (angles > 180).any() or (abs(angles) <= 1).all()):
        return [a, b, c, alpha, beta, gamma]
    try:
        cell = _cell((a, b, c, alpha, beta, gamma))
    except WorkbenchError:   # no cell at all: as it is
        cell = None
    if cell is None:
        return [a, b, c, alpha, beta, gamma]
    edges = np.diag(cell.lengths) if cell.edges is None else cell.edges
    return lengths_and_angles(edges).tolist()


DCD = Format("dcd", "CHARMM or NAMD trajectory (.dcd)", recognises, read, trajectory=trajectory)
