"""A snapshot in one or several files, none of it read yet: the origin of whole particles and of particles in chunks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from workbench import backend
from workbench.data.chunked import CHUNK, ChunkedParticles, require_equal
from workbench.data.particles import Particles
from workbench.data.readers.images import Images, require_box_to_wrap, require_placed
from workbench.data.readers.leaving import KEY, noted
from workbench.data.readers.limits import ReadLimits
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, checked_box, chosen_box, particles
from workbench.data.readers.tables import IDS, MASSES, OWN, POSITIONS, VELOCITIES, Table
from workbench.errors import WorkbenchError


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The tables of all files with particles; files without any contribute nothing and are left out."""

    name: str
    tables: tuple[Table, ...]
    cell: Cell | None
    metadata: Mapping[str, Any]
    images: Images = Images.CORNER

    @classmethod
    def of(
        cls, name: str, tables: Sequence[Table], cell: Cell | None, metadata: Mapping[str, Any], **more: Any
    ) -> Snapshot:
        """The snapshot of tables that agree; those that do not are named."""
        filled = tuple(table for table in tables if table.count)
        if not filled:
            raise WorkbenchError(f"{name} holds no particles")
        require_equal(filled)
        _require_same_columns(filled)
        return cls(name, filled, cell, metadata, **more)

    def within(self, limits: ReadLimits) -> Snapshot:
        """The same, read within these limits."""
        return replace(self, tables=tuple(replace(table, limits=limits) for table in self.tables))

    def noting(self, others: list[str]) -> Snapshot:
        """The same, with more contents that are not read."""
        return replace(self, metadata=noted(self.metadata, self.metadata.get(KEY, []), others)) if others else self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that all files have."""
        return tuple(name for name in self.tables[0].columns if all(name in table.columns for table in self.tables))

    @property
    def mass(self) -> float | None:
        """The mass of each particle, where all have the same by the headers of the files."""
        stated = {None if MASSES in table.stored else table.mass for table in self.tables}
        return stated.pop() if len(stated) == 1 else None

    def particles(self, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
        """All particles, with velocities, ids, masses and further columns where all files have them."""
        positions, velocities, ids = (self._joined(name) for name in (POSITIONS, VELOCITIES, IDS))
        masses = self._joined(MASSES) if self.mass is None else self.mass
        further = {name: self._joined(name) for name in self.columns if name not in OWN}
        return particles(
            positions, self.cell, box, velocities, ids, self.metadata, masses, images=self.images, wrap=wrap,
            columns=further,
        )

    def in_chunks(self, box: FileBox = FROM_FILE, wrap: bool = False, chunk: int = CHUNK) -> ParticlesInFiles:
        """The particles in chunks of about this many; no chunk extends over two files."""
        dimensions = self.tables[0].dimensions
        chosen = chosen_box(self.cell, box)
        periods = None if chosen is None else checked_box(chosen, dimensions)
        if periods is None:
            require_box_to_wrap(wrap)
        sizes = [table.sizes(chunk) for table in self.tables]
        starts = [(number, start) for number, one in enumerate(sizes) for start in itertools.accumulate((0, *one[:-1]))]
        images = self.images if isinstance(box, str) or self.images is not Images.ANY else Images.CORNER
        return ParticlesInFiles(
            name=self.name, sizes=tuple(itertools.chain(*sizes)), dtype=self.tables[0].dtype, dimensions=dimensions,
            box=periods, columns=self.columns, mass=self.mass, metadata=dict(self.metadata), tables=self.tables,
            places=tuple(starts), images=images, wrap=wrap,
        )

    def _joined(self, column: str) -> np.ndarray | None:
        if column != POSITIONS and column not in self.columns:
            return None
        parts = [table.read(column) for table in self.tables]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ParticlesInFiles(ChunkedParticles):
    """The particles of a snapshot in chunks; positions are brought into the box as `wb.open` does it."""

    name: str
    sizes: tuple[int, ...]
    dtype: np.dtype
    dimensions: int
    box: tuple[float, ...] | None
    columns: tuple[str, ...]
    mass: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tables: tuple[Table, ...]
    places: tuple[tuple[int, int], ...]   # of each chunk: its table, and the first row there
    images: Images = Images.CORNER
    wrap: bool = False
    extent: tuple[np.ndarray, np.ndarray] | None = None

    def read(self, number: int) -> np.ndarray:
        """The positions in a chunk, inside the box."""
        return self.read_rows(number, POSITIONS, 0, self.sizes[number])

    def column(self, number: int, name: str) -> np.ndarray:
        """A column of the particles in a chunk."""
        return self.read_rows(number, name, 0, self.sizes[number])

    def read_rows(self, number: int, name: str, begin: int, end: int) -> np.ndarray:
        """Rows of a chunk, of the positions, inside the box, or of a column; of the file, these alone are read."""
        if name not in (POSITIONS, *self.columns):
            return super().column(number, name)
        table, start = self.places[number]
        found = self.tables[table].read(name, start + begin, start + end)
        return placed(found, self.box, len(self), self.images, self.wrap) if name == POSITIONS else found

    def particle_type(self, number: int) -> int | None:
        """The type of the particles in a chunk, where the format has types."""
        return self.tables[self.places[number][0]].particle_type


def _require_same_columns(tables: Sequence[Table]) -> None:
    """Refuse a file that lacks a column which others have for particles of its type."""
    first: dict[int | None, Table] = {}
    for table in tables:
        other = first.setdefault(table.particle_type, table)
        if lacking := sorted(set(other.columns) ^ set(table.columns)):
            having, without = (table, other) if lacking[0] in table.columns else (other, table)
            told = f"{having.name} has {lacking[0]}, {without.name} has none"
            raise WorkbenchError(f"all files of a snapshot must have the same columns: {told}")


def placed(
    positions: np.ndarray, box: tuple[float, ...] | None, count: int, images: Images = Images.CORNER, wrap: bool = False
) -> np.ndarray:
    """Positions of a chunk inside the box, by the rule for all `count` particles together; read-only.

    >>> placed(np.array([[0.5, 1.0]]), (1.0, 1.0), count=2).tolist()
    [[0.5, 0.0]]
    """
    positions = backend.read_only(np.ascontiguousarray(positions))
    if box is None or not require_placed(positions, box, images, wrap, count):
        return positions
    wrapped: np.ndarray = Particles.wrapped(positions, box).positions
    return wrapped
