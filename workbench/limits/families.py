"""Covariance families fitted to a region, each with unconstrained parameters.

Two families describe a field with few parameters: autoregressions, whose correlation falls by a constant factor per grid
step along an axis, and Matérn fields of any smoothness; both with or without white noise. The third, `sampled`, is the
measured covariance, for fields that belong to neither family.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from workbench.limits.correlation import Autoregressive, Correlation, Matern, Sampled
from workbench.limits.periodogram import Periodogram, SignedPeriodogram

FURTHEST = {1: 2, 2: 2, 3: 1, 4: 1}   # lag of a measured covariance, in sides of a block
OFF_DIAGONAL = 2.5   # largest entry, for a pair of axes, of the logarithm of the matrix that scales lags
LEAST_NOISE, MOST_NOISE = 1e-9, 1e2   # of the variance of the correlated part
Bounds = list[tuple[float, float]]


class Family(Protocol):
    """A parametric covariance. The first parameter is the logarithm of its variance; the last is the noise, if any."""

    @property
    def name(self) -> str:
        """The name of the family."""

    def starts(self, seen: Periodogram) -> list[np.ndarray]:
        """Starting points for the search of the best parameters."""

    def bounds(self, seen: Periodogram) -> Bounds:
        """The lower and the upper bound of each parameter."""

    def covariance(self, parameters: np.ndarray) -> Autoregressive | Matern:
        """The member with these parameters."""

    def wider(self, parameters: np.ndarray) -> Wider | None:
        """A family that contains this one, and the place of the member with these parameters there; None without one."""


Wider = tuple[Family, np.ndarray]


@dataclass(frozen=True)
class AutoregressiveFamily:
    """Parameters: artanh of the correlation of neighbours along each axis."""

    name: str = "autoregressive"

    def starts(self, seen: Periodogram) -> list[np.ndarray]:
        """The measured correlations of neighbours."""
        rhos = np.clip(_of_neighbours(seen), -0.99, 0.999)
        return [np.append(_log_variance(seen), np.arctanh(rhos))]

    def bounds(self, seen: Periodogram) -> Bounds:
        """Correlation lengths of up to ten thousand cells."""
        return [_around(_log_variance(seen)), *[(-4.0, 5.3)] * len(seen.side)]

    def covariance(self, parameters: np.ndarray) -> Autoregressive:
        """The member with these parameters."""
        return Autoregressive(float(np.exp(parameters[0])), tuple(np.tanh(parameters[1:]).tolist()))

    def wider(self, parameters: np.ndarray) -> None:
        """None."""


@dataclass(frozen=True)
class MaternFamily:
    """Parameters: ln of the correlation length along each axis."""

    smoothness: float

    @property
    def name(self) -> str:
        """The name, with the smoothness."""
        return f"Matérn {self.smoothness:g}"

    def starts(self, seen: Periodogram) -> list[np.ndarray]:
        """The length that fits the correlation of neighbours."""
        close = 1 / np.sqrt(np.maximum(-2 * np.log(np.clip(_of_neighbours(seen), 0.05, 0.9999)), 1e-4))
        return [np.append(_log_variance(seen), np.log(close))]

    def bounds(self, seen: Periodogram) -> Bounds:
        """Correlation lengths from a fraction of a cell to many blocks."""
        return [_around(_log_variance(seen)), *((np.log(0.05), np.log(20.0 * side)) for side in seen.side)]

    def covariance(self, parameters: np.ndarray) -> Matern:
        """The member with these parameters."""
        return Matern(float(np.exp(parameters[0])), tuple(np.exp(parameters[1:]).tolist()), self.smoothness)

    def wider(self, parameters: np.ndarray) -> Wider:
        """Matérn fields of any smoothness."""
        free = FreeMatern(self.smoothness, tuple(parameters.tolist()))
        return free, np.append(parameters, np.log(self.smoothness))


FAMILIES: tuple[Family, ...] = AutoregressiveFamily(), *map(MaternFamily, (0.5, 1.5, 2.5))   # that are fitted first


@dataclass(frozen=True)
class FreeMatern:
    """A Matérn field of any smoothness, started from a fitted one; its logarithm follows the correlation lengths."""

    near: float
    start: tuple[float, ...]
    name: str = "Matérn of any smoothness"

    def starts(self, seen: Periodogram) -> list[np.ndarray]:
        """The fitted parameters of the nearest smoothness."""
        return [np.append(self.start, np.log(self.near))]

    def bounds(self, seen: Periodogram) -> Bounds:
        """Those of any Matérn field, and smoothness from rough to nearly Gaussian."""
        return [*MaternFamily(self.near).bounds(seen), (np.log(0.2), np.log(6.0))]

    def covariance(self, parameters: np.ndarray) -> Matern:
        """The member with these parameters."""
        return MaternFamily(float(np.exp(parameters[-1]))).covariance(parameters[:-1])

    def wider(self, parameters: np.ndarray) -> None:
        """None."""


@dataclass(frozen=True)
class RotatedMatern:
    """A Matérn field of any smoothness whose directions are not those of the axes, started from a fitted one.

    The matrix that scales a lag is the exponential of a symmetric one, whose entries are the parameters: on the diagonal,
    the logarithms of the lengths if the directions are the axes; beside it, a number for each pair of axes. So they need no
    constraints, and equal lengths leave none undefined, as they would an angle. The last is ln of the smoothness.
    """

    start: Matern
    name: str = "Matérn of any smoothness and direction"

    def starts(self, seen: Periodogram) -> list[np.ndarray]:
        """The fitted parameters, with the directions of the axes."""
        pairs = len(self.start.lengths) * (len(self.start.lengths) - 1) // 2
        logs = np.log([self.start.signal, *self.start.lengths])
        return [np.concatenate([logs, np.zeros(pairs), [np.log(self.start.smoothness)]])]

    def bounds(self, seen: Periodogram) -> Bounds:
        """Lengths as of other Matérn fields; their ratio at 45° is at most exp(5), about 150."""
        *others, smoothness = FreeMatern(self.start.smoothness, ()).bounds(seen)
        return [*others, *[(-OFF_DIAGONAL, OFF_DIAGONAL)] * (len(seen.side) * (len(seen.side) - 1) // 2), smoothness]

    def covariance(self, parameters: np.ndarray) -> Matern:
        """The member with these parameters."""
        axes = len(self.start.lengths)
        scales = np.diag(parameters[1 : axes + 1])
        above = np.triu_indices(axes, 1)
        scales[above] = scales.T[above] = parameters[axes + 1 : -1]
        logs, directions = np.linalg.eigh(scales)
        signal, smoothness = (float(np.exp(parameters[place])) for place in (0, -1))
        vectors = tuple(map(tuple, directions.T.tolist()))
        return Matern(signal, tuple(np.exp(logs).tolist()), smoothness, directions=vectors)

    def wider(self, parameters: np.ndarray) -> None:
        """None."""


@dataclass(frozen=True)
class Noisy:
    """A family plus white noise; the last parameter is ln of the noise variance over the variance of the family."""

    family: Family

    @property
    def name(self) -> str:
        """The name of the family, with the noise."""
        return f"{self.family.name} and noise"

    def starts(self, seen: Periodogram) -> list[np.ndarray]:
        """Starts with little and with much noise, because noise hides long correlations."""
        return [np.append(start, np.log(share)) for start in self.family.starts(seen) for share in (1e-4, 1e-1)]

    def bounds(self, seen: Periodogram) -> Bounds:
        """The bounds of the family, and noise from almost none to almost nothing but noise."""
        return [*self.family.bounds(seen), (np.log(LEAST_NOISE), np.log(MOST_NOISE))]

    def covariance(self, parameters: np.ndarray) -> Autoregressive | Matern:
        """The member with these parameters."""
        clean = self.family.covariance(parameters[:-1])
        return replace(clean, nugget=clean.variance * float(np.exp(parameters[-1])))

    def wider(self, parameters: np.ndarray) -> Wider | None:
        """What is wider than the family, with the noise."""
        found = self.family.wider(parameters[:-1])
        return None if found is None else (Noisy(found[0]), np.append(found[1], parameters[-1]))


@dataclass(frozen=True, eq=False)
class Prewhitened:
    """Measured covariances: a fitted one, whose spectrum is corrected by the ratio of measured to expected power.

    The ratio is smoothed by Parzen's lag window. The power itself, smoothed as much, would be far too large beside steep
    slopes of a spectrum; the ratio has none (prewhitening: Blackman & Tukey 1958). Products of windowed spectra are
    positive.
    """

    seen: Periodogram
    expected: np.ndarray   # by the fitted covariance, which may be a measured one
    spectrum: np.ndarray   # of the fitted covariance, windowed, on a grid with room for the lags of both
    sides: tuple[int, ...]   # of this grid

    @classmethod
    def of(cls, seen: Periodogram, fitted: Correlation, expected: np.ndarray) -> Prewhitened:
        """The corrections of a fitted covariance, which expects such a periodogram."""
        furthest = [FURTHEST[len(seen.side)] * length for length in seen.side]
        sides = tuple(2 * (far + length) for far, length in zip(furthest, seen.side, strict=True))
        lags = np.ix_(*(np.fft.fftfreq(side, 1 / side).astype(int) for side in sides))
        table = fitted.at(*lags)
        for lag, far in zip(lags, furthest, strict=True):
            table = table * _parzen(abs(lag) / far)
        table.flat[0] += fitted.nugget
        return cls(seen, expected, np.fft.rfftn(table).real, sides)

    def covariance(self, power: np.ndarray, window: float = 1.0) -> Sampled:
        """The covariance with this measured power, with a wider or narrower window of lags."""
        ratio = np.maximum(power, 0.0) / self.expected
        ratio.flat[0] = 1.0   # the mean was taken away
        lagged, signed = self.seen.covariance(ratio), isinstance(self.seen, SignedPeriodogram)
        lags = np.ix_(*(np.arange(length) - (length // 2 if signed else 0) for length in lagged.shape))
        for lag, length in zip(lags, lagged.shape, strict=True):
            lagged = lagged * _parzen(abs(lag) / (window * (length // 2 + 1 if signed else length)))
        axes = tuple(range(lagged.ndim))
        if signed:
            places = np.ix_(*(along.ravel() for along in lags))   # negative lags count from the end
            wide = np.zeros(self.sides)
            wide[places] = lagged
            product = self.spectrum * np.fft.rfftn(wide).real
        else:
            product = self.spectrum * _cosines(lagged, self.sides)[..., : self.sides[-1] // 2 + 1]
        table = np.fft.irfftn(product, self.sides, axes)
        reach = [side // 2 - 1 for side in self.sides]
        if not signed:
            return Sampled(table[tuple(slice(lag + 1) for lag in reach)])
        return Sampled(np.roll(table, reach, axes)[tuple(slice(2 * lag + 1) for lag in reach)], centred=True)


def _cosines(lagged: np.ndarray, sides: tuple[int, ...]) -> np.ndarray:
    """The spectrum, on a circular grid, of a function that is even along each axis, given at lags from 0 up."""
    for axis, side in enumerate(sides):
        waves = 2 * np.cos(2 * np.pi / side * np.outer(np.arange(side), np.arange(lagged.shape[axis])))
        waves[:, 0] = 1.0
        lagged = np.moveaxis(np.tensordot(waves, lagged, (1, axis)), 0, axis)
    return lagged


def _parzen(share: np.ndarray) -> np.ndarray:
    """Parzen's lag window, which keeps power non-negative: 1 at lag 0, 0 from this share of the furthest on."""
    return np.where(share <= 0.5, 1 - 6 * share**2 * (1 - share), 2 * np.maximum(1 - share, 0.0) ** 3)


def _log_variance(seen: Periodogram) -> float:
    return float(np.log(np.sum(seen.multiplicity * seen.power) / seen.multiplicity.sum()))


def _around(middle: float) -> tuple[float, float]:
    return middle - 14.0, middle + 14.0


def _of_neighbours(seen: Periodogram) -> np.ndarray:
    """The correlation of neighbours along each axis."""
    measured = seen.covariance(seen.power)
    first = [1 if length > 1 else 0 for length in measured.shape]
    steps = [tuple(first[axis] if each == axis else 0 for each in range(measured.ndim)) for axis in range(measured.ndim)]
    windows = np.array([seen.window[step] for step in steps])
    return np.array([measured[step] for step in steps]) / (np.maximum(windows, 1e-3) * measured.flat[0])
