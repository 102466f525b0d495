"""The exchange of particles: from chunks in the order of the source to subdomains with their ghosts.

Each chunk is written once, as one file that holds what every subdomain needs of it, and each subdomain reads its piece of
every file. Nothing but sizes passes through the scheduler, and a process holds one chunk or one subdomain at a time, so its
memory does not depend on the number of particles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import numpy as np

from workbench import backend
from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles
from workbench.distributed.scratch_files import complete, load, save
from workbench.errors import WorkbenchError
from workbench.ordering import gather_rows

ROW = np.dtype(np.int32)


class Division(Protocol):
    """Who gets which particles."""

    @property
    def parts(self) -> int:
        """How many subdomains there are."""

    def destinations(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of these positions, the subdomain that gets each, and whether it owns it."""


class Cargo(Protocol):
    """What travels with the positions: a row of bytes for each particle of a chunk."""

    @property
    def row_bytes(self) -> int:
        """The length of a row."""

    def rows(self, chunk: int) -> np.ndarray:
        """The rows (uint8) of a chunk."""


class Shipped(NamedTuple):
    """How many particles of one chunk each subdomain was sent, and how many of these it owns."""

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

    def particles(self, box: tuple[float, ...] | None) -> Particles:
        """As particles in the box of the whole set."""
        return Particles(backend.read_only(self.positions), box)


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
        rows, parts, owned = self.division.destinations(positions)
        counts, own = (np.bincount(of, minlength=self.division.parts) for of in (parts, parts[owned]))
        rows, owned = _by_part(rows.astype(ROW), parts, owned, counts)
        sent = [np.where(owned, rows, -1 - rows), gather_rows(positions, rows)]
        if self.cargo is not None:
            sent.append(self.cargo.rows(chunk)[rows])
        ends = np.cumsum(counts).tolist()
        with complete(self._file(chunk)) as file:
            for begin, end in zip([0, *ends], ends, strict=False):
                for column in sent:
                    file.write(column[begin:end].data)
        return Shipped(counts, own)

    def sent(self, shipped: Sequence[Shipped]) -> Self:
        """Record what all chunks have sent; from here on subdomains can be received."""
        ends = np.cumsum([one.counts for one in shipped], axis=1)
        save(self._table, np.concatenate([np.zeros((len(shipped), 1), np.int64), ends], axis=1))
        return self

    def receive(self, part: int) -> Subdomain:
        """The particles of a subdomain."""
        begin, end = np.array(self._ends[:, part]), np.array(self._ends[:, part + 1])
        places = np.concatenate([[0], np.cumsum(end - begin)])
        count = int(places[-1])
        index, owned = np.empty(count, np.int64), np.empty(count, bool)
        positions = np.empty((count, self.source.dimensions), self.source.dtype)
        cargo = np.empty((count, self._cargo_bytes), np.uint8)
        for chunk in np.flatnonzero(end > begin).tolist():
            here = slice(int(places[chunk]), int(places[chunk + 1]))
            rows = self._read(chunk, int(begin[chunk]), positions[here], cargo[here])
            owned[here] = rows >= 0
            index[here] = np.where(rows < 0, -1 - rows, rows)
            index[here] += self.source.starts[chunk]
        return Subdomain(positions, index, owned, cargo)

    def _read(self, chunk: int, begin: int, positions: np.ndarray, cargo: np.ndarray) -> np.ndarray:
        """Read a piece of a chunk's file into `positions` and `cargo`; returns the rows."""
        rows, path = np.empty(len(positions), ROW), self._file(chunk)
        columns = [column for column in (rows, positions, cargo) if column.size]
        try:
            with path.open("rb") as file:
                file.seek(begin * self.row_bytes)
                got = sum(file.readinto(column.data.cast("B")) for column in columns)
        except OSError as error:
            raise WorkbenchError(f"{path} cannot be read: {error}") from error
        if got != len(rows) * self.row_bytes:
            raise WorkbenchError(f"{path} must hold {len(rows) * self.row_bytes:,} more bytes; it ends after {got:,}")
        return rows

    @property
    def _cargo_bytes(self) -> int:
        return 0 if self.cargo is None else self.cargo.row_bytes

    @cached_property
    def _ends(self) -> np.ndarray:
        """For each chunk, where the piece of each subdomain begins in its file, and the end."""
        return load(self._table)

    @property
    def _table(self) -> Path:
        return self.folder / "sent.npy"

    def _file(self, chunk: int) -> Path:
        return self.folder / f"chunk-{chunk}"


def _by_part(
    rows: np.ndarray, parts: np.ndarray, owned: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The rows sorted by part and then by row, and which of them are owned; rows of each kind rise already."""
    small = parts.astype(np.uint16) if len(counts) <= 2**16 else parts   # NumPy's sort is linear for 16 bits
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(counts)
    for part in np.unique(parts[~owned]).tolist():
        here = slice(ends[part] - counts[part], ends[part])
        order[here] = order[here][np.argsort(rows[order[here]], kind="stable")]   # a merge of two runs
    return rows[order], owned[order]
