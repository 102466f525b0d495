"""Corrections of the values that a codec got wrong, stored beside its bytes.

A correction is an index and a bit pattern, so that it can restore any value: the last bit, a NaN with its payload, a fill
value of 1e35. A near correction stores how many representable numbers lie between the decoded value and the original, a
small number where the codec was nearly right. A far correction (also of NaN) stores the pattern itself: fill values are
often equal, and then take almost no space.

Indices are stored as deltas. Corrections of nearly all values need no separate format: all deltas are then zero, which
pcodec packs into a few bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs.pcodec import pack_integers, unpack_integers
from workbench.errors import WorkbenchError

MOST_VALUES = 2**32 - 1   # in one corrected array: indices are stored in 32 bits

_HEADER = struct.Struct("<6I")   # how many near and far corrections there are, then the length of each of four parts
_MANTISSA_BITS = {1: 4, 2: 8, 4: 23, 8: 52}   # by the bytes of a value; half the bits of short integers


def encode_correction(indices: Array, wanted: Array, decoded: Array) -> bytes:
    """The bytes that turn `decoded` into `wanted` at these flat indices (increasing), where the two have the same shape.

    >>> wanted, decoded = np.array([1.0, 2.0, np.nan]), np.array([1.0, 2.5, 0.0])
    >>> apply_correction(decoded, encode_correction(np.array([1, 2]), wanted, decoded))
    array([ 1.,  2., nan])
    """
    index = backend.to_host(indices)
    if index.size == 0:
        return b""
    if wanted.size > MOST_VALUES:
        raise WorkbenchError(f"one chunk may hold at most {MOST_VALUES:,} values; got {wanted.size:,}: use smaller chunks")
    to, start = (_ordered(backend.to_host(array.reshape(-1)[indices])) for array in (wanted, decoded))
    steps = _zigzag(to - start)
    near = steps >> _MANTISSA_BITS[wanted.dtype.itemsize] == 0   # within about a factor of two
    parts = [*_packed(index[near], steps[near]), *_packed(index[~near], to[~near])]
    count = int(near.sum())
    return _HEADER.pack(count, index.size - count, *map(len, parts)) + b"".join(parts)


def apply_correction(decoded: Array, data: bytes) -> Array:
    """The decoded values, corrected: a new array unless there is nothing to correct."""
    if not data:
        return decoded
    near, far = _parts(data, decoded)
    xp = backend.namespace(decoded)
    corrected = xp.ascontiguousarray(decoded).copy()
    flat = corrected.reshape(-1)
    for part, steps in ((near, True), (far, False)):
        at = xp.asarray(part.index)
        codes = _ordered(backend.to_host(flat[at])) + _unzigzag(part.codes) if steps else part.codes
        flat[at] = xp.asarray(_unordered(codes).view(decoded.dtype.str))
    return corrected


def count_corrections(data: bytes) -> int:
    """How many values a correction changes.

    >>> count_corrections(b"")
    0
    """
    return sum(_header(data)[:2]) if data else 0


@dataclass(frozen=True, eq=False)
class _Part:
    index: np.ndarray
    codes: np.ndarray


def _header(data: bytes) -> tuple[int, ...]:
    if len(data) < _HEADER.size:
        raise WorkbenchError(f"a correction must have at least {_HEADER.size} bytes; got {len(data)}: it is damaged")
    header = _HEADER.unpack_from(data)
    length = _HEADER.size + sum(header[2:])
    if len(data) != length:
        raise WorkbenchError(f"a correction must have {length} bytes; got {len(data)}: it is damaged")
    return header


def _parts(data: bytes, decoded: Array) -> tuple[_Part, _Part]:
    """The near and the far corrections; every index is known to exist."""
    near, far, *lengths = _header(data)
    if near + far > decoded.size:
        raise WorkbenchError(f"a correction of {decoded.size:,} values changes {near + far:,} of them: it is damaged")
    ends = _HEADER.size + np.cumsum(lengths)
    packed = [data[end - length : end] for end, length in zip(ends.tolist(), lengths, strict=True)]
    what = decoded.dtype.itemsize, decoded.size
    return _unpacked(packed[0], packed[1], near, *what), _unpacked(packed[2], packed[3], far, *what)


def _packed(index: np.ndarray, codes: np.ndarray) -> tuple[bytes, bytes]:
    if index.size == 0:
        return b"", b""
    gaps = np.diff(index, prepend=np.array([-1])) - 1
    return pack_integers(gaps.astype(np.uint32)), pack_integers(codes)


def _unpacked(gaps: bytes, codes: bytes, count: int, width: int, size: int) -> _Part:
    if count == 0:
        return _Part(np.empty(0, np.int64), np.empty(0, f"u{width}"))
    steps = unpack_integers(gaps, count, np.uint32).astype(np.int64) + 1   # so that indices increase for any bytes
    index = np.cumsum(steps) - 1
    if index[-1] >= size:
        raise WorkbenchError(f"a correction of {size:,} values names number {int(index[-1]):,}: it is damaged")
    return _Part(index, unpack_integers(codes, count, np.dtype(f"u{width}")))


# Bit patterns as integers in the order of the numbers they stand for.

def _top(codes: np.ndarray) -> np.unsignedinteger:
    return codes.dtype.type(1 << (8 * codes.itemsize - 1))


def _ordered(values: np.ndarray) -> np.ndarray:
    """The bits of each value, mapped so that larger numbers have larger integers."""
    bits = values.view(f"u{values.dtype.itemsize}")
    return np.where(bits & _top(bits), ~bits, bits | _top(bits))


def _unordered(codes: np.ndarray) -> np.ndarray:
    return np.where(codes & _top(codes), codes & ~_top(codes), ~codes)


def _zigzag(steps: np.ndarray) -> np.ndarray:
    """Signed steps (modulo the width) as small unsigned numbers: 0, -1, 1, -2, ..."""
    signed = steps.view(f"i{steps.itemsize}")
    return ((signed << 1) ^ (signed >> (8 * signed.itemsize - 1))).view(steps.dtype)


def _unzigzag(codes: np.ndarray) -> np.ndarray:
    return (codes >> 1) ^ (~(codes & 1) + codes.dtype.type(1))
