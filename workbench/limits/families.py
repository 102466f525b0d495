"""Covariance families fitted to a region, each with unconstrained parameters.

Two families describe a field with few parameters: autoregressions, whose correlation falls by a constant factor per grid
step along an axis, and Matérn fields of any smoothness; both with or without white noise. The third, `sampled`, is the
measured covariance, for fields that belong to neither family.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from workbench.limits.correlation import Autoregressive, Matern, Sampled
from workbench.limits.periodogram import Periodogram

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


def sampled(seen: Periodogram, power: np.ndarray) -> Sampled:
    """The covariance with this power at lags up to half a block: the measured one, smoothed by the taper of the blocks."""
    values = lagged(seen, np.maximum(power, 0.0))
    for axis, length in enumerate(values.shape):
        values = values * _parzen(length).reshape([-1 if each == axis else 1 for each in range(values.ndim)])
    return Sampled(values)


def lagged(seen: Periodogram, power: np.ndarray) -> np.ndarray:
    """The covariance of a power spectrum, at lags up to half a block."""
    for axis, length in enumerate(seen.side):
        lags = np.fft.irfft(np.moveaxis(power, axis, 0), length, axis=0)
        power = np.moveaxis(lags[: length // 2 + 1], 0, axis)
    return power


def _parzen(length: int) -> np.ndarray:
    """Parzen's lag window, which keeps the power non-negative: 1 at lag 0, 0 beyond the last."""
    share = np.arange(length) / length
    return np.where(share <= 0.5, 1 - 6 * share**2 * (1 - share), 2 * (1 - share) ** 3)


def _log_variance(seen: Periodogram) -> float:
    return float(np.log(np.sum(seen.multiplicity * seen.power) / seen.multiplicity.sum()))


def _around(middle: float) -> tuple[float, float]:
    return middle - 14.0, middle + 14.0


def _of_neighbours(seen: Periodogram) -> np.ndarray:
    """The correlation of neighbours along each axis."""
    measured = lagged(seen, seen.power)
    first = [1 if length > 1 else 0 for length in measured.shape]
    steps = [tuple(first[axis] if each == axis else 0 for each in range(measured.ndim)) for axis in range(measured.ndim)]
    windows = np.array([seen.window[step] for step in steps])
    return np.array([measured[step] for step in steps]) / (np.maximum(windows, 1e-3) * measured.flat[0])
