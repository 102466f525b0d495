"""The bytes of blocks in groups of 64, each with a checksum, and perhaps deflated: the optional entropy stage of `staged`.

Bit planes of small differences are not random bytes, so Huffman's code takes 2 to 18 % less for them. A group is the least
that must be inflated to read one of its blocks; groups are deflated and inflated side by side. A group that deflation does
not make smaller is stored as it is, which its size tells.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from workbench import backend
from workbench.codecs.codec import CodecFailed
from workbench.codecs.crc import crc32_of_blocks

TOGETHER = 64     # blocks in a group
LEVEL = 1         # of deflation: higher ones take longer, and half a hundredth less
AT_ONCE = 16      # groups that a thread takes at a time

_RAW = -15        # no header, no checksum: each group has its own

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Groups:
    """The stored bytes of all groups, one behind the other."""

    stored: np.ndarray      # uint8
    ends: np.ndarray        # int64: where each group begins, and the end
    checksums: np.ndarray   # uint32, of the stored bytes

    @classmethod
    def of(cls, coded: np.ndarray, first: np.ndarray, deflate: bool) -> Groups:
        """The groups of blocks that begin at these places."""
        ends = ends_of(first)
        if deflate:
            whole = coded.tobytes()
            parts = _side_by_side(len(ends) - 1, lambda group: _deflated(whole[ends[group] : ends[group + 1]]))
            coded = np.frombuffer(b"".join(parts), np.uint8)
            ends = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        return cls(coded, ends, crc32_of_blocks([(coded, ends)], np.arange(len(ends) - 1)))

    def coded(self, first: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """The bytes of all blocks, right in these groups, after a comparison with their checksums."""
        wrong = crc32_of_blocks([(self.stored, self.ends)], groups) != self.checksums[groups]
        if wrong.any():
            begin = int(groups[int(np.argmax(wrong))]) * TOGETHER
            raise CodecFailed(f"blocks {begin} to {begin + TOGETHER - 1} of a staged field fail their checksum: damaged")
        places = ends_of(first)
        if np.array_equal(places, self.ends):
            return self.stored
        found = np.empty(int(first[-1]), np.uint8)

        def place(number: int) -> None:
            group = int(groups[number])
            data = self.stored[self.ends[group] : self.ends[group + 1]].tobytes()
            begin, end = int(places[group]), int(places[group + 1])
            found[begin:end] = np.frombuffer(data if len(data) == end - begin else _inflated(data, end - begin), np.uint8)

        _side_by_side(len(groups), place)
        return found


def ends_of(first: np.ndarray) -> np.ndarray:
    """Where each group of blocks begins, and the end."""
    return np.append(first[:-1:TOGETHER], first[-1])


def _deflated(data: bytes) -> bytes:
    coder = zlib.compressobj(LEVEL, zlib.DEFLATED, _RAW, 9)
    found = coder.compress(data) + coder.flush()
    return found if len(found) < len(data) else data


def _inflated(data: bytes, size: int) -> bytes:
    """So many bytes, and no more."""
    decoder = zlib.decompressobj(_RAW)
    try:
        found = decoder.decompress(data, size + 1)
    except zlib.error as error:
        raise CodecFailed(f"a group of staged blocks cannot be inflated: {error}: damaged") from error
    if len(found) != size or not decoder.eof or decoder.unused_data:
        raise CodecFailed(f"a group of staged blocks must inflate to {size:,} bytes; got {len(found):,}: damaged")
    return found


def _side_by_side(count: int, work: Callable[[int], Result]) -> list[Result]:
    """The results for so many items, a few of them at a time in each thread."""
    starts = range(0, count, AT_ONCE)
    several = backend.side_by_side(lambda start: [work(n) for n in range(start, min(start + AT_ONCE, count))], starts)
    return [one for part in several for one in part]
