"""The steps of a block's tokens in a few bits each: the smallest, and what the others are above it."""

from __future__ import annotations

import struct

import numpy as np

from workbench.codecs.codec import CodecFailed

_HEADER = struct.Struct("<hB")   # the smallest, and the bits of a distance


def pack_codes(codes: np.ndarray) -> bytes:
    """Whole numbers (int16) as bytes.

    >>> len(pack_codes(np.arange(64, dtype=np.int16) % 8)), unpack_codes(pack_codes(np.int16([5, -3])), 2)[0].tolist()
    (27, [5, -3])
    """
    least = int(codes.min())
    above = codes.astype(np.int64) - least
    width = int(above.max()).bit_length()
    bits = (above[:, None] >> np.arange(width)) & 1
    return _HEADER.pack(least, width) + np.packbits(bits.astype(np.uint8)).tobytes()


def unpack_codes(data: bytes, count: int) -> tuple[np.ndarray, int]:
    """The numbers again, and how many of the bytes they took."""
    if len(data) < _HEADER.size:
        raise CodecFailed(f"steps have a header of {_HEADER.size} bytes; got {len(data)}")
    least, width = _HEADER.unpack_from(data)
    end = _HEADER.size + (count * width + 7) // 8
    if width > 16 or len(data) < end:
        raise CodecFailed(f"{count} steps of {width} bits must have {end} bytes; got {len(data)}: they are damaged")
    bits = np.unpackbits(np.frombuffer(data[_HEADER.size : end], np.uint8))[: count * width].reshape(count, width)
    return ((bits.astype(np.int64) << np.arange(width)).sum(axis=1) + least).astype(np.int16), end
