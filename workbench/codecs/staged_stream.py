"""The bytes of the codec `staged`: a description, the metadata of all blocks in columns, then the blocks.

`docs/archive-format.md` describes the layout. Description and metadata share one checksum, and each group of blocks has
one, so that a few blocks can be read, and trusted, without the rest.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.backend import Array
from workbench.codecs.codec import CodecFailed
from workbench.codecs.pcodec import pack_integers, unpack_integers
from workbench.codecs.staged_blocks import LOG_VALUES, CodedBlocks, Fact, Grid, Lattice, grid_size, room_of
from workbench.codecs.staged_groups import TOGETHER, Groups, ends_of
from workbench.codecs.staged_large import LOG_LARGE
from workbench.slabs import Slices

LEVEL = 6         # of pcodec for the metadata

_HEADER = struct.Struct("<BBBBBdqQ")   # flags, gaps, logarithms of three sides, step, offset, bytes of groups
_WIDE, _ROUNDED = 1, 2   # flags
_LENGTH = struct.Struct("<I")          # of each column
_CHECKSUM = struct.Struct("<I")        # of the codec's name, shape and type, and of all before the blocks
_COLUMNS = len(Fact) + 2               # the last ones: sizes and checksums of groups


@dataclass(frozen=True, eq=False)
class Stream:
    """A field in blocks: facts of each (int64, a row of this array for each `Fact`), and their bytes."""

    grid: Grid
    lattice: Lattice
    gaps: bool               # whether some cells do not count
    facts: np.ndarray
    groups: Groups

    def to_bytes(self, shape: Sequence[int], dtype: np.dtype) -> bytes:
        """What `from_bytes` reads."""
        columns = [b"" if self._is_known(fact) else pack_integers(self.facts[fact], LEVEL) for fact in Fact]
        lattice, stored = self.lattice, self.groups
        sizes = np.diff(stored.ends) if not np.array_equal(stored.ends, ends_of(self.first)) else np.empty(0, np.int64)
        columns += [sizes.astype("<u4").tobytes(), stored.checksums.astype("<u4").tobytes()]
        flags = _WIDE * lattice.wide | _ROUNDED * (not lattice.exact)
        head = _HEADER.pack(flags, self.gaps, *self.grid.logs, lattice.step, lattice.offset, len(stored.stored))
        described = b"".join([head, *(_LENGTH.pack(len(column)) for column in columns), *columns])
        checksum = _CHECKSUM.pack(zlib.crc32(described, _meant(shape, dtype)))
        return b"".join([checksum, described, stored.stored.tobytes()])

    def _is_known(self, fact: Fact) -> bool:
        """Whether a column follows from the rest."""
        return (fact is Fact.COUNT and not self.gaps) or (fact is Fact.SQUARES_ABOVE and not self.lattice.wide)

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, shape: Sequence[int], dtype: np.dtype) -> Stream:
        """The parts of a stream that must hold a field of this shape and type; blocks are checked when they are read."""
        view = memoryview(data)
        start = _CHECKSUM.size + _HEADER.size + _COLUMNS * _LENGTH.size
        if len(view) < start:
            raise CodecFailed(f"a staged field has a header of {start} bytes; got {len(view)}: they are truncated")
        flags, gaps, *logs, step, offset, size = _HEADER.unpack_from(view, _CHECKSUM.size)
        lengths = [_LENGTH.unpack_from(view, _CHECKSUM.size + _HEADER.size + k * _LENGTH.size)[0] for k in range(_COLUMNS)]
        end = start + sum(lengths)
        if end + size != len(view):
            raise CodecFailed(f"a staged field must have {end + size:,} bytes; got {len(view):,}: damaged or truncated")
        if _CHECKSUM.unpack_from(view)[0] != zlib.crc32(view[_CHECKSUM.size : end], _meant(shape, dtype)):
            raise CodecFailed(
                f"the bytes must be what staged made of a {dtype} array of shape {tuple(shape)}, but their checksum "
                "differs: they are damaged, or belong to another array"
            )
        wide, exact, large = bool(flags & _WIDE), not flags & _ROUNDED, sum(logs) == LOG_LARGE
        if flags > _WIDE + _ROUNDED or gaps > 1 or sum(logs) not in (LOG_VALUES, LOG_LARGE) or not (large or exact):
            got = f"sides {logs} and flags {flags}, {gaps}"
            raise CodecFailed(f"a staged field has blocks of 512 or 4096 lattice numbers; got {got}: damaged")
        if not 0 < step < np.inf:
            raise CodecFailed(f"a staged field has a positive step; got {step}: damaged")
        first, second, third = logs
        grid = Grid(grid_size(shape), (first, second, third))
        facts, rest = _facts(view[start:end], lengths, grid)
        if not gaps:
            facts[Fact.COUNT] = grid.cells()
        _check(facts, grid, wide)
        groups = _groups(rest, lengths[-2:], np.frombuffer(view[end:], np.uint8), facts[Fact.SIZE])
        return cls(grid, Lattice(step, offset, wide, exact), bool(gaps), facts, groups)

    @cached_property
    def first(self) -> np.ndarray:
        """Where the bytes of each block begin, and the end."""
        return np.concatenate([[0], np.cumsum(self.facts[Fact.SIZE])]).astype(np.int64)

    def blocks(self, chosen: np.ndarray, xp: Any = np) -> CodedBlocks:
        """The blocks for decoding, after the bytes of the chosen ones were compared with their checksums."""
        coded = self.groups.coded(self.first, np.unique(chosen // TOGETHER))
        base, first, data = (xp.asarray(array) for array in (self.facts[Fact.BASE], self.first, coded))
        return CodedBlocks(self.grid, self.lattice, base, first, data)

    def first_values(self, dtype: np.dtype) -> np.ndarray:
        """The first value of each block, from the metadata alone."""
        with np.errstate(over="ignore"):   # as in the kernels, which round to infinity
            numbers = self.facts[Fact.BASE].view(np.uint64) + np.array(self.lattice.offset).view(np.uint64)
            return np.multiply(numbers.view(np.int64), self.lattice.step, dtype=np.float64).astype(dtype)

    def values(self, window: Slices, dtype: np.dtype, xp: Any = np) -> Array:
        """The values in a window of the grid."""
        return self.blocks(self.grid.blocks_in(window), xp).values(window, dtype)


def _facts(view: memoryview, lengths: Sequence[int], grid: Grid) -> tuple[np.ndarray, memoryview]:
    """The facts, and what follows them; columns without bytes are zero."""
    facts = np.zeros((len(Fact), grid.blocks), np.int64)
    at = 0
    for fact, length in zip(Fact, lengths, strict=False):
        if length:
            facts[fact] = unpack_integers(bytes(view[at : at + length]), grid.blocks, np.int64)
        at += length
    return facts, view[at:]


def _check(facts: np.ndarray, grid: Grid, wide: bool) -> None:
    """Refuse facts that no blocks have."""
    sizes, counts = facts[Fact.SIZE], facts[Fact.COUNT]
    room = room_of(grid, wide)
    if sizes.min() < 0 or sizes.max() > room:
        raise CodecFailed(f"blocks of a staged field have at most {room} bytes; got {int(sizes.max())}: damaged")
    if counts.min() < 0 or (counts > grid.cells()).any():
        raise CodecFailed("the blocks of a staged field cannot have so many valid cells: damaged")


def _groups(view: memoryview, lengths: Sequence[int], stored: np.ndarray, sizes: np.ndarray) -> Groups:
    """The groups of blocks with these sizes; without sizes of their own, they are stored as they are."""
    ends = ends_of(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
    expected = 4 * (len(ends) - 1)
    if lengths[0] not in (0, expected) or lengths[1] != expected:
        raise CodecFailed(f"a staged field has {expected:,} bytes of checksums; got {lengths[1]:,}: damaged")
    if lengths[0]:
        own = np.frombuffer(view[:expected], "<u4").astype(np.int64)
        if (own > np.diff(ends)).any():
            raise CodecFailed("groups of staged blocks cannot be larger than their blocks: damaged")
        ends = np.concatenate([[0], np.cumsum(own)]).astype(np.int64)
    if ends[-1] != len(stored):
        raise CodecFailed(f"the blocks of a staged field do not have {len(stored):,} bytes: damaged")
    return Groups(stored, ends, np.frombuffer(view[lengths[0] :], "<u4").astype(np.uint32))


def _meant(shape: Sequence[int], dtype: np.dtype) -> int:
    return zlib.crc32(f"staged {np.dtype(dtype).name} {'x'.join(map(str, shape))}".encode())
