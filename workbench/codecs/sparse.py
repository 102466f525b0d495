"""Whole numbers that are mostly zeros, or few, as bytes: bit by bit, with chances that the coder learns as it goes.

Pruned weights, counts and masked fields have rows and columns of their own densities, and zeros in runs and patches. Scales
that are stored for each row and column take more than they save where most numbers are zeros, and so do tables of
frequencies where numbers are few. Here nothing is stored: what was coded before says how dense a row and a column are
(`kernels/sparse.cu`). It takes some divisions a number, so dense numbers are left to faster coders.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench import backend
from workbench.codecs.codec import CodecFailed
from workbench.codecs.entropy import starts

CHANCES = backend.constant("sparse.cu", "CHANCES")
BLOCK = 2**20            # numbers, at most, in rows that are coded together: many, as each block begins without experience
FEW = 2**10              # numbers, of which this coder is tried even if they are dense
ZEROS = 2 / 3            # share of more numbers from which on it is: dense ones at coarse bounds are left to faster coders
ROOM, LEAST_ROOM = 4, 64   # bytes of a number in one of several blocks, at most, and of a block

_AXIS = struct.Struct("<B")   # from which on the numbers of all axes make a row; the lengths of several blocks follow
_LENGTH = np.dtype("<u4")


def suits(numbers: np.ndarray, alone: bool) -> bool:
    """Whether this coder is worth a try: they are few, or mostly zeros that neighbours do not predict (`alone`)."""
    return numbers.size <= FEW or (alone and int(np.count_nonzero(numbers)) < (1 - ZEROS) * numbers.size)


def pack_sparse(numbers: np.ndarray, most: int) -> bytes | None:
    """Numbers of up to 64 bits as at most so many bytes, or None, also where zeros at the end would have made them fit.

    The caller keeps their shape.

    >>> numbers = np.zeros((40, 50), np.int32)
    >>> numbers[::7, ::3] = -5
    >>> data = pack_sparse(numbers, 100)
    >>> len(data) < 40, bool((unpack_sparse(data, numbers.shape) == numbers).all())
    (True, True)
    """
    rows = {min(math.prod(numbers.shape[axis:]), BLOCK): axis for axis in range(min(numbers.ndim - 1, 1), numbers.ndim)}
    best = None
    for columns, axis in rows.items():
        found = _packed(numbers, axis, columns, most)
        if found is not None:
            best, most = found, len(found) - 1
    return best


def unpack_sparse(data: bytes, shape: Sequence[int]) -> np.ndarray:
    """The numbers (int64) of this shape that `pack_sparse` wrote."""
    (axis,) = _AXIS.unpack_from(data) if data else (len(shape),)
    if axis >= len(shape):
        raise CodecFailed(f"sparse numbers have rows from one of {len(shape)} axes on; got {axis}: they are damaged")
    blocks, given = _layout(math.prod(shape), min(math.prod(shape[axis:]), BLOCK))
    begin = _AXIS.size + (_LENGTH.itemsize * blocks if blocks > 1 else 0)
    if len(data) < begin:
        raise CodecFailed(f"{blocks} blocks of sparse numbers begin with their lengths; got {len(data)} bytes: truncated")
    lengths = np.frombuffer(data[_AXIS.size : begin], _LENGTH) if blocks > 1 else [len(data) - begin]
    first = starts(np.asarray(lengths, np.int64))
    if first[-1] != len(data) - begin:
        raise CodecFailed(f"blocks of sparse numbers must have {first[-1]:,} bytes; got {len(data) - begin:,}")
    numbers = np.zeros(shape, np.int64)
    coded = np.frombuffer(data, np.uint8, offset=begin)
    backend.kernel("sparse", "decode_sparse")(blocks, given, first_byte=first, bytes=coded, number=numbers.reshape(-1))
    return numbers


def _packed(numbers: np.ndarray, axis: int, columns: int, most: int) -> bytes | None:
    """The numbers in rows of so many, or None if they take more than `most` bytes."""
    blocks, given = _layout(numbers.size, columns)
    flat, room = numbers.reshape(-1).astype(np.int64), min(most, ROOM * given["block"] + LEAST_ROOM)
    out, used = np.empty((blocks, room), np.uint8), np.empty(blocks, np.int64)
    backend.kernel("sparse", "encode_sparse")(blocks, given, number=flat, room=room, out=out.reshape(-1), used=used)
    if used.max() > room:
        return None
    parts = [own[:size].tobytes().rstrip(b"\0") for own, size in zip(out, used, strict=True)]   # zeros are read on
    lengths = np.array([len(part) for part in parts], _LENGTH).tobytes() if blocks > 1 else b""
    data = b"".join([_AXIS.pack(axis), lengths, *parts])
    return data if len(data) <= most else None


def _layout(count: int, columns: int) -> tuple[int, dict[str, Any]]:
    """The blocks of so many numbers in rows of so many, and what both kernels need: room for what each block learns."""
    block = BLOCK // columns * columns
    blocks = -(-count // block)
    return blocks, {
        "n": count, "block": block, "columns": columns,
        "chances": np.empty(blocks * CHANCES, np.uint32), "filled": np.empty(blocks * columns, np.uint32),
    }
