"""Particles in chunks sorted along a curve, for archives whose order is free.

One exchange sends each particle to a narrow range of keys; a sample decides the ranges. A chunk of the archive is a range
of places, so it consists of some ranges of keys, of which the first and the last are cut. Whoever encodes a chunk sorts it
in memory: beside the exchange, nothing is written or read. Ties stay in the order of the source, so the order of the whole
is the one that a stable sort in one process gives.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from workbench.codecs import crc
from workbench.codecs.curve import Lattice
from workbench.data.chunked import ChunkedParticles, chunks_between, rows_between
from workbench.ordering import gather_rows, sort_by_key, stored_index
from workbench.run.executors import Executor
from workbench.run.scratch_files import load, save
from workbench.slabs import Slices
from workbench.subdomains.exchange import FEW, Cargo, Destinations, Exchange

RANGES = 8           # of keys, in a chunk: what two chunks have in common is sorted twice
MOST_RANGES = 2**17  # unless there are more chunks: an exchange counts for all pairs of them and runs of chunks
BLOCK = 2**15        # positions of which the ranges are found together

TABLE = 16           # entries for each range of a table that knows the ranges of most keys, at least, and
TABLE_BITS = 16      # of a key


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

    def destinations(self, positions: np.ndarray) -> Destinations:
        """The range of each position."""
        owner = np.empty(len(positions), np.int32)
        for start in range(0, len(positions), BLOCK):   # what is computed for a block stays in the cache
            owner[start : start + BLOCK] = self._ranges(positions[start : start + BLOCK])
        return Destinations.without_copies(owner)

    def _ranges(self, positions: np.ndarray) -> np.ndarray:
        lowest, is_cut, shift = self._table
        keys = self.curve.keys(positions)
        place = (keys >> np.uint64(shift)).view(np.int64)
        found: np.ndarray = lowest[place]
        undecided = np.flatnonzero(is_cut[place])
        found[undecided] = np.searchsorted(self.splitters, keys[undecided], side="right")
        return found

    @cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray, int]:
        """The range of the lowest key that begins with some bits; whether the highest has another; how many bits follow."""
        shift = max(self.curve.key_bits - max(TABLE_BITS, (TABLE * self.parts).bit_length()), 0)
        first = np.arange(1 << (self.curve.key_bits - shift), dtype=np.uint64) << np.uint64(shift)
        last = first | np.uint64((1 << shift) - 1)
        low, high = (np.searchsorted(self.splitters, keys, side="right").astype(np.int32) for keys in (first, last))
        return low, low != high, shift


@dataclass(frozen=True)
class SortedRows:
    """All particles in the order of the curve; a call returns the positions of a chunk, as a `Task` wants them.

    Each chunk that is read leaves the checksum of its order, and its rows where they are wanted `again`.
    """

    exchange: Exchange
    curve: Lattice
    starts: tuple[int, ...]   # the place of the first particle of each range of keys, and the end
    again: bool
    indexed: bool = False     # whether the indices in the source are wanted again, too

    def __call__(self, slices: Slices) -> np.ndarray:
        """The positions at these places."""
        begin, end = slices[0].start, slices[0].stop
        known = self._file("rows", begin)
        if known.exists():
            return load(known)
        positions, index, cargo = self._sorted(begin, end)
        stored = index.astype(stored_index(self.starts[-1]), copy=False)
        save(self._file("order", begin), np.array([zlib.crc32(stored.data)], np.uint32))
        if self.indexed:
            save(self._file("index", begin), stored)
        if cargo is not None:
            save(self._file("cargo", begin), cargo)
        if self.again:
            save(known, positions)
        return positions

    def cargo(self, begins: Sequence[int], begin: int, end: int) -> np.ndarray:
        """What has travelled with the positions at these places, once all chunks are read; these begin at `begins`."""
        return self._saved("cargo", begins, begin, end)

    def index(self, begins: Sequence[int], begin: int, end: int) -> np.ndarray:
        """The indices in the source of the particles at these places, once all chunks are read."""
        return self._saved("index", begins, begin, end)

    def _saved(self, kind: str, begins: Sequence[int], begin: int, end: int) -> np.ndarray:
        found = rows_between(begins, begin, end)
        return np.concatenate([load(self._file(kind, begins[chunk]), rows) for chunk, rows in found])

    def checksum(self, begins: Sequence[int]) -> str:
        """The checksum of the order, as `archive.in_order.checksum_of` computes it; chunks begin at these places."""
        value = 0
        for begin, end in zip(begins, [*begins[1:], self.starts[-1]], strict=True):
            found = int(load(self._file("order", begin))[0])
            value = crc.joined(value, found, stored_index(self.starts[-1]).itemsize * (end - begin))
        return f"{value:08x}"

    def _sorted(self, begin: int, end: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The positions at these places, their indices in the source, and what travels with them."""
        parts = chunks_between(self.starts, begin, end)
        start = self.starts[parts.start]
        index, positions = self.exchange.signed_positions(parts)   # of which none is a copy
        order = sort_by_key(self.curve.keys(positions), self.curve.key_bits)[begin - start : end - start]
        cargo = None if self.exchange.cargo is None else self.exchange.cargo_of(parts)[order]
        return gather_rows(positions, order), index[order], cargo

    def _file(self, kind: str, begin: int) -> Path:
        return self.exchange.folder / f"{kind}-{begin}"


def ranges_for(chunks: int) -> int:
    """How many ranges of keys there are for so many chunks of an archive.

    >>> [ranges_for(chunks) for chunks in (1, 1000, 10**5, 10**6)]
    [8, 8000, 131072, 1000000]
    """
    return max(min(RANGES * chunks, MOST_RANGES), chunks)


def sort_along(
    curve: Lattice,
    source: ChunkedParticles,
    sample: np.ndarray,
    chunks: int,
    folder: Path,
    executor: Executor,
    again: bool,
    cargo: Cargo | None = None,
    indexed: bool = False,
) -> SortedRows:
    """Bring all particles to their ranges, for so many chunks of an archive; the files are in the folder."""
    ranges = AlongCurve.of(curve, sample.astype(source.dtype), ranges_for(chunks))
    exchange = Exchange(source, ranges, folder, cargo, few=RANGES * FEW)   # a chunk reads a row of ranges at once
    sizes = exchange.distribute(executor).owned
    return SortedRows(exchange, curve, (0, *np.cumsum(sizes).tolist()), again, indexed)
