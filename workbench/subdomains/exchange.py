"""The exchange of particles: from chunks in the order of the source to subdomains with their ghosts.

Each chunk is written once, as one file that holds what every subdomain needs of it (rows, positions, cargo). Where
subdomains are few, each reads its piece of every file. Where they are many, that would be as many pieces as there are pairs
of a chunk and a subdomain. So a file has a piece for each group of subdomains instead; then the pieces of a run of chunks
for one group become one file, with a piece for each subdomain of the group. A group has as many subdomains as there are
groups, and a run twice as many chunks.

Nothing but sizes passes through the scheduler, and a process holds about one chunk or one subdomain at a time, so its
memory does not depend on the number of particles.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import numpy as np

from workbench import backend
from workbench.data.chunked import ChunkedParticles
from workbench.run.executors import Executor
from workbench.run.pieces import PieceFile, pieces_of, write_pieces
from workbench.run.scratch_files import load, save

ROW = np.dtype(np.int32)
FEW = 16     # subdomains, which read their pieces of all chunks themselves
CHUNKS = 2   # in a run, for each group
BATCHES = 4  # of runs: what chunks have sent is deleted after each
Parts = int | range   # a subdomain, or several whose numbers follow each other: of each run, one after the other


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
class Exchange:
    """The files of one exchange in a folder that all workers see.

    Up to `few` subdomains read what chunks have written; more are sent their particles in groups, and what chunks have
    written is deleted then.
    """

    source: ChunkedParticles
    division: Division
    folder: Path
    cargo: Cargo | None = None
    few: int = FEW

    def distribute(self, executor: Executor, name: str = "send-particles") -> Shipped:
        """Send all chunks, after which subdomains can be received; returns what each was sent in all."""
        shipped = executor.map(name, Exchange.send, range(len(self.source.sizes)), "chunk", shared=self)
        if (width := len(self.groups)) > 1:
            shipped = []
            for runs in batches_of(len(self.runs)):
                numbers = range(runs.start * width, runs.stop * width)
                gathered = executor.map("gather-particles", Exchange.gather, numbers, "file", shared=self)
                shipped += [
                    Shipped(*map(np.concatenate, zip(*gathered[start : start + width], strict=True)))
                    for start in range(0, len(gathered), width)
                ]
                for chunk in range(self.runs[runs.start].start, self.runs[runs.stop - 1].stop):
                    self._sent_file(chunk).unlink()
        counts, owned = (np.array(column) for column in zip(*shipped, strict=True))
        few = len(self.groups) == 1   # otherwise, nobody asks
        before = np.concatenate([np.zeros_like(owned[:1]), owned[: few * len(owned)]])
        save(self._own_table, np.cumsum(before, axis=0, dtype=np.int64))
        return Shipped(*(column.sum(axis=0, dtype=np.int64) for column in (counts, owned)))

    @cached_property
    def groups(self) -> list[range]:
        """The subdomains whose particles are sent together."""
        return groups_of(self.division.parts, self.few)

    @cached_property
    def runs(self) -> list[range]:
        """The chunks whose particles are in one file for a group."""
        return runs_of(self.source.starts, len(self.groups))

    def send(self, chunk: int) -> Shipped:
        """Write what the subdomains need of one chunk."""
        positions = self.source.chunk(chunk).positions
        row, packed, shipped = _packed(positions, self.division.destinations(positions), self.division.parts)
        del positions
        columns = [row, packed] if self.cargo is None else [row, packed, self.cargo.rows(chunk)[in_chunk(row)]]
        if len(self.groups) == 1:
            return self._write(chunk, 0, columns, shipped)
        ends = np.concatenate([[0], np.cumsum(shipped.counts)])
        pieces: list[list[np.ndarray]] = []
        for group in self.groups:
            particles = slice(ends[group.start], ends[group.stop])
            pieces += [[_narrow(shipped.counts[group])], [column[particles] for column in columns]]
        write_pieces(self._sent_file(chunk), len(pieces), pieces)
        return NOTHING

    def gather(self, number: int) -> Shipped:
        """Bring what a run of chunks has for a group of subdomains together, in one file."""
        run, group = divmod(number, len(self.groups))
        chunks, size = self.runs[run], len(self.groups[group])
        counts, pieces = np.empty((len(chunks), size), np.int64), []
        for place, chunk in enumerate(chunks):
            with pieces_of(self._sent_file(chunk)) as file:
                counts[place] = _counts(file, 2 * group, size)
                row, *others = file.read(2 * group + 1, self._widths, range(len(self._widths)))
            before = self.source.starts[chunk] - self.source.starts[chunks.start]
            pieces.append((_moved(row.view(ROW), before), *others))
        columns = [
            np.concatenate(column).reshape(-1, width) if place else np.concatenate(column)
            for place, (column, width) in enumerate(zip(zip(*pieces, strict=True), self._widths, strict=True))
        ]
        del pieces
        which = np.repeat(np.tile(np.arange(size, dtype=np.int16), len(chunks)), counts.ravel())
        order = np.argsort(which, kind="stable")   # of 16 bits: by counting
        owned = np.bincount(which[columns[0] >= 0], minlength=size)
        return self._write(run, group, [column[order] for column in columns], Shipped(counts.sum(axis=0), owned))

    def _write(self, run: int, group: int, columns: Sequence[np.ndarray], shipped: Shipped) -> Shipped:
        """Write the particles of a run, sorted by subdomain, for each of a group."""
        ends = np.concatenate([[0], np.cumsum(shipped.counts, dtype=np.int64)])
        pieces = ([column[begin:end] for column in columns] for begin, end in itertools.pairwise(ends))
        write_pieces(self._file(run, group), len(shipped.counts), pieces)
        counts, owned = map(_narrow, shipped)
        return Shipped(counts, counts if np.array_equal(counts, owned) else owned)   # one array is pickled once

    @property
    def complete(self) -> bool:
        """Whether all chunks were sent."""
        return self._own_table.exists()

    def delete(self) -> None:
        """Delete what subdomains have received."""
        for run in range(len(self.runs)):
            for group in range(len(self.groups)):
                self._file(run, group).unlink(missing_ok=True)

    def receive(self, part: Parts) -> Subdomain:
        """The particles of a subdomain."""
        signed, positions, *cargo = self._columns(part, range(len(self._widths)))
        index = in_chunk(signed.astype(np.int64))
        return Subdomain(positions, index, signed >= 0, cargo[0] if cargo else np.empty((len(index), 0), np.uint8))

    def members(self, part: Parts) -> tuple[np.ndarray, np.ndarray]:
        """The indices (int64, rising) of the particles of a subdomain, and which of them it owns."""
        (signed,) = self._columns(part, range(1))
        return in_chunk(signed.astype(np.int64)), signed >= 0

    def index(self, part: Parts) -> np.ndarray:
        """The indices alone, in 32 bits where these suffice."""
        return in_chunk(self._columns(part, range(1))[0])

    def owned(self, part: Parts) -> np.ndarray:
        """Which particles of a subdomain it owns, in the order of their indices."""
        return self._columns(part, range(1))[0] >= 0

    def positions(self, part: Parts) -> np.ndarray:
        """The positions of the particles of a subdomain, in the order of their indices."""
        return self._columns(part, range(1, 2))[0]

    def signed_positions(self, part: Parts) -> tuple[np.ndarray, np.ndarray]:
        """The indices (-1 - index of ghosts), in 32 bits where these suffice, and the positions: each file is read once."""
        signed, positions = self._columns(part, range(2))
        return signed, positions

    def cargo_of(self, part: Parts) -> np.ndarray:
        """What has travelled with the positions of a subdomain: a row of bytes for each."""
        if self.cargo is None:
            return np.empty((len(self.index(part)), 0), np.uint8)
        return self._columns(part, range(2, 3))[0]

    def owners(self, chunk: int) -> Iterator[tuple[int, np.ndarray, slice]]:
        """For each subdomain that owns particles of a chunk: it, their rows, and their places among all that it owns.

        It is for few subdomains, as each has a piece of the file of each chunk.
        """
        starts, ends = load(self._own_table, slice(chunk, chunk + 2)).tolist()
        with pieces_of(self._file(chunk, 0)) as file:
            for part, (start, end) in enumerate(zip(starts, ends, strict=True)):
                if start < end:
                    row = file.read(part, self._widths, range(1))[0].view(ROW)
                    yield part, row[row >= 0], slice(start, end)

    def _columns(self, part: Parts, columns: range) -> list[np.ndarray]:
        """Adjacent columns of the particles of a subdomain, from the files of all runs; rows become signed indices."""
        parts = range(part, part + 1) if isinstance(part, int) else part
        groups = [
            (number, range(max(group.start, parts.start), min(group.stop, parts.stop)), group.start)
            for number, group in enumerate(self.groups) if group.start < parts.stop and parts.start < group.stop
        ]
        pieces, kind = [], index_type(self.source)
        for run, chunks in enumerate(self.runs):
            for group, members, start in groups:
                with pieces_of(self._file(run, group)) as file:
                    for member in members:
                        piece = file.read(member - start, self._widths, columns)
                        if not columns.start:
                            piece[0] = _moved(piece[0].view(ROW), self.source.starts[chunks.start], kind)
                        pieces.append(piece)
        found = [np.concatenate(column) for column in zip(*pieces, strict=True)]
        return [self._typed(array, column) for array, column in zip(found, columns, strict=True)]

    def _typed(self, array: np.ndarray, column: int) -> np.ndarray:
        """A column as what it is."""
        if column == 1:
            return array.view(self.source.dtype).reshape(-1, self.source.dimensions)
        return array.reshape(-1, self._widths[2]) if column == 2 else array

    @cached_property
    def _widths(self) -> tuple[int, ...]:
        """The bytes of a row of each column: its row in a run (-1 - row of a ghost), its position, and its cargo."""
        widths = ROW.itemsize, self.source.dtype.itemsize * self.source.dimensions
        return widths if self.cargo is None else (*widths, self.cargo.row_bytes)

    @property
    def _own_table(self) -> Path:
        """How many particles of the chunks before each one every subdomain owns, where these are few."""
        return self.folder / "owned.npy"

    def _sent_file(self, chunk: int) -> Path:
        """What a chunk has for each group: how many particles each subdomain of it gets, and these."""
        return self.folder / f"chunk-{chunk}"

    def _file(self, run: int, group: int) -> Path:
        """What a run has for a group: a piece for each subdomain."""
        return self.folder / f"run-{run}-{group}"


NOTHING = Shipped(np.empty(0, np.int64), np.empty(0, np.int64))


def groups_of(parts: int, few: int = FEW) -> list[range]:
    """Subdomains whose particles are sent together; one group of all where they are few.

    >>> groups_of(16), groups_of(30)
    ([range(0, 16)], [range(0, 6), range(6, 12), range(12, 18), range(18, 24), range(24, 30)])
    """
    if parts <= few:
        return [range(parts)]
    size = math.isqrt(parts - 1) + 1
    return [range(start, min(start + size, parts)) for start in range(0, parts, size)]


def runs_of(starts: Sequence[int], groups: int) -> list[range]:
    """Chunks whose particles are in one file for a group: some for each group, as long as ROW can count them.

    >>> runs_of([0, 5, 10, 15], 1), runs_of([0, 2**30, 2**31, 3 * 2**30], 2)
    ([range(0, 1), range(1, 2), range(2, 3)], [range(0, 1), range(1, 2), range(2, 3)])
    """
    runs, first = [], 0
    most = CHUNKS * groups if groups > 1 else 1
    for chunk in range(1, len(starts)):
        is_full = chunk - first == most
        if chunk + 1 == len(starts) or is_full or starts[chunk + 1] - starts[first] > np.iinfo(ROW).max:
            runs.append(range(first, chunk))
            first = chunk
    return runs


def batches_of(runs: int) -> list[range]:
    """The runs that are gathered at a time.

    >>> batches_of(6), batches_of(2)
    ([range(0, 1), range(1, 3), range(3, 4), range(4, 6)], [range(0, 1), range(1, 2)])
    """
    count = min(runs, BATCHES)
    return [range(runs * number // count, runs * (number + 1) // count) for number in range(count)]


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


def _narrow(counts: np.ndarray) -> np.ndarray:
    """Counts in as few bytes as they need."""
    return counts.astype(np.min_scalar_type(int(counts.max(initial=0))))


def _counts(file: PieceFile, piece: int, count: int) -> np.ndarray:
    """So many counts, from a piece of them alone."""
    (data,) = file.read(piece, (1,), range(1))
    return data.view(f"u{len(data) // count}").astype(np.int64)


def index_type(source: ChunkedParticles) -> np.dtype:
    """The type of the indices of particles: of 32 bits where these suffice."""
    return ROW if source.starts[-1] <= np.iinfo(ROW).max else np.dtype(np.int64)


def in_chunk(row: np.ndarray) -> np.ndarray:
    """The rows of particles that may be copies.

    >>> in_chunk(np.array([3, -4], np.int32)).tolist()
    [3, 3]
    """
    return row ^ row >> (8 * row.itemsize - 1)   # ~row is -1 - row


def _moved(row: np.ndarray, by: int, kind: np.dtype = ROW) -> np.ndarray:
    """The rows of particles that may be copies, where they begin at another place.

    >>> _moved(np.array([3, -4], np.int32), 10).tolist()
    [13, -14]
    """
    sign = row >> (8 * row.itemsize - 1)
    return (row ^ sign).astype(kind, copy=False) + kind.type(by) ^ sign
