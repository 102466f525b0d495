"""GROMACS `.gro` structures: a title, a count, atoms in fixed columns and the cell; several frames follow one another.

The width of the columns follows from the first atom, as in GROMACS: the distance between two decimal points. Three decimals
are read as float32, more as float64.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.format import Format
from workbench.data.readers.frames import Parsed, TextFormat, atoms_in, frame_of_text
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import noted
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, chosen_frame, particles
from workbench.data.readers.source import Source
from workbench.data.trajectory import Trajectory

ATOM = re.compile(rb"[ \d]{5}.{5}.{5}[ \d]{5} *-?\d+\.\d+ *-?\d+\.\d+ *-?\d+\.\d+")
NAMES = 20            # characters in front of the numbers
USUAL_WIDTH = 8       # of a position with three decimals
PLACES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))   # of the numbers of a cell
COLUMNS = {"residue": slice(0, 5), "residue_name": slice(5, 10), "name": slice(10, 15)}   # of a line
STATED = {"time": re.compile(r"\bt=\s*([-+\d.eE]+)"), "step": re.compile(r"\bstep=\s*(-?\d+)")}


def is_gro(source: Source) -> bool:
    """A title, the number of atoms, and a line of fixed columns."""
    lines = source.head.split(b"\n")
    return len(lines) > 2 and lines[1].strip().isdigit() and ATOM.match(lines[2]) is not None


def read(source: Source, *, frame: int = 0, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
    """The positions of a frame, and velocities where there are any, in nanometres and picoseconds."""
    wanted = chosen_frame(frame)
    (title, atoms, edges), others = frame_of_text(source, wanted, _next_frame)
    values = _numbers(source, atoms)
    metadata: dict[str, Any] = {
        "format": "GROMACS gro", "frame": wanted, "title": title.strip(), **_stated(title),
        "units": {"length": "nm", "time": "ps", "velocity": "nm/ps"},
    }
    metadata = noted(metadata, others, ["names of atoms and residues"])
    velocities = values[:, 3:] if values.shape[1] == 6 else None
    cell = Cell.of_edges(_edges(source, edges))
    return particles(values[:, :3], cell, box, velocities, metadata=metadata, images=Images.ANY, wrap=wrap)


def _next_frame(source: Source, lines: Iterator[str], wanted: int, number: int) -> tuple[str, list[str], str]:
    """The title, the lines of atoms and that of the cell."""
    title, count_line = next(lines, ""), next(lines, "")
    if number and not (title + count_line).strip():
        chosen_frame(wanted, frames=number)   # refused: the file has ended
    count = atoms_in(source, count_line, number)
    atoms = list(itertools.islice(lines, count))
    edges = next(lines, "")
    if len(atoms) < count or not edges.strip():
        raise source.damaged(f"expected {count} lines of atoms and one of the cell in frame {number}; got {len(atoms)}")
    return title, atoms, edges


def _numbers(source: Source, atoms: list[str]) -> np.ndarray:
    """Positions (N, 3), or positions and velocities (N, 6)."""
    first = atoms[0]
    point = first.find(".", NAMES)
    width = first.find(".", point + 1) - point
    if point < 0 or width < 2:
        raise source.damaged(f"expected positions in columns from {NAMES + 1} on; got {first.strip()[:60]!r}")
    columns = 6 if len(first.rstrip()) > NAMES + 5 * width else 3
    places = [slice(NAMES + number * width, NAMES + (number + 1) * width) for number in range(columns)]
    dtype = np.float32 if width <= USUAL_WIDTH else np.float64
    try:
        return np.array([[float(line[place]) for place in places] for line in atoms], dtype)
    except ValueError as error:
        raise source.damaged(f"expected {columns} numbers of {width} characters for each atom: {error}") from None


def _stated(title: str) -> dict[str, float]:
    """The time and the step that a title states."""
    found = {name: pattern.search(title) for name, pattern in STATED.items()}
    try:
        return {name: float(match[1]) for name, match in found.items() if match}
    except ValueError:   # words of a title that only look like it
        return {}


def _edges(source: Source, line: str) -> np.ndarray:
    """The edges of the cell from three numbers or nine: the diagonal first."""
    try:
        numbers = [float(word) for word in line.split()]
    except ValueError:
        numbers = []
    if len(numbers) not in (3, 9) or not np.isfinite(numbers).all():
        raise source.damaged(f"the cell must have three numbers or nine; got {line.strip()[:60]!r}")
    edges = np.zeros((3, 3))
    for place, number in zip(PLACES, numbers, strict=False):
        edges[place] = number
    return edges


def _parsed(source: Source, found: tuple[str, list[str], str]) -> Parsed:
    """The arrays of a frame, and the names of its atoms."""
    title, lines, edges = found
    values, cell, stated = _numbers(source, lines), _edges(source, edges), _stated(title)
    arrays = {"positions": values[:, :3]}
    if values.shape[1] == 6:
        arrays["velocities"] = values[:, 3:]
    if cell.any():
        arrays["cells"] = cell
    if "time" in stated:
        arrays["times"] = np.array(stated["time"])
    if "step" in stated:
        arrays["steps"] = np.array(int(stated["step"]))
    columns = {name: np.array([line[at].strip() for line in lines]) for name, at in COLUMNS.items()}
    residues = columns.pop("residue")
    if all(map(str.isdecimal, residues.tolist())):
        columns["residue"] = residues.astype(np.int64)
    return Parsed(arrays, columns, {"title": title.strip()})


def trajectory(source: Source) -> Trajectory:
    """All frames, with the names of atoms and residues."""
    units = {"length": "nm", "time": "ps", "velocity": "nm/ps"}
    return TEXT.trajectory(source, {"format": "GROMACS gro", "units": units})


TEXT = TextFormat(_next_frame, lambda found: len(found[1]), _parsed)
GRO = Format("gro", "GROMACS structure (.gro)", is_gro, read, trajectory=trajectory)
