"""XYZ text files: a count, a comment, one line per atom, and so on for every frame.

The numbers are decimals and are read as float64, which keeps all their digits. The plain format knows no box; the
extended one has it in the comment, as Lattice="..." with nine numbers, and may say there which column is the position.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.format import Format
from workbench.data.readers.frames import Parsed, TextFormat, atoms_in, frame_of_text
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import noted
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, chosen_frame, particles
from workbench.data.readers.source import Source
from workbench.data.trajectory import Trajectory
from workbench.data.triclinic import is_triclinic


def read(source: Source, *, frame: int = 0, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
    """One frame. Without a lattice in the comment the atoms are in an open space: give `box=` if they are not."""
    wanted = chosen_frame(frame)
    (comment, atoms), others = frame_of_text(source, wanted, _next_frame)
    metadata = {"format": "XYZ", "frame": wanted, "comment": comment.strip(), "units": "not stated; angstrom by convention"}
    columns = "the columns other than positions, such as the names of atoms"
    metadata = noted(metadata, others, [columns])
    positions, cell = _positions(source, comment, atoms), _cell(source, comment)
    return particles(positions, cell, box, metadata=metadata, images=Images.ANY, wrap=wrap)


def _next_frame(source: Source, lines: Iterator[str], wanted: int, number: int) -> tuple[str, list[str]]:
    count_line = next(lines, "")
    if number and not count_line.strip():
        chosen_frame(wanted, frames=number)   # refused: the file has ended
    count = atoms_in(source, count_line, number)
    comment = next(lines, "")
    atoms = list(itertools.islice(lines, count))
    if len(atoms) < count:
        raise source.damaged(f"expected {count} lines of atoms in frame {number}; got {len(atoms)}")
    return comment, atoms


def _positions(source: Source, comment: str, atoms: list[str]) -> np.ndarray:
    first = _column(comment, "pos", 1) or 0
    try:
        return np.array([line.split()[first : first + 3] for line in atoms], np.float64).reshape(-1, 3)
    except ValueError:
        bad = next((line for line in atoms if not _has_numbers(line, first)), atoms[0])
        raise source.damaged(f"expected x, y and z from column {first + 1} on; got {bad.strip()[:60]!r}") from None


def _column(comment: str, wanted: str, usual: int) -> int | None:
    """Where a column begins: where it usually is, unless the extended format says Properties=name:type:width:... otherwise.

    None if that format leaves it out; of positions, the usual place.
    """
    found = re.search(r"\bProperties=(\S+)", comment)
    words = found[1].split(":") if found else []
    column = 0
    for name, _, width in zip(words[::3], words[1::3], words[2::3], strict=False):
        if name == wanted:
            return column
        column += int(width) if width.isdigit() else 1
    return None if words and wanted != "pos" else usual


def _lattice(source: Source, comment: str) -> np.ndarray | None:
    """The edges of the cell that the comment states."""
    found = re.search(r'\bLattice="([^"]*)"', comment)
    if found is None:
        return None
    try:
        return np.array(found[1].split(), np.float64).reshape(3, 3)
    except ValueError:
        raise source.damaged(f"Lattice must have nine numbers; got {found[1]!r}") from None


def _cell(source: Source, comment: str) -> Cell | None:
    edges = _lattice(source, comment)
    if edges is None:
        return None
    flags = re.search(r'\bpbc="([^"]*)"', comment)
    periodic = [word.upper().startswith(("T", "1")) for word in flags[1].split()] if flags else [True] * 3
    lengths = tuple(np.where(periodic, np.linalg.norm(edges, axis=1), 0).tolist()) if len(periodic) == 3 else (0.0,) * 3
    return Cell(lengths, edges if is_triclinic(edges) else None)


def _has_numbers(line: str, first: int) -> bool:
    try:
        return len([float(word) for word in line.split()[first : first + 3]]) == 3
    except ValueError:
        return False


def _recognises(source: Source) -> bool:
    """A whole number alone on the first line, and on the third an atom: something, then three numbers."""
    try:
        lines = source.head.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        lines = source.head[: error.start].decode("utf-8").splitlines()
    if len(lines) < 3 or not re.fullmatch(r"\s*\d+\s*", lines[0]):
        return False
    return _has_numbers(lines[2], _column(lines[1], "pos", 1) or 0) or "Properties=" in lines[1]


def _parsed(source: Source, found: tuple[str, list[str]]) -> Parsed:
    """The arrays of a frame, and what its atoms are called."""
    comment, lines = found
    arrays, cell = {"positions": _positions(source, comment, lines)}, _lattice(source, comment)
    if cell is not None:
        arrays["cells"] = cell
    column = _column(comment, "species", 0)
    words = [] if column is None else [line.split()[column] for line in lines]
    columns = {"element": np.array(words)} if words else {}
    return Parsed(arrays, columns, {"comment": comment.strip()})


def trajectory(source: Source) -> Trajectory:
    """All frames, with the elements of the atoms."""
    metadata = {"format": "XYZ", "units": "not stated; angstrom by convention"}
    return TEXT.trajectory(source, metadata, ["what lines and comments have beside elements, positions and cells"])


TEXT = TextFormat(_next_frame, lambda found: len(found[1]), _parsed)
XYZ = Format("xyz", "XYZ trajectory", _recognises, read, trajectory=trajectory)
