"""Particles on a cluster sorted along a curve: a global sort by key, in parts of about equal size.

Each part gets a range of keys, decided by a sample, and sorts it. Ties stay in the order of the source, so the order of the
whole is the one that a stable sort in one process gives.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.archive.encoding import Slices
from workbench.codecs.curve import Lattice
from workbench.data.chunked import ChunkedParticles
from workbench.distributed.exchange import Exchange
from workbench.distributed.executors import Executor
from workbench.distributed.scratch_files import load, save
from workbench.ordering import gather_rows, sort_by_key


@dataclass(frozen=True, eq=False)
class AlongCurve:
    """A division by ranges of keys: part p gets the keys from `splitters[p - 1]` on, below `splitters[p]`."""

    curve: Lattice
    splitters: np.ndarray   # uint64

    @classmethod
    def of(cls, curve: Lattice, sample: np.ndarray, parts: int) -> AlongCurve:
        """Ranges that hold about equally many of these positions."""
        keys = np.sort(curve.keys(np.ascontiguousarray(sample)))
        return cls(curve, keys[len(keys) * np.arange(1, parts) // parts])

    @property
    def parts(self) -> int:
        """How many ranges there are."""
        return len(self.splitters) + 1

    def destinations(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All rows, the range of each, and that it is owned there."""
        parts: np.ndarray = np.searchsorted(self.splitters, self.curve.keys(positions), side="right")   # type: ignore[assignment]
        return np.arange(len(positions), dtype=np.int32), parts, np.ones(len(positions), bool)


@dataclass(frozen=True)
class SortedParts:
    """Sorted positions in the files of the parts; a call returns the rows of a chunk, as a `Task` wants them."""

    folder: Path
    starts: tuple[int, ...]   # the place of the first particle of each part, and the end

    def __call__(self, slices: Slices) -> np.ndarray:
        """The positions at these places."""
        begin, end = slices[0].start, slices[0].stop
        first = int(np.searchsorted(self.starts, begin, side="right")) - 1
        pieces = []
        for part in range(first, len(self.starts) - 1):
            start, stop = self.starts[part], self.starts[part + 1]
            if start >= end:
                break
            if stop > begin:
                rows = load(positions_file(self.folder, part))
                pieces.append(rows[max(begin - start, 0) : end - start])
        return np.concatenate(pieces)

    def order(self, part: int) -> np.ndarray:
        """The index in the source of each particle of a part."""
        return load(order_file(self.folder, part))

    @property
    def parts(self) -> int:
        """How many there are."""
        return len(self.starts) - 1


def sort_along(
    curve: Lattice, source: ChunkedParticles, sample: np.ndarray, parts: int, folder: Path, executor: Executor
) -> SortedParts:
    """Sort all particles; the files are in the folder."""
    exchange = Exchange(source, AlongCurve.of(curve, sample.astype(source.dtype), parts), folder)
    shipped = executor.map("send-particles", exchange.send, range(len(source.sizes)), "chunk")
    exchange.sent(shipped)
    sizes = executor.map("sort-particles", functools.partial(_sort, exchange, curve), range(parts), "part of the curve")
    return SortedParts(folder, (0, *np.cumsum(sizes).tolist()))


def positions_file(folder: Path, part: int) -> Path:
    """The sorted positions of a part."""
    return folder / f"sorted-{part}.npy"


def order_file(folder: Path, part: int) -> Path:
    """The indices of the sorted particles of a part."""
    return folder / f"order-{part}.npy"


def _sort(exchange: Exchange, curve: Lattice, part: int) -> int:
    found = exchange.receive(part)
    order = sort_by_key(curve.keys(found.positions), curve.key_bits) if len(found) else np.empty(0, np.int32)
    save(positions_file(exchange.folder, part), gather_rows(found.positions, order))
    save(order_file(exchange.folder, part), found.index[order])
    return len(found)
