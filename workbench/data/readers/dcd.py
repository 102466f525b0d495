"""DCD trajectories of CHARMM and NAMD, which MDAnalysis reads without loss; it writes no index files beside them.

Lengths are in ångströms, in float32 as in the file.
"""

from __future__ import annotations

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
from workbench.data.triclinic import edges_of


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


DCD = Format("dcd", "CHARMM or NAMD trajectory (.dcd)", recognises, read)
