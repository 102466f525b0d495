"""Between which numbers original values are, for arrays of decoded ones, and where decoded values must be compared instead.

Both ends of the interval of a value grow with the decoded value. So whether the end of an original value is beyond a number
is decided by comparing the decoded value with another number, the cut, in its own type and without rounding.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from workbench.guarantees import Limit

MORE = 2.0**-50   # more than the rounding of a quotient and of its divisor


def lower(values: np.ndarray, limit: Limit | None) -> np.ndarray:
    """Numbers that are not above the original values, as float64.

    >>> lower(np.array([1.0, -1.0]), Limit("absolute", 0.5)).round(9).tolist()
    [0.5, -1.5]
    """
    return _end(values, limit, -1)


def upper(values: np.ndarray, limit: Limit | None) -> np.ndarray:
    """Numbers that are not below the original values, as float64."""
    return _end(values, limit, 1)


def _end(values: np.ndarray, limit: Limit | None, sign: int) -> np.ndarray:
    outwards, wide = sign * np.inf, values.astype(np.float64)
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        wide = np.nextafter(wide, outwards)
    if limit is None:
        return wide
    with np.errstate(over="ignore"):
        if limit.relative:
            farther = 1 - limit.value if sign > 0 else 1 + limit.value
            end = np.where(wide > 0, wide / farther, wide / (2 - farther))
            end += sign * MORE * np.abs(end)
        else:
            end = wide + sign * limit.value
        largest = np.finfo(np.float64).max   # no value is beyond
        return np.clip(np.nextafter(end, outwards), -largest, largest)


class Cut:
    """A number with which decoded values are compared: whether they are at least that, or above it.

    >>> Cut.of_low(Fraction(1), Limit("absolute", 0.5)).in_type(np.dtype("f8"))   # the interval is beyond 1 from here on
    1.5
    """

    __slots__ = ("above", "number")

    def __init__(self, number: Fraction | float, above: bool) -> None:
        self.number, self.above = number, above

    @classmethod
    def of_low(cls, edge: Fraction | float, limit: Limit | None, above: bool = False) -> Cut:
        """From where on the lower end of the interval is at least `edge`, or above it."""
        return cls(_moved(edge, limit, 1), above)

    @classmethod
    def of_high(cls, edge: Fraction | float, limit: Limit | None, above: bool = False) -> Cut:
        """From where on the upper end of the interval is at least `edge`, or above it."""
        return cls(_moved(edge, limit, -1), above)

    def in_type(self, dtype: np.dtype) -> float | int:
        """The least number of this type that is at least that, or above it; infinite if there is none."""
        if isinstance(self.number, float):   # infinite
            return math.inf if self.number > 0 else int(np.iinfo(dtype).min) if dtype.kind in "iu" else -math.inf
        if dtype.kind in "iu":
            least = math.floor(self.number) + 1 if self.above else math.ceil(self.number)
            ends = np.iinfo(dtype)
            return math.inf if least > ends.max else max(least, int(ends.min))
        with np.errstate(over="ignore"):
            return self._float(dtype)

    def _float(self, dtype: np.dtype) -> float:
        try:
            least = dtype.type(float(self.number))
        except OverflowError:
            least = dtype.type(math.inf if self.number > 0 else -math.inf)
        if np.isneginf(least):
            least = np.finfo(dtype).min
        before = np.nextafter(least, dtype.type(-np.inf))
        if self._reached(before):   # rounded up, perhaps twice
            return float(before)
        while not self._reached(least):
            least = np.nextafter(least, dtype.type(np.inf))
        return float(least)

    def _reached(self, value: np.floating) -> bool:
        if not np.isfinite(value):
            return bool(value > 0)
        exact = Fraction(float(value))
        return exact > self.number if self.above else exact >= self.number


def _moved(edge: Fraction | float, limit: Limit | None, sign: int) -> Fraction | float:
    """Where decoded values are whose interval has its lower (1) or upper (-1) end at an edge."""
    if limit is None or isinstance(edge, float):
        return edge
    error = sign * Fraction(limit.value)
    if not limit.relative:
        return edge + error
    return edge * (1 + error) if edge >= 0 else edge * (1 - error)
