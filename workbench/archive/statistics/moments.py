"""Sums, squares and extremes of a field along some of its axes: arrays, each with a bound for the original data.

Arrays of fractions would be slow, so this is float64, with a bound for every rounding. A sum of n terms, in any order, is
within g = (n + 10) 2^-53 of itself times the sum of magnitudes. That is of values less a centre, which is about the mean of
each sum, so that large offsets cost no digits; by Cauchy's inequality it is at most the root of the sum of weights times
that of squares. The deviations of original values from decoded ones add to this as in `sums.py`: their weighted mean to
means, the root of the weighted mean of their squares to deviations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from workbench.archive.statistics.envelopes import lower, upper
from workbench.guarantees import Limit
from workbench.slabs import Slices

UNIT = 2.0**-53
ABOVE = 1 + 2.0**-40      # a bound that was computed with a few roundings, times this, is not too small
TINY = 2.0**-1060         # more than what is lost where numbers are below all others, for each of them
PLAIN = 300               # binary orders of magnitude within which squares neither vanish nor overflow

Bounded = tuple[np.ndarray, np.ndarray]   # values and their bounds


@dataclass(eq=False)
class Moments:
    """Sums along axes, to which chunks are added. Arrays have the shape of the field, with 1 along these axes."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    extremes: bool                 # whether these are wanted, rather than sums
    most: int = 0                  # values of a chunk that are added up
    chunks: int = 0
    exponent: int | None = None    # of the unit of all sums
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("count", "weight", "centre", "sum", "squares", "moved", "moved_squares"):
            self.arrays[name] = np.zeros(self.shape)
        if self.extremes:
            self.arrays["low"], self.arrays["high"] = np.full(self.shape, np.inf), np.full(self.shape, np.inf)

    def add(
        self, into: Slices, values: np.ndarray, valid: np.ndarray | None, limit: Limit | None, weights: np.ndarray | None
    ) -> None:
        """Add the values of a chunk at these places of the field."""
        place = tuple(slice(None) if axis in self.axes else part for axis, part in enumerate(into))
        here = {name: array[place] for name, array in self.arrays.items()}   # views
        terms = math.prod(values.shape[axis] for axis in self.axes)
        count = np.full(here["count"].shape, terms, float) if valid is None else self._summed(valid)
        self.most, self.chunks = max(self.most, terms), self.chunks + 1
        if self.exponent is None:
            self.exponent = _exponent(values, valid, limit)
        if not self.extremes:
            with np.errstate(over="ignore", invalid="ignore"):
                self._add_sums(here, values, valid, limit, weights, count)
        here["count"] += count

    def add_least(self, into: Slices, values: np.ndarray, valid: np.ndarray | None, limit: Limit | None, sign: int) -> None:
        """Take the least values of a chunk, or, with sign -1, the least of their opposites."""
        self.add(into, values, valid, limit, None)
        place = tuple(slice(None) if axis in self.axes else part for axis, part in enumerate(into))
        ends = np.finfo(values.dtype) if values.dtype.kind == "f" else np.iinfo(values.dtype)
        shown = values if valid is None else np.where(valid, values, values.dtype.type(ends.max if sign > 0 else ends.min))
        least = (shown.min if sign > 0 else shown.max)(axis=self.axes, keepdims=True)
        low, high = sign * lower(least, limit), sign * upper(least, limit)
        there = True if valid is None else valid.any(axis=self.axes, keepdims=True)
        for name, end in zip(("low", "high"), (low, high) if sign > 0 else (high, low), strict=True):
            here = self.arrays[name][place]
            np.minimum(here, np.where(there, end, np.inf), out=here)

    def _add_sums(
        self, here: dict[str, np.ndarray], values: np.ndarray, valid: np.ndarray | None, limit: Limit | None,
        weights: np.ndarray | None, count: np.ndarray,
    ) -> None:
        wide = _scaled(values, self.exponent or 0)
        if valid is not None:
            wide[~valid] = 0
        fresh = (here["count"] == 0) & (count > 0)
        mean = self._summed(wide) / np.maximum(count, 1)
        here["centre"][fresh] = np.where(np.isfinite(mean), mean, 0)[fresh]
        weight = count if weights is None else self._summed(np.broadcast_to(
            weights, values.shape) if valid is None else weights * valid)
        here["weight"] += weight
        self._add_moved(here, wide, limit, weights, weight, values.dtype)
        wide -= here["centre"]
        if valid is not None:
            wide[~valid] = 0
        weighted = wide if weights is None else wide * weights
        here["sum"] += self._summed(weighted)
        here["squares"] += self._summed(np.multiply(weighted, wide, out=wide))

    def _add_moved(
        self, here: dict[str, np.ndarray], wide: np.ndarray, limit: Limit | None, weights: np.ndarray | None,
        weight: np.ndarray, dtype: np.dtype,
    ) -> None:
        """At least the sums of how far original values are from decoded ones, and of the squares of that."""
        if limit is not None and limit.relative:
            share, sizes = limit.value / (1 - limit.value) * ABOVE, np.abs(wide)
            weighted = sizes if weights is None else sizes * weights
            more = (1 + self._share(self.most)) * ABOVE
            here["moved"] += self._summed(weighted) * (share * more) + self.most * TINY
            here["moved_squares"] += self._summed(weighted * sizes) * (share**2 * more) + self.most * TINY
            return
        error = np.float64(0 if limit is None else limit.value)   # of NumPy, which overflows to infinity
        error = np.ldexp(error, -(self.exponent or 0)) * ABOVE
        if dtype.kind in "iu" and dtype.itemsize == 8:
            error += float(np.abs(wide).max()) * 2 * UNIT
        here["moved"] += weight * error
        here["moved_squares"] += weight * error**2

    def _summed(self, values: np.ndarray) -> np.ndarray:
        found: np.ndarray = values.sum(axis=self.axes, keepdims=True, dtype=np.float64)
        return found

    @staticmethod
    def _share(terms: int) -> float:
        return 1.01 * (terms + 10) * UNIT

    # What follows.

    @property
    def rounding(self) -> float:
        """The error of a sum as a share of the sum of magnitudes."""
        return self._share(self.most + self.chunks)

    def result(self, name: str) -> Bounded:
        """Values and bounds; NaN where nothing is valid."""
        with np.errstate(all="ignore"):
            values, bounds = getattr(self, f"_{name}")()
            if name not in ("min", "max"):
                scale = self.exponent or 0
                values, bounds = np.ldexp(values, scale), np.ldexp(bounds, scale)
                bounds = np.nextafter(bounds * ABOVE, np.inf) * (bounds > 0)
        nothing = self.arrays["count" if self.extremes else "weight"] == 0
        open_ended = ~np.isfinite(values) | ~np.isfinite(bounds)
        bounds = np.where(open_ended, np.inf, bounds)
        values = np.where(np.isnan(values), 0.0, values)
        return np.where(nothing, np.nan, values), np.where(nothing, np.nan, bounds)

    def _parts(self) -> tuple[np.ndarray, ...]:
        """Weights, centres, the mean less the centre, its error by rounding, and the mean square with its error."""
        a, g = self.arrays, self.rounding
        weight, lost = a["weight"], self.most * self.chunks * TINY
        squares = (a["squares"] / weight) * (1 + 4 * g) + lost / weight   # at least the exact one
        mean = a["sum"] / weight
        error = (3 * g * np.sqrt(squares) + 3 * g * np.abs(mean) + lost / weight) * ABOVE
        return weight, a["centre"], mean, error, squares

    def _mean(self) -> Bounded:
        weight, centre, mean, error, _ = self._parts()
        moved = self.arrays["moved"] / weight * (1 + 4 * self.rounding)
        return centre + mean, (moved + error + 4 * UNIT * (np.abs(centre) + np.abs(mean))) * ABOVE

    def _sum(self) -> Bounded:
        weight, centre, _, error, _ = self._parts()
        moved = self.arrays["moved"] * (1 + 4 * self.rounding)
        offset = (4 * self.rounding) * np.abs(centre) * weight
        return weight * centre + self.arrays["sum"], (moved + error * weight + offset + 4 * UNIT * np.abs(
            self.arrays["sum"])) * ABOVE

    def _std(self) -> Bounded:
        weight, _, mean, error, squares = self._parts()
        variance = self.arrays["squares"] / weight - mean**2
        off = 6 * self.rounding * squares + 2 * np.abs(mean) * error + error**2 + self.most * self.chunks * TINY / weight
        moved = np.sqrt(self.arrays["moved_squares"] / weight * (1 + 4 * self.rounding)) * ABOVE
        low = np.maximum(np.sqrt(np.maximum(variance - off, 0)) / ABOVE - moved, 0)
        high = np.sqrt(np.maximum(variance + off, 0)) * ABOVE + moved
        return _middle(low, high)

    def _min(self) -> Bounded:
        return _middle(self.arrays["low"], self.arrays["high"])

    def _max(self) -> Bounded:
        return _middle(-self.arrays["high"], -self.arrays["low"])


def _middle(low: np.ndarray, high: np.ndarray) -> Bounded:
    """The middle of intervals, and at least half their width: none where both ends are the same."""
    middle = np.where(low == high, low, low / 2 + high / 2)
    half = np.maximum(high - middle, middle - low)
    return middle, np.where(half > 0, np.nextafter(half, np.inf), 0.0)


def _exponent(values: np.ndarray, valid: np.ndarray | None, limit: Limit | None) -> int | None:
    """The binary order of magnitude of values that are far from 1, else 0; None if there are none."""
    there = values if valid is None else values[valid]
    size = 0.0 if limit is None or limit.relative else limit.value
    size = max(size, abs(float(there.min())), abs(float(there.max()))) if there.size else 0.0
    exponent = math.frexp(size)[1]
    return None if size == 0 else exponent if abs(exponent) > PLAIN else 0


def _scaled(values: np.ndarray, exponent: int) -> np.ndarray:
    wide = values.astype(np.float64)
    return np.ldexp(wide, -exponent) if exponent else wide


def kept_shape(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """The shape with 1 along some axes.

    >>> kept_shape((3, 4, 5), (1,))
    (3, 1, 5)
    """
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
