"""What one pass over two arrays counts and finds, part by part; the tallies of parts add up.

The promise is decided for every value by the predicate of `workbench.guarantees.check`: |x - y| <= limit without rounding.
Differences, extremes and places are float64 (of integers exact). Values are missing where they are NaN or masked; those
that only one side has are counted apart, since no error measures them.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench import backend
from workbench.auditing.numbers import alike, missing_in
from workbench.data import Field
from workbench.data.periodic import nearest_image
from workbench.guarantees import Limits
from workbench.guarantees.check import check
from workbench.guarantees.per_slice import SliceLimits
from workbench.guarantees.whole_numbers import differences
from workbench.run.chunked_field import grid
from workbench.slabs import Slices, rows_of

VALUES = 2**18   # that are looked at together: a dozen temporary arrays stay in a cache
Index = tuple[int, ...]
Ends = tuple[float, float]   # the smallest and the largest value
NO_VALUE: Ends = (math.inf, -math.inf)


@dataclass(frozen=True)
class Peak:
    """A value, and the index where it is; of two, the larger is kept, or the first of equal ones."""

    value: float = -math.inf
    at: Index | None = None

    def __or__(self, other: Peak) -> Peak:
        return other if other.value > self.value or self.at is None else self


@dataclass(frozen=True)
class Slope:
    """Sums of squared differences between neighbours along an axis: of the original, and of the errors."""

    original: float = 0.0
    error: float = 0.0

    def __add__(self, other: Slope) -> Slope:
        return Slope(self.original + other.original, self.error + other.error)

    @property
    def ratio(self) -> float:
        """The rms of the gradient of the error over that of the original; 0 without an error."""
        if self.error == 0:
            return 0.0
        return math.sqrt(self.error / self.original) if self.original else math.inf


@dataclass(frozen=True)
class Tally:
    """Counts over all values: those that differ, that break the limit, that only one side has; and where the worst are.

    `over` breaks the limit; `lost` are missing in the lossy array alone, `gained` in the original alone.
    `ends` are those of the original and of the lossy array; `filled` those of the latter where the original has no value.
    """

    values: int = 0
    missing: int = 0
    differing: int = 0
    over: int = 0
    lost: int = 0
    gained: int = 0
    largest: Peak = field(default_factory=Peak)
    worst: Peak = field(default_factory=Peak)   # in units of the limit, where it is broken
    first_lost: Peak = field(default_factory=Peak)
    first_gained: Peak = field(default_factory=Peak)
    ends: tuple[Ends, Ends] = (NO_VALUE, NO_VALUE)
    filled: Ends = NO_VALUE
    slopes: tuple[Slope, ...] = ()

    def __add__(self, other: Tally) -> Tally:
        counts = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        peaks = {name: getattr(self, name) | getattr(other, name) for name in _PEAKS}
        ends = _wider(self.ends[0], other.ends[0]), _wider(self.ends[1], other.ends[1])
        filled = _wider(self.filled, other.filled)
        slopes = tuple(map(operator.add, self.slopes, other.slopes)) or self.slopes or other.slopes
        return Tally(**counts, **peaks, ends=ends, filled=filled, slopes=slopes)

    @property
    def identical(self) -> bool:
        """Whether all values are equal, and the same are missing."""
        return not (self.differing or self.lost or self.gained)


_COUNTS = ("values", "missing", "differing", "over", "lost", "gained")
_PEAKS = ("largest", "worst", "first_lost", "first_gained")


@dataclass(frozen=True)
class Pass:
    """The step of the pass: what all parts share."""

    shape: tuple[int, ...]
    part_shape: tuple[int, ...]
    limits: Limits | None
    period: tuple[float, ...] | None = None

    def __call__(self, number: int, original: Field, lossy: Field) -> Tally:
        """The tally of a part, of a few rows at a time."""
        place = grid(self.shape, self.part_shape)[number]
        found = Tally()
        for rows in rows_of(original.shape, VALUES):
            first, *others = place
            first = slice(first.start + rows.start, first.start + rows.stop)
            for part in self._of_one_limit((first, *others)):
                limit = None if self.limits is None else self.limits.at(part)
                starts = [one.start for one in part]
                here = tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(part, place, strict=True))
                found += tally(_at(original, here), _at(lossy, here), limit, self.period, starts)
        return found

    def _of_one_limit(self, place: Slices) -> Iterator[Slices]:
        """A part, cut where the limits of slices differ."""
        if not isinstance(self.limits, SliceLimits):
            yield place
            return
        axis, start = self.limits.axis, place[self.limits.axis].start
        for _, run in itertools.groupby(self.limits.limits[place[axis]]):
            stop = start + len(list(run))
            yield (*place[:axis], slice(start, stop), *place[axis + 1 :])
            start = stop


def tally(
    original: Field, lossy: Field, limit: Any = None, period: Sequence[float] | None = None, start: Sequence[int] = ()
) -> Tally:
    """The tally of a part that begins at `start`.

    >>> found = tally(Field([1.0, 2.0, np.nan]), Field([1.0, 2.5, 9.0]))
    >>> found.differing, found.gained, found.largest.value, found.largest.at
    (1, 1, 0.5, (1,))
    """
    x, y = alike(backend.to_host(original.values), backend.to_host(lossy.values))
    without = missing_in(original), missing_in(lossy)
    lost, gained = without[1] & ~without[0], without[0] & ~without[1]
    both = ~(without[0] | without[1])
    zero = x.dtype.type(0)
    x_known, y_known = np.where(both, x, zero), np.where(both, y, zero)
    errors = np.abs(_errors(x_known, y_known, period))
    start = list(start) or [0] * x.ndim
    largest = _peak(errors, both, start)
    counts = {
        "values": x.size, "missing": int(without[0].sum()), "differing": int((x_known != y_known).sum()),
        "lost": int(lost.sum()), "gained": int(gained.sum()),
    }
    over, worst = _broken(x_known, y_known, errors, limit, period, start)
    has_floats = any(field.values.dtype.kind == "f" for field in (original, lossy))   # the same for all parts
    return Tally(
        **counts, over=over, largest=largest, worst=worst,
        first_lost=_peak(lost, lost, start), first_gained=_peak(gained, gained, start),
        ends=(_ends(x[~without[0]]), _ends(y[~without[1]])), filled=_ends(y[gained]),
        slopes=_slopes(x_known, y_known, both) if has_floats and period is None else (),
    )


def _broken(
    x: np.ndarray, y: np.ndarray, errors: np.ndarray, limit: Any, period: Sequence[float] | None, start: list[int]
) -> tuple[int, Peak]:
    """How many values break the limit, and where the error is largest among them, in units of the limit."""
    if limit is None:
        return 0, Peak()
    if x.dtype.kind in "iu" and limit.relative and limit.value > 0:
        x, y = x.astype(np.float64), y.astype(np.float64)
    broken = check(x, y, limit, period).broken
    if not broken.size:
        return 0, Peak()
    sizes = errors.reshape(-1)[broken]
    allowed = limit.value * (np.abs(x.reshape(-1)[broken]) if limit.relative else 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(allowed > 0, sizes / allowed, np.inf)
    at = int(np.argmax(share))
    return int(broken.size), Peak(float(share[at]), _index(int(broken[at]), x.shape, start))


def _errors(x: np.ndarray, y: np.ndarray, period: Sequence[float] | None) -> np.ndarray:
    """The second less the first; the same infinity on both sides is no error."""
    if x.dtype.kind in "iu":
        return differences(x, y)
    with np.errstate(invalid="ignore", over="ignore"):
        moved = y.astype(np.float64) - x.astype(np.float64)
    if period is not None:
        moved = nearest_image(moved, tuple(period))
    return np.where(x == y, 0.0, np.where(np.isnan(moved), np.inf, moved))


def _peak(values: np.ndarray, among: np.ndarray, start: list[int]) -> Peak:
    """The largest of some values."""
    if not among.any():
        return Peak()
    shown = np.where(among, values, -np.inf) if values.dtype.kind == "f" else np.where(among, values.astype(float), -np.inf)
    at = int(np.argmax(shown))
    return Peak(float(shown.reshape(-1)[at]), _index(at, values.shape, start))


def _ends(values: np.ndarray) -> Ends:
    return (float(values.min()), float(values.max())) if values.size else NO_VALUE


def _wider(one: Ends, other: Ends) -> Ends:
    return min(one[0], other[0]), max(one[1], other[1])


def _index(flat: int, shape: tuple[int, ...], start: list[int]) -> Index:
    return tuple(int(one) + first for one, first in zip(np.unravel_index(flat, shape), start, strict=True))


def _slopes(x: np.ndarray, y: np.ndarray, both: np.ndarray) -> tuple[Slope, ...]:
    """The sums along each axis, over pairs of neighbours that both sides have."""
    found = []
    with np.errstate(invalid="ignore", over="ignore"):
        error = y.astype(np.float64) - x
    for axis in range(x.ndim):
        pairs = np.logical_and(*_neighbours(both, axis))
        found.append(Slope(*(_squares(values, axis, pairs) for values in (x, error))))
    return tuple(found)


def _squares(values: np.ndarray, axis: int, pairs: np.ndarray) -> float:
    """The sum of squared differences of neighbours; 0 where it is no number."""
    near, far = _neighbours(values, axis)
    with np.errstate(invalid="ignore", over="ignore"):
        steps = np.where(pairs, np.subtract(far, near, dtype=np.float64), 0.0).ravel()
        total = float(np.einsum("i,i->", steps, steps))   # on one thread, so that no figure depends on their number
    return total if math.isfinite(total) else 0.0


def _neighbours(values: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    moved = np.moveaxis(values, axis, 0)
    return moved[:-1], moved[1:]


def _at(field: Field, place: Slices) -> Field:
    return Field(field.values[place], mask=None if field.mask is None else field.mask[place])
