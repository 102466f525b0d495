"""GSD files of HOOMD-blue: positions in float32 relative to the centre of the box, types of atoms by name."""

from __future__ import annotations

from collections.abc import Sequence
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
    numbers = [name for name in ("mass", "charge") if name in trajectory.atoms and trajectory.atoms[name].dtype.kind != "U"]
    columns = (named, *numbers) if named else tuple(numbers)
    output, number = Output(trajectory, "", ("velocities", "images", "cells", "steps"), columns, range(2**63)), 0
    types = None
    if named is not None:
        words, ids = np.unique(output.words(named, "X", ascii=True), return_inverse=True)
        types = words.tolist(), ids.astype(np.uint32)
    with hoomd.open(str(path), "w") as file:
        for block in output.blocks():
            for at, positions in enumerate(block.positions):
                frame, single = hoomd.Frame(), output.cast(positions, np.dtype(np.float32))
                frame.configuration.step = number if block.steps is None else int(block.steps[at])
                frame.configuration.box = [1, 1, 1, 0, 0, 0] if block.edges is None else _box(block.edges[at])
                particles = frame.particles
                particles.N, particles.position = len(single), single
                if block.velocities is not None:
                    particles.velocity = block.velocities[at].astype(np.float32)
                if block.images is not None:
                    particles.image = block.images[at].astype(np.int32)
                _name(particles, trajectory, types, numbers)
                file.append(frame)
                number += 1
    return output.done()


def _name(
    particles: Any, trajectory: Trajectory, types: tuple[list[str], np.ndarray] | None, numbers: Sequence[str]
) -> None:
    if types is not None:
        particles.types, particles.typeid = types
    for name in numbers:
        setattr(particles, name, trajectory.atoms[name].astype(np.float32))


def _box(edges: np.ndarray) -> list[float]:
    """Lengths and tilt factors as HOOMD defines them."""
    require_lower(edges, ".gsd")
    (x, _, _), (xy, y, _), (xz, yz, z) = edges.tolist()
    return [x, y, z, xy / y if y else 0.0, xz / z if z else 0.0, yz / z if z else 0.0]
