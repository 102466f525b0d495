"""What a statistic is, as a user gets it: a value, or an array of values, with proven bounds, and what was read for it."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from workbench.archive.statistics.answer import Answer, bound_in_words, in_digits
from workbench.archive.statistics.sums import Ends
from workbench.errors import WorkbenchError
from workbench.rounding import rounded_outwards

METADATA, SOME, VALUES = "metadata of blocks", "metadata of blocks, and some values", "values"
WITHOUT_END = ("sum", "norm 1", "norm 2", "dot product")   # these can be beyond all numbers, though no value is


@dataclass(frozen=True)
class Statistic(Answer):
    """A figure of the original data: it is at most `bound` away from `value`, which is proven.

    >>> print(Statistic("mean", 0.123456, 0.0005, METADATA, 100, 2000, 512, 0))
    0.123456 ± 0.000501
    """

    name: str
    value: float
    bound: float
    stage: str           # what had to be decoded
    bytes_read: int      # of the chunks: those that the answer was computed from
    bytes_stored: int    # of all chunks of the values and of their mask
    count: int           # valid values
    missing: int         # cells that do not count: masked, NaN or infinite

    @property
    def low(self) -> float:
        """The lower end of the interval; a standard deviation is not negative."""
        if not math.isfinite(self.bound):
            return 0.0 if self.name == "std" else -math.inf
        end = rounded_outwards(Fraction(self.value) - Fraction(self.bound), -math.inf)
        return max(end, 0.0) if self.name == "std" else end

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        if not math.isfinite(self.bound):
            return math.inf
        return rounded_outwards(Fraction(self.value) + Fraction(self.bound))

    def __str__(self) -> str:
        return in_digits(self.value, self.bound)

    @property
    def _line(self) -> str:
        return f"{self.name}: {self}"


@dataclass(frozen=True, eq=False, repr=False)
class FieldStatistic(Answer):
    """Figures of the original data on a grid: each is at most its bound away from its value, which is proven.

    `bound` is a number where it is the same for all values, else an array of their shape, perhaps one that repeats a row.
    Values that need a masked or non-finite cell are NaN. Those beyond the largest number are infinite, as is their bound.

    >>> FieldStatistic("laplacian", np.zeros((3, 4)), 0.5, "values", 100, 2000, 2)
    FieldStatistic(laplacian of 3 x 4, float64, bound 0.5, from values, 100 of 2,000 bytes read, 2 missing)
    """

    name: str
    values: np.ndarray
    bound: float | np.ndarray
    stage: str           # what had to be decoded
    bytes_read: int      # of the chunks: those that the answer was computed from
    bytes_stored: int    # of all chunks of the values and of their mask
    missing: int         # values that are NaN

    @property
    def low(self) -> np.ndarray:
        """The lower end of each interval."""
        return self._end(-1)

    @property
    def high(self) -> np.ndarray:
        """The upper end of each interval."""
        return self._end(1)

    def _end(self, sign: int) -> np.ndarray:
        """The end on one side, rounded away from the value."""
        with np.errstate(over="ignore", invalid="ignore"):
            exact = self.values.astype(np.float64) + sign * np.asarray(self.bound, np.float64)
            end = np.nextafter(exact.astype(self.values.dtype), self.values.dtype.type(sign * np.inf))
        return np.where(np.isinf(self.bound) & ~np.isnan(self.values), sign * np.inf, end).astype(self.values.dtype)

    def __repr__(self) -> str:
        kind, missing = type(self).__name__, f", {self.missing:,} missing" if self.missing else ""
        shape = " x ".join(map(str, self.values.shape))
        return (
            f"{kind}({self.name} of {shape}, {self.values.dtype}, bound {bound_in_words(self.bound)}, from {self.stage}, "
            f"{self.bytes_read:,} of {self.bytes_stored:,} bytes read{missing})"
        )


@dataclass(frozen=True)
class Explanation(Answer):
    """How a statistic is answered: its bound, what is decoded for it, and how many bytes of the archive that takes.

    `bound` is None where it follows from the values, so that it is known only after they were decoded.

    >>> print(Explanation("mean", 0.10001, METADATA, 100, 2000))
    mean: from metadata of blocks; reads 100 of 2,000 bytes; bound 0.1001
    """

    name: str
    bound: float | None
    stage: str
    bytes_read: int
    bytes_stored: int

    def __str__(self) -> str:
        bound = "a bound that follows from the values" if self.bound is None else f"bound {bound_in_words(self.bound)}"
        return f"{self.name}: from {self.stage}; reads {self.bytes_read:,} of {self.bytes_stored:,} bytes; {bound}"

    @property
    def _line(self) -> str:
        return str(self)


def interval(name: str, ends: Ends) -> tuple[float, float]:
    """The middle of an interval, or the largest number before it, and half its width, rounded so that they contain it."""
    low, high = ends
    middle = (low + high) / 2
    try:
        value = float(middle)
    except OverflowError:
        if name in WITHOUT_END:
            why = "beyond the range of float64; the mean and the extremes are not"
            raise WorkbenchError(f"the {name} of these values is {why}") from None
        value = sys.float_info.max if middle > 0 else -sys.float_info.max
    return value, rounded_outwards(max(high - Fraction(value), Fraction(value) - low))
