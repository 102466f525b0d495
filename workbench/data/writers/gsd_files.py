"""GSD files of HOOMD-blue: positions in float32 relative to the centre of the box, types of atoms by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.readers.libraries import library
from workbench.data.trajectory import Trajectory
from workbench.data.writers.written import Output, Written, require_lower

TYPES = ("type", "name", "element")   # the first of these columns that there is names the types


def write_gsd(trajectory: Trajectory, path: Path, within: float | None) -> Written:
    """Write all frames; without a cell, the box is 1 along each axis, as the format needs one."""
    hoomd = library("gsd.hoomd", "GSD files")
    named = next((name for name in TYPES if name in trajectory.atoms), None)
    columns = tuple(name for name in (named, "mass", "charge") if name in trajectory.atoms)
    output, number = Output(trajectory, "", ("velocities", "images", "cells", "steps"), columns), 0
    with hoomd.open(str(path), "w") as file:
        for block in output.blocks():
            for at, positions in enumerate(block.positions):
                frame, single = hoomd.Frame(), positions.astype(np.float32)
                frame.configuration.step = number if block.steps is None else int(block.steps[at])
                frame.configuration.box = [1, 1, 1, 0, 0, 0] if block.edges is None else _box(block.edges[at])
                particles = frame.particles
                particles.N, particles.position = len(single), output.rounded(positions, single)
                if block.velocities is not None:
                    particles.velocity = block.velocities[at].astype(np.float32)
                if block.images is not None:
                    particles.image = block.images[at].astype(np.int32)
                _name(particles, trajectory, named)
                file.append(frame)
                number += 1
    return output.done()


def _name(particles: Any, trajectory: Trajectory, named: str | None) -> None:
    if named is not None:
        types, numbers = np.unique(trajectory.atoms[named], return_inverse=True)
        particles.types, particles.typeid = [str(one) for one in types], numbers.astype(np.uint32)
    for name in ("mass", "charge"):
        if name in trajectory.atoms:
            setattr(particles, name, trajectory.atoms[name].astype(np.float32))


def _box(edges: np.ndarray) -> list[float]:
    """Lengths and tilt factors as HOOMD defines them."""
    require_lower(edges, ".gsd")
    (x, _, _), (xy, y, _), (xz, yz, z) = edges.tolist()
    return [x, y, z, xy / y if y else 0.0, xz / z if z else 0.0, yz / z if z else 0.0]
