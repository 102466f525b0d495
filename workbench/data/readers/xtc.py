"""GROMACS `.xtc` trajectories, already lossy; MDAnalysis implements their published compression.

Where the frames begin is found once and remembered (`frame_index.py`). The readers of MDAnalysis would leave an index file
beside the data, in folders that may be read-only.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.format import Format
from workbench.data.readers.frame_index import state_of
from workbench.data.readers.frames import require_same_atoms
from workbench.data.readers.frames import trajectory as all_frames
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import noted, other_frames
from workbench.data.readers.libraries import library
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, chosen_frame, particles
from workbench.data.readers.other_process import arrays_of_frame
from workbench.data.readers.source import Source
from workbench.data.trajectory import Frames, Trajectory
from workbench.errors import WorkbenchError

XTC_PRECISION = "xtc_precision"   # of metadata of positions: they are rounded to its inverse
MOST_PLAIN = 9                    # atoms whose positions are not rounded and compressed
HEADER = np.dtype([
    ("magic", ">i4"), ("atoms", ">i4"), ("step", ">i4"), ("time", ">f4"), ("box", ">f4", (3, 3)), ("again", ">i4"),
])
KNOWN = np.dtype([   # what is remembered of a frame
    ("at", "i8"), ("atoms", "i4"), ("step", "i4"), ("time", "f4"), ("box", "f4", (3, 3)), ("precision", "f4"),
])
PACKING = 32   # bytes of the precision, the extent and the coding of positions, before the number of bytes of these
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
    name, (headers, _) = Path(path).name, _headers(*state_of(Source.at(path)))
    if not len(headers):
        raise WorkbenchError(f"{name} is truncated or damaged: it has no complete frame")
    if wanted >= len(headers):
        raise WorkbenchError(f"frame {wanted} does not exist: {name} has fewer frames (counted from 0)")
    with formats.XTCFile(path) as frames:
        frames.set_offsets(headers["at"].astype(np.int64))
        frames.seek(wanted)
        found = frames.read()
    described = {"positions": found.x, "box": found.box, "step": found.step, "time": found.time, "precision": found.prec}
    return {**described, "frames": len(headers)}


class XtcFrames(Frames):
    """The frames of a file: their headers are read here, and positions by the library in another process."""

    def __init__(self, source: Source, count: int, atoms: int, periodic: bool) -> None:
        self.source, self.count = source, count
        float32 = np.dtype(np.float32)
        self.arrays = {
            "positions": ((atoms, 3), float32), **({"cells": ((3, 3), float32)} if periodic else {}),
            "times": ((), float32), "steps": ((), np.dtype(np.int32)),
        }

    def read(self, begin: int, end: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        """These arrays of the frames from `begin` to `end`."""
        headers = _headers(*state_of(self.source))[0][begin:end]
        stated = {"cells": "box", "times": "time", "steps": "step"}
        found = {name: np.ascontiguousarray(headers[stated[name]]) for name in names if name in stated}
        if "positions" in names:
            found["positions"] = arrays_of_frame(self.source, __name__, "frames_between", [begin, end])["positions"]
        return found


def trajectory(source: Source) -> Trajectory:
    """All complete frames, in nanometres."""
    headers, at = _headers(*state_of(source))
    if not len(headers):
        raise source.damaged("it has no complete frame")
    atoms = int(headers["atoms"][0])
    for number in np.flatnonzero(headers["atoms"] != atoms)[:1].tolist():
        require_same_atoms(source, number, int(headers["atoms"][number]), atoms)
    precisions = set(headers["precision"].tolist())
    metadata: dict[str, Any] = {
        "format": "GROMACS xtc", "frames": len(headers), "units": {"length": "nm", "time": "ps"},
    }
    if len(precisions) == 1 and (precision := precisions.pop()) > 0:
        metadata |= {"precision": precision, "positions": {XTC_PRECISION: precision}}
    frames = XtcFrames(source, len(headers), atoms, bool(headers["box"].any()))
    cut = [f"{source.size - at:,} bytes after frame {len(headers) - 1}: the frame after it is cut short"]
    return all_frames(frames, {}, metadata, cut if at < source.size else [])


def frames_between(path: str, ends: list[int]) -> dict[str, Any]:
    """The positions of some frames. Forged bytes can crash the process that calls this."""
    formats = library("MDAnalysis.lib.formats.libmdaxdr", "xtc files")
    source = Source.at(path)
    headers, _ = _headers(*state_of(source))
    found = np.empty((ends[1] - ends[0], int(headers["atoms"][0]), 3), np.float32)
    with formats.XTCFile(path) as frames:
        frames.set_offsets(headers["at"].astype(np.int64))
        frames.seek(ends[0])
        for one in found:
            one[:] = frames.read().x
    return {"positions": found}


@functools.lru_cache(maxsize=32)
def _headers(path: Path, *state: int) -> tuple[np.ndarray, int]:
    """Where each complete frame begins with what its header states, and where the last one ends."""
    size, at, found = path.stat().st_size, 0, []
    with path.open("rb") as file:
        while at + HEADER.itemsize <= size:
            file.seek(at)
            start = file.read(HEADER.itemsize + PACKING + 8)
            header = np.frombuffer(start, HEADER, 1)[0]
            if start[:4] not in MAGICS or header["atoms"] < 1 or header["atoms"] != header["again"]:
                break
            if header["atoms"] <= MOST_PLAIN:
                precision, end = 0.0, at + HEADER.itemsize + 12 * int(header["atoms"])
            else:
                before = HEADER.itemsize + PACKING + (4 if start[:4] == MAGICS[0] else 8)
                if len(start) < before:
                    break
                precision = float(np.frombuffer(start, ">f4", 1, HEADER.itemsize)[0])
                nbytes = int.from_bytes(start[HEADER.itemsize + PACKING : before], "big")
                end = at + before + (nbytes + 3) // 4 * 4
            if end > size:
                break
            found.append((at, header["atoms"], header["step"], header["time"], header["box"], precision))
            at = end
    return np.array(found, KNOWN), at


XTC = Format(
    "xtc", "GROMACS trajectory (.xtc)", lambda source: source.starts_with(*MAGICS), read, trajectory=trajectory
)
