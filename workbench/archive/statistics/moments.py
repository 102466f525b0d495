"""Sums, squares and extremes of a field along some of its axes: arrays, each with a bound for the original data.

Arrays of fractions would be slow, so this is float64, with a bound for every rounding. A sum of n terms, in any order, is
within g = (n + 10) 2^-53 of itself times the sum of magnitudes. That is of values less a centre, which is near the mean of
each sum, so that large offsets cost no digits; by Cauchy's inequality it is at most the root of the sum of weights times
that of squares. Squares are computed where they are wanted; else each is at most that of the largest magnitude. Each chunk
has its sums, so that workers can make them; where these are joined, S of weight W about a centre c is S + W d about c - d,
and with Q for its squares Q + 2 d S + W d². The roundings of that are shares of Q + 2 |d S| + W d². Values are
taken in tiles that stay in a cache, as passes over memory would take longer than decoding. The deviations of original
values from decoded ones add to this as in `sums.py`: their weighted mean to means, the root of the weighted mean of their
squares to deviations.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from workbench.archive.statistics.envelopes import lower, upper
from workbench.guarantees import Limit
from workbench.rounding import ABOVE, UNIT
from workbench.slabs import Slices

TINY = 2.0**-1060         # more than what is lost where numbers are below all others, for each of them
LITTLE = 2.0**-16         # a share of a bound that may be added to it, in each chunk, where that saves time
SHIFTED = 8               # roundings where sums get another centre
SAMPLED = 4               # values of each axis that give the centre
TILE = 2**16              # values that are added while they are in a cache
PLAIN = 300               # binary orders of magnitude within which squares neither vanish nor overflow

SUMS = ("weight", "centre", "sum", "sizes", "moved", "moved_squares", "squares")   # the last for deviations alone

Bounded = tuple[np.ndarray, np.ndarray]   # values and their bounds


@dataclass(eq=False)
class Moments:
    """Sums along axes: of one chunk, or of many that were joined. Arrays have the shape of the field, with 1 along axes.

    Sums of weights and of weights times values and squares, each less a centre, `sizes` of squares at least, by which their
    rounding is bounded, and of how far originals can be.
    """

    name: str                      # of the statistic
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    most: int = 0                  # values of a chunk that are added up
    additions: int = 0             # of such sums
    exponent: int | None = None    # of the unit of all sums; None before the first number but zero
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = ("low", "high") if self.extremes else SUMS if self.name == "std" else SUMS[:-1]
        start = math.inf if self.extremes else 0.0
        self.arrays = {"count": np.zeros(self.shape), **{name: np.full(self.shape, start) for name in names}}

    @classmethod
    def of(
        cls, name: str, axes: tuple[int, ...], values: np.ndarray, valid: np.ndarray | None, limit: Limit | None,
        weights: np.ndarray | None,
    ) -> Self:
        """Those of one chunk."""
        sums = cls(name, kept_shape(values.shape, axes), axes)
        sums.most = math.prod(values.shape[axis] for axis in axes)
        sums.arrays["count"] += sums.most if valid is None else sums._summed(valid)
        with np.errstate(over="ignore", invalid="ignore"):
            if sums.extremes:
                sums._add_least(values, valid, limit)
            else:
                sums._add_sums(values, valid, limit, weights)
        return sums

    @property
    def extremes(self) -> bool:
        """Whether these are wanted, rather than sums."""
        return self.name in ("min", "max")

    def join(self, other: Self, into: Slices) -> None:
        """Add the sums of a chunk at these places of the field; their centres become those that are here, if any are."""
        place = self._place(into)
        here, more = {name: array[place] for name, array in self.arrays.items()}, other.arrays   # views
        here["count"] += more["count"]
        if self.extremes:
            for name in ("low", "high"):
                np.minimum(here[name], more[name], out=here[name])
            return
        self._measure_alike(other)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            self._join_sums(here, other)

    def _join_sums(self, here: dict[str, np.ndarray], other: Self) -> None:
        more = other.arrays
        here["centre"][...] = np.where(here["weight"] == 0, more["centre"], here["centre"])
        by = np.where(more["weight"] == 0, 0.0, more["centre"] - here["centre"])
        self.most, self.additions = max(self.most, other.most), self.additions + other.additions
        if by.any():
            self.additions += SHIFTED
        off = more["weight"] * by
        here["sum"] += more["sum"] + off
        here["sizes"] += more["sizes"] + np.abs(2 * by * more["sum"]) + off * by
        if self.name == "std":
            here["squares"] += more["squares"] + by * (2 * more["sum"] + off)
        for name in ("weight", "moved", "moved_squares"):
            here[name] += more[name]

    def _measure_alike(self, other: Self) -> None:
        """Give both one unit: the larger one, where numbers in the smaller one could be beyond all others."""
        if self.exponent is None or other.exponent is None:   # of one, all sums are zero
            self.exponent = other.exponent if self.exponent is None else self.exponent
        elif other.exponent - self.exponent > PLAIN:
            self._measure_in(other.exponent)
        else:
            other._measure_in(self.exponent)

    def _measure_in(self, exponent: int) -> None:
        """Change the unit of all sums."""
        if exponent == self.exponent:
            return
        for name, array in self.arrays.items():
            power = {"count": 0, "weight": 0, "squares": 2, "sizes": 2, "moved_squares": 2}.get(name, 1)
            scaled = np.ldexp(array, power * ((self.exponent or 0) - exponent))
            array[...] = np.where(array > 0, np.maximum(scaled, TINY), 0) if name.startswith("moved") else scaled
        self.exponent = exponent
        self.additions += 1   # whose number bounds what is lost below all numbers

    def _add_least(self, values: np.ndarray, valid: np.ndarray | None, limit: Limit | None) -> None:
        """Take the least values of a chunk, or the least of their opposites."""
        sign = 1 if self.name == "min" else -1
        ends = np.finfo(values.dtype) if values.dtype.kind == "f" else np.iinfo(values.dtype)
        shown = values if valid is None else np.where(valid, values, values.dtype.type(ends.max if sign > 0 else ends.min))
        least = (shown.min if sign > 0 else shown.max)(axis=self.axes, keepdims=True)
        low, high = sign * lower(least, limit), sign * upper(least, limit)
        there = True if valid is None else valid.any(axis=self.axes, keepdims=True)
        for name, end in zip(("low", "high"), (low, high) if sign > 0 else (high, low), strict=True):
            self.arrays[name][...] = np.where(there, end, np.inf)

    def _add_sums(
        self, values: np.ndarray, valid: np.ndarray | None, limit: Limit | None, weights: np.ndarray | None
    ) -> None:
        here, relative = self.arrays, limit is not None and limit.relative
        plain = valid is None and weights is None and self._may_lack_centre(values, limit)
        largest = _largest(values, valid) if plain or values.dtype == np.float64 else 1.0   # others are in plain units
        self.exponent = _exponent(largest, limit)
        here["weight"] += here["count"] if weights is None else self._summed(
            np.broadcast_to(weights, values.shape) if valid is None else weights * valid)
        if plain and limit is not None and not self.exponent and self._share(self.most) * largest < limit.value * LITTLE:
            here["sum"] += self._summed(values)
            here["sizes"] += here["weight"] * np.float64(largest) ** 2
            self.additions = 1
            self._add_absolute(limit, 0.0)
            return
        here["centre"][...] = np.where(here["count"] > 0, self._about_mean(values, valid), 0)
        size = away = 0.0   # the largest magnitudes, also less the centre
        for part in _tiles(values.shape):
            there = self._place(part)
            tile = _scaled(values[part], self.exponent or 0)
            ignored = None if valid is None else ~valid[part]
            factor = None if weights is None else np.broadcast_to(weights, values.shape)[part]
            if ignored is not None:
                tile[ignored] = 0
            if limit is not None and relative:
                self._add_shares({name: here[name][there] for name in ("moved", "moved_squares")}, tile, limit, factor)
            elif values.dtype.kind in "iu":
                size = max(size, _largest(tile))
            tile -= here["centre"][there]
            if ignored is not None:
                tile[ignored] = 0
            weighted = tile if factor is None else tile * factor
            here["sum"][there] += self._summed(weighted)
            if self.name == "std":
                here["squares"][there] += self._summed(np.multiply(weighted, tile, out=tile))
            else:
                away = max(away, _largest(tile))
            self.additions += math.prod(part[axis].start == 0 for axis in range(values.ndim) if axis not in self.axes)
        here["sizes"] += here["squares"] if self.name == "std" else here["weight"] * np.float64(away) ** 2
        if not relative:
            self._add_absolute(limit, size * 2 * UNIT if values.dtype.itemsize == 8 else 0.0)

    def _may_lack_centre(self, values: np.ndarray, limit: Limit | None) -> bool:
        """Whether plain sums of values will do where their errors do not matter beside the limit."""
        rounded = values.dtype.kind in "iu" and values.dtype.itemsize == 8
        return limit is not None and not limit.relative and self.name != "std" and not rounded

    def _about_mean(self, values: np.ndarray, valid: np.ndarray | None) -> np.ndarray:
        """A number near the mean of each sum, which may be any: of all values that count, or of some where all do."""
        some = tuple(
            slice(None, None, max(1, size // SAMPLED)) if axis in self.axes and valid is None else slice(None)
            for axis, size in enumerate(values.shape)
        )
        wide = _scaled(values[some], self.exponent or 0)
        if valid is not None:
            wide[~valid] = 0
        count = math.prod(wide.shape[axis] for axis in self.axes) if valid is None else np.maximum(self._summed(valid), 1)
        mean = self._summed(wide) / count
        return np.where(np.isfinite(mean), mean, 0)

    def _add_shares(self, here: dict[str, np.ndarray], tile: np.ndarray, limit: Limit, weights: np.ndarray | None) -> None:
        """At least the sums of how far original values are from decoded ones, and of the squares of that."""
        share, sizes = limit.value / (1 - limit.value) * ABOVE, np.abs(tile)
        weighted = sizes if weights is None else sizes * weights
        more = (1 + self._share(self.most)) * ABOVE
        here["moved"] += self._summed(weighted) * (share * more) + self.most * TINY
        here["moved_squares"] += self._summed(weighted * sizes) * (share**2 * more) + self.most * TINY

    def _add_absolute(self, limit: Limit | None, rounded: float) -> None:
        """The same for an absolute limit, or none, of integers that were rounded."""
        error = np.float64(0 if limit is None else limit.value)   # of NumPy, which overflows to infinity
        least = TINY if error else 0.0
        error = max(np.ldexp(error, -(self.exponent or 0)) * ABOVE, least) + rounded
        self.arrays["moved"] += self.arrays["weight"] * error
        self.arrays["moved_squares"] += self.arrays["weight"] * max(error**2, least)

    def _place(self, part: Slices) -> Slices:
        """A part of the field as places of the sums."""
        return tuple(slice(None) if axis in self.axes else one for axis, one in enumerate(part))

    def _summed(self, values: np.ndarray) -> np.ndarray:
        sums: np.ndarray = values.sum(axis=self.axes, keepdims=True, dtype=np.float64)
        return sums

    @staticmethod
    def _share(terms: int) -> float:
        return 1.01 * (terms + 10) * UNIT

    # What follows.

    @property
    def rounding(self) -> float:
        """The error of a sum as a share of the sum of magnitudes."""
        return self._share(self.most + self.additions)

    def result(self) -> Bounded:
        """Values and bounds; NaN where nothing is valid."""
        with np.errstate(all="ignore"):
            values, bounds = getattr(self, f"_{self.name}")()
            if not self.extremes:
                scale, exact = self.exponent or 0, bounds == 0   # before a bound vanishes below all numbers
                values, bounds = np.ldexp(values, scale), np.ldexp(bounds, scale)
                bounds = np.where(exact, 0.0, np.nextafter(bounds * ABOVE, np.inf))
        nothing = self.arrays["count" if self.extremes else "weight"] == 0
        open_ended = ~np.isfinite(values) | ~np.isfinite(bounds)
        bounds = np.where(open_ended, np.inf, bounds)
        values = np.where(np.isnan(values), 0.0, values)
        return np.where(nothing, np.nan, values), np.where(nothing, np.nan, bounds)

    def _parts(self) -> tuple[np.ndarray, ...]:
        """Weights, centres, the mean less the centre, its error by rounding, and the mean square with its error."""
        a, g = self.arrays, self.rounding
        weight, lost = a["weight"], self._lost()
        squares = (a["sizes"] / weight) * (1 + 4 * g) + lost   # at least the exact one
        mean = a["sum"] / weight
        error = (3 * g * np.sqrt(squares) + 3 * g * np.abs(mean) + lost) * ABOVE
        return weight, a["centre"], mean, error, squares

    def _lost(self) -> np.ndarray:
        """At least what is lost of a mean below all numbers: of each term, and of the quotient by a large weight."""
        lost: np.ndarray = self.most * self.additions * TINY / np.minimum(self.arrays["weight"], 1)
        return lost

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
        off = 6 * self.rounding * squares + 2 * np.abs(mean) * error + error**2 + self._lost()
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


def _exponent(largest: float, limit: Limit | None) -> int | None:
    """The binary order of magnitude of values of this size and their errors, if far from 1, else 0; None of zero."""
    size = largest if limit is None or limit.relative else max(largest, limit.value)
    exponent = math.frexp(size)[1]
    return None if size == 0 else exponent if abs(exponent) > PLAIN else 0


def _tiles(shape: Sequence[int]) -> Iterator[Slices]:
    """Parts of an array, each of about as many values as a cache holds, and as long along the last axes as that allows."""
    room, cuts = TILE, []
    for size in reversed(shape):
        step = max(1, min(size, room))
        cuts.append([slice(at, min(at + step, size)) for at in range(0, size, step)])
        room //= size
    return itertools.product(*reversed(cuts))


def _largest(values: np.ndarray, valid: np.ndarray | None = None) -> float:
    """The largest magnitude of those that count."""
    there = values if valid is None else values[valid]
    return max(float(there.max()), -float(there.min())) if there.size else 0.0


def _scaled(values: np.ndarray, exponent: int) -> np.ndarray:
    wide = values.astype(np.float64)
    return np.ldexp(wide, -exponent) if exponent else wide


def kept_shape(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """The shape with 1 along some axes.

    >>> kept_shape((3, 4, 5), (1,))
    (3, 1, 5)
    """
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
