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

from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles
from workbench.errors import WorkbenchError


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
        return Particles(self.positions, box)


@dataclass(frozen=True)
class Exchange:
    """The files of one exchange in a folder that all workers see."""

    source: ChunkedParticles
    division: Division
    folder: Path
    cargo: Cargo | None = None

    @property
    def row_bytes(self) -> int:
        """The bytes of one particle: its row in the chunk, whether it is owned, its position, and its cargo."""
        return 4 + 1 + self._position_bytes + self._cargo_bytes

    def send(self, chunk: int) -> Shipped:
        """Write what the subdomains need of one chunk."""
        positions = self.source.chunk(chunk).positions
        cargo = np.empty((len(positions), 0), np.uint8) if self.cargo is None else self.cargo.rows(chunk)
        rows, parts, owned = self.division.destinations(positions)
        counts, own = (np.bincount(of, minlength=self.division.parts) for of in (parts, parts[owned]))
        order = np.lexsort((rows, parts))
        rows, owned = rows[order].astype(np.int32), owned[order]
        staged = self._file(chunk).with_suffix(".partial")
        with staged.open("wb") as file:
            ends = np.cumsum(counts).tolist()
            for begin, end in zip([0, *ends], ends, strict=False):
                chosen = rows[begin:end]
                for column in (chosen, owned[begin:end], positions[chosen], cargo[chosen]):
                    column.tofile(file)
        staged.replace(self._file(chunk))   # a worker that dies leaves no file that looks complete
        return Shipped(counts, own)

    def sent(self, shipped: Sequence[Shipped]) -> Self:
        """Record what all chunks have sent; from here on subdomains can be received."""
        ends = np.cumsum([one.counts for one in shipped], axis=1)
        np.save(self._table, np.concatenate([np.zeros((len(shipped), 1), np.int64), ends], axis=1))
        return self

    def receive(self, part: int) -> Subdomain:
        """The particles of a subdomain."""
        begin, end = np.array(self._ends[:, part]), np.array(self._ends[:, part + 1])
        pieces = [self._piece(chunk, int(begin[chunk]), int(end[chunk])) for chunk in np.flatnonzero(end > begin).tolist()]
        if not pieces:
            none = np.empty((0, self.source.dimensions), self.source.dtype)
            return Subdomain(none, np.empty(0, np.int64), np.empty(0, bool), np.empty((0, self._cargo_bytes), np.uint8))
        index, owned, positions, cargo = (np.concatenate(column) for column in zip(*pieces, strict=True))
        return Subdomain(positions, index, owned, cargo)

    def _piece(self, chunk: int, begin: int, end: int) -> tuple[np.ndarray, ...]:
        count, path = end - begin, self._file(chunk)
        with path.open("rb") as file:
            file.seek(begin * self.row_bytes)
            data = file.read(count * self.row_bytes)
        if len(data) != count * self.row_bytes:
            raise WorkbenchError(f"{path} must hold {count * self.row_bytes:,} more bytes; it ends after {len(data):,}")
        rows = np.frombuffer(data, np.int32, count)
        owned = np.frombuffer(data, bool, count, 4 * count)
        after = (5 + self._position_bytes) * count
        positions = np.frombuffer(data[5 * count : after], self.source.dtype)   # a copy, which is aligned
        cargo = np.frombuffer(data, np.uint8, offset=after).reshape(count, self._cargo_bytes)
        return rows.astype(np.int64) + self.source.starts[chunk], owned, positions.reshape(count, -1), cargo

    @property
    def _position_bytes(self) -> int:
        return self.source.dtype.itemsize * self.source.dimensions

    @property
    def _cargo_bytes(self) -> int:
        return 0 if self.cargo is None else self.cargo.row_bytes

    @cached_property
    def _ends(self) -> np.ndarray:
        """For each chunk, where the piece of each subdomain begins in its file, and the end."""
        return np.load(self._table, mmap_mode="r")

    @property
    def _table(self) -> Path:
        return self.folder / "sent.npy"

    def _file(self, chunk: int) -> Path:
        return self.folder / f"chunk-{chunk}"
