"""The exchange of particles: from chunks in the order of the source to subdomains with their ghosts.

Each chunk is written once, as one file that holds what every subdomain needs of it, and each subdomain reads its piece of
every file. A file has a column after the other (rows, positions, cargo), in each the particles of the first subdomain, then
those of the second, and so on. Nothing but sizes passes through the scheduler, and a process holds one chunk or one
subdomain at a time, so its memory does not depend on the number of particles.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import numpy as np

from workbench import backend
from workbench.data.chunked import ChunkedParticles
from workbench.run.executors import Executor
from workbench.run.scratch_files import complete, load, read_summed, save, unreadable, write_summed

ROW = np.dtype(np.int32)
Parts = int | range   # a subdomain, or several whose numbers follow each other: of each chunk, the particles of all of them


class Destinations(NamedTuple):
    """The owner of each position; and who gets copies of some: pairs of a row and a subdomain, sorted by row. All int32."""

    owner: np.ndarray
    rows: np.ndarray
    parts: np.ndarray

    @classmethod
    def without_copies(cls, owner: np.ndarray) -> Self:
        """Every position goes to its owner alone."""
        return cls(owner, np.empty(0, np.int32), np.empty(0, np.int32))


class Division(Protocol):
    """Who gets which particles."""

    @property
    def parts(self) -> int:
        """How many subdomains there are."""

    def destinations(self, positions: np.ndarray) -> Destinations:
        """The owner of each of these positions, and who gets copies."""


class Cargo(Protocol):
    """What travels with the positions: a row of bytes for each particle of a chunk."""

    @property
    def row_bytes(self) -> int:
        """The length of a row."""

    def rows(self, chunk: int) -> np.ndarray:
        """The rows (uint8) of a chunk."""


class Shipped(NamedTuple):
    """How many particles each subdomain was sent, and how many of these it owns."""

    counts: np.ndarray
    owned: np.ndarray


@dataclass(frozen=True, eq=False)
class Subdomain:
    """The particles of a subdomain, rising by their index in the whole set, so that a local label names the global one."""

    positions: np.ndarray
    index: np.ndarray   # int64
    owned: np.ndarray   # bool; the others are ghosts
    cargo: np.ndarray   # uint8

    def __len__(self) -> int:
        return len(self.index)


@dataclass(frozen=True)
class _Pieces:
    """Where the particles of a subdomain begin in a column of each chunk, and their places in the subdomain.

    `ends` are the ends of the columns.
    """

    begins: np.ndarray
    places: np.ndarray
    ends: np.ndarray

    @property
    def count(self) -> int:
        """The number of particles of the subdomain."""
        return int(self.places[-1])


@dataclass(frozen=True)
class Exchange:
    """The files of one exchange in a folder that all workers see."""

    source: ChunkedParticles
    division: Division
    folder: Path
    cargo: Cargo | None = None

    @property
    def row_bytes(self) -> int:
        """The bytes of one particle: its row in the chunk (-1 - row of a ghost), its position, and its cargo."""
        return ROW.itemsize + self.source.dtype.itemsize * self.source.dimensions + self._cargo_bytes

    def send(self, chunk: int) -> Shipped:
        """Write what the subdomains need of one chunk."""
        positions = self.source.chunk(chunk).positions
        row, packed, shipped = _packed(positions, self.division.destinations(positions), self.division.parts)
        del positions
        cargo = None if self.cargo is None else self.cargo.rows(chunk)
        with complete(self._file(chunk)) as file:
            write_summed(file, (row, packed) if cargo is None else (row, packed, cargo[_in_chunk(row)]))
        return shipped

    def distribute(self, executor: Executor, name: str = "send-particles") -> Shipped:
        """Send all chunks, after which subdomains can be received; returns what each was sent in all."""
        shipped = executor.map(name, Exchange.send, range(len(self.source.sizes)), "chunk", shared=self)
        self.sent(shipped)
        return Shipped(*(np.sum(column, axis=0) for column in zip(*shipped, strict=True)))

    def sent(self, shipped: Sequence[Shipped]) -> Self:
        """Record what all chunks have sent; from here on subdomains can be received."""
        owned = np.cumsum([one.owned for one in shipped], axis=0)
        save(self._own_table, np.concatenate([np.zeros((1, self.division.parts), np.int64), owned]))
        ends = np.cumsum([one.counts for one in shipped], axis=1)
        places = np.concatenate([np.zeros((len(shipped), 1), np.int64), ends], axis=1)
        save(self._of_parts, places.T)
        save(self._table, places)
        return self

    @property
    def complete(self) -> bool:
        """Whether all chunks were sent."""
        return self._table.exists()

    def receive(self, part: Parts) -> Subdomain:
        """The particles of a subdomain."""
        index, owned = self.members(part)
        return Subdomain(self.positions(part), index, owned, self.cargo_of(part))

    def members(self, part: Parts) -> tuple[np.ndarray, np.ndarray]:
        """The indices (int64, rising) of the particles of a subdomain, and which of them it owns."""
        row = self._rows(part)
        return self._counted(row, part, np.dtype(np.int64)), row >= 0

    def index(self, part: Parts) -> np.ndarray:
        """The indices alone, in 32 bits where these suffice."""
        return self._counted(self._rows(part), part, ROW if len(self.source) <= np.iinfo(ROW).max else np.dtype(np.int64))

    def _counted(self, row: np.ndarray, part: Parts, dtype: np.dtype) -> np.ndarray:
        """The indices in the whole set of particles with these rows in their chunks."""
        index, places = np.empty(len(row), dtype), self._pieces(part).places
        for chunk in np.flatnonzero(np.diff(places)).tolist():
            here = slice(places[chunk], places[chunk + 1])
            np.add(_in_chunk(row[here]), self.source.starts[chunk], out=index[here], dtype=dtype)
        return index

    def owned(self, part: Parts) -> np.ndarray:
        """Which particles of a subdomain it owns, in the order of their indices."""
        return self._rows(part) >= 0

    def positions(self, part: Parts) -> np.ndarray:
        """The positions of the particles of a subdomain, in the order of their indices."""
        found = np.empty((self._pieces(part).count, self.source.dimensions), self.source.dtype)
        self._read(part, found, ROW.itemsize)
        return found

    def cargo_of(self, part: Parts) -> np.ndarray:
        """What has travelled with the positions of a subdomain: a row of bytes for each."""
        found = np.empty((self._pieces(part).count, self._cargo_bytes), np.uint8)
        self._read(part, found, self.row_bytes - self._cargo_bytes)
        return found

    def owners(self, chunk: int) -> Iterator[tuple[int, np.ndarray, slice]]:
        """For each subdomain that owns particles of a chunk: it, their rows, and their places among all that it owns."""
        here = slice(chunk, chunk + 1)
        (ends,), (starts,) = load(self._table, here), load(self._own_table, here)
        row = np.empty(ends[-1], ROW)
        self._fill(chunk, row, 0, ends[-1])
        for part in np.flatnonzero(np.diff(ends)).tolist():
            mine = row[ends[part] : ends[part + 1]]
            mine = mine[mine >= 0]
            if len(mine):
                yield part, mine, slice(int(starts[part]), int(starts[part]) + len(mine))

    def _rows(self, part: Parts) -> np.ndarray:
        """The rows in their chunks of the particles of a subdomain: -1 - row of a ghost."""
        rows = np.empty((self._pieces(part).count, 1), ROW)
        self._read(part, rows, 0)
        return rows[:, 0]

    def _read(self, part: Parts, column: np.ndarray, before: int) -> None:
        """Fill a column, with a row for each particle, from the files of all chunks; `before`: bytes of a row before it."""
        pieces, width = self._pieces(part), column.itemsize * column.shape[1]
        if not width:
            return
        for chunk in np.flatnonzero(np.diff(pieces.places)).tolist():
            here = column[pieces.places[chunk] : pieces.places[chunk + 1]]
            self._fill(chunk, here, pieces.ends[chunk] * before + pieces.begins[chunk] * width, pieces.ends[chunk])

    def _fill(self, chunk: int, array: np.ndarray, place: int, count: int) -> None:
        """Read an array from this place of a file, which holds so many particles."""
        path = self._file(chunk)
        try:
            with path.open("rb") as file:
                found = read_summed(file, int(count) * self.row_bytes, int(place), int(place) + array.nbytes)
        except OSError as error:
            raise unreadable(path, error) from error
        array.data.cast("B")[:] = found.data

    def _pieces(self, part: Parts) -> _Pieces:
        parts = range(part, part + 1) if isinstance(part, int) else part
        rows = load(self._of_parts, slice(parts.start, parts.stop + 1))
        (ends,) = load(self._of_parts, slice(self.division.parts, self.division.parts + 1))
        return _Pieces(rows[0], np.concatenate([[0], np.cumsum(rows[-1] - rows[0])]), ends)

    @property
    def _cargo_bytes(self) -> int:
        return 0 if self.cargo is None else self.cargo.row_bytes

    @property
    def _table(self) -> Path:
        """For each chunk, where the piece of each subdomain begins in a column of its file, and the end."""
        return self.folder / "sent.npy"

    @property
    def _of_parts(self) -> Path:
        """The same table, a row for each subdomain."""
        return self.folder / "received.npy"

    @property
    def _own_table(self) -> Path:
        """For each chunk, how many particles of the chunks before it each subdomain owns."""
        return self.folder / "owned.npy"

    def _file(self, chunk: int) -> Path:
        return self.folder / f"chunk-{chunk}"


def _packed(positions: np.ndarray, sent: Destinations, parts: int) -> tuple[np.ndarray, np.ndarray, Shipped]:
    """The rows (-1 - row of a copy) and the positions by subdomain and then by row; and how many each subdomain gets."""
    count, copies = len(positions), len(sent.rows)
    walks = backend.chunks(count, positions)
    given = {
        "n": count, "parts": parts, "copies": copies, "owner": sent.owner, "copied": sent.rows, "to": sent.parts,
    }
    owned, counts = np.empty((2, walks, parts), np.int64)
    kernel = functools.partial(backend.kernel, "division", real=positions.dtype, dimensions=positions.shape[1])
    kernel("count_sent")(walks, given, owned=owned, sent=counts)
    ends = np.cumsum(counts.T).reshape(parts, walks).T
    row, packed = np.empty(count + copies, ROW), np.empty((count + copies, positions.shape[1]), positions.dtype)
    kernel("pack")(walks, given, position=positions, next=np.ascontiguousarray(ends - counts), row=row, packed=packed)
    return row, packed, Shipped(counts.sum(axis=0), owned.sum(axis=0))


def _in_chunk(row: np.ndarray) -> np.ndarray:
    """The rows of particles that may be copies.

    >>> _in_chunk(np.array([3, -4], np.int32)).tolist()
    [3, 3]
    """
    return row ^ row >> 31   # ~row is -1 - row
