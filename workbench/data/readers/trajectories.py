"""Opening trajectories: all frames of a file, of which none is read yet, and the names of atoms from a second file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from workbench.data.readers.limits import ReadLimits, without_limits
from workbench.data.readers.registry import format_of, formats
from workbench.data.readers.source import Source
from workbench.data.trajectory import Trajectory
from workbench.errors import WorkbenchError

Path = str | os.PathLike[str]
ATOMS_OF_PDB = (b"ATOM  ", b"HETATM")
PDB = {   # the columns of a line
    "name": slice(12, 16), "residue_name": slice(17, 20), "chain": slice(21, 22), "element": slice(76, 78),
}


def open_trajectory(path: Path, topology: Path | None = None, *, format: str | None = None, **options: Any) -> Trajectory:
    r"""All frames of a trajectory, each read when it is needed; positions as the file has them, never wrapped or shifted.

    The formats are XTC, TRR, DCD, AMBER NetCDF, GSD, H5MD, LAMMPS dumps, XYZ and GRO, and archives of trajectories.
    `topology` is a file that names the atoms: PDB, or any of these that does. `wb.open` reads one frame, as particles.
    `format` and `most_bytes` are those of `wb.open`; `scaled` applies the scale factors of AMBER files, and `name` chooses
    a group of particles of H5MD files.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with open(f"{folder.name}/walk.xyz", "w") as file:
    ...     for step in range(3):
    ...         _ = file.write(f"2\n\nO 0 0 {step}\nH 1 0 {step}\n")
    >>> walk = open_trajectory(f"{folder.name}/walk.xyz")
    >>> walk, walk.select("H")[2].positions.tolist()
    (Trajectory(3 frames of 2 atoms, float64), [[[1.0, 0.0, 2.0]]])
    >>> folder.cleanup()
    """
    source = Source.at(path, ReadLimits.among(options))
    found = format_of(source, format, options)
    if found.trajectory is None:
        known = ", ".join(sorted(one.key for one in formats() if one.trajectory is not None))
        raise WorkbenchError(f"{source.name} is read as {found.title}, which is no trajectory (formats: {known})")
    own = without_limits(options)
    taken = found.trajectory.__kwdefaults__ or {}
    for option in own:
        if option not in taken:
            raise WorkbenchError(
                f"{option!r} is not an option of trajectories read as {found.title}; positions are as in the file, and "
                "wb.open(path, frame=...) reads one frame in a box"
            )
    opened: Trajectory = found.trajectory(source, **own)
    return opened if topology is None else _named(opened, topology)


def has_frames(path: Path, format: str | None = None, **options: Any) -> bool:
    """Whether a file is of a format of trajectories, and has more than one frame."""
    source = Source.at(path, ReadLimits.among(options))
    if source.is_folder or source.address is not None:
        return False
    found = format_of(source, format, options)
    if found.trajectory is None or found.key == "archive":
        return False
    taken = found.trajectory.__kwdefaults__ or {}
    return len(found.trajectory(source, **{name: options[name] for name in taken if name in options})) > 1


def _named(opened: Trajectory, topology: Path) -> Trajectory:
    """The trajectory with the columns of atoms of another file."""
    source = Source.at(topology)
    is_pdb = source.head.startswith(b"ATOM  ") or source.path.suffix.lower() in (".pdb", ".ent")
    atoms = _atoms_of_pdb(source) if is_pdb else dict(open_trajectory(topology).atoms)
    if not atoms:
        raise WorkbenchError(f"{source.name} names no atoms: give a PDB or GRO file as the topology")
    count = len(next(iter(atoms.values())))
    if count != opened.n_atoms:
        raise WorkbenchError(f"the topology {source.name} has {count:,} atoms, and the trajectory {opened.n_atoms:,}")
    return Trajectory.of(opened.frames, {**opened.atoms, **atoms}, opened.metadata)


def _atoms_of_pdb(source: Source) -> dict[str, np.ndarray]:
    """The columns of the atoms in the first model of a PDB file."""
    lines = []
    with source.path.open("rb") as file:
        for line in file:
            if line.startswith(b"ENDMDL"):
                break
            if line.startswith(ATOMS_OF_PDB):
                lines.append(line.decode("latin-1").rstrip("\n").ljust(80))
    if not lines:
        raise WorkbenchError(f"{source.name} has no lines of atoms (ATOM or HETATM): give a PDB or GRO file")
    found = {name: np.array([line[at].strip() for line in lines]) for name, at in PDB.items()}
    found = {name: column for name, column in found.items() if (column != "").any()}
    residues = [line[22:26].strip() for line in lines]
    if all(one.lstrip("-").isdecimal() for one in residues):
        found["residue"] = np.array(residues, np.int64)
    return found
