"""Trajectories as text: XYZ, LAMMPS dumps and GRO. XYZ and dumps have all digits; those of GRO follow from the error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from workbench.data.readers.gro import PLACES, USUAL_WIDTH
from workbench.data.trajectory import Trajectory
from workbench.data.writers.written import Output, Written, precision_for, require_finite, require_lower
from workbench.errors import WorkbenchError

DIGITS = {"float32": "%.9g", "float64": "%.17g"}   # that give the same number again
BOUNDARIES = ["pp", "pp", "pp"]
TAKEN = {"id": "id", "mol": "residue", "type": "type", "element": "element", "mass": "mass", "q": "charge"}   # of dumps


def write_xyz(trajectory: Trajectory, path: Path, within: float | None) -> Written:
    """Write all frames in the extended format, with the cell in the comment."""
    named = _named(trajectory, ("element", "name", "type"))
    output = Output(trajectory, "angstrom", ("cells", "times"), (named,))
    digits = DIGITS[trajectory.dtype.name if output.factor == 1.0 else "float64"]
    names = output.words(named, "X") if named else ["X"] * trajectory.n_atoms
    line = f"%s {digits} {digits} {digits}\n"
    with path.open("x") as file:
        for block in output.blocks():
            for at, positions in enumerate(block.positions):
                words = ["Properties=species:S:1:pos:R:3"]
                if block.edges is not None:
                    words.insert(0, 'Lattice="' + " ".join(f"{edge:.17g}" for edge in block.edges[at].flat) + '"')
                if block.times is not None:
                    words.append(f"Time={block.times[at]:.9g}")
                file.write(f"{len(positions)}\n{' '.join(words)}\n")
                file.writelines(line % (name, *row) for name, row in zip(names, positions.tolist(), strict=True))
    return output.done()


def write_lammps(trajectory: Trajectory, path: Path, within: float | None) -> Written:
    """Write all frames as a dump; without a cell, a box around the atoms that is not periodic."""
    digits, number = DIGITS[trajectory.dtype.name], 0
    takes = ("velocities", "images", "cells", "origins", "steps")
    fitting = [ours for ours in TAKEN.values() if ours not in trajectory.atoms or _fits(trajectory.atoms[ours], ours)]
    output = Output(trajectory, "", takes, fitting, range(2**63))
    columns, flags = _columns(output, fitting), _boundaries(trajectory)
    with path.open("x") as file:
        for block in output.blocks():
            for at, positions in enumerate(block.positions):
                step = number if block.steps is None else int(block.steps[at])
                title, bounds = _bounds(positions, block.edges, block.origins, at)
                periods = np.zeros(3) if block.edges is None else block.edges[at].diagonal()
                own = " ".join(flag if period else "ff" for flag, period in zip(flags, periods.tolist(), strict=True))
                file.write(f"ITEM: TIMESTEP\n{step}\nITEM: NUMBER OF ATOMS\n{len(positions)}\n")
                file.write(f"ITEM: BOX BOUNDS {title}{own}\n{bounds}")
                arrays = {("x", "y", "z"): positions}
                if block.images is not None:
                    arrays["ix", "iy", "iz"] = block.images[at]
                if block.velocities is not None:
                    arrays["vx", "vy", "vz"] = block.velocities[at]
                file.write(f"ITEM: ATOMS {' '.join([*columns, *(axis for axes in arrays for axis in axes)])}\n")
                whole, real = "%d %d %d", f"{digits} {digits} {digits}"
                forms = [whole if array.dtype.kind in "iu" else real for array in arrays.values()]
                line = " ".join([*["%s"] * len(columns), *forms]) + "\n"
                rows = zip(*columns.values(), *(array.tolist() for array in arrays.values()), strict=True)
                file.writelines(
                    line % (*row[: len(columns)], *(one for part in row[len(columns) :] for one in part)) for row in rows
                )
                number += 1
    return output.done()


def write_gro(trajectory: Trajectory, path: Path, within: float | None) -> Written:
    """Write all frames, in nanometres, with the names of atoms and residues."""
    columns = [name for name in ("name", "residue", "residue_name") if name != "residue" or _fits_gro(trajectory)]
    columns.append("" if "name" in trajectory.atoms else _named(trajectory, ("element", "type")))
    output = Output(trajectory, "nm", ("velocities", "cells", "times", "steps"), columns)
    decimals = round(float(np.log10(precision_for(trajectory, within, output.factor))))
    width, starts = decimals + 5, _starts_of_lines(output)
    count, held = trajectory.n_atoms, np.float32 if width <= USUAL_WIDTH else np.float64
    with path.open("x") as file:
        for block in output.blocks():
            for at, positions in enumerate(block.positions):
                time = "" if block.times is None else f" t= {block.times[at]:.9g}"
                step = "" if block.steps is None else f" step= {block.steps[at]}"
                file.write(f"Written by Lossbench{time}{step}\n{count}\n")
                require_finite(positions, ".gro")
                with np.errstate(over="ignore"):   # refused
                    output.rounded(positions, np.round(positions.astype(np.float64), decimals).astype(held))
                line = "%s" + f"%{width}.{decimals}f" * 3
                rows = positions
                if block.velocities is not None:
                    rows = np.concatenate([positions, block.velocities[at]], axis=1)
                    line += f"%{width}.{decimals + 1}f" * 3
                lines = [f"{line}\n" % (start, *row) for start, row in zip(starts, rows.tolist(), strict=True)]
                if any(len(one) != len(starts[0]) + width * rows.shape[1] + 1 for one in lines):
                    raise WorkbenchError(
                        f".gro has {width} characters for a number of {decimals} decimals, which are too few for numbers "
                        f"as large as {np.abs(rows).max():g}: write .trr"
                    )
                file.writelines(lines)
                edges = np.zeros((3, 3)) if block.edges is None else block.edges[at]
                places = PLACES if np.count_nonzero(edges - np.diag(np.diag(edges))) else PLACES[:3]
                file.write(" ".join(f"{edges[place]:.{decimals + 2}f}" for place in places) + "\n")
    return output.done()


def _fits_gro(trajectory: Trajectory) -> bool:
    return "residue" not in trajectory.atoms or trajectory.atoms["residue"].dtype.kind in "iu"


def _starts_of_lines(output: Output) -> list[str]:
    """What stands before the numbers of each atom in GRO: five characters for each residue, name and number."""
    atoms, count = output.trajectory.atoms, output.trajectory.n_atoms
    named = _named(output.trajectory, ("name", "element", "type"))
    names = output.words(named, "X", 5, ascii=True) if named else ["X"] * count
    of_residues = output.words("residue_name", "MOL", 5, ascii=True) if "residue_name" in atoms else ["MOL"] * count
    residues = atoms["residue"] if "residue" in atoms and _fits_gro(output.trajectory) else np.ones(count, np.int64)
    if residues.min() < 0 or residues.max() > 99999:
        output.notes.append("numbers of residues are written modulo 100000, as the format has five digits")
    return [f"{number % 100000:5d}{residue:<5}{name:>5}{(at + 1) % 100000:5d}"
            for at, (number, residue, name) in enumerate(zip(residues.tolist(), of_residues, names, strict=True))]


def _named(trajectory: Trajectory, columns: tuple[str, ...]) -> str:
    """The first of these columns that there is, or nothing."""
    return next((name for name in columns if name in trajectory.atoms), "")


def _fits(column: np.ndarray, name: str) -> bool:
    """Whether a dump can hold a column: ids and residues are whole numbers, masses and charges are numbers."""
    return column.dtype.kind in {"id": "iu", "residue": "iu", "mass": "iuf", "charge": "iuf"}.get(name, "iufU")


def _boundaries(trajectory: Trajectory) -> list[str]:
    """What the source said of the faces of its box, if it was of LAMMPS."""
    flags = trajectory.metadata.get("boundaries")
    stated = isinstance(flags, list) and len(flags) == 3 and all(re.fullmatch("[pfsm]{2}", str(flag)) for flag in flags)
    return list(map(str, flags)) if stated else BOUNDARIES   # type: ignore[arg-type]


def _columns(output: Output, fitting: Sequence[str]) -> dict[str, list[str]]:
    """The columns of atoms as LAMMPS calls them; ids and types are always there, and types are numbers."""
    count = output.trajectory.n_atoms
    atoms = {name: column for name, column in output.trajectory.atoms.items() if name in fitting}
    types = atoms.get("type", np.ones(count, np.int64))
    if types.dtype.kind not in "iu":
        types = np.unique(types, return_inverse=True)[1] + 1
        output.notes.append("the types of atoms are written as numbers, in the order of their names")
    atoms = {"id": np.arange(1, count + 1), **atoms, "type": types}
    return {
        theirs: output.words(ours, "X") if ours == "element" else list(map(str, atoms[ours].tolist()))
        for theirs, ours in TAKEN.items() if ours in atoms
    }


def _bounds(
    positions: np.ndarray, edges: np.ndarray | None, origins: np.ndarray | None, at: int
) -> tuple[str, str]:
    """The title and the lines of the box: the bounds of the smallest box around a triclinic cell, and its tilts."""
    held = np.where(np.isfinite(positions), positions, 0)
    around = [(low, high if high > low else low + max(1.0, abs(low)))
              for low, high in zip(held.min(axis=0).tolist(), held.max(axis=0).tolist(), strict=True)]
    if edges is None:
        return "", "".join(f"{low:.17g} {high:.17g}\n" for low, high in around)
    require_lower(edges[at], ".lammpstrj")
    low = np.zeros(3) if origins is None else np.array(origins[at], np.float64)
    high, (xy, xz, yz) = low + edges[at].diagonal(), (edges[at][1, 0], edges[at][2, 0], edges[at][2, 1])
    if not (xy or xz or yz):
        ends = zip(low.tolist(), high.tolist(), around, strict=True)
        return "", "".join("{:.17g} {:.17g}\n".format(*((a, b) if b > a else other)) for a, b, other in ends)
    low += [min(0.0, xy, xz, xy + xz), min(0.0, yz), 0.0]
    high += [max(0.0, xy, xz, xy + xz), max(0.0, yz), 0.0]
    rows = zip(low.tolist(), high.tolist(), (xy, xz, yz), strict=True)
    return "xy xz yz ", "".join(f"{a:.17g} {b:.17g} {tilt:.17g}\n" for a, b, tilt in rows)
