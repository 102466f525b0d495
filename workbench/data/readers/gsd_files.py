"""GSD, the trajectory format of HOOMD-blue: positions relative to the centre of a box, which each frame gives."""

from __future__ import annotations

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.format import Format
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import noted, other_frames
from workbench.data.readers.libraries import library
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, chosen_frame, particles
from workbench.data.readers.source import Source

MAGIC = (0x65DF65DF65DF65DF).to_bytes(8, "little")


def read(source: Source, *, frame: int = 0, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
    """One frame, wrapped into [0, box); a two-dimensional one keeps two axes."""
    hoomd = library("gsd.hoomd", "GSD files")
    with source.read_by("gsd"), hoomd.open(str(source.path), "r") as frames:
        at = chosen_frame(frame, len(frames))
        snapshot = frames[at]
        total = len(frames)
    axes = 2 if snapshot.configuration.dimensions == 2 else 3
    lengths, tilts = np.asarray(snapshot.configuration.box[:3]), np.asarray(snapshot.configuration.box[3:])
    metadata = {
        "format": "GSD (HOOMD)",
        "frame": at,
        "frames": total,
        "step": int(snapshot.configuration.step),
        "units": "not stated; reduced units by convention",
    }
    cell = Cell(tuple(lengths[:axes].tolist()), tilted=bool(tilts[: 1 if axes == 2 else 3].any()))
    velocities = np.array(snapshot.particles.velocity)[:, :axes]
    metadata = noted(metadata, other_frames(at, total), ["types, images and bonds of the particles"])
    masses = np.array(snapshot.particles.mass)   # 1 where the file states none
    masses = masses.flat[0] if len(set(masses.tolist())) == 1 else masses
    positions = np.array(snapshot.particles.position)[:, :axes]
    return particles(positions, cell, box, velocities, None, metadata, masses, images=Images.CENTRE, wrap=wrap)


GSD = Format("gsd", "GSD trajectory (HOOMD)", lambda source: source.starts_with(MAGIC), read)
