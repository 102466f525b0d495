"""CRC-32 on the machine where the bytes are, the same numbers as zlib's.

On a GPU a checksum of decoded values would otherwise cost a copy of all of them to the host. Blocks of coded numbers are
short and many, so a kernel takes one each (`kernels/crc.cu`), on a CPU too.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs.codec import CodecFailed
from workbench.codecs.together import Pieces

_POLYNOMIAL = 0xEDB88320   # as in kernels/crc.cu
_AT_ONCE = 16              # bytes in one step of the kernel
_BLOCK = 512               # bytes for each work item


def crc32(array: Array) -> int:
    """The CRC of the bytes of a contiguous array.

    >>> crc32(np.frombuffer(b"123456789", np.uint8)) == zlib.crc32(b"123456789") == 0xCBF43926
    True
    """
    if not backend.on_device(array):
        return zlib.crc32(np.ascontiguousarray(array).data)
    return _crc_in_pieces(array)


def _crc_in_pieces(array: Array) -> int:
    """The CRC by the kernel, wherever the array is."""
    return int(crc32_of_pieces(array, max(len(array), 1))[0])


def crc32_of_pieces(array: Array, rows: int) -> np.ndarray:
    """The CRC (uint32) of each piece of so many rows of a contiguous array, computed where it is.

    >>> crc32_of_pieces(np.frombuffer(b"ab12", np.uint8), 2).tolist() == [zlib.crc32(b"ab"), zlib.crc32(b"12")]
    True
    """
    xp = backend.namespace(array)
    data: Any = xp.ascontiguousarray(array).reshape(-1).view(xp.uint8)
    pieces = Pieces.of(data.size, rows * (data.size // max(len(array), 1)))
    crc = xp.zeros(len(pieces), xp.uint32)
    tables = (xp.asarray(each) for each in (_table(), _powers()))
    backend.kernel("crc", "crc_pieces")(pieces.blocks(_BLOCK), data.size, pieces.length, _BLOCK, data, *tables, crc)
    return backend.to_host(crc)


def crc32_of_blocks(parts: Sequence[tuple[Array, Array]], blocks: Array) -> Array:
    """The CRC (uint32) of each of these blocks (int64); its bytes are a range of each array, one after the other.

    Every part is an array of numbers and the index at which each block begins in it, and the end.

    >>> words = np.frombuffer(b"ab--12", np.uint8), np.array([0, 2, 4, 6])
    >>> crc32_of_blocks([words], np.array([2, 0])).tolist() == [zlib.crc32(b"12"), zlib.crc32(b"ab")]
    True
    """
    xp = backend.namespace(blocks)
    crc, table = xp.zeros(len(blocks), xp.uint32), xp.asarray(_table())
    for numbers, first in parts:
        data: Any = numbers.view(xp.uint8)
        backend.kernel("crc", "crc_blocks")(len(blocks), blocks, numbers.dtype.itemsize, first, data, table, crc)
    return crc


def joined(first: int, second: int, length: int) -> int:
    """The CRC of some bytes and `length` more, from the CRCs of both.

    >>> joined(zlib.crc32(b"1234"), zlib.crc32(b"56789"), 5) == zlib.crc32(b"123456789")
    True
    """
    for power, bit in enumerate(f"{8 * length:b}"[::-1]):
        if bit == "1":
            first = _times(first, int(_powers()[power]))
    return first ^ second


@functools.cache
def _table() -> np.ndarray:
    """The remainders of every byte with 0 to 15 zero bytes after it."""
    rows = [np.arange(256, dtype=np.uint32)]
    for _ in range(8):
        rows[0] = np.where(rows[0] & 1, rows[0] >> 1 ^ np.uint32(_POLYNOMIAL), rows[0] >> 1)
    while len(rows) < _AT_ONCE:
        rows.append(rows[0][rows[-1] & 255] ^ rows[-1] >> 8)
    return _fixed(np.concatenate(rows))


@functools.cache
def _powers() -> np.ndarray:
    """The remainders of x to the powers 1, 2, 4, 8, ..."""
    powers = [1 << 30]   # x itself, with the lowest power in the highest bit
    while len(powers) < 64:
        powers.append(_times(powers[-1], powers[-1]))
    return _fixed(np.array(powers, np.uint32))


def _times(a: int, b: int) -> int:
    """The product of two remainders, as in the kernel."""
    product = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            product ^= b
        b = b >> 1 ^ _POLYNOMIAL if b & 1 else b >> 1
    return product


def _fixed(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


class CheckedBlocks:
    """Coded blocks with a checksum each, which are checked when they are first decoded."""

    checksums: np.ndarray

    @property
    def _parts(self) -> Sequence[tuple[np.ndarray, np.ndarray]]:
        """The arrays with the bytes of all blocks, each with where every block begins."""
        raise NotImplementedError

    def _check(self, blocks: np.ndarray) -> None:
        """Check blocks against their checksums, each of them once."""
        unchecked = blocks[~self._checked[blocks]]
        wrong = unchecked[self.checksums[unchecked] != crc32_of_blocks(self._parts, unchecked)]
        if len(wrong):
            raise CodecFailed(f"block {wrong[0]} of {len(self.checksums)} fails its checksum")
        self._checked[blocks] = True

    @functools.cached_property
    def _checked(self) -> np.ndarray:
        """Which blocks have passed their checksum."""
        return np.zeros(len(self.checksums), bool)
