"""Statistics of a staged field from the sums of its blocks alone, each with a proven interval.

The sums are of integers, so they are exact, for any number of blocks and in any order. A value x of the original and its
lattice number n differ by at most `error`: |x - n · step| <= error. Then means and extremes differ by no more, and so do
standard deviations: that of the differences is at most their largest. What is added to an interval is the rounding of the
result to float64, so it contains the true figure of the original.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from workbench.codecs.staged_blocks import Fact, Grid
from workbench.codecs.staged_stream import Stream
from workbench.errors import WorkbenchError


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure: the true one is at most `bound` away from `value`.

    >>> Interval.around(Fraction(1, 3), 0.5)
    Interval(value=0.3333333333333333, bound=0.5000000000000001)
    """

    value: float
    bound: float

    @classmethod
    def around(cls, exact: Fraction, error: float | Fraction) -> Interval:
        """A figure that is known but for an error, rounded outwards."""
        value = float(exact)
        bound = Fraction(error) + abs(exact - Fraction(value))
        nearest = float(bound)
        return cls(value, nearest if Fraction(nearest) >= bound else math.nextafter(nearest, math.inf))

    def contains(self, figure: Fraction) -> bool:
        """Whether a figure is in the interval."""
        return abs(figure - Fraction(self.value)) <= Fraction(self.bound)


@dataclass(frozen=True, slots=True)
class Totals:
    """The number of valid cells, and exact sums and extremes of their lattice numbers; the extremes of none are None."""

    count: int
    sum: int
    squares: int
    low: int | None
    high: int | None

    def __add__(self, other: Totals) -> Totals:
        lows = [each for each in (self.low, other.low) if each is not None]
        highs = [each for each in (self.high, other.high) if each is not None]
        return Totals(
            self.count + other.count, self.sum + other.sum, self.squares + other.squares,
            min(lows, default=None), max(highs, default=None),
        )

    def total(self, step: float, error: float) -> Interval:
        """The sum of the values."""
        return Interval.around(Fraction(step) * self.sum, Fraction(error) * self.count)

    def mean(self, step: float, error: float) -> Interval:
        """The mean of the values."""
        self._require_cells()
        return Interval.around(Fraction(step) * Fraction(self.sum, self.count), error)

    def deviation(self, step: float, error: float) -> Interval:
        """The standard deviation of the values."""
        self._require_cells()
        squared = Fraction(self.squares, self.count) - Fraction(self.sum, self.count) ** 2
        low, high = _root(squared)
        middle, half = Fraction(step) * (low + high) / 2, Fraction(step) * (high - low) / 2
        return Interval.around(middle, Fraction(error) + half)

    def least(self, step: float, error: float) -> Interval:
        """The smallest value."""
        self._require_cells()
        return Interval.around(Fraction(step) * (self.low or 0), error)

    def largest(self, step: float, error: float) -> Interval:
        """The largest value."""
        self._require_cells()
        return Interval.around(Fraction(step) * (self.high or 0), error)

    def _require_cells(self) -> None:
        if not self.count:
            raise WorkbenchError("statistics need at least one valid value; got none: all cells are masked or not finite")


def lattice_error(step: float, largest: float) -> float:
    """How far a value up to this magnitude can be from step times its number: half a step, and a rounded quotient.

    >>> 0.5 <= lattice_error(1.0, 1e6) < 0.5 + 1e-9
    True
    """
    return math.nextafter(step / 2 + abs(largest) * 2.0**-52, math.inf)


NOTHING = Totals(0, 0, 0, None, None)


def totals(stream: Stream, chosen: np.ndarray | None = None) -> Totals:
    """The totals of these blocks, or of all."""
    facts = stream.facts if chosen is None else stream.facts[:, chosen]
    count, base = facts[Fact.COUNT], facts[Fact.BASE]
    there = count > 0
    if not there.any():
        return NOTHING
    if stream.lattice.wide:
        count, base = count.astype(object), base.astype(object)
    squares = facts[Fact.SQUARES] if not stream.lattice.wide else _joined(facts[Fact.SQUARES_ABOVE], facts[Fact.SQUARES])
    sums = facts[Fact.SUM].astype(base.dtype)
    total, cells = exact_sum(sums + count * base), int(facts[Fact.COUNT].sum())
    total_squares = exact_sum(squares + 2 * base * sums + count * base * base)
    offset = stream.lattice.offset   # sums less the offset fit into 64 bits, so it is added last
    low, high = ((facts[fact] + facts[Fact.BASE])[there] for fact in (Fact.LOW, Fact.HIGH))
    return Totals(
        cells, total + cells * offset, total_squares + 2 * offset * total + cells * offset**2,
        int(low.min()) + offset, int(high.max()) + offset,
    )


def first_wrong(stream: Stream, decoded: np.ndarray, valid: np.ndarray, sound: np.ndarray) -> int | None:
    """The first block whose metadata are not those of its numbers, or whose numbers do not give its sound values, if any.

    A proven interval rests on both: the values were compared with the original, the numbers and their sums were not.
    """
    grid, facts = stream.grid, stream.facts
    numbers = np.asarray(stream.blocks(np.arange(grid.blocks)).numbers(grid.whole)).reshape(grid.size)
    given = (numbers.astype(np.float64) * stream.lattice.step).astype(decoded.dtype)
    other = (given != decoded.reshape(grid.size)) & (valid & sound).reshape(grid.size)
    numbers, there, other = (_by_blocks(array, grid) for array in (numbers, valid.reshape(grid.size), other))
    relative = np.where(there, numbers - stream.lattice.offset - facts[Fact.BASE][:, None], 0)
    count, most = there.sum(axis=1), np.iinfo(np.int64).max
    low, high = np.where(there, relative, most).min(axis=1), np.where(there, relative, -most).max(axis=1)
    exact = relative.astype(object) if stream.lattice.wide else relative
    squares = (exact * exact).sum(axis=1)
    stated = _joined(facts[Fact.SQUARES_ABOVE], facts[Fact.SQUARES]) if stream.lattice.wide else facts[Fact.SQUARES]
    some = count > 0
    wrong = other.any(axis=1) | (count != facts[Fact.COUNT]) | (
        some & ((relative.sum(axis=1) != facts[Fact.SUM]) | (squares != stated).astype(bool))
    ) | (some & ((low != facts[Fact.LOW]) | (high != facts[Fact.HIGH])))
    return int(np.argmax(wrong)) if wrong.any() else None


def _by_blocks(cells: np.ndarray, grid: Grid) -> np.ndarray:
    """The cells of each block in a row, zero beyond the grid."""
    sides = (1, *grid.sides)
    padding = [(0, count * side - size) for count, side, size in zip(grid.counts, sides, grid.size, strict=True)]
    split = [n for pair in zip(grid.counts, sides, strict=True) for n in pair]
    return np.pad(cells, padding).reshape(split).transpose(0, 2, 4, 6, 1, 3, 5, 7).reshape(grid.blocks, -1)


def means(stream: Stream) -> np.ndarray:
    """The mean of each block, NaN where no cell is valid: a coarse picture, shaped as the blocks are."""
    count, sums = stream.facts[Fact.COUNT], stream.facts[Fact.SUM]
    with np.errstate(invalid="ignore", divide="ignore"):
        numbers = stream.facts[Fact.BASE] + stream.lattice.offset + sums / count
    return np.where(count > 0, numbers * stream.lattice.step, np.nan).reshape(stream.grid.counts)


def exact_sum(numbers: np.ndarray) -> int:
    """The sum of integers (int64, or Python's), which may need more than 64 bits.

    >>> exact_sum(np.full(4, 2**62))
    18446744073709551616
    """
    if numbers.dtype == object:
        return int(numbers.sum())
    above, below = numbers >> 32, numbers & 0xFFFFFFFF
    return (int(above.sum()) << 32) + int(below.sum())


def merged(parts: Iterable[Totals]) -> Totals:
    """The totals of several parts together."""
    found = NOTHING
    for part in parts:
        found = found + part
    return found


def _joined(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Numbers of 128 bits from their halves, as Python's integers."""
    return (above.astype(object) << 64) + below.view(np.uint64).astype(object)


def _root(squared: Fraction) -> tuple[Fraction, Fraction]:
    """Two numbers around the root of a number that is not negative, 64 bits and more exact."""
    shift = max(128 - squared.numerator.bit_length() + squared.denominator.bit_length(), 0)
    shift += shift % 2
    root = math.isqrt((squared.numerator << shift) // squared.denominator)
    scale = 1 << shift // 2
    return Fraction(root, scale), Fraction(root + 1, scale)
