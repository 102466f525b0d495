"""NumPy files: a bare array in `.npy`; in `.npz` either particles under their own names, or arrays to choose from.

Arrays of Python objects are refused: they are pickles, and opening a file must never execute it.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from workbench.data.field import Field
from workbench.data.particles import COMPANIONS, Particles
from workbench.data.readers.arrays import Spacing, particles_or_field
from workbench.data.readers.format import Format
from workbench.data.readers.further import Shaped, Wanted, chosen, offered
from workbench.data.readers.leaving import named, noted
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, chosen_name, particles
from workbench.data.readers.snapshots import Snapshot
from workbench.data.readers.source import Source, plain
from workbench.data.readers.tables import OWN, POSITIONS, Table, require_positions, require_rows, row_of
from workbench.data.triclinic import KEY as CELL
from workbench.data.triclinic import is_triclinic
from workbench.errors import WorkbenchError

BESIDE = ("box", *COMPANIONS)   # positions, in a file of particles


def read_npy(
    source: Source,
    *,
    kind: str | None = None,
    frame: int | None = None,
    box: Any = None,
    wrap: bool = False,
    spacing: Spacing = None,
) -> Particles | Field:
    """An `.npy` file. The memory map refuses a file shorter than its header says before anything is allocated."""
    with source.read_by("NumPy"):
        mapped = _mapped(source.path)
        source.require_room("the array", mapped.nbytes)
        array = np.array(mapped)
    return particles_or_field(array, kind, frame, box, spacing, metadata={"format": "NumPy npy"}, wrap=wrap)


@dataclass(frozen=True, kw_only=True)
class NpyTable(Table):
    """Columns in `.npy` files, read through memory maps: each in a file of its own."""

    paths: Mapping[str, Path]

    @classmethod
    def of(cls, paths: Mapping[str, Path], mass: float | None = None) -> Self:
        """The table of these files, by column; only their headers are read. `mass` is the one of all particles."""
        positions = _mapped(paths[POSITIONS])
        require_positions([positions], ("the array",), paths[POSITIONS].name)
        count, dimensions = positions.shape
        for column, path in paths.items():
            require_rows(_mapped(path), column, "the array", count, 1, dimensions, path.name)
        dtype = positions.dtype.newbyteorder("=")
        further = {column: row_of([_mapped(path)]) for column, path in paths.items() if column not in OWN}
        return cls(
            path=paths[POSITIONS], count=count, dtype=dtype, dimensions=dimensions, mass=mass, paths=dict(paths),
            further=further,
        )

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns in the files, without positions."""
        return tuple(name for name in self.paths if name != POSITIONS)

    def rows(self, column: str, start: int, stop: int) -> np.ndarray:
        """The rows from `start` to `stop`."""
        return np.array(_mapped(self.paths[column])[start:stop])


def npy_snapshot(sources: Sequence[Source]) -> Snapshot:
    """Positions in `.npy` files: each holds some of them."""
    tables = [NpyTable.of({POSITIONS: source.path}) for source in sources]
    return Snapshot.of(sources[0].name, tables, None, {"format": "NumPy npy"})


def _mapped(path: Path) -> np.ndarray:
    """An array in a file. A file shorter than its header says is refused."""
    with Source.at(path).read_by("NumPy"):
        return np.lib.format.open_memmap(path, mode="r")


def read_npz(
    source: Source,
    *,
    name: str | None = None,
    kind: str | None = None,
    frame: int | None = None,
    box: FileBox = FROM_FILE,
    wrap: bool = False,
    spacing: Spacing = None,
    columns: Wanted = None,
) -> Particles | Field:
    """An `.npz` file: `positions` (`box` or `cell`, `velocities`, `ids`, `masses`) are particles; or `name` chooses."""
    with source.read_by("NumPy"), source.path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
        shapes = _shapes(source)
        if name is None and "positions" in file.files:
            _refuse_for_particles(kind=kind, frame=frame, spacing=spacing)
            _require_room(source, shapes, shapes)
            return _particles(file, shapes, box, wrap, columns, source.name)
        if columns is not None:
            raise WorkbenchError(f"columns={columns!r} is for particles; no array of {source.name} is named positions")
        numeric = {key: shape for key, (shape, dtype) in shapes.items() if shape and dtype.kind in "fiu"}
        chosen = chosen_name(name, numeric, "file")
        _require_room(source, shapes, [chosen])
        array = file[chosen]
    own: Any = None if isinstance(box, str) and box == FROM_FILE else box
    metadata = noted({"format": "NumPy npz"}, named("array", shapes.keys() - {chosen}))
    return particles_or_field(array, kind, frame, own, spacing, chosen, metadata, wrap)


def arrays_of(source: Source) -> dict[str, np.ndarray]:
    """All arrays of an `.npz` file."""
    with source.read_by("NumPy"), source.path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
        _require_room(source, shapes := _shapes(source), shapes)
        return {name: file[name] for name in shapes}


def _shapes(source: Source) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """The shape and type of each array, from the first bytes of each member: nothing is loaded for it."""
    found = {}
    with zipfile.ZipFile(source.path) as archive:
        for member in archive.namelist():
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(file)
                found[member.removesuffix(".npy")] = shape, dtype
    return found


def _require_room(source: Source, shapes: Mapping[str, tuple[tuple[int, ...], np.dtype]], names: Iterable[str]) -> None:
    for shape, dtype in (shapes[name] for name in names):
        source.require_room("an array", math.prod(shape) * dtype.itemsize)


def _particles(
    file: Any, shapes: dict[str, tuple[tuple[int, ...], np.dtype]], box: FileBox, wrap: bool, wanted: Wanted, where: str
) -> Particles:
    companions = {key: file[key] for key in BESIDE if key in file.files}
    own = companions.pop("box", None)
    cell = _triclinic(file, shapes)
    others = shapes.keys() - {"positions", *BESIDE, *(() if cell is None else (CELL,))}
    columns = {}
    if wanted is not None:
        there = offered({key: Shaped(*shapes[key]) for key in sorted(others)}, shapes["positions"][0][0])
        columns = {key: file[key] for key in chosen(wanted, [there], where, BESIDE)}
    others -= columns.keys()
    single = {key: plain(file[key]) for key in others if shapes[key][0] == ()}
    metadata = noted({"format": "NumPy npz", **single}, named("array", others - single.keys()))
    lengths = own if own is not None and isinstance(box, str) and box == FROM_FILE else box
    return particles(file["positions"], cell, lengths, metadata=metadata, wrap=wrap, columns=columns, **companions)


def _triclinic(file: Any, shapes: Mapping[str, tuple[tuple[int, ...], np.dtype]]) -> Cell | None:
    """The triclinic cell whose edges are the rows of the array `cell`; None if there is none."""
    shape, dtype = shapes.get(CELL, ((), np.dtype(bool)))
    if shape not in ((2, 2), (3, 3)) or dtype.kind != "f":
        return None
    edges = file[CELL]
    return Cell.of_edges(edges) if np.isfinite(edges).all() and is_triclinic(edges) else None


def _refuse_for_particles(**options: Any) -> None:
    given = [key for key, value in options.items() if value is not None and value != "particles"]
    if given:
        raise WorkbenchError(f"{given[0]} makes no sense for the particles in this file: choose an array by name=...")


def is_npz(source: Source) -> bool:
    """A zip archive of `.npy` members, or one too damaged to tell: other zip files have other readers."""
    if not source.starts_with(b"PK\x03\x04", b"PK\x05\x06"):
        return False
    try:
        with zipfile.ZipFile(source.path) as archive:
            names = archive.namelist()
    except Exception:   # a forged zip file can make the standard library raise anything
        return source.path.suffix == ".npz"
    return all(name.endswith(".npy") for name in names)


NPY = Format("npy", "NumPy array (.npy)", lambda source: source.starts_with(b"\x93NUMPY"), read_npy, npy_snapshot)
NPZ = Format("npz", "NumPy archive (.npz)", is_npz, read_npz)
