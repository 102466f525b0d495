"""Relative errors for codecs that only know absolute ones: compress a logarithm of the values.

The logarithm of a mathematical library differs between machines in its last bit, and decoded files would differ too. This
one uses the bits of the numbers: L(x) is the bit pattern of |x| divided by 2^m for m bits of mantissa. That is exponent +
mantissa, linear between the powers of two instead of log2. It is exact in both directions and the same on all machines.

An absolute error d <= 1 of L is a relative error of at most d. As a function of L, x is convex and doubles from L to L + 1,
so x(L + d) <= x + d (2x - x); and below x no slope exceeds the power of two under x, so x(L - d) >= x - d x.

Zeros are stored as a mask, unless the codec marks them itself, and so are signs if any value is negative. Denormal numbers,
infinities and NaN have no such logarithm; they are replaced by a neighbour's value, or marked as zeros are, and corrected
after the check of the result.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs.gaps import filled
from workbench.codecs.mask import pack_mask, unpack_mask
from workbench.errors import WorkbenchError
from workbench.guarantees.check import bits_of

_HEADER = struct.Struct("<BQII")   # width of the logarithms, bits of the smallest value, lengths of the two masks
_MANTISSA_BITS = {4: 23, 8: 52}
_ROOM = 16   # single precision will do where its rounding is this many times smaller than the bound


@dataclass(frozen=True, eq=False)
class Logarithms:
    """The input of a codec in place of the values: logarithms, the allowed absolute error, and the masks to store."""

    values: Array
    tolerance: float   # zero where the bound leaves no room for any error
    extra: bytes
    present: Array     # where a value has a logarithm

    @property
    def extra_without_zeros(self) -> bytes:
        """The same for a codec that returns NaN, and no number, in place of what has no logarithm."""
        width, base, signs, _ = _HEADER.unpack_from(self.extra)
        return _HEADER.pack(width, base, signs, 0) + self.extra[_HEADER.size : _HEADER.size + signs]


def to_logs(values: Array, eb: float, single: bool = True) -> Logarithms:
    """The logarithms of the values, in single precision where the bound leaves room for its rounding (and if allowed).

    >>> logs = to_logs(np.array([1.0, 2.0, -3.0, 0.0]), eb=1e-3)
    >>> logs.values.tolist(), from_logs(logs.values, logs.extra, np.float64).tolist()
    ([0.0, 1.0, 1.5, 1.5], [1.0, 2.0, -3.0, 0.0])
    """
    xp = backend.namespace(values)
    mantissa = _MANTISSA_BITS[values.dtype.itemsize]
    bits = bits_of(xp.ascontiguousarray(values))
    top = bits.dtype.type(1 << (8 * bits.itemsize - 1))
    size = bits & ~top
    present = (size >= _smallest(mantissa)) & (size <= _largest(mantissa))
    steps = filled(size, present) if present.any() else xp.full(bits.shape, _smallest(mantissa), bits.dtype)
    base = int(steps.min())
    logs = (steps - bits.dtype.type(base)).astype(np.float64) * 2.0**-mantissa
    reach = float(logs.max())
    narrow = single and reach * 2.0**-24 * _ROOM <= eb
    rounding = reach * 2.0 ** (-24 if narrow else -53) + 2.0 ** -(mantissa + 1)   # of a logarithm, and on the way back
    maps = [_map((bits & top) != 0), _map(size == 0)]
    extra = _HEADER.pack(4 if narrow else 8, base, *map(len, maps)) + b"".join(maps)
    return Logarithms(logs.astype(np.float32 if narrow else np.float64), max(eb - rounding, 0.0), extra, present)


def from_logs(logs: Array, extra: bytes, dtype: np.dtype | type) -> Array:
    """The values of these approximate logarithms: some numbers, whatever a codec may return, and 0 for NaN."""
    xp = backend.namespace(logs)
    dtype = np.dtype(dtype)
    mantissa = _MANTISSA_BITS[dtype.itemsize]
    smallest, largest = _smallest(mantissa), _largest(mantissa)
    base, negative, zero = _extra(extra, logs.shape)
    base = min(max(base, smallest), largest)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = xp.rint(logs.astype(np.float64) * 2.0**mantissa)
    missing = xp.isnan(steps)
    steps = xp.clip(xp.where(missing, 0.0, steps), float(smallest - base), float(largest - base)).astype(np.int64)
    bits = xp.clip(steps + base, smallest, largest).astype(f"u{dtype.itemsize}")
    bits[missing if zero is None else missing | xp.asarray(zero)] = 0
    if negative is not None:
        bits[xp.asarray(negative)] |= bits.dtype.type(1 << (8 * dtype.itemsize - 1))
    return bits.view(dtype.str)


def log_dtype(extra: bytes) -> np.dtype:
    """The type of the logarithms that belong to this extra part."""
    width = _header(extra)[0]
    if width not in (4, 8):
        raise WorkbenchError(f"logarithms must be 4 or 8 bytes wide; got {width}: the data are damaged")
    return np.dtype(f"f{width}")


def _smallest(mantissa: int) -> int:
    """The bits of the smallest normal number."""
    return 1 << mantissa


def _largest(mantissa: int) -> int:
    """The bits of the largest finite number."""
    return ({23: 0xFF, 52: 0x7FF}[mantissa] << mantissa) - 1


def _map(where: Array) -> bytes:
    """A mask, packed; empty when nothing is set."""
    return pack_mask(where) if where.any() else b""


def _header(extra: bytes) -> tuple[int, int, int, int]:
    if len(extra) < _HEADER.size:
        raise WorkbenchError(f"signs and zeros must have at least {_HEADER.size} bytes; got {len(extra)}: they are damaged")
    return _HEADER.unpack_from(extra)


def _extra(extra: bytes, shape: tuple[int, ...]) -> tuple[int, np.ndarray | None, np.ndarray | None]:
    """The smallest value's bits, and where values are negative and zero (masks, or None for nowhere)."""
    _, base, signs, zeros = _header(extra)
    if len(extra) != _HEADER.size + signs + zeros or base >= 2**63:
        raise WorkbenchError("the signs and zeros of the values are damaged: their parts do not fit together")
    middle = _HEADER.size + signs
    negative, zero = (unpack_mask(part, shape) if part else None for part in (extra[_HEADER.size : middle], extra[middle:]))
    return base, negative, zero
