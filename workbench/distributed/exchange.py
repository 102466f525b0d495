"""The exchange of particles: from chunks in the order of the source to subdomains with their ghosts.

Each chunk is written once, as one file that holds what every subdomain needs of it, and each subdomain reads its piece of every
file. Nothing but sizes passes through the scheduler, and a process holds one chunk or one subdomain at a time, so memory does not
depend on the number of particles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles
from workbench.distributed.decomposition import Decomposition
from workbench.errors import WorkbenchError


@dataclass(frozen=True, eq=False)
class Shipment:
    """The file of one chunk: `counts[p]` of its particles are for subdomain p, one subdomain after the other."""

    path: Path
    start: int   # the index of the first particle of the chunk
    counts: np.ndarray
    owned: np.ndarray   # how many of these the subdomain owns
    dtype: np.dtype
    dimensions: int

    @property
    def row_bytes(self) -> int:
        """The bytes of one particle: its row in the chunk, whether it is owned, and its position."""
        return 4 + 1 + self.dtype.itemsize * self.dimensions

    @property
    def ghosts(self) -> int:
        """How many copies for other subdomains than the owner it holds."""
        return int(self.counts.sum() - self.owned.sum())


@dataclass(frozen=True, eq=False)
class Subdomain:
    """The particles of a subdomain, rising by their index in the whole set, so that a local label names the global one."""

    positions: np.ndarray
    index: np.ndarray   # int64
    owned: np.ndarray   # bool; the others are ghosts

    def __len__(self) -> int:
        return len(self.index)

    def particles(self, box: tuple[float, ...] | None) -> Particles:
        """As particles in the box of the whole set."""
        return Particles(self.positions, box)


def ship(
    source: ChunkedParticles, number: int, decomposition: Decomposition, width: float, folder: Path
) -> Shipment:
    """Write what the subdomains need of one chunk; `width` is the ghost width."""
    positions = source.chunk(number).positions
    owner = decomposition.owners(positions)
    ghost_rows, ghost_parts = decomposition.ghosts(positions, width)
    rows = np.concatenate([np.arange(len(positions)), ghost_rows])
    parts = np.concatenate([owner, ghost_parts])
    owned = np.arange(len(rows)) < len(positions)
    order = np.lexsort((rows, parts))
    rows, owned = rows[order].astype(np.int32), owned[order]
    counts, own = (np.bincount(of, minlength=decomposition.parts) for of in (parts, owner))
    shipment = Shipment(folder / f"chunk-{number}", source.starts[number], counts, own, positions.dtype, positions.shape[1])
    staged = shipment.path.with_suffix(".partial")
    with staged.open("wb") as file:
        for begin, end in _pieces(counts):
            for part in (rows[begin:end], owned[begin:end], positions[rows[begin:end]]):
                part.tofile(file)
    staged.replace(shipment.path)   # a worker that dies leaves no file that looks complete
    return shipment


def received(shipments: Sequence[Shipment], part: int) -> Subdomain:
    """The particles that a subdomain was sent, from the shipments of all chunks in order."""
    pieces = [_piece(shipment, part) for shipment in shipments if shipment.counts[part]]
    if not pieces:
        first = shipments[0]
        return Subdomain(np.empty((0, first.dimensions), first.dtype), np.empty(0, np.int64), np.empty(0, bool))
    index, owned, positions = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return Subdomain(positions, index, owned)


def _piece(shipment: Shipment, part: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    begin, count = int(shipment.counts[:part].sum()), int(shipment.counts[part])
    with shipment.path.open("rb") as file:
        file.seek(begin * shipment.row_bytes)
        data = file.read(count * shipment.row_bytes)
    if len(data) != count * shipment.row_bytes:
        raise WorkbenchError(f"{shipment.path} was cut short: {count * shipment.row_bytes:,} bytes expected; got {len(data):,}")
    rows = np.frombuffer(data, np.int32, count)
    owned = np.frombuffer(data, bool, count, 4 * count)
    positions = np.frombuffer(data[5 * count :], shipment.dtype)   # a copy, which is aligned
    return rows.astype(np.int64) + shipment.start, owned, positions.reshape(count, shipment.dimensions)


def _pieces(counts: np.ndarray) -> list[tuple[int, int]]:
    ends = np.cumsum(counts)
    return list(zip((ends - counts).tolist(), ends.tolist(), strict=True))
