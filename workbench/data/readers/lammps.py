"""LAMMPS text dumps: frames of named sections, atoms in any order, columns in any order.

Atoms are sorted by id, so that a particle keeps its place from frame to frame. The decimals are read as float64. The
low corner of the box becomes the origin, and coordinates that are fractions of the box (xs, ys, zs) become lengths.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.format import Format
from workbench.data.readers.frame_index import BYTES_OF_ATOM
from workbench.data.readers.frames import Parsed, TextFormat, frame_of_text
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import named, noted
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, chosen_frame, particles, shifted
from workbench.data.readers.source import Source
from workbench.data.trajectory import Trajectory
from workbench.data.triclinic import is_triclinic
from workbench.errors import WorkbenchError

SPELLINGS = (("x", "y", "z"), ("xu", "yu", "zu"), ("xs", "ys", "zs"), ("xsu", "ysu", "zsu"))
VELOCITIES, IMAGES = ("vx", "vy", "vz"), ("ix", "iy", "iz")
WHOLE = {"id": "id", "mol": "residue", "type": "type"}   # the columns of atoms that are whole numbers, and their names here
NUMBERS = {"mass": "mass", "q": "charge"}


@dataclass(frozen=True)
class Frame:
    """One frame as text: the step, the line that describes the box, its three lines, the columns, the atoms."""

    step: int
    bounds_title: list[str]
    bounds: list[str]
    columns: list[str]
    atoms: list[str]


def read(source: Source, *, frame: int = 0, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
    """One frame, atoms sorted by id where there are ids."""
    wanted = chosen_frame(frame)
    found, others = frame_of_text(source, wanted, _next_frame)
    table = _table(source, found)
    low, edges = _bounds(source, found)
    spelling = _spelling(source, found, table)
    positions = np.stack([table[name] for name in spelling], axis=1)
    positions = positions @ edges if "s" in spelling[0] else shifted(positions, low)
    velocities = np.stack([table[name] for name in VELOCITIES], axis=1) if set(VELOCITIES) <= table.keys() else None
    ids = table["id"].astype(np.int64) if "id" in table else None
    cell = _cell(source, found, edges, isinstance(box, str))
    metadata = {
        "format": "LAMMPS text dump",
        "frame": wanted,
        "step": found.step,
        "origin": low.tolist(),
        "boundaries": _flags(found),
        "units": "not stated; they are those of the LAMMPS run",
    }
    used = {"id", "mass", *spelling, *(VELOCITIES if velocities is not None else ())}
    metadata = noted(metadata, named("column", set(found.columns) - used), others)
    return particles(
        positions, cell, box, velocities, ids, metadata, table.get("mass"), images=Images.ANY, wrap=wrap
    )


def _spelling(source: Source, frame: Frame, table: dict[str, np.ndarray]) -> tuple[str, ...]:
    """The names of the columns that hold positions."""
    spelling = next((names for names in SPELLINGS if set(names) <= table.keys()), None)
    if spelling is None:
        listed = ", ".join(frame.columns)
        raise WorkbenchError(f"{source.name} has no columns x, y, z (or xu, xs, xsu, ...); it has {listed}")
    return spelling


def _flags(frame: Frame) -> list[str]:
    """The flags of each pair of faces, pp for periodic; old dumps have none."""
    return [word for word in frame.bounds_title if re.fullmatch("[pfsm]{2}", word)]


def _cell(source: Source, frame: Frame, edges: np.ndarray, needed: bool) -> Cell | None:
    lengths, triclinic = np.diag(edges), edges if is_triclinic(edges) else None
    if len(flags := _flags(frame)) != 3:
        if not needed:
            return None if triclinic is None else Cell(tuple(lengths.tolist()), triclinic)
        size = " x ".join(f"{length:g}" for length in lengths)
        raise WorkbenchError(
            f"{source.name} does not say which faces of its box ({size}) are periodic, as dumps before 2011 do not: "
            f"pass box=({', '.join(f'{length:g}' for length in lengths)}) if all are, or box=None for an open space"
        )
    return Cell(tuple(np.where([flag == "pp" for flag in flags], lengths, 0.0).tolist()), triclinic)


def _next_frame(source: Source, lines: Iterator[str], wanted: int, number: int) -> Frame:
    sections: dict[str, list[str]] = {}
    while "ATOMS" not in sections:
        title = next(lines, "").split()
        if number and not title and not sections:
            chosen_frame(wanted, frames=number)   # refused: the file has ended
        if title[:1] != ["ITEM:"] or len(title) < 2:
            raise source.damaged(f"expected a line that begins with ITEM:; got {' '.join(title)[:60]!r}")
        length = _whole(source, sections.get("NUMBER", [])) if title[1] == "ATOMS" else 3 if title[1] == "BOX" else 1
        source.require_room(f"frame {number}", min(length, source.size) * BYTES_OF_ATOM)
        body = list(itertools.islice(lines, length))
        if len(body) < length:
            raise source.damaged(f"expected {length} lines after {' '.join(title)[:40]!r}; got {len(body)}")
        sections[title[1]] = [" ".join(title[2:]), *body]
    if not {"TIMESTEP", "BOX"} <= sections.keys():
        raise source.damaged(f"expected the sections TIMESTEP and BOX BOUNDS in a frame; got {', '.join(sections)}")
    (columns, *atoms), (bounds_title, *bounds) = sections["ATOMS"], sections["BOX"]
    return Frame(_whole(source, sections["TIMESTEP"]), bounds_title.split(), bounds, columns.split(), atoms)


def _whole(source: Source, section: list[str]) -> int:
    text = section[1].strip() if section else "nothing"
    if not re.fullmatch(r"\d{1,15}", text, re.ASCII):
        raise source.damaged(f"expected a whole number for the step or the count of atoms; got {text[:40]!r}")
    return int(text)


def _table(source: Source, frame: Frame) -> dict[str, np.ndarray]:
    """The numeric columns by name, sorted by id."""
    rows = [line.split() for line in frame.atoms]
    if not rows or any(len(row) != len(frame.columns) for row in rows):
        raise source.damaged(f"expected lines of the {len(frame.columns)} columns {' '.join(frame.columns)}")
    wanted = {*WHOLE, *NUMBERS, *VELOCITIES, *IMAGES, *itertools.chain(*SPELLINGS)}
    try:
        table = {
            name: np.array([row[at] for row in rows], np.float64) for at, name in enumerate(frame.columns) if name in wanted
        }
    except ValueError as error:
        raise source.damaged(f"expected numbers in the lines of atoms: {error}") from None
    order = np.argsort(table["id"], kind="stable") if "id" in table else slice(None)
    return {name: column[order] for name, column in table.items()}


def _bounds(source: Source, frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    """The low corner and the edges of the cell; the file has the bounds of the smallest box around it, and three tilts."""
    try:
        numbers = np.array([line.split() for line in frame.bounds], np.float64)
    except ValueError:
        numbers = np.empty((0, 0))
    if numbers.shape not in ((3, 2), (3, 3)) or not np.isfinite(numbers).all() or (numbers[:, 1] <= numbers[:, 0]).any():
        raise source.damaged(f"expected three lines 'low high' of the box; got {[line.strip() for line in frame.bounds]}")
    xy, xz, yz = numbers[:, 2] if numbers.shape == (3, 3) else (0.0, 0.0, 0.0)
    low = numbers[:, 0] - [min(0.0, xy, xz, xy + xz), min(0.0, yz), 0.0]
    high = numbers[:, 1] - [max(0.0, xy, xz, xy + xz), max(0.0, yz), 0.0]
    if (high <= low).any():
        raise source.damaged(f"the tilts {xy:g}, {xz:g}, {yz:g} do not fit into the bounds of the box")
    x, y, z = high - low
    return low, np.array([[x, 0, 0], [xy, y, 0], [xz, yz, z]])


def _parsed(source: Source, frame: Frame) -> Parsed:
    """The arrays of a frame; positions that are fractions of the cell become lengths, from its low corner on."""
    table, (low, edges) = _table(source, frame), _bounds(source, frame)
    spelling = _spelling(source, frame, table)
    positions = np.stack([table[name] for name in spelling], axis=1)
    arrays = {
        "positions": positions @ edges + low if "s" in spelling[0] else positions, "cells": edges, "origins": low,
        "steps": np.array(frame.step),
    }
    for name, columns in (("velocities", VELOCITIES), ("images", IMAGES)):
        if set(columns) <= table.keys():
            values = np.stack([table[column] for column in columns], axis=1)
            arrays[name] = values.astype(np.int32) if name == "images" else values
    whole = {ours: table[theirs].astype(np.int64) for theirs, ours in WHOLE.items() if theirs in table}
    text = {"element": _words(frame, "element")} if "element" in frame.columns else {}
    numbers = {ours: table[theirs] for theirs, ours in NUMBERS.items() if theirs in table}
    return Parsed(arrays, {**whole, **text, **numbers}, {"boundaries": _flags(frame), "columns": frame.columns})


def _words(frame: Frame, name: str) -> np.ndarray:
    """A column of text, sorted by id where there are ids."""
    rows = [line.split() for line in frame.atoms]
    words, place = np.array([row[frame.columns.index(name)] for row in rows]), frame.columns
    return words[np.argsort([int(row[place.index("id")]) for row in rows], kind="stable")] if "id" in place else words


def trajectory(source: Source) -> Trajectory:
    """All frames, atoms sorted by id where there are ids; positions are from the origin of the run."""
    metadata = {"format": "LAMMPS text dump", "units": "not stated; they are those of the LAMMPS run"}
    return TEXT.trajectory(source, metadata)


TEXT = TextFormat(_next_frame, lambda frame: len(frame.atoms), _parsed)
LAMMPS = Format(
    "lammps", "LAMMPS text dump", lambda source: source.starts_with(b"ITEM: "), read, trajectory=trajectory
)
