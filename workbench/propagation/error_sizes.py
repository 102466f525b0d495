"""The size of numbers and of their changes, in double precision, whatever the unit: no square overflows or underflows."""

from __future__ import annotations

import math

import numpy as np

from workbench.backend import Array, to_host
from workbench.propagation.number_format import components

FLOATS = "fc"   # kinds of numbers that may be not finite
LEAST, MOST = 1e-260, 1e280   # sums of squares in which no square that matters overflows or underflows


def relative_error(original: Array, changed: Array, categorical: bool = False) -> float:
    """The root mean square of the change over that of the values, where both are finite; for labels, the share changed.

    >>> relative_error(np.array([3.0, 4.0]), np.array([3.0, 4.5]))
    0.1
    >>> relative_error(np.arange(4), np.array([0, 1, 2, 9]), categorical=True)
    0.25
    """
    one, other = to_host(original), to_host(changed)
    if categorical:
        return float(np.mean(one != other))
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    one, other = one.astype(wide, copy=False).ravel(), other.astype(wide, copy=False).ravel()
    with np.errstate(all="ignore"):   # values of any size
        change = other - one
        squares, size = inner(change, change), inner(one, one)
    if LEAST < squares < MOST and LEAST < size < MOST:   # so all are finite, and none was lost in squaring
        return math.sqrt(squares) / math.sqrt(size)
    finite = np.isfinite(one) & np.isfinite(other)
    if not finite.all():
        one, other = one[finite], other[finite]
    with np.errstate(all="ignore"):
        change = other - one
        if np.isfinite(change).all():
            return ratio_of_norms(change, one)
        return ratio_of_norms(other / 2 - one / 2, one / 2)


def change_of(original: Array, changed: Array) -> np.ndarray:
    """The size of every change, in float64; infinite where a value is finite in one array only.

    >>> change_of(np.array([1.0, np.inf, np.nan]), np.array([1.5, 3.0, np.nan])).tolist()
    [0.5, inf, 0.0]
    """
    one, other = to_host(original), to_host(changed)
    if one.dtype.kind in "iu" and other.dtype == one.dtype:   # also beyond 2^53
        low, high = np.minimum(one, other), np.maximum(one, other)
        return (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.float64)
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        change: np.ndarray = abs(other.astype(wide) - one.astype(wide))
    equal = (one == other) | ((one != one) & (other != other))
    return np.where(equal, 0.0, np.where(np.isfinite(change), change, np.inf))


def lost(original: Array, changed: Array) -> int:
    """How many values were finite, and are not any more.

    >>> lost(np.array([1.0, np.inf, 3.0]), np.array([np.nan, np.inf, np.inf]))
    2
    """
    other = to_host(changed)
    if other.dtype.kind not in FLOATS:
        return 0
    finite = np.isfinite(other)
    return 0 if finite.all() else int(np.count_nonzero(~finite & np.isfinite(to_host(original))))


def unlike(original: Array, changed: Array) -> bool:
    """Whether any value that is not finite, before or after, is not the same: a size of such a change is none.

    >>> unlike(np.array([1.0, -np.inf, np.nan]), np.array([2.0, -np.inf, np.nan]))
    False
    >>> unlike(np.array([-np.inf]), np.array([5.0]))
    True
    """
    one, other = to_host(original), to_host(changed)
    if one.dtype.kind not in FLOATS and other.dtype.kind not in FLOATS:
        return False
    finite = np.isfinite(one) & np.isfinite(other)
    if finite.all():
        return False
    one, other = one[~finite], other[~finite]
    return not bool(((one == other) | (np.isnan(one) & np.isnan(other))).all())


def ratio(error: float, size: float) -> float:
    """Error over size; where the size is zero, any error is infinite."""
    return error / size if size > 0 else (0.0 if error == 0 else math.inf)


def inner(one: np.ndarray, other: np.ndarray) -> float:
    """The real part of the inner product of two rows in double precision.

    One thread adds: a library for matrices would add in another order for another number of threads.

    >>> inner(np.array([1 + 2j]), np.array([3 + 4j]))
    11.0
    """
    parts = (np.ascontiguousarray(each).view(np.float64) for each in (one, other))
    return float(np.einsum("i,i->", *parts))


def norm(values: np.ndarray) -> float:
    """The root of the sum of squares of numbers of any type, in double precision and without overflow.

    >>> round(norm(np.array([3e200, 4e200])) / 1e200, 9)
    5.0
    """
    size, exponent = _scaled_norm(values)
    with np.errstate(all="ignore"):
        return float(np.ldexp(size, exponent))


def root_mean_square(values: np.ndarray) -> float:
    """The root of the mean square of the moduli of numbers of any size; 0 where there are none.

    >>> round(root_mean_square(np.array([1e-200, 7e-200])) * 1e200, 9)
    5.0
    """
    size, exponent = _scaled_norm(values)
    return float(np.ldexp(size / math.sqrt(max(values.size, 1)), exponent))


def ratio_of_norms(error: np.ndarray, values: np.ndarray) -> float:
    """The norm of the error over that of the values, although either may be too large or too small for its squares.

    >>> round(ratio_of_norms(np.array([1e-200]), np.array([5e-200])), 9)
    0.2
    """
    (one, exponent), (other, larger) = _scaled_norm(error), _scaled_norm(values)
    return float(np.ldexp(ratio(one, other), exponent - larger))


def _scaled_norm(values: np.ndarray) -> tuple[float, int]:
    """The norm as a number near 1, or 0, and the power of two that it is multiplied by."""
    wide = np.complex128 if values.dtype.kind == "c" else np.float64
    numbers = components(np.ascontiguousarray(values, wide))
    largest = float(abs(numbers).max()) if numbers.size else 0.0
    if largest == 0 or not math.isfinite(largest):
        return largest, 0
    exponent = math.frexp(largest)[1]
    scaled = np.ldexp(numbers.ravel(), -exponent)
    return math.sqrt(inner(scaled, scaled)), exponent
