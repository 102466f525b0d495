"""Writing trajectories in the formats of molecular dynamics, a few frames at a time; the suffix of the path says which.

A file may hold less than the trajectory: what it leaves out is said, and the largest change of a coordinate by rounding to
what the format can hold is measured while it is written, so that it can be added to the error of an archive.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from workbench.data.trajectory import Trajectory
from workbench.data.writers.amber import write_amber
from workbench.data.writers.dcd import write_dcd
from workbench.data.writers.gsd_files import write_gsd
from workbench.data.writers.h5md import write_h5md
from workbench.data.writers.text import write_gro, write_lammps, write_xyz
from workbench.data.writers.trr import write_trr
from workbench.data.writers.written import Written
from workbench.data.writers.xtc import write_xtc
from workbench.errors import WorkbenchError

__all__ = ["SUFFIXES", "Written", "write_trajectory"]

WRITERS: dict[str, Callable[[Trajectory, Path, float | None], Written]] = {
    ".xtc": write_xtc, ".trr": write_trr, ".dcd": write_dcd, ".nc": write_amber, ".ncdf": write_amber, ".gsd": write_gsd,
    ".lammpstrj": write_lammps, ".xyz": write_xyz, ".gro": write_gro, ".h5md": write_h5md,
}
SUFFIXES = tuple(WRITERS)


def write_trajectory(trajectory: Trajectory, path: Path, suffix: str, within: float | None = None) -> Written:
    """Write a new file of the format of this suffix; `within` is the error of the positions, which rounding may equal.

    >>> import tempfile
    >>> import numpy as np
    >>> walk = Trajectory(np.arange(12.0).reshape(2, 2, 3), metadata={"units": "angstrom"})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_trajectory(walk, Path(folder) / "walk.xyz", ".xyz")
    Written(rounding=0.0, left_out=(), notes=())
    """
    if suffix not in WRITERS:
        raise WorkbenchError(f"a trajectory is written to a file that ends in {', '.join(SUFFIXES)}; got {suffix!r}")
    return WRITERS[suffix](trajectory, path, within)
