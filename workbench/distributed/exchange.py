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


@dataclass(frozen=True)
class _Pieces:
    """Where the particles of a subdomain begin in the file of each chunk, and their places in the subdomain."""

    begins: np.ndarray
    places: np.ndarray

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
        rows, parts, owned = self.division.destinations(positions)
        counts, own = (np.bincount(of, minlength=self.division.parts) for of in (parts, parts[owned]))
        rows, owned = _by_part(rows.astype(ROW, copy=False), parts, owned, counts)
        del parts
        cargo = None if self.cargo is None else self.cargo.rows(chunk)
        ends = np.cumsum(counts).tolist()
        with complete(self._file(chunk)) as file:
            for begin, end in zip([0, *ends], ends, strict=False):
                if begin == end:
                    continue
                here = rows[begin:end]
                file.write(np.where(owned[begin:end], here, ~here).data)   # ~row is -1 - row
                file.write(gather_rows(positions, here).data)
                if cargo is not None:
                    file.write(cargo[here].data)
        return Shipped(counts, own)

    def sent(self, shipped: Sequence[Shipped]) -> Self:
        """Record what all chunks have sent; from here on subdomains can be received."""
        ends = np.cumsum([one.counts for one in shipped], axis=1)
        save(self._table, np.concatenate([np.zeros((len(shipped), 1), np.int64), ends], axis=1))
        return self

    @property
    def complete(self) -> bool:
        """Whether all chunks were sent."""
        return self._table.exists()

    def receive(self, part: int) -> Subdomain:
        """The particles of a subdomain."""
        index, owned = self.members(part)
        cargo = np.empty((len(index), self._cargo_bytes), np.uint8)
        self._read(part, cargo, self.row_bytes - self._cargo_bytes)
        return Subdomain(self.positions(part), index, owned, cargo)

    def members(self, part: int) -> tuple[np.ndarray, np.ndarray]:
        """The indices (int64, rising) of the particles of a subdomain, and which of them it owns."""
        row = self._rows(part)
        owned = row >= 0
        np.invert(row, out=row, where=~owned)   # -1 - row
        index = row.astype(np.int64)
        places = self._pieces(part).places
        for chunk in np.flatnonzero(np.diff(places)).tolist():
            index[places[chunk] : places[chunk + 1]] += self.source.starts[chunk]
        return index, owned

    def owned(self, part: int) -> np.ndarray:
        """Which particles of a subdomain it owns, in the order of their indices."""
        return self._rows(part) >= 0

    def positions(self, part: int) -> np.ndarray:
        """The positions of the particles of a subdomain, in the order of their indices."""
        found = np.empty((self._pieces(part).count, self.source.dimensions), self.source.dtype)
        self._read(part, found, ROW.itemsize)
        return found

    def _rows(self, part: int) -> np.ndarray:
        """The rows in their chunks of the particles of a subdomain: -1 - row of a ghost."""
        rows = np.empty((self._pieces(part).count, 1), ROW)
        self._read(part, rows, 0)
        return rows[:, 0]

    def _read(self, part: int, column: np.ndarray, before: int) -> None:
        """Fill a column, with a row for each particle, from the files of all chunks; `before`: bytes of a row before it."""
        pieces, width = self._pieces(part), column.itemsize * column.shape[1]
        if not width:
            return
        for chunk in np.flatnonzero(np.diff(pieces.places)).tolist():
            here, path = column[pieces.places[chunk] : pieces.places[chunk + 1]], self._file(chunk)
            try:
                with path.open("rb") as file:
                    file.seek(int(pieces.begins[chunk]) * self.row_bytes + len(here) * before)
                    got = file.readinto(here.data.cast("B"))
            except OSError as error:
                raise WorkbenchError(f"{path} cannot be read: {error}") from error
            if got != len(here) * width:
                raise WorkbenchError(f"{path} must hold {len(here) * width:,} more bytes; it ends after {got:,}")

    def _pieces(self, part: int) -> _Pieces:
        ends = self._ends
        begins = np.array(ends[:, part])
        return _Pieces(begins, np.concatenate([[0], np.cumsum(ends[:, part + 1] - begins)]))

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
