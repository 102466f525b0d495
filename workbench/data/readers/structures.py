"""Molecular dynamics files that MDAnalysis reads without loss: GRO structures and DCD trajectories.

These formats hold no more precision than MDAnalysis returns (float32), and it writes no index files beside them. Lengths
stay in the unit of the file: nanometres in GRO, ångströms in DCD.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.format import Format
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import noted, other_frames
from workbench.data.readers.libraries import library
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, chosen_frame, particles
from workbench.data.readers.source import Source

GRO_ATOM = re.compile(rb"[ \d]{5}.{5}.{5}[ \d]{5} *-?\d+\.\d+ *-?\d+\.\d+ *-?\d+\.\d+")


def is_gro(source: Source) -> bool:
    """A title, the number of atoms, and a line of fixed columns."""
    lines = source.head.split(b"\n")
    return len(lines) > 2 and lines[1].strip().isdigit() and GRO_ATOM.match(lines[2]) is not None


def is_dcd(source: Source) -> bool:
    """A Fortran record of 84 bytes that begins with CORD."""
    return source.starts_with(b"T\0\0\0CORD", b"\0\0\0TCORD")


def read_gro(source: Source, *, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
    """The positions, and velocities where there are any, of a structure."""
    module = library("MDAnalysis.coordinates.GRO", "GRO files")
    with source.read_by("MDAnalysis"), warnings.catch_warnings():
        warnings.simplefilter("ignore")   # remarks on cells and times that are missing
        step = module.GROReader(str(source.path), convert_units=False).ts
        velocities = np.array(step.velocities) if step.has_velocities else None
        positions, edges = np.array(step.positions), step.dimensions
    metadata = {"format": "GROMACS gro", "units": {"length": "nm", "velocity": "nm/ps"}}
    metadata = noted(metadata, ["names of atoms and residues"])
    return particles(positions, _cell(edges), box, velocities, metadata=metadata, images=Images.ANY, wrap=wrap)


def read_dcd(source: Source, *, frame: int = 0, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
    """One frame of a trajectory."""
    module = library("MDAnalysis.lib.formats.libdcd", "DCD files")
    with source.read_by("MDAnalysis"), module.DCDFile(str(source.path)) as frames:
        wanted = chosen_frame(frame, len(frames))
        frames.seek(wanted)
        found = frames.read()
        positions, (a, gamma, b, beta, alpha, c) = np.array(found.xyz), (float(edge) for edge in found.unitcell)
        total = len(frames)
    metadata: dict[str, Any] = {"format": "DCD", "frame": wanted, "frames": total, "units": {"length": "angstrom"}}
    cell = _cell((a, b, c, alpha, beta, gamma))
    metadata = noted(metadata, other_frames(wanted, total))
    return particles(positions, cell, box, metadata=metadata, images=Images.ANY, wrap=wrap)


def _cell(edges: Any) -> Cell | None:
    """Lengths and angles (in degrees, or in NAMD's files their cosines), or nothing where the file states no cell."""
    if edges is None or not np.any(edges[:3]):
        return None
    angles = np.asarray(edges[3:], np.float64)
    right = np.allclose(angles, 90, atol=1e-3) or np.allclose(angles, 0, atol=1e-6)
    return Cell(tuple(float(length) for length in edges[:3]), tilted=not right)


GRO = Format("gro", "GROMACS structure (.gro)", is_gro, read_gro)
DCD = Format("dcd", "CHARMM or NAMD trajectory (.dcd)", is_dcd, read_dcd)
