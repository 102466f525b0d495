"""The tapered block periodogram of a region, and its exact expectation for any covariance.

A region is not a periodic box. Its shape blurs the periodogram, which would be mistaken for smoothness or noise of the
field. So the blur is modelled: the periodogram is a mean over blocks, each tapered and cut to the region, and `expected`
is the exact expectation of this mean for a given covariance (the debiased Whittle likelihood: Sykulski et al. 2019,
Guillaumin et al. 2022). The scatter between blocks measures the uncertainty.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Protocol

import numpy as np

SIDES = {1: 512, 2: 48, 3: 24, 4: 10}   # of a block, by dimensions
MOST_BLOCKS = {1: 1024, 2: 1024, 3: 320, 4: 320}
MOST_CUT_BLOCKS = 200   # blocks crossed by the border of the region, each of which needs its own window
FILLED = 0.25          # the least share of a block's weight in the region, unless all blocks have less


class Covariance(Protocol):
    """A covariance to compare a field with."""

    @property
    def nugget(self) -> float:
        """The variance of white noise, which adds to the covariance at lag 0 only."""

    def at(self, *lags: np.ndarray) -> np.ndarray:
        """The covariance at these distances."""


@dataclass(frozen=True, eq=False)
class Periodogram:
    """The mean power of a region's blocks at the non-negative frequencies; the power of white noise is its variance.

    `signed` has the power at frequencies of either sign, which differ for structures across the axes. Both give the same
    likelihood to a covariance that is even along each axis, and this one in a fraction of the time.
    """

    side: tuple[int, ...]
    power: np.ndarray        # (side // 2 + 1) along each axis
    multiplicity: np.ndarray   # how many frequencies of either sign each entry represents; 0 for the mean
    window: np.ndarray       # the weight of the covariance at each lag, 0 to side - 1
    blocks: np.ndarray       # the power of each block
    weights: np.ndarray      # the weight of each block; their sum is 1
    independent: float       # how many independent values its estimate of a variance is worth
    cut: float = 0.0         # the share of the weight in blocks that the border of the region crosses
    signed: SignedPeriodogram | None = None   # None for one axis

    def expected(self, covariance: Covariance) -> np.ndarray:
        """The expectation of `power` for a field with this covariance."""
        lags = np.ogrid[tuple(slice(0, length) for length in self.side)]
        seen = covariance.at(*lags) * self.window
        seen.flat[0] += covariance.nugget * self.window.flat[0]
        return folded_transform(seen)

    @property
    def frequencies(self) -> list[np.ndarray]:
        """The frequencies along each axis, in cycles per cell, that broadcast to those of `power`."""
        return list(np.ix_(*(np.arange(length // 2 + 1) / length for length in self.side)))

    def covariance(self, power: np.ndarray) -> np.ndarray:
        """The covariance of a power spectrum, at lags from 0 up to half a block."""
        for axis, length in enumerate(self.side):
            lags = np.fft.irfft(np.moveaxis(power, axis, 0), length, axis=0)
            power = np.moveaxis(lags[: length // 2 + 1], 0, axis)
        return power

    def deviance(self, expected: np.ndarray, power: np.ndarray | None = None) -> float:
        """Minus the logarithm of Whittle's likelihood, per frequency: smaller is better."""
        measured = self.power if power is None else power
        return float(np.sum(self.multiplicity * (np.log(expected) + measured / expected)) / self.multiplicity.sum())


@dataclass(frozen=True, eq=False)
class SignedPeriodogram(Periodogram):
    """The same at frequencies of either sign along all axes but the last; `window` has lags in the order of `fftfreq`."""

    def expected(self, covariance: Covariance) -> np.ndarray:
        """The expectation of `power` for a field with this covariance."""
        *others, last = self.side
        signed = (np.fft.fftfreq(2 * length, 0.5 / length).astype(int) for length in others)
        seen = covariance.at(*np.ix_(*signed, np.arange(last))) * self.window[..., :last]
        seen.flat[0] += covariance.nugget * self.window.flat[0]
        seen[..., 1:] *= 2   # the opposite lags, whose covariances are the same
        for axis, length in enumerate(others):   # lags that differ by a side have the same waves
            seen = np.moveaxis(seen, axis, 0)
            seen = np.moveaxis(seen[:length] + seen[length:], 0, axis)
        return np.fft.fftn(seen)[..., : last // 2 + 1].real

    @property
    def frequencies(self) -> list[np.ndarray]:
        """The frequencies along each axis, in cycles per cell, that broadcast to those of `power`."""
        *others, last = self.side
        return list(np.ix_(*map(np.fft.fftfreq, others), np.fft.rfftfreq(last)))

    def covariance(self, power: np.ndarray) -> np.ndarray:
        """The covariance of a power spectrum, at lags of either sign up to half a block, 0 in the middle."""
        axes, reach = tuple(range(len(self.side))), [(length - 1) // 2 for length in self.side]
        rolled = np.roll(np.fft.irfftn(power, self.side, axes), reach, axes)
        return np.asarray(rolled[tuple(slice(2 * lag + 1) for lag in reach)])


def periodogram(values: np.ndarray, inside: np.ndarray, mean: float) -> Periodogram:
    """The periodogram of the cells `inside`, around this mean."""
    side = tuple(min(length, SIDES[values.ndim]) for length in values.shape)
    fade = _product([_fade(length) for length in side])
    blocks, windows, weights, cut = [], [], [], 0.0
    whole, used = _window(fade), np.zeros(values.shape)
    for start in _starts(inside, side, fade):
        place = _cut(start, side)
        known = inside[place]
        weight = fade if known.all() else fade * known
        centred = np.where(known, values[place] - mean, 0.0) * weight
        total = float(np.sum(weight**2))
        blocks.append(np.abs(np.fft.fftn(centred)) ** 2 / total)
        windows.append(whole if weight is fade else _window(weight))
        weights.append(total)
        used[place] += weight**2
        cut += 0.0 if weight is fade else total
    share_of = np.array(weights) / sum(weights)
    window = np.tensordot(share_of, np.stack(windows), 1) if any(window is not whole for window in windows) else whole
    about = share_of, float(used.sum() ** 2 / np.sum(used**2)), cut / sum(weights)
    signed = _signed(side, np.stack(blocks), window, *about) if values.ndim > 1 else None
    halves = np.stack([_half(block) for block in blocks])
    multiplicity = _product([_multiplicity(length) for length in side])
    multiplicity.flat[0] = 0
    for axis, length in enumerate(side):
        window = _either_sign(window, axis, length)
    return Periodogram(side, np.tensordot(share_of, halves, 1), multiplicity, window, halves, *about, signed)


def _signed(
    side: tuple[int, ...], blocks: np.ndarray, window: np.ndarray, weights: np.ndarray, independent: float, cut: float
) -> SignedPeriodogram:
    """The periodogram with frequencies of either sign: of two opposite ones, that which is positive along the last axis."""
    kept = np.ascontiguousarray(blocks[..., : side[-1] // 2 + 1])
    multiplicity = _product([*(np.ones(length) for length in side[:-1]), _multiplicity(side[-1])])
    multiplicity.flat[0] = 0
    return SignedPeriodogram(side, np.tensordot(weights, kept, 1), multiplicity, window, kept, weights, independent, cut)


def folded_transform(lagged: np.ndarray) -> np.ndarray:
    """The spectrum, at non-negative frequencies, of a function that is even along each axis, given at lags from 0 up."""
    for axis, length in enumerate(lagged.shape):
        ahead = np.moveaxis(lagged, axis, 0)
        folded = ahead.copy()
        folded[1:] += ahead[:0:-1]
        lagged = np.moveaxis(np.fft.rfft(folded, length, axis=0).real, 0, axis)
    return lagged


def _half(power: np.ndarray) -> np.ndarray:
    """The mean over the signs of each axis' frequency."""
    for axis, length in enumerate(power.shape):
        power = _either_sign(power, axis, length // 2 + 1)
    return power


def _either_sign(circular: np.ndarray, axis: int, kept: int) -> np.ndarray:
    """The mean over both signs along a circular axis, for indices from 0 up."""
    ahead = np.moveaxis(circular, axis, 0)
    mirrored = np.concatenate([ahead[:1], ahead[:0:-1]])
    return np.moveaxis(0.5 * (ahead + mirrored)[:kept], 0, axis)


def _multiplicity(length: int) -> np.ndarray:
    count = np.full(length // 2 + 1, 2.0)
    count[0] = 1
    if length % 2 == 0:
        count[-1] = 1
    return count


def _fade(length: int) -> np.ndarray:
    """A taper that is 0 at the sides and 1 in the middle, against leakage from the jump at the sides."""
    return np.sin(np.pi * (np.arange(length) + 0.5) / length) ** 2 if length > 4 else np.ones(length)


def _product(factors: list[np.ndarray]) -> np.ndarray:
    result = np.ones(())
    for factor in factors:
        result = np.multiply.outer(result, factor)
    return result


def _window(weight: np.ndarray) -> np.ndarray:
    """The autocorrelation of a weight at lags of either sign, in the order of `fftfreq`; 1 at lag 0."""
    axes, sides = tuple(range(weight.ndim)), [2 * length for length in weight.shape]
    seen = np.fft.irfftn(np.abs(np.fft.rfftn(weight, sides, axes)) ** 2, sides, axes)
    return np.asarray(seen / seen.flat[0])


def _starts(inside: np.ndarray, side: tuple[int, ...], fade: np.ndarray) -> list[tuple[int, ...]]:
    """The starts of half-overlapping blocks with enough of their weight in the region."""
    along = []
    for length, block in zip(inside.shape, side, strict=True):
        steps = max(1, round(2 * (length - block) / block)) if length > block else 0
        along.append(np.unique(np.linspace(0, length - block, steps + 1).round().astype(int)))
    everywhere = list(itertools.product(*(axis.tolist() for axis in along)))
    if len(everywhere) > 4 * MOST_BLOCKS[inside.ndim]:
        everywhere = everywhere[:: len(everywhere) // (4 * MOST_BLOCKS[inside.ndim])]
    total = float(np.sum(fade**2))
    shares = [float(np.sum(fade[inside[_cut(start, side)]] ** 2)) / total for start in everywhere]
    full = [bool(inside[_cut(start, side)].all()) for start in everywhere]
    whole = _evenly([place for place, holds in enumerate(full) if holds], MOST_BLOCKS[inside.ndim])
    room = min(MOST_CUT_BLOCKS, MOST_BLOCKS[inside.ndim]) - len(whole)
    partly = [place for place, share in enumerate(shares) if share >= FILLED and not full[place]]
    fullest = sorted(range(len(shares)), key=lambda place: -shares[place])[:4]
    chosen = sorted([*whole, *_evenly(partly, max(0, room))]) or [place for place in fullest if shares[place] > 0]
    if not chosen:   # the region is a few cells between the candidate blocks
        cell, last = np.argwhere(inside)[0], np.subtract(inside.shape, side)
        return [tuple(np.minimum(cell, last).tolist())]
    return [everywhere[place] for place in chosen]


def _cut(start: tuple[int, ...], side: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(first, first + length) for first, length in zip(start, side, strict=True))


def _evenly(places: list[int], most: int) -> list[int]:
    """At most `most` of the places, spread evenly."""
    return places if len(places) <= most else [places[each * len(places) // most] for each in range(most)]
