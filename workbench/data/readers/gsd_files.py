"""GSD, the trajectory format of HOOMD-blue: positions relative to the centre of a box, which each frame gives."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.format import Format
from workbench.data.readers.frames import require_same_atoms
from workbench.data.readers.frames import trajectory as all_frames
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import noted, other_frames
from workbench.data.readers.libraries import library
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, chosen_frame, particles
from workbench.data.readers.source import Source
from workbench.data.trajectory import Frames, Trajectory

KINDS = ("particles", "bonds", "angles", "dihedrals", "impropers", "constraints", "pairs")
COLUMNS = {"positions": "position", "velocities": "velocity", "images": "image"}
BYTES_OF_PARTICLE = 112   # of all columns together; bonds have fewer
MAGIC = (0x65DF65DF65DF65DF).to_bytes(8, "little")


def read(source: Source, *, frame: int = 0, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
    """One frame, wrapped into [0, box); a two-dimensional one keeps two axes."""
    hoomd = library("gsd.hoomd", "GSD files")
    with source.read_by("gsd"), hoomd.open(str(source.path), "r") as frames:
        total = len(frames)
        at = chosen_frame(frame, total)
        _require_room(source, frames.file, {0, at})
        return _particles(frames[at], at, total, box, wrap)


def _particles(frame: Any, at: int, total: int, box: FileBox, wrap: bool) -> Particles:
    """The particles of a frame; its arrays have any shape that the file states."""
    axes = 2 if frame.configuration.dimensions == 2 else 3
    metadata = {
        "format": "GSD (HOOMD)",
        "frame": at,
        "frames": total,
        "step": int(frame.configuration.step),
        "units": "not stated; reduced units by convention",
    }
    cell = Cell.of_edges(_edges(*frame.configuration.box)[:axes, :axes])
    velocities = np.array(frame.particles.velocity)[:, :axes]
    metadata = noted(metadata, other_frames(at, total), ["types, images and bonds of the particles"])
    masses = np.array(frame.particles.mass)   # 1 where the file states none
    masses = masses.flat[0] if len(set(masses.tolist())) == 1 else masses
    positions = np.array(frame.particles.position)[:, :axes]
    return particles(positions, cell, box, velocities, None, metadata, masses, images=Images.CENTRE, wrap=wrap)


def _require_room(source: Source, file: Any, frames: Iterable[int]) -> None:
    """Refuse frames of implausibly many particles or bonds: the library allocates the columns that the file lacks."""
    for frame, kind in itertools.product(frames, KINDS):
        if file.chunk_exists(frame, f"{kind}/N"):
            count = int(np.max(file.read_chunk(frame, f"{kind}/N"), initial=0))
            source.require_room(f"frame {frame} of {count:,} {kind}", count * BYTES_OF_PARTICLE)


def _edges(x: float, y: float, z: float, xy: float, xz: float, yz: float) -> np.ndarray:
    """The edges of a cell from its lengths and tilt factors, as HOOMD defines them."""
    return np.array([[x, 0, 0], [xy * y, y, 0], [xz * z, yz * z, z]], np.float64)


class GsdFrames(Frames):
    """The frames of a file, each with the columns that all frames may have."""

    def __init__(self, source: Source, count: int, atoms: int, kept: Sequence[str]) -> None:
        self.source, self.count, self.atoms = source, count, atoms
        types = {"images": np.dtype(np.int32)}
        of_atoms = {name: ((atoms, 3), types.get(name, np.dtype(np.float32))) for name in kept}
        self.arrays = {**of_atoms, "cells": ((3, 3), np.dtype(np.float64)), "steps": ((), np.dtype(np.int64))}

    def read(self, begin: int, end: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        """These arrays of the frames from `begin` to `end`."""
        hoomd = library("gsd.hoomd", "GSD files")
        found = {name: np.empty((end - begin, *self.arrays[name][0]), self.arrays[name][1]) for name in names}
        with self.source.read_by("gsd"), hoomd.open(str(self.source.path), "r") as frames:
            for place, at in enumerate(range(begin, end)):
                _require_room(self.source, frames.file, {0, at})
                frame = frames[at]
                require_same_atoms(self.source, at, int(frame.particles.N), self.atoms)
                for name, array in found.items():
                    array[place] = _of_frame(frame, name)
        return found


def _of_frame(frame: Any, name: str) -> Any:
    if name == "steps":
        return frame.configuration.step
    return _edges(*frame.configuration.box) if name == "cells" else getattr(frame.particles, COLUMNS[name])


def trajectory(source: Source) -> Trajectory:
    """All frames, positions relative to the centre of the cell as in the file."""
    hoomd = library("gsd.hoomd", "GSD files")
    with source.read_by("gsd"), hoomd.open(str(source.path), "r") as frames:
        count = len(frames)
        chosen_frame(0, count)
        _require_room(source, frames.file, {0})
        first = frames[0]
        changing = [f"particles/{column}" for column in ("typeid", "mass", "charge", "diameter")]
        anew = [name for name in changing if any(frames.file.chunk_exists(at, name) for at in range(1, count))]
        kept = [
            name for name, column in COLUMNS.items()
            if any(frames.file.chunk_exists(at, f"particles/{column}") for at in range(count))
        ]
    particles, atoms = first.particles, int(first.particles.N)
    types = np.array(particles.types or ["A"])
    columns: dict[str, Any] = {"type": types[particles.typeid]} if max(particles.typeid, default=0) < len(types) else {}
    columns |= {name: np.array(getattr(particles, name)) for name in ("mass", "charge") if getattr(particles, name).any()}
    metadata = {"format": "GSD (HOOMD)", "frames": count, "units": "not stated; reduced units by convention"}
    notes = [f"{', '.join(anew)} of frames after the first"] if anew else []
    names = ["positions", *(name for name in kept if name != "positions")]
    return all_frames(GsdFrames(source, count, atoms, names), columns, metadata, notes)


GSD = Format("gsd", "GSD trajectory (HOOMD)", lambda source: source.starts_with(MAGIC), read, trajectory=trajectory)
