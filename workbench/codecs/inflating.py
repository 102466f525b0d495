"""Decompression into an array of known size.

A few bytes can inflate to gigabytes, and numcodecs decodes all of them before their number is known. Here the decompressors
that can be stopped are stopped one byte after the expected size: the data are then wrong. Decompression does not depend on
the options that the data were compressed with.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from workbench.codecs.codec import CodecFailed
from workbench.codecs.pcodec import unpack_into

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_GZIP = 16 + zlib.MAX_WBITS   # what zlib calls a gzip header


def streamed(name: str, decompressor: Callable[[], Any]) -> Callable[[bytes, np.ndarray], None]:
    """Fills an array by a decompressor of the standard library, which stops at a given size."""

    def fill(data: bytes, target: np.ndarray) -> None:
        try:
            found = decompressor().decompress(data, target.nbytes + 1)
        except (zlib.error, lzma.LZMAError, OSError) as error:   # bz2 raises the last
            raise CodecFailed(f"{name} could not decode {len(data)} bytes: {error}: they are damaged") from error
        _require_size(name, len(found), target)
        target.reshape(-1).view(np.uint8)[:] = np.frombuffer(found, np.uint8)

    return fill


def inflated(data: bytes | memoryview, most: int) -> bytes:
    """What zlib deflated, if it is not longer than this.

    >>> inflated(zlib.compress(b"abc"), 3)
    b'abc'
    """
    decompressor = zlib.decompressobj()
    try:
        found = decompressor.decompress(data, most + 1)
    except zlib.error as error:
        raise CodecFailed(f"{len(data)} bytes cannot be inflated: {error}: they are damaged") from error
    if len(found) > most or not decompressor.eof or decompressor.unused_data:
        raise CodecFailed(f"{len(data)} bytes do not inflate to {most} bytes or fewer: they are damaged")
    return found


def _zstd(data: bytes, target: np.ndarray) -> None:
    from numcodecs import zstd

    stated = zstd_content_size(data)
    _require_size("zstd", target.nbytes if stated is None else stated, target)
    try:
        zstd.decompress(data, target.reshape(-1).view(np.uint8))   # an error if the number differs after all
    except (RuntimeError, ValueError) as error:
        raise CodecFailed(f"zstd could not decode {len(data)} bytes: {error}: they are damaged") from error


def _lz4(data: bytes, target: np.ndarray) -> None:
    from numcodecs import lz4

    _require_size("lz4", int.from_bytes(data[:4], "little"), target)
    lz4.decompress(data, target.reshape(-1).view(np.uint8))


def zstd_content_size(data: bytes) -> int | None:
    """The content size that a Zstandard frame states; None if it states none.

    >>> zstd_content_size(bytes.fromhex("28b52ffd2003190000616263"))
    3
    """
    if data[:4] != _ZSTD_MAGIC or len(data) < 5:
        raise CodecFailed("zstd data must begin with a frame header: they are damaged")
    flags = data[4]
    single_segment, width = flags >> 5 & 1, flags >> 6
    size = (single_segment, 2, 4, 8)[width]
    start = 5 + (not single_segment) + (0, 1, 2, 4)[flags & 3]
    if size == 0:
        return None
    return int.from_bytes(data[start : start + size], "little") + (256 if size == 2 else 0)


def _require_size(name: str, size: int, target: np.ndarray) -> None:
    if size != target.nbytes:
        more = "more than " if size == target.nbytes + 1 else ""
        got = f"{more}{size - bool(more)}"
        raise CodecFailed(f"{name} must decode to {target.size} values of {target.dtype}; got {got} bytes")


BOUNDED: Mapping[str, Callable[[bytes, np.ndarray], None]] = {
    "bz2": streamed("bz2", bz2.BZ2Decompressor),
    "gzip": streamed("gzip", lambda: zlib.decompressobj(_GZIP)),
    "lz4": _lz4,
    "pcodec": unpack_into,
    "zlib": streamed("zlib", zlib.decompressobj),
    "zstd": _zstd,
}
