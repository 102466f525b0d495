"""Particles in the order of an archive: in memory, or in chunks of a source that workers read."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from workbench import backend, ordering
from workbench.backend import Array
from workbench.data import Particles
from workbench.data.chunked import MASSES, POSITIONS, WHOLE, ChunkedParticles, rows_between
from workbench.data.columns import row_type
from workbench.data.particles import COMPANIONS
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, Limit
from workbench.ordering import stored_index
from workbench.run.executors import Executor
from workbench.slabs import Slices
from workbench.subdomains.curve_order import SortedRows
from workbench.subdomains.sources import PART

VELOCITIES, PERMUTATION = "velocities", "permutation"
TOGETHER = 128   # bytes of all columns of a particle, up to which a step holds a subdomain


@dataclass(frozen=True)
class OrderedInMemory:
    """Particles in memory in this order, or their own."""

    particles: Particles
    order: Array | None
    rows_together: int = 1   # companions are encoded chunk by chunk, by as many threads as there are

    @property
    def dtypes(self) -> dict[str, np.dtype]:
        """The type of a row of each by name."""
        return {name: row_type(values) for name, values in self.particles.companions.items()}

    def read(self, name: str, begin: int, end: int) -> np.ndarray:
        """The positions, a column, or the permutation, between two places."""
        order = None if self.order is None else self.order[begin:end]
        if name == PERMUTATION:
            index = np.arange(begin, end, dtype=ordering.stored_index(len(self.particles))) if order is None else order
            return backend.to_host(index)
        values = self.particles.positions if name == POSITIONS else self.particles.companions[name]
        return backend.to_host(values[begin:end] if order is None else values[order])

    def checksum(self) -> str | None:
        """The checksum of a free order."""
        return None if self.order is None else checksum_of(self.order)

    def limit(self, name: str, bound: Bound) -> Limit:
        """The limit of a bound for all values of a column."""
        return bound.limit(backend.to_host(self.particles.companions[name]))


@dataclass(frozen=True)
class Rows:
    """The positions of a chunk of the archive, from the chunks of the source."""

    source: ChunkedParticles

    def __call__(self, slices: Slices) -> np.ndarray:
        """The positions at these places."""
        begin, end = slices[0].start, slices[0].stop
        return _between(self.source, begin, end, lambda chunk, rows: self.source.chunk(chunk, rows=rows).positions)


@dataclass(frozen=True)
class Columns:
    """The columns of a source that an archive keeps beside the positions; as cargo, their bytes side by side."""

    source: ChunkedParticles
    dtypes: dict[str, np.dtype]   # of a row

    @classmethod
    def of(cls, source: ChunkedParticles, executor: Executor) -> Columns:
        """Those that the source has; the first chunk tells their types."""
        there = [name for name in source.columns if name != MASSES or source.mass is None]
        names = (*(name for name in COMPANIONS if name in there), *(name for name in there if name not in COMPANIONS))
        if not names:
            return cls(source, {})
        dtypes = executor.map("read-types", functools.partial(_dtypes, names), [0], "chunk", shared=source)[0]
        return cls(source, dtypes)

    @property
    def row_bytes(self) -> int:
        """The bytes of all columns of one particle."""
        return sum(dtype.itemsize for dtype in self.dtypes.values())

    def rows(self, chunk: int) -> np.ndarray:
        """The bytes of all columns in a chunk of the source."""
        columns = self.read(chunk, tuple(self.dtypes)).values()
        return np.concatenate([column.reshape(len(column), -1).view(np.uint8) for column in columns], axis=1)

    def unpacked(self, cargo: np.ndarray, name: str) -> np.ndarray:
        """A column, from rows of bytes."""
        begin = 0
        for other, dtype in self.dtypes.items():
            if other == name:
                break
            begin += dtype.itemsize
        dtype = self.dtypes[name]
        column = cargo[:, begin : begin + dtype.itemsize].copy().view(dtype.base)   # one row would stay unaligned otherwise
        return column if dtype.shape else column[:, 0]

    def read(self, chunk: int, names: tuple[str, ...], rows: slice = WHOLE) -> dict[str, np.ndarray]:
        """Columns of a chunk of the source, or of some rows of it, checked."""
        particles, columns = self.source.companions(chunk, names, rows), {}
        for name in names:
            columns[name] = column = np.ascontiguousarray(particles.companions[name])
            if row_type(column) != self.dtypes[name]:
                raise WorkbenchError(
                    f"{name} must have one type in all of {self.source.name}: chunk 1 has {_in_words(self.dtypes[name])}, "
                    f"chunk {chunk + 1} has {_in_words(row_type(column))}"
                )
        return columns

    def between(self, name: str, begin: int, end: int) -> np.ndarray:
        """A column of the particles at these places in the source."""
        return _between(self.source, begin, end, lambda chunk, rows: self.read(chunk, (name,), rows)[name])


@dataclass(frozen=True)
class OrderedInChunks:
    """Particles in chunks in the order of an archive, whose chunks of positions begin at these places.

    In a free order, the chunks of positions are read before anything else.
    """

    columns: Columns
    rows: Rows | SortedRows
    begins: tuple[int, ...]
    ends: Mapping[str, np.ndarray] = field(default_factory=dict)   # the smallest and the largest, of those with a bound

    @property
    def rows_together(self) -> int:
        """How many particles a step may hold: those of a subdomain, but fewer where each has many columns."""
        return PART if self.columns.row_bytes <= TOGETHER else PART * TOGETHER // self.columns.row_bytes

    @property
    def dtypes(self) -> dict[str, np.dtype]:
        """The type of a row of each by name."""
        return self.columns.dtypes

    def read(self, name: str, begin: int, end: int) -> np.ndarray:
        """The positions, a column, or the permutation, between two places."""
        if name == POSITIONS:
            return self.rows((slice(begin, end),))
        if isinstance(self.rows, SortedRows):
            if name == PERMUTATION:
                return self.rows.index(self.begins, begin, end)
            return self.columns.unpacked(self.rows.cargo(self.begins, begin, end), name)
        if name == PERMUTATION:
            return np.arange(begin, end, dtype=stored_index(len(self.columns.source)))
        return self.columns.between(name, begin, end)

    def checksum(self) -> str | None:
        """The checksum of a free order."""
        return self.rows.checksum(self.begins) if isinstance(self.rows, SortedRows) else None

    def limit(self, name: str, bound: Bound) -> Limit:
        """The limit of a bound for all values of a column."""
        return bound.limit(self.ends[name])


def _between(
    source: ChunkedParticles, begin: int, end: int, read: Callable[[int, slice], np.ndarray]
) -> np.ndarray:
    """What chunks hold of the particles between two places in the source: rows that are not wanted are not read."""
    pieces = [read(chunk, rows) for chunk, rows in rows_between(source.starts, begin, end)]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _dtypes(names: tuple[str, ...], source: ChunkedParticles, chunk: int) -> dict[str, np.dtype]:
    particles = source.companions(chunk, names, slice(1))
    return {name: row_type(particles.companions[name]) for name in names}


def _in_words(row: np.dtype) -> str:
    return f"{row.base} of shape (N, {row.shape[0]})" if row.shape else str(row)


def checksum_of(order: Array) -> str:
    """The checksum of an order of particles: CRC-32 over 32-bit integers, or of 64 bits for more than 2^31 particles."""
    return f"{zlib.crc32(np.ascontiguousarray(backend.to_host(order), stored_index(len(order))).data):08x}"
