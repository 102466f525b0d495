"""GROMACS `.trr` trajectories: big-endian XDR frames of a header with the size of each block, then the blocks.

Read here rather than by a trajectory library, because those return float32 even where the file is in double precision,
and leave an index beside the data. Precision is not stated: it follows from the size of the positions.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.format import Format
from workbench.data.readers.frame_index import state_of
from workbench.data.readers.frames import require_same_atoms
from workbench.data.readers.frames import trajectory as all_frames
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import noted, other_frames
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, chosen_frame, particles
from workbench.data.readers.source import Source
from workbench.data.trajectory import Frames, Trajectory
from workbench.errors import WorkbenchError

BEGINNING = (1993).to_bytes(4, "big") + (13).to_bytes(4, "big") + (12).to_bytes(4, "big") + b"GMX_trn_file"
OF_ARRAYS = {"positions": "x", "velocities": "v", "cells": "box"}
BLOCKS = ("ir", "e", "box", "virial", "pressure", "top", "sym", "x", "v", "f")   # their sizes, in this order


@dataclass(frozen=True)
class Frame:
    """One frame: where each block begins, and how large it is."""

    source: Source
    at: int
    sizes: dict[str, int]
    atoms: int
    step: int
    floats: np.dtype

    @classmethod
    def of(cls, source: Source, at: int) -> Frame:
        """Read the header of the frame that begins at a byte."""
        if source.bytes(at, len(BEGINNING), "a frame header") != BEGINNING:
            raise source.damaged(f"expected a frame of GMX_trn_file at byte {at:,}")
        numbers = source.array(at + len(BEGINNING), 13, np.dtype(">i4"), "a frame header").tolist()
        sizes, (atoms, step, _) = dict(zip(BLOCKS, numbers, strict=False)), numbers[10:]
        if min(sizes.values()) < 0 or atoms < 1:
            raise source.damaged(f"a frame has blocks of sizes {list(sizes.values())} for {atoms} atoms")
        return cls(source, at, sizes, atoms, step, _precision(source, sizes, atoms))

    @property
    def data_at(self) -> int:
        """Where the first block begins: after the sizes, the time and lambda."""
        return self.at + len(BEGINNING) + 13 * 4 + 2 * self.floats.itemsize

    @property
    def end(self) -> int:
        """Where the next frame begins."""
        return self.data_at + sum(self.sizes.values())

    @property
    def time(self) -> float:
        """In picoseconds."""
        return float(self.source.array(self.data_at - 2 * self.floats.itemsize, 1, self.floats, "a frame header")[0])

    def block(self, name: str) -> np.ndarray | None:
        """A block of vectors, or None when the frame has none."""
        if not self.sizes[name]:
            return None
        before = sum(self.sizes[other] for other in BLOCKS[: BLOCKS.index(name)])
        count = self.sizes[name] // self.floats.itemsize
        return self.source.array(self.data_at + before, count, self.floats, f"block {name}").reshape(-1, 3)


def read(source: Source, *, frame: int = 0, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
    """One frame, in nanometres and nanometres per picosecond, in the precision on disk."""
    wanted = chosen_frame(frame)
    starts, rest = _starts(*state_of(source))
    if wanted >= len(starts):
        unread = f": {rest}" if rest else ""
        raise WorkbenchError(f"frame must be between 0 and {len(starts) - 1} in {source.name}; got {wanted}{unread}")
    found = Frame.of(source, starts[wanted])
    positions = found.block("x")
    if positions is None:
        raise WorkbenchError(f"frame {wanted} of {source.name} has no positions: choose a frame that has")
    metadata = {
        "format": "GROMACS trr",
        "frame": wanted,
        "step": found.step,
        "time": found.time,
        "units": {"length": "nm", "time": "ps", "velocity": "nm/ps"},
    }
    frames, forces = len(starts), ["the forces of this frame"] if found.sizes["f"] else []
    metadata = noted({**metadata, "frames": frames}, other_frames(wanted, frames), forces, [rest] if rest else [])
    velocities = found.block("v")
    return particles(positions, _cell(found), box, velocities, metadata=metadata, images=Images.ANY, wrap=wrap)


@functools.lru_cache(maxsize=32)
def _starts(path: Path, *state: int) -> tuple[tuple[int, ...], str]:
    """Where each complete frame begins, and a note on data after the last of them."""
    source, at = Source.at(path), 0
    starts: list[int] = []
    while at < source.size:
        try:
            frame = Frame.of(source, at)
            source.array(frame.end, 0, frame.floats, "the rest of the frame")
        except WorkbenchError as error:
            if not starts:
                raise
            return tuple(starts), f"the data after frame {len(starts) - 1}, which cannot be read: {error}"
        starts.append(at)
        at = frame.end
    return tuple(starts), ""


def _cell(frame: Frame) -> Cell | None:
    edges = frame.block("box")
    return None if edges is None else Cell.of_edges(edges)


def _precision(source: Source, sizes: dict[str, int], atoms: int) -> np.dtype:
    """float32 or float64, by the first block of known length."""
    lengths = {"box": 9, "x": 3 * atoms, "v": 3 * atoms, "f": 3 * atoms}
    known = {name: count for name, count in lengths.items() if sizes[name]}
    widths = {sizes[name] / count for name, count in known.items()}
    if widths not in ({4.0}, {8.0}):
        raise source.damaged(f"a frame of {atoms:,} atoms must have blocks of 4- or 8-byte floats; got the sizes {sizes}")
    return np.dtype(f">f{int(widths.pop())}")


class TrrFrames(Frames):
    """The frames of a file that have positions."""

    def __init__(self, source: Source, starts: Sequence[int], kept: Sequence[str]) -> None:
        self.source, self.starts, self.count = source, starts, len(starts)
        first = Frame.of(source, starts[0])
        native = first.floats.newbyteorder("=")
        shapes = {"positions": (first.atoms, 3), "velocities": (first.atoms, 3), "cells": (3, 3)}
        self.arrays = {
            **{name: (shape, native) for name, shape in shapes.items() if name in kept},
            "times": ((), native), "steps": ((), np.dtype(np.int32)),
        }

    def read(self, begin: int, end: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        """These arrays of the frames from `begin` to `end`."""
        found = {name: np.empty((end - begin, *self.arrays[name][0]), self.arrays[name][1]) for name in names}
        for place, start in enumerate(self.starts[begin:end]):
            frame = Frame.of(self.source, start)
            for name, array in found.items():
                array[place] = frame.block(OF_ARRAYS[name]) if name in OF_ARRAYS else getattr(frame, name[:-1])
        return found


def trajectory(source: Source) -> Trajectory:
    """All complete frames that have positions, in nanometres and picoseconds, in the precision on disk."""
    starts, rest = _starts(*state_of(source))
    frames = [Frame.of(source, at) for at in starts]
    with_positions = [frame for frame in frames if frame.sizes["x"]]
    if not with_positions:
        raise WorkbenchError(f"no frame of {source.name} has positions: expected a trajectory")
    first = with_positions[0]
    for number, frame in enumerate(with_positions):
        require_same_atoms(source, number, frame.atoms, first.atoms)
        if frame.floats != first.floats:
            raise WorkbenchError(f"{source.name} has frames in float32 and in float64: read single frames by wb.open(...)")
    kept = [name for name, block in OF_ARRAYS.items() if all(frame.sizes[block] for frame in with_positions)]
    some = [name for name, block in OF_ARRAYS.items() if name not in kept and any(one.sizes[block] for one in frames)]
    notes = [
        *(f"the {name}, which only some frames have" for name in some),
        *(["the forces"] if any(frame.sizes["f"] for frame in frames) else []),
        *([f"{len(frames) - len(with_positions)} frames without positions"] if len(frames) > len(with_positions) else []),
        *([rest] if rest else []),
    ]
    units = {"length": "nm", "time": "ps", "velocity": "nm/ps"}
    metadata = {"format": "GROMACS trr", "frames": len(with_positions), "units": units}
    return all_frames(TrrFrames(source, [frame.at for frame in with_positions], kept), {}, metadata, notes)


TRR = Format(
    "trr", "GROMACS trajectory (.trr)", lambda source: source.starts_with(BEGINNING), read, trajectory=trajectory
)
