"""The bytes of the codec `staged`: a description, the metadata of all blocks in columns, then the blocks.

`docs/archive-format.md` describes the layout. Description and metadata share one checksum; blocks have one for each 64 of
them, so that a few blocks can be read, and trusted, without the rest.
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
from workbench.codecs.crc import crc32_of_blocks
from workbench.codecs.pcodec import pack_integers, unpack_integers
from workbench.codecs.staged_blocks import LOG_VALUES, ROOM, CodedBlocks, Fact, Grid, Lattice, grid_size
from workbench.slabs import Slices

TOGETHER = 64     # blocks that share a checksum
LEVEL = 6         # of pcodec for the metadata

_HEADER = struct.Struct("<BBBBBdqQ")   # wide, gaps, logarithms of three sides, step, offset, bytes of blocks
_LENGTH = struct.Struct("<I")          # of each column
_CHECKSUM = struct.Struct("<I")        # of the codec's name, shape and type, and of all before the blocks
_COLUMNS = len(Fact) + 1               # the last one: checksums of blocks


@dataclass(frozen=True, eq=False)
class Stream:
    """A field in blocks: facts of each (int64, a row of this array for each `Fact`), checksums of groups, bytes."""

    grid: Grid
    lattice: Lattice
    gaps: bool               # whether some cells do not count
    facts: np.ndarray
    checksums: np.ndarray    # uint32
    coded: np.ndarray        # uint8: the bytes of all blocks

    def to_bytes(self, shape: Sequence[int], dtype: np.dtype) -> bytes:
        """What `from_bytes` reads."""
        columns = [b"" if self._is_known(fact) else pack_integers(self.facts[fact], LEVEL) for fact in Fact]
        columns.append(self.checksums.astype("<u4").tobytes())
        lattice = self.lattice
        head = _HEADER.pack(lattice.wide, self.gaps, *self.grid.logs, lattice.step, lattice.offset, len(self.coded))
        described = b"".join([head, *(_LENGTH.pack(len(column)) for column in columns), *columns])
        checksum = _CHECKSUM.pack(zlib.crc32(described, _meant(shape, dtype)))
        return b"".join([checksum, described, self.coded.tobytes()])

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
        wide, gaps, *logs, step, offset, size = _HEADER.unpack_from(view, _CHECKSUM.size)
        lengths = [_LENGTH.unpack_from(view, _CHECKSUM.size + _HEADER.size + k * _LENGTH.size)[0] for k in range(_COLUMNS)]
        end = start + sum(lengths)
        if end + size != len(view):
            raise CodecFailed(f"a staged field must have {end + size:,} bytes; got {len(view):,}: damaged or truncated")
        if _CHECKSUM.unpack_from(view)[0] != zlib.crc32(view[_CHECKSUM.size : end], _meant(shape, dtype)):
            raise CodecFailed(
                f"the bytes must be what staged made of a {dtype} array of shape {tuple(shape)}, but their checksum "
                "differs: they are damaged, or belong to another array"
            )
        if wide > 1 or gaps > 1 or sum(logs) != LOG_VALUES or not 0 < step < np.inf:
            raise CodecFailed(f"a staged field has blocks of 512 and a positive step; got {logs} and {step}: damaged")
        first, second, third = logs
        grid = Grid(grid_size(shape), (first, second, third))
        found = cls(grid, Lattice(step, offset, bool(wide)), bool(gaps), *_columns(view[start:end], lengths, grid),
                    np.frombuffer(view[end:], np.uint8))
        found._check()
        return found

    def _check(self) -> None:
        """Refuse facts that no blocks have."""
        if not self.gaps:
            self.facts[Fact.COUNT] = self.grid.cells()
        sizes, counts = self.facts[Fact.SIZE], self.facts[Fact.COUNT]
        if sizes.min() < 0 or sizes.max() > ROOM[self.lattice.wide] or int(sizes.sum()) != len(self.coded):
            raise CodecFailed(f"the blocks of a staged field do not have {len(self.coded):,} bytes: damaged")
        if counts.min() < 0 or (counts > self.grid.cells()).any():
            raise CodecFailed("the blocks of a staged field cannot have so many valid cells: damaged")

    @cached_property
    def first(self) -> np.ndarray:
        """Where the bytes of each block begin, and the end."""
        return np.concatenate([[0], np.cumsum(self.facts[Fact.SIZE])]).astype(np.int64)

    def blocks(self, chosen: np.ndarray, xp: Any = np) -> CodedBlocks:
        """The blocks for decoding, after the bytes of the chosen ones were compared with their checksums."""
        groups = np.unique(chosen // TOGETHER)
        found = checksums_of(self.coded, self.first, groups)
        if (found != self.checksums[groups]).any():
            wrong = int(groups[int(np.argmax(found != self.checksums[groups]))]) * TOGETHER
            raise CodecFailed(f"blocks {wrong} to {wrong + TOGETHER - 1} of a staged field fail their checksum: damaged")
        base, first, data = (xp.asarray(array) for array in (self.facts[Fact.BASE], self.first, self.coded))
        return CodedBlocks(self.grid, self.lattice, base, first, data)

    def first_values(self, dtype: np.dtype) -> np.ndarray:
        """The first value of each block, from the metadata alone."""
        with np.errstate(over="ignore"):   # as in the kernels, which round to infinity
            numbers = self.facts[Fact.BASE].view(np.uint64) + np.array(self.lattice.offset).view(np.uint64)
            return np.multiply(numbers.view(np.int64), self.lattice.step, dtype=np.float64).astype(dtype)

    def values(self, window: Slices, dtype: np.dtype, xp: Any = np) -> Array:
        """The values in a window of the grid."""
        return self.blocks(self.grid.blocks_in(window), xp).values(window, dtype)


def checksums_of(data: Array, first: Array, groups: np.ndarray) -> np.ndarray:
    """The CRC (uint32) of the bytes of these groups of blocks."""
    ends = np.append(first[:-1:TOGETHER], first[-1])
    return crc32_of_blocks([(data, ends)], groups)


def _columns(view: memoryview, lengths: Sequence[int], grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """The facts and the checksums; columns without bytes are zero."""
    groups = -(-grid.blocks // TOGETHER)
    if lengths[-1] != 4 * groups:
        raise CodecFailed(f"a staged field of {grid.blocks:,} blocks has {4 * groups:,} bytes of checksums: damaged")
    facts = np.zeros((len(Fact), grid.blocks), np.int64)
    at = 0
    for fact, length in zip(Fact, lengths, strict=False):
        if length:
            facts[fact] = unpack_integers(bytes(view[at : at + length]), grid.blocks, np.int64)
        at += length
    return facts, np.frombuffer(view[at:], "<u4").astype(np.uint32)


def _meant(shape: Sequence[int], dtype: np.dtype) -> int:
    return zlib.crc32(f"staged {np.dtype(dtype).name} {'x'.join(map(str, shape))}".encode())
