"""pcodec: lossless compression of numbers by their distribution.

The best lossless coder of numbers available here, and a fast one. It is also the entropy coder of other codecs, and stores
data that must not change: corrections, ids, permutations (`pack_integers`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench.charts.looks import Look
from workbench.codecs.codec import CodecFailed, Tolerance, option
from workbench.codecs.pieces import InPieces
from workbench.errors import WorkbenchError

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
LEVEL = 8
MOST_NUMBERS_PER_BYTE = 2**21   # a chunk of pcodec has at most 2^24 numbers and at least 8 bytes


@dataclass(frozen=True)
class PCodec(InPieces):
    """pcodec, lossless. Takes integers too.

    >>> ids = np.arange(1000, dtype=np.int64)
    >>> data = PCodec().encode(ids, Tolerance(absolute=0.0))
    >>> len(data) < 100, bool((PCodec().decode(data, ids.shape, ids.dtype) == ids).all())
    (True, True)
    """

    id: ClassVar[str] = "pcodec"
    title: ClassVar[str] = "pcodec: all bits kept, numbers coded by their distribution"
    look: ClassVar[Look | None] = Look("#a9714b", "inverted_triangle", "dashdot")
    module: ClassVar[str | None] = "pcodec"
    lossless: ClassVar[bool] = True
    relative: ClassVar[bool] = True
    finite: ClassVar[bool] = False
    contained: ClassVar[bool] = True
    automatic: ClassVar[bool] = True
    dtypes: ClassVar[tuple[str, ...]] = ("float32", "float64", *INTEGERS)

    level: int = option(LEVEL, "how hard to look for fewer bits", minimum=0, maximum=12)

    def _encode_piece(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        return _packed(values, self.level)

    def _decode_piece(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        _require_room(data, math.prod(shape))
        values = np.empty(shape, dtype)
        unpack_into(data, values)
        return values


def pack_integers(numbers: np.ndarray, level: int = LEVEL) -> bytes:
    """Integers as bytes; the caller keeps their number and type.

    >>> unpack_integers(pack_integers(np.array([3, -1, 4])), 3, np.int64).tolist()
    [3, -1, 4]
    """
    if numbers.dtype.name not in INTEGERS or not numbers.dtype.isnative:
        raise WorkbenchError(f"packed numbers must be {' or '.join(INTEGERS)}; got {numbers.dtype}: use .astype(...)")
    return _packed(np.ascontiguousarray(numbers), level) if numbers.size else b""


def unpack_integers(data: bytes, count: int, dtype: Any) -> np.ndarray:
    """`count` integers of this type, from the bytes of `pack_integers`."""
    kind = np.dtype(dtype)
    if kind.name not in INTEGERS:
        raise WorkbenchError(f"packed numbers must be {' or '.join(INTEGERS)}; got {kind}")
    if count == 0 and not data:
        return np.empty(0, kind)
    if count < 1 or not data:
        raise CodecFailed(f"{len(data)} bytes cannot be {count} packed numbers: they are damaged or truncated")
    _require_room(data, count)
    try:
        numbers = np.empty(count, kind)
    except (MemoryError, ValueError):
        raise CodecFailed(f"{count} packed numbers of {kind} do not fit into memory: their count is damaged") from None
    unpack_into(data, numbers)
    return numbers


def _packed(numbers: np.ndarray, level: int) -> bytes:
    from pcodec import ChunkConfig, standalone

    return standalone.simple_compress(numbers.reshape(-1), ChunkConfig(compression_level=level, enable_8_bit=True))


def unpack_into(data: bytes, target: np.ndarray) -> None:
    """Fill an array with packed numbers; sizes in the data allocate nothing, and another count is an error."""
    from pcodec import standalone

    try:
        progress = standalone.simple_decompress_into(bytes(data), target.reshape(-1))
    except (RuntimeError, TypeError) as error:
        raise CodecFailed(f"pcodec could not decode {target.size} numbers of {target.dtype}: {error}") from error
    if progress.n_processed != target.size or not progress.finished:
        raise CodecFailed(f"pcodec must decode to {target.size} numbers; got {progress.n_processed}: the bytes are damaged")


def _require_room(data: bytes, count: int) -> None:
    """Refuse a count that so few bytes cannot hold, before memory is allocated for it."""
    if count > len(data) * MOST_NUMBERS_PER_BYTE:
        raise CodecFailed(f"{len(data)} bytes cannot hold {count} packed numbers: their count is damaged")
