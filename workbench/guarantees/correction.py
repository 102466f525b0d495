"""Corrections of the values that a codec got wrong, stored beside its bytes.

A correction is an index and a bit pattern, so that it can restore any value: the last bit, a NaN with its payload, a fill
value of 1e35. A near correction stores how many representable numbers lie between the decoded value and the original, a
small number where the codec was nearly right. A far correction (also of NaN) stores the pattern itself: fill values are
often equal, and then take almost no space. All corrections are far ones where that is smaller: what a mask hides may be
regular, and what the codec put in its place is not.

Indices are stored as deltas, or as a mask where that is smaller: gaps have coasts. Corrections of nearly all values need
no separate format: all deltas are then zero, which pcodec packs into a few bytes.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs.mask import pack_mask, unpack_mask
from workbench.codecs.pcodec import pack_integers, unpack_integers
from workbench.errors import WorkbenchError

MOST_VALUES = 2**32 - 1   # in one corrected array: indices are stored in 32 bits

_HEADER = struct.Struct("<6I")   # how many near and far corrections there are, then the length of each of four parts
_AS_MASK = 2**31                 # in the length of the part with the indices
_FEW_BYTES = 64                  # of deltas: a mask would save nothing
_FEW = 64                        # near corrections, which take about as much as far ones
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
    packed = _packed(near, index, steps, to, wanted.shape)
    if near.sum() <= _FEW:
        return packed
    return min(packed, _packed(np.zeros_like(near), index, steps, to, wanted.shape), key=len)


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


def corrected_places(data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The flat indices at which a correction may put finite numbers; where it puts NaN or infinities is left out.

    >>> wanted, decoded = np.array([1.0, 2.0, np.nan]), np.array([1.0, 2.5, 0.0])
    >>> corrected_places(encode_correction(np.array([1, 2]), wanted, decoded), (3,), wanted.dtype)
    array([1])
    """
    if not data:
        return np.empty(0, np.int64)
    near, far = _parts(data, np.broadcast_to(np.zeros((), dtype), shape))
    finite = np.isfinite(_unordered(far.codes).view(dtype.str))
    return np.sort(np.concatenate([near.index, far.index[finite]]))


@dataclass(frozen=True, eq=False)
class _Part:
    index: np.ndarray
    codes: np.ndarray


def _header(data: bytes) -> tuple[int, ...]:
    if len(data) < _HEADER.size:
        raise WorkbenchError(f"a correction must have at least {_HEADER.size} bytes; got {len(data)}: it is damaged")
    header = _HEADER.unpack_from(data)
    length = _HEADER.size + sum(part & ~_AS_MASK for part in header[2:])
    if len(data) != length:
        raise WorkbenchError(f"a correction must have {length} bytes; got {len(data)}: it is damaged")
    return header


def _parts(data: bytes, decoded: Array) -> Iterator[_Part]:
    """The near and the far corrections; every index is known to exist."""
    near, far, *lengths = _header(data)
    if near + far > decoded.size:
        raise WorkbenchError(f"a correction of {decoded.size:,} values changes {near + far:,} of them: it is damaged")
    ends = _HEADER.size + np.cumsum([length & ~_AS_MASK for length in lengths])
    packed = [data[begin:end] for begin, end in itertools.pairwise([_HEADER.size, *ends.tolist()])]
    masked, dtype = [bool(length & _AS_MASK) for length in lengths], np.dtype(f"u{decoded.dtype.itemsize}")
    for k, count in ((0, near), (2, far)):
        if count:
            index = _unpacked_indices(packed[k], masked[k], count, decoded.shape)
            yield _Part(index, unpack_integers(packed[k + 1], count, dtype))
        else:
            yield _Part(np.empty(0, np.int64), np.empty(0, dtype))


def _packed(near: np.ndarray, index: np.ndarray, steps: np.ndarray, to: np.ndarray, shape: tuple[int, ...]) -> bytes:
    """The bytes of corrections of which some are near ones."""
    lengths, parts = [], []
    for at, codes in ((index[near], steps[near]), (index[~near], to[~near])):
        where, flag = _packed_indices(at, shape)
        parts += [where, pack_integers(codes) if codes.size else b""]
        lengths += [len(where) | flag, len(parts[-1])]
    count = int(near.sum())
    return _HEADER.pack(count, index.size - count, *lengths) + b"".join(parts)


def _packed_indices(index: np.ndarray, shape: tuple[int, ...]) -> tuple[bytes, int]:
    """Increasing flat indices as bytes, and the flag of their length."""
    if index.size == 0:
        return b"", 0
    gaps = np.diff(index, prepend=np.array([-1])) - 1
    packed = pack_integers(gaps.astype(np.uint32))
    if len(packed) < _FEW_BYTES:
        return packed, 0
    mask = np.zeros(shape, bool)
    mask.reshape(-1)[index] = True
    as_mask = pack_mask(mask)
    return (packed, 0) if len(packed) <= len(as_mask) else (as_mask, _AS_MASK)


def _unpacked_indices(data: bytes, masked: bool, count: int, shape: tuple[int, ...]) -> np.ndarray:
    if masked:
        index = np.flatnonzero(unpack_mask(data, shape))
        if len(index) != count:
            raise WorkbenchError(f"a correction of {count:,} values has a mask of {len(index):,} of them: it is damaged")
        return index
    steps = unpack_integers(data, count, np.uint32).astype(np.int64) + 1   # so that indices increase for any bytes
    index, size = np.cumsum(steps) - 1, math.prod(shape)
    if index[-1] >= size:
        raise WorkbenchError(f"a correction of {size:,} values names number {int(index[-1]):,}: it is damaged")
    return index


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
