"""The particles in one file of a snapshot, as columns whose rows can be read alone.

A table is a small value: it knows where the columns lie, and opens the file only while it reads. Whole snapshots and chunks
are read through the same tables, so they cannot differ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from workbench.data.chunked import even_sizes, holds_positions
from workbench.data.columns import TYPES, row_type
from workbench.data.readers.hdf5 import opened, refuse_missing_sources
from workbench.data.readers.limits import DEFAULT, ReadLimits
from workbench.data.readers.source import Source
from workbench.errors import WorkbenchError

POSITIONS, VELOCITIES, IDS, MASSES = "positions", "velocities", "ids", "masses"
OWN = (POSITIONS, VELOCITIES, IDS, MASSES)


@dataclass(frozen=True, kw_only=True)
class Table(ABC):
    """`count` particles in a file, with positions of this type, in the box and at the time that the file states."""

    path: Path
    count: int
    dtype: np.dtype
    dimensions: int = 3
    box: tuple[float, ...] | None = None
    time: float | None = None
    mass: float | None = None   # of each particle, where all have the same
    particle_type: int | None = None
    further: Mapping[str, np.dtype] = field(default_factory=dict)   # columns of other names: the types of a row
    limits: ReadLimits = DEFAULT

    @property
    def name(self) -> str:
        """The file, for messages."""
        return self.path.name

    @property
    @abstractmethod
    def stored(self) -> tuple[str, ...]:
        """The columns in the file, without positions."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that can be read, without positions."""
        return (*self.stored, MASSES) if self.mass is not None and MASSES not in self.stored else self.stored

    @abstractmethod
    def rows(self, column: str, start: int, stop: int) -> np.ndarray:
        """The rows from `start` to `stop` of positions or of a stored column."""

    def read(self, column: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Rows of any column in native byte order: all, or those from `start` to `stop`."""
        stop = self.count if stop is None else stop
        axes = self.dimensions if column in (POSITIONS, VELOCITIES) else 1
        row = self.further[column].itemsize if column in self.further else axes * self.dtype.itemsize
        self._require_room(column, (stop - start) * row)
        if column == MASSES and column not in self.stored:
            return np.full(stop - start, self.mass)
        found = self.rows(column, start, stop)
        if len(found) != stop - start:
            raise WorkbenchError(
                f"{self.name} must hold {self.count:,} particles, as when it was opened; its {column} end after "
                f"{start + len(found):,}"
            )
        return found.astype(found.dtype.newbyteorder("="), copy=False)

    def _require_room(self, column: str, nbytes: int) -> None:
        """Refuse rows that take implausibly much memory for what the file stores."""
        if self.path.is_file():
            self.limits.require_room(nbytes, self.path.stat().st_size, f"the column {column} of {self.name}")

    def sizes(self, most: int) -> tuple[int, ...]:
        """The division into chunks of about `most` particles; finer than the file stores them would be read repeatedly."""
        return even_sizes(self.count, most)


@dataclass(frozen=True, kw_only=True)
class Hdf5Table(Table):
    """Columns in data sets of an HDF5 file: one for each column, or one for each axis."""

    sets: Mapping[str, tuple[str, ...]]
    unit: int = 1   # rows that are stored, and compressed, together

    @classmethod
    def of(cls, file: Any, path: Path, sets: Mapping[str, tuple[str, ...]], **more: Any) -> Hdf5Table:
        """The table of these data sets of an open file; refused if they do not fit together."""
        positions = [dataset_at(file, name, path.name) for name in sets[POSITIONS]]
        require_positions(positions, sets[POSITIONS], path.name)
        count, axes = len(positions[0]), positions[0].shape[1] if len(positions) == 1 else len(positions)
        for column, names in sets.items():
            for name in names:
                require_rows(dataset_at(file, name, path.name), column, name, count, len(names), axes, path.name)
        unit = positions[0].chunks[0] if positions[0].chunks else 1
        dtype = positions[0].dtype.newbyteorder("=")
        found = {column: [dataset_at(file, name, path.name) for name in names] for column, names in sets.items()}
        further = {column: row_of(parts) for column, parts in found.items() if column not in OWN}
        return cls(
            path=path, count=count, dtype=dtype, dimensions=axes, sets=dict(sets), unit=unit, further=further, **more
        )

    def with_further(self, sets: Mapping[str, tuple[str, ...]], rows: Mapping[str, np.dtype]) -> Self:
        """The same with further columns: their data sets, and the types of a row."""
        return replace(self, sets={**self.sets, **sets}, further=dict(rows))

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns in the file, without positions."""
        return tuple(name for name in self.sets if name != POSITIONS)

    def rows(self, column: str, start: int, stop: int) -> np.ndarray:
        """The rows from `start` to `stop`."""
        with opened(Source.at(self.path, self.limits)) as file:
            found = []
            for name in self.sets[column]:
                dataset = dataset_at(file, name, self.name)
                refuse_missing_sources(dataset, self.path)
                found.append(np.asarray(dataset[start:stop]))
        return side_by_side(found)

    def sizes(self, most: int) -> tuple[int, ...]:
        """Whole HDF5 chunks, so that none is decoded twice."""
        return even_sizes(self.count, most, self.unit)


def dataset_at(group: Any, name: str, where: str) -> Any:
    """The data set (or Zarr array) of that name; an error lists those that can be particles."""
    found = group.get(name)
    if found is not None and hasattr(found, "shape"):
        return found
    listed = ", ".join(f"{key} {'x'.join(map(str, shape))}" for key, shape in sorted(_columns_in(group).items())) or "none"
    raise WorkbenchError(f"{where} has no data set {name!r}; those that can be columns of particles are {listed}")


def require_positions(found: list[Any], names: tuple[str, ...], where: str) -> None:
    """Refuse what cannot be positions: floats (N, 2) or (N, 3), or two or three columns (N,) of one type."""
    told = ", ".join(f"{name} {one.dtype} {one.shape}" for name, one in zip(names, found, strict=True))
    if len(found) == 1 and holds_positions(found[0]):
        return
    kinds = {(one.dtype, one.shape) for one in found}
    alike = len(kinds) == 1 and len(found) in (2, 3) and len(found[0].shape) == 1
    if not (alike and found[0].dtype.kind == "f" and found[0].dtype.itemsize in (4, 8)):
        raise WorkbenchError(
            f"positions must be float32 or float64, (N, 2) or (N, 3) or two or three data sets (N,); {where} has {told}"
        )


def require_rows(found: Any, column: str, name: str, count: int, parts: int, axes: int, where: str) -> None:
    """Refuse a column that does not fit the positions."""
    if column not in OWN:
        _require_further(found, column, name, count, parts, where)
        return
    shape = (count, axes) if column in (POSITIONS, VELOCITIES) and parts == 1 else (count,)
    kinds = "iu" if column == IDS else "f"
    if tuple(found.shape) != shape or found.dtype.kind not in kinds or parts not in (1, axes):
        what = "integers" if column == IDS else "floats"
        raise WorkbenchError(f"{column} must be {what} of shape {shape}; {name} in {where} is {found.dtype} {found.shape}")


def _require_further(found: Any, column: str, name: str, count: int, parts: int, where: str) -> None:
    """Refuse a column of another name that does not fit the positions: numbers, or several in a row."""
    fits = found.dtype.name in TYPES and len(found.shape) in ((1, 2) if parts == 1 else (1,)) and found.shape[0] == count
    if not fits or 0 in found.shape:
        shape = f"({count},) or ({count}, k)" if parts == 1 else f"({count},)"
        raise WorkbenchError(
            f"the column {column} must be numbers of shape {shape}; {name} in {where} is {found.dtype} {tuple(found.shape)}"
        )


def row_of(parts: Sequence[Any]) -> np.dtype:
    """The type of a row of one array, or of several side by side.

    >>> row_of([np.zeros(5, "f4")] * 3)
    dtype(('<f4', (3,)))
    """
    if len(parts) == 1:
        return row_type(parts[0])
    return np.dtype((np.result_type(*(part.dtype.newbyteorder("=") for part in parts)), (len(parts),)))


def side_by_side(columns: list[np.ndarray]) -> np.ndarray:
    """One array as it is, or an axis from each of several."""
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


def arrays_in(group: Any) -> dict[str, Any]:
    """The arrays in an HDF5 file or a Zarr group, and in the groups of it."""
    nodes: dict[str, Any] = {}
    if hasattr(group, "visititems"):
        group.visititems(nodes.__setitem__)
    else:
        nodes.update(group.members(max_depth=None))
    return {path: node for path, node in nodes.items() if hasattr(node, "shape")}


def _columns_in(group: Any) -> dict[str, tuple[int, ...]]:
    """The arrays in an HDF5 file or a Zarr group that have the shape of a column of particles."""
    numeric = {path: node for path, node in arrays_in(group).items() if node.shape and node.dtype.kind in "fiu"}
    shapes = {path: tuple(node.shape) for path, node in numeric.items()}
    return {path: shape for path, shape in shapes.items() if len(shape) == 1 or (len(shape) == 2 and shape[1] in (2, 3))}
