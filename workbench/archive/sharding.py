"""Shards: files that hold many chunks each, in the form of Zarr's codec `sharding_indexed`.

Files cost time wherever archives are written, copied and opened, so an array of very many chunks is stored as at most 1,024
shards. Which chunks are together follows from the grid of chunks alone, so every writer makes the same files. The document
binds one checksum for each file; so its size does not grow with the number of chunks.

    chunks     one behind the other, in the order of their slots
    table      the checksum of the decoded values of each chunk (4 bytes); the document states the CRC-32 of this table
    index      where each chunk begins, and its length (8 bytes each); in slots beyond the array all bits are set
    checksum   CRC-32C of the index (4 bytes)

Zarr ignores the table, to which its index does not point. The order leaves no freedom to an index: every chunk begins where
the one before ends, and the last ends where the table begins. So no forged one leads out of the file, or to a byte twice.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench.archive.frame import Damaged
from workbench.slabs import boxes_of

MOST_FILES = 2**10      # of an array that is written here
MOST_CHUNKS = 2**28     # of an array: more have extents that do not fit into one chunk
MOST_IN_SHARD = 2**20   # chunks: what must be read before the first of them is found
ENTRY = 20              # bytes in table and index for each slot
_CHECKSUM = 4           # bytes
_BEYOND = np.uint64(2**64 - 1)
_POLYNOMIAL = 0x82F63B78   # of CRC-32C, its bits reversed


def chunks_in_shards(grid: Sequence[int]) -> tuple[int, ...]:
    """How many chunks a shard has along each axis of a grid of chunks: 1 where these are few.

    >>> chunks_in_shards((32, 32)), chunks_in_shards((4000, 1)), chunks_in_shards((500, 30))
    ((1, 1), (4, 1), (1, 15))
    """
    return boxes_of(grid, MOST_FILES)


def end_bytes(slots: int) -> int:
    """The bytes of a shard behind its chunks."""
    return ENTRY * slots + _CHECKSUM


def end_of(lengths: np.ndarray, checksums: bytes) -> bytes:
    """What stands behind chunks of these lengths, with these checksums, in every slot; 0 in slots beyond the array."""
    index = _index(lengths.astype("<u8"))
    return checksums + index + crc32c(index).to_bytes(_CHECKSUM, "little")


@dataclass(frozen=True)
class ShardIndex:
    r"""Where the chunks of a shard are in its file, and the checksums of their values.

    >>> end = end_of(np.array([3, 0, 5]), bytes(12))
    >>> index = ShardIndex.of(end, "values/c/7", 8, np.array([True, False, True]))
    >>> index.place(0), index.place(2), index.checksum(2)
    ((0, 3), (3, 5), b'\x00\x00\x00\x00')
    """

    ends: np.ndarray      # of each slot
    checksums: bytes

    @classmethod
    def of(cls, end: bytes, key: str, begin: int, inside: np.ndarray) -> Self:
        """The index in the last bytes of a shard, which begin at this place; `inside` are the slots of chunks."""
        table = 4 * len(inside)
        index, checksum = end[table:-_CHECKSUM], end[-_CHECKSUM:]
        if crc32c(index).to_bytes(_CHECKSUM, "little") != checksum:
            raise Damaged(key, f"the index of its {inside.sum():,} chunks fails its checksum")
        lengths = np.where(inside, np.frombuffer(index, "<u8")[1::2], np.uint64(0))
        ends = np.cumsum(lengths, dtype=np.uint64)
        if _index(lengths) != index or int(ends[-1]) != begin or (lengths > begin).any():
            count = inside.sum()
            raise Damaged(key, f"its index must state {count:,} chunks, one behind the other, of {begin:,} bytes in all")
        return cls(ends, end[:table])

    def place(self, slot: int) -> tuple[int, int]:
        """Where the chunk in this slot begins, and its length."""
        begin = int(self.ends[slot - 1]) if slot else 0
        return begin, int(self.ends[slot]) - begin

    def checksum(self, slot: int) -> bytes:
        """The checksum of the values of the chunk in this slot."""
        return self.checksums[4 * slot : 4 * slot + 4]


def crc32c(data: bytes) -> int:
    """The CRC-32C, which Zarr has behind an index. An index is short: a few thousand chunks have 16 bytes each.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@functools.cache
def _table() -> list[int]:
    table = []
    for entry in range(256):
        for _ in range(8):
            entry = (entry >> 1) ^ (_POLYNOMIAL if entry & 1 else 0)
        table.append(entry)
    return table


def _index(lengths: np.ndarray) -> bytes:
    """The one index of chunks with these lengths."""
    begins = np.cumsum(lengths, dtype=np.uint64) - lengths
    entries = np.stack([begins, lengths], axis=1)
    entries[lengths == 0] = _BEYOND
    return entries.astype("<u8").tobytes()
