"""Trajectories as text: XYZ, LAMMPS dumps and GRO. XYZ and dumps have all digits; those of GRO follow from the error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from workbench.data.readers.gro import PLACES
from workbench.data.trajectory import Trajectory
from workbench.data.writers.written import Output, Written, precision_for, require_lower

DIGITS = {"float32": "%.9g", "float64": "%.17g"}   # that give the same number again
BOUNDARIES = ("pp", "pp", "pp")


def write_xyz(trajectory: Trajectory, path: Path, within: float | None) -> Written:
    """Write all frames in the extended format, with the cell in the comment."""
    names = _names(trajectory, ("element", "name", "type"), "X")
    output, digits = Output(trajectory, "angstrom", ("cells", "times"), (names[0],)), DIGITS[trajectory.dtype.name]
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
                file.writelines(line % (name, *row) for name, row in zip(names[1], positions.tolist(), strict=True))
    return output.done()


def write_lammps(trajectory: Trajectory, path: Path, within: float | None) -> Written:
    """Write all frames as a dump; without a cell, a box around the atoms that is not periodic."""
    digits, columns, number = DIGITS[trajectory.dtype.name], _columns(trajectory), 0
    taken = {"id": "id", "mol": "residue", "type": "type", "element": "element", "mass": "mass", "q": "charge"}
    output = Output(trajectory, "", ("velocities", "images", "cells", "origins", "steps"), tuple(taken.values()))
    flags = trajectory.metadata.get("boundaries") or BOUNDARIES
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
    output = Output(trajectory, "nm", ("velocities", "cells", "times", "steps"), ("name", "residue", "residue_name"))
    decimals = round(float(np.log10(precision_for(trajectory, within, output.factor))))
    width, count = decimals + 5, trajectory.n_atoms
    names = _names(trajectory, ("name", "element", "type"), "X")[1]
    residues = trajectory.atoms.get("residue", np.ones(count, np.int64)).tolist()
    of_residues = trajectory.atoms.get("residue_name", np.full(count, "MOL")).tolist()
    starts = [f"{number % 100000:5d}{name[:5]:<5}{atom[:5]:>5}{(at + 1) % 100000:5d}"
              for at, (number, name, atom) in enumerate(zip(residues, of_residues, names, strict=True))]
    with path.open("x") as file:
        for block in output.blocks():
            for at, positions in enumerate(block.positions):
                time = "" if block.times is None else f" t= {block.times[at]:.9g}"
                step = "" if block.steps is None else f" step= {block.steps[at]}"
                file.write(f"Written by Lossbench{time}{step}\n{count}\n")
                output.rounded(positions, np.round(positions, decimals).astype(trajectory.dtype))
                line = "%s" + f"%{width}.{decimals}f" * 3
                rows = positions
                if block.velocities is not None:
                    rows = np.concatenate([positions, block.velocities[at]], axis=1)
                    line += f"%{width}.{decimals + 1}f" * 3
                file.writelines(f"{line}\n" % (start, *row) for start, row in zip(starts, rows.tolist(), strict=True))
                edges = np.zeros((3, 3)) if block.edges is None else block.edges[at]
                places = PLACES if np.count_nonzero(edges - np.diag(np.diag(edges))) else PLACES[:3]
                file.write(" ".join(f"{edges[place]:.{decimals + 2}f}" for place in places) + "\n")
    return output.done()


def _names(trajectory: Trajectory, columns: tuple[str, ...], unknown: str) -> tuple[str, list[str]]:
    """The first of these columns that there is as text, and its name."""
    for name in columns:
        if name in trajectory.atoms:
            return name, [str(one) or unknown for one in trajectory.atoms[name].tolist()]
    return "", [unknown] * trajectory.n_atoms


def _columns(trajectory: Trajectory) -> dict[str, list[str]]:
    """The columns of atoms as LAMMPS calls them; ids and types are always there."""
    atoms: Mapping[str, np.ndarray] = trajectory.atoms
    ids = atoms.get("id", np.arange(1, trajectory.n_atoms + 1))
    found = {"id": list(map(str, ids.tolist()))}
    if "residue" in atoms:
        found["mol"] = list(map(str, atoms["residue"].tolist()))
    types = atoms.get("type", np.ones(trajectory.n_atoms, np.int64))
    numbers = types if types.dtype.kind in "iu" else np.unique(types, return_inverse=True)[1] + 1
    found["type"] = list(map(str, numbers.tolist()))
    names = {"element": "element", "mass": "mass", "q": "charge"}
    return found | {theirs: list(map(str, atoms[ours].tolist())) for theirs, ours in names.items() if ours in atoms}


def _bounds(
    positions: np.ndarray, edges: np.ndarray | None, origins: np.ndarray | None, at: int
) -> tuple[str, str]:
    """The title and the lines of the box: the bounds of the smallest box around a triclinic cell, and its tilts."""
    around = [(low, high if high > low else low + 1)
              for low, high in zip(positions.min(axis=0).tolist(), positions.max(axis=0).tolist(), strict=True)]
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
