"""Particles that are somewhere else, in chunks: the input of everything that must not load a whole snapshot.

A source is a small value that can be sent to other processes; reading a chunk reads that chunk only, and files are
open only meanwhile. Indices of particles count through all chunks, in order. `wb.open_chunked` makes sources of files.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench import backend
from workbench.arguments import whole_number
from workbench.data.particles import COMPANIONS, Particles, named
from workbench.errors import WorkbenchError

CHUNK = 2**20   # particles, where the data have no chunks of their own
POSITIONS, MASSES = "positions", "masses"
WHOLE = slice(None)


class ChunkedParticles(ABC):
    """Particles in chunks of `sizes`; positions have the type `dtype`, and lie in `box` if there is one.

    `columns` names what else is known of each particle: "velocities", "ids", "masses", and columns of other names, which
    become the `columns` of `Particles`; `mass` is that of each particle, where all have the same. `extent` is the smallest
    and the largest coordinate along each axis, where both are known exactly without reading.
    """

    name: str
    sizes: tuple[int, ...]   # each at least 1
    dtype: np.dtype
    dimensions: int
    box: tuple[float, ...] | None
    columns: tuple[str, ...] = ()
    mass: float | None = None
    metadata: Mapping[str, Any] = MappingProxyType({})
    extent: tuple[np.ndarray, np.ndarray] | None = None

    @abstractmethod
    def read(self, number: int) -> np.ndarray:
        """The positions in a chunk."""

    def column(self, number: int, name: str) -> np.ndarray:
        """A column of the particles in a chunk."""
        raise WorkbenchError(f"{self.name} has no {name}; it has {', '.join(('positions', *self.columns))}")

    def read_rows(self, number: int, name: str, begin: int, end: int) -> np.ndarray:
        """Rows of a chunk, of the positions or of a column: sources that can read these alone do so."""
        whole = self.read(number) if name == POSITIONS else self.column(number, name)
        return whole[begin:end]

    def chunk(self, number: int, columns: Sequence[str] = (), rows: slice = WHOLE) -> Particles:
        """The particles of a chunk, or of some rows of it, checked.

        They have "velocities", "ids", "masses" and others if these columns are asked for.
        """
        found = self._read(number, POSITIONS, rows)
        shape = len(range(*rows.indices(self.sizes[number]))), self.dimensions
        if found.shape != shape or found.dtype != self.dtype:
            got, which = f"{found.dtype} of shape {found.shape}", f"chunk {number + 1} of {len(self.sizes)}"
            raise WorkbenchError(f"{which} of {self.name} must be {self.dtype} of shape {shape}; got {got}")
        return self._checked(number, backend.read_only(found), self.box, columns, rows)

    def companions(self, number: int, columns: Sequence[str], rows: slice = WHOLE) -> Particles:
        """These columns of a chunk, or of some rows of it, checked; positions are not read, but zeros."""
        shape = len(range(*rows.indices(self.sizes[number]))), self.dimensions
        return self._checked(number, np.zeros(shape, self.dtype), None, columns, rows)

    def _checked(
        self, number: int, positions: np.ndarray, box: tuple[float, ...] | None, columns: Sequence[str], rows: slice
    ) -> Particles:
        known = dict.fromkeys((*COMPANIONS, *self.columns))
        if strangers := [name for name in columns if name not in known]:
            raise WorkbenchError(f"columns must be some of {', '.join(known)}; got {strangers[0]!r}")
        others = {name: backend.read_only(self._read(number, name, rows)) for name in columns}
        try:
            return Particles(positions, box, metadata=self.metadata, **named(others))
        except WorkbenchError as error:
            raise WorkbenchError(f"chunk {number + 1} of {len(self.sizes)} of {self.name}: {error}") from error

    def joined(self) -> Particles:
        """All particles in the memory of this process, with all their columns."""
        columns = [name for name in self.columns if name != MASSES or self.mass is None]
        parts = [self.chunk(number, columns) for number in range(len(self.sizes))]
        positions = backend.read_only(np.concatenate([part.positions for part in parts]))
        arrays = {name: np.concatenate([part.companions[name] for part in parts]) for name in columns}
        frozen = {MASSES: self.mass, **{name: backend.read_only(array) for name, array in arrays.items()}}
        return Particles(positions, self.box, metadata=self.metadata, **named(frozen))

    def sample(self, number: int, share: float) -> np.ndarray:
        """Positions (float64) in a chunk: about this share of them, drawn at random but the same in every run."""
        try:
            return self._some(number, self.drawn(number, share)).astype(np.float64)
        except OSError as error:
            raise self._unreadable(number, error) from error

    def drawn(self, number: int, share: float) -> np.ndarray:
        """The rows (rising) of a sample of a chunk."""
        count, draws = self.sizes[number], np.random.default_rng(number)
        return np.arange(count) if share >= 1 else np.unique(draws.integers(count, size=math.ceil(share * count)))

    def _some(self, number: int, chosen: np.ndarray) -> np.ndarray:
        """The positions of some particles of a chunk, by their rows there (rising)."""
        found: np.ndarray = self.chunk(number).positions[chosen]
        return found

    def _read(self, number: int, name: str, rows: slice) -> np.ndarray:
        begin, end, _ = rows.indices(self.sizes[number])
        try:
            return self.read_rows(number, name, begin, end)
        except WorkbenchError:
            raise
        except Exception as error:   # of any kind, as the libraries that read files raise for damaged ones
            raise self._unreadable(number, error) from error

    def _unreadable(self, number: int, error: Exception) -> WorkbenchError:
        return WorkbenchError(f"chunk {number + 1} of {len(self.sizes)} of {self.name} cannot be read: {error}")

    def __len__(self) -> int:
        return sum(self.sizes)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The index of the first particle of each chunk, and the end."""
        return (0, *np.cumsum(self.sizes, dtype=np.int64).tolist())

    def chunks(self) -> Iterator[Particles]:
        """All chunks, one after the other."""
        return map(self.chunk, range(len(self.sizes)))

    def __repr__(self) -> str:
        where = "open" if self.box is None else "box " + " x ".join(f"{length:g}" for length in self.box)
        count = f"{len(self):,} in {len(self.sizes):,} chunk{'s' if len(self.sizes) > 1 else ''}"
        return f"{type(self).__name__}({self.name}: {', '.join([count, str(self.dtype), where, *self.columns])})"


def chunks_between(starts: Sequence[int], begin: int, end: int) -> range:
    """The chunks that hold the particles between two places; chunks begin at `starts`.

    >>> chunks_between([0, 4, 8, 12], 5, 9)
    range(1, 3)
    """
    return range(int(np.searchsorted(starts, begin, "right")) - 1, int(np.searchsorted(starts, end)))


def rows_between(starts: Sequence[int], begin: int, end: int) -> Iterator[tuple[int, slice]]:
    """These chunks, each with the rows of these particles there.

    >>> list(rows_between([0, 4, 8, 12], 5, 9))
    [(1, slice(1, 5, None)), (2, slice(0, 1, None))]
    """
    for chunk in chunks_between(starts, begin, end):
        yield chunk, slice(max(begin - starts[chunk], 0), end - starts[chunk])


def even_sizes(count: int, most: int, unit: int = 1) -> tuple[int, ...]:
    """Nearly equal sizes, none above `most`; with a `unit`, whole multiples of it before the last, and at least one.

    >>> even_sizes(10, 4)
    (3, 3, 4)
    >>> even_sizes(10, 7, unit=3), even_sizes(10, 2, unit=3)
    ((6, 4), (3, 3, 3, 1))
    """
    whole_number("the size of a chunk", most, least=1)
    if unit > 1:
        step = max(most // unit, 1) * unit
        return tuple(min(step, count - start) for start in range(0, count, step))
    chunks = -(-count // most)
    ends = [count * number // chunks for number in range(chunks + 1)] if chunks else [0]
    return tuple(end - start for start, end in itertools.pairwise(ends))


class ParticlesInMemory(ChunkedParticles):
    """A set of particles cut into chunks, for tests and comparisons.

    >>> ParticlesInMemory(Particles([[0.1, 0.5], [0.4, 0.5], [0.6, 0.5]], box=1.0), (2, 1)).chunk(1).positions.tolist()
    [[0.6, 0.5]]
    """

    def __init__(self, whole: Particles, sizes: tuple[int, ...], name: str = "particles in memory") -> None:
        if sum(sizes) != len(whole) or min(sizes) < 1:
            raise WorkbenchError(f"sizes must be positive and add up to {len(whole):,}; got {sizes}")
        self.whole, self.sizes, self.name = whole, sizes, name
        self.dtype, self.dimensions, self.box = whole.positions.dtype, whole.dimensions, whole.box
        self.columns = (*(name for name in COMPANIONS if getattr(whole, name) is not None), *whole.columns)
        self.mass = whole.masses if isinstance(whole.masses, float) else None
        self.metadata, self.extent = dict(whole.metadata), (whole.lower, whole.upper)   # what can be pickled

    def read(self, number: int) -> np.ndarray:
        """The positions in a chunk."""
        return self.whole.positions[self.starts[number] : self.starts[number + 1]]

    def column(self, number: int, name: str) -> np.ndarray:
        """A column of the particles in a chunk."""
        if name not in self.columns:
            return super().column(number, name)
        if name == MASSES and self.mass is not None:
            return np.full(self.sizes[number], self.mass)
        found: np.ndarray = self.whole.companions[name][self.starts[number] : self.starts[number + 1]]
        return found


def holds_positions(array: Any) -> bool:
    """Whether an array, or what only has its shape and type, can be positions.

    >>> holds_positions(np.zeros((5, 3), np.float32)), holds_positions(np.zeros((5, 4)))
    (True, False)
    """
    return len(array.shape) == 2 and array.shape[1] in (2, 3) and array.dtype.kind == "f" and array.dtype.itemsize in (4, 8)


PARTS_SHARE = {"box": "box", "time": "time", "dtype": "type of positions", "dimensions": "number of dimensions"}


def require_equal(parts: Sequence[Any]) -> None:
    """Refuse parts of one snapshot that differ in box, time, type or dimensions, and name the part."""
    for part in parts[1:]:
        for what, words in PARTS_SHARE.items():
            here, there = (getattr(one, what, None) for one in (parts[0], part))
            if here != there:
                raise WorkbenchError(
                    f"all parts of a snapshot must have one {words}: {parts[0].name} has {here}, {part.name} has {there}"
                )


def joined(given: Any) -> Any:
    """Particles in chunks as particles in memory; anything else as it is."""
    return given.joined() if isinstance(given, ChunkedParticles) else given
