"""Sums and extremes of decoded values, and what follows from them for the original ones: intervals in exact arithmetic.

Decoded values y are known, the original ones x only within a limit. With d = x - y, the means differ by at most the mean of
|d|, and the standard deviations by at most the root of the mean of d², by the triangle inequality of centred norms. Sums of
floating-point numbers are rounded, too; their errors are bounded here, by u = 2^-53 for each of so many operations, and
everything after that is in fractions. A result is rounded to float64 outwards.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from workbench.errors import WorkbenchError
from workbench.guarantees import Limit

Ends = tuple[Fraction, Fraction]

ROW = 256                        # values whose sum is rounded; the sums of rows are added exactly, and rounded once
ROUNDED = Fraction(1, 2**44)     # more than 260 roundings, of ROW additions, a difference, a square and the last sum
TILE = 256 * ROW                 # values that are added while they are in a cache
SAMPLED = 16                     # every so many values give the centre, which may be any number
ABOVE = 1 + Fraction(1, 2**40)   # a rounded sum of magnitudes, times this, is not below the exact one
TINY = Fraction(1, 2**1070)      # more than what is lost where a scaled number, or its square, is below all numbers
EXACT_IN_FLOAT = 2**53           # integers up to here are
LARGEST = Fraction(sys.float_info.max)


@dataclass(frozen=True, slots=True)
class Sums:
    """Figures of some decoded values y, exact but for a stated error, and how far the original values can be from them.

    Sums are of y less the centre.
    """

    count: int
    centre: Fraction
    sum: Fraction
    sum_error: Fraction
    squares: Fraction
    squares_error: Fraction
    moved: Fraction           # at least the sum of |x - y|
    moved_squares: Fraction   # at least the sum of its squares
    least: Ends               # between which the smallest x is
    largest: Ends

    @classmethod
    def of(cls, values: np.ndarray, limit: Limit | None) -> Self:
        """Those of decoded values, at least one, all finite; without a limit, they are the original ones.

        >>> sums = Sums.of(np.array([1.0, 2.0]), Limit("absolute", 0.5))
        >>> sums.least, [round(float(end), 9) for end in mean([sums])]
        ((Fraction(1, 2), Fraction(3, 2)), [1.0, 2.0])
        """
        flat = values.reshape(-1)
        low, high = (Fraction(end.item()) for end in (flat.min(), flat.max()))
        size = max(abs(low), abs(high))
        rounded = size / 2**53 if flat.dtype.kind in "iu" and size > EXACT_IN_FLOAT else Fraction(0)   # as float64
        exponent = math.frexp(float(size))[1]
        unit, lost = Fraction(2) ** exponent, flat.size * TINY
        centre = float(_scaled(flat[::SAMPLED], exponent).mean())
        total, sizes, squares = _added(flat, exponent, centre)
        norms = (sizes * ABOVE + lost) * unit, (squares * ABOVE + lost) * unit**2   # at least the exact ones
        middle = Fraction(centre) * unit
        return cls(
            flat.size, middle, total * unit, norms[0] * ROUNDED + lost * unit, squares * unit**2,
            norms[1] * ROUNDED + lost * unit**2, *_moved(flat.size, middle, norms, limit, rounded),
            ends_within(low, limit), ends_within(high, limit),
        )


def ends_within(value: Fraction, limit: Limit | None) -> Ends:
    """Between which numbers an original value is whose decoded one is this; both grow with the value.

    >>> ends_within(Fraction(3), Limit("relative", 0.5))
    (Fraction(2, 1), Fraction(6, 1))
    """
    if limit is None:
        return value, value
    error = Fraction(limit.value)
    if not limit.relative:
        return value - error, value + error
    nearer, farther = value / (1 + error), value / (1 - error)
    farther = max(-LARGEST, min(farther, LARGEST))   # no original value is beyond
    return (nearer, farther) if value > 0 else (farther, nearer)


def total(parts: Sequence[Sums]) -> Ends:
    """Between which numbers the sum of the original values is."""
    _count(parts)
    exact = sum((part.sum + part.count * part.centre for part in parts), Fraction(0))
    error = sum((part.sum_error + part.moved for part in parts), Fraction(0))
    return exact - error, exact + error


def mean(parts: Sequence[Sums]) -> Ends:
    """Between which numbers their mean is."""
    count = _count(parts)
    low, high = total(parts)
    return low / count, high / count


def deviation(parts: Sequence[Sums]) -> Ends:
    """Between which numbers their standard deviation (of the population) is."""
    count = _count(parts)
    centre = sum((part.sum + part.count * part.centre for part in parts), Fraction(0)) / count
    squares, error = Fraction(0), Fraction(0)
    for part in parts:
        away = part.centre - centre
        squares += part.squares + 2 * away * part.sum + part.count * away**2
        error += part.squares_error + 2 * abs(away) * part.sum_error
    off = sum((part.sum_error for part in parts), Fraction(0)) / count   # of the centre from the mean
    _, moved = roots(sum((part.moved_squares for part in parts), Fraction(0)) / count)
    low, _ = roots(max((squares - error) / count - off**2, Fraction(0)))
    _, high = roots((squares + error) / count)
    return max(low - moved, Fraction(0)), high + moved


def least(parts: Sequence[Sums]) -> Ends:
    """Between which numbers the smallest original value is."""
    _count(parts)
    return min(part.least[0] for part in parts), min(part.least[1] for part in parts)


def largest(parts: Sequence[Sums]) -> Ends:
    """Between which numbers the largest original value is."""
    _count(parts)
    return max(part.largest[0] for part in parts), max(part.largest[1] for part in parts)


def roots(squared: Fraction) -> Ends:
    """Two numbers around the root of a number that is not negative: equal for squares, else 64 bits and more exact.

    >>> roots(Fraction(9, 4))
    (Fraction(3, 2), Fraction(3, 2))
    """
    top, bottom = math.isqrt(squared.numerator), math.isqrt(squared.denominator)
    if top * top == squared.numerator and bottom * bottom == squared.denominator:
        return Fraction(top, bottom), Fraction(top, bottom)
    shift = max(128 - squared.numerator.bit_length() + squared.denominator.bit_length(), 0)
    shift += shift % 2
    root, scale = math.isqrt((squared.numerator << shift) // squared.denominator), 1 << shift // 2
    return Fraction(root, scale), Fraction(root + 1, scale)


def _count(parts: Sequence[Sums]) -> int:
    count = sum(part.count for part in parts)
    if not count:
        raise WorkbenchError("statistics need at least one valid value; got none: all cells are masked or not finite")
    return count


def _scaled(values: np.ndarray, exponent: int) -> np.ndarray:
    """Numbers over a power of two, as float64: exact, but for those below all numbers."""
    if exponent < -1000:   # the inverse is beyond all numbers
        return np.ldexp(values.astype(np.float64), -exponent)
    return np.multiply(values, 2.0**-exponent, dtype=np.float64)


def _added(values: np.ndarray, exponent: int, centre: float) -> tuple[Fraction, Fraction, Fraction]:
    """The sums of scaled numbers less a centre, of their magnitudes and of their squares.

    They are within `ROUNDED` of the sum of magnitudes, of itself and of itself. Tiles stay in a cache.
    """
    sums: tuple[list[float], list[float], list[float]] = ([], [], [])
    for start in range(0, values.size, TILE):
        tile = _scaled(values[start : start + TILE], exponent)
        tile -= centre
        whole = tile.size // ROW * ROW
        for rows in (tile[:whole].reshape(-1, ROW), tile[whole:].reshape(1, -1)):
            sums[0].extend(rows.sum(axis=1).tolist())
            sums[2].extend(np.einsum("ij,ij->i", rows, rows).tolist())
            sums[1].extend(np.abs(rows, out=rows).sum(axis=1).tolist())
    total, sizes, squares = (Fraction(math.fsum(some)) for some in sums)
    return total, sizes, squares


def _moved(count: int, centre: Fraction, norms: Ends, limit: Limit | None, rounded: Fraction) -> Ends:
    """At least the sums of |x - w| and of its squares, where |w - y| <= `rounded`; `norms` are those of w - centre."""
    error = Fraction(limit.value) if limit is not None else Fraction(0)
    if limit is None or not limit.relative:
        return count * (error + rounded), count * (error + rounded) ** 2
    share = error / (1 - error)   # |x - y| <= e |x| implies |x - y| <= e / (1 - e) |y|
    (_, norm), (_, root_of_count) = roots(norms[1]), roots(Fraction(count))
    return share * (norms[0] + count * abs(centre)), (share * (norm + abs(centre) * root_of_count)) ** 2
