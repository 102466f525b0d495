"""The covariances that are tried on a region: how each is described by numbers that may take any value.

Two families say why a field is as it is, with a handful of numbers: autoregressions, whose correlation falls by the same
factor at every step along an axis, and Matérn fields, of any smoothness; both with white noise on top. A third,
`sampled`, is what was measured, for fields that are neither.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from workbench.limits.correlation import Autoregressive, Matern, Sampled
from workbench.limits.periodogram import Periodogram

LEAST_NOISE, MOST_NOISE = 1e-9, 1e2   # of the variance of what is correlated
Bounds = list[tuple[float, float]]


class Family(Protocol):
    """A kind of covariance. The first parameter is the logarithm of its variance; noise comes last, if there is any."""

    @property
    def name(self) -> str:
        """What it is called."""

    def starts(self, seen: Periodogram) -> list[np.ndarray]:
        """Where a search for its best parameters may begin."""

    def bounds(self, seen: Periodogram) -> Bounds:
        """Between which each parameter stays."""

    def covariance(self, parameters: np.ndarray) -> Autoregressive | Matern:
        """The member with these parameters."""


@dataclass(frozen=True)
class AutoregressiveFamily:
    """Parameters: artanh of the correlation of neighbours along each axis."""

    name: str = "autoregressive"

    def starts(self, seen: Periodogram) -> list[np.ndarray]:
        """At the correlations of neighbours that were measured."""
        rhos = np.clip(_of_neighbours(seen), -0.99, 0.999)
        return [np.append(_log_variance(seen), np.arctanh(rhos))]

    def bounds(self, seen: Periodogram) -> Bounds:
        """Up to correlations over ten thousand cells."""
        return [_around(_log_variance(seen)), *[(-4.0, 5.3)] * len(seen.side)]

    def covariance(self, parameters: np.ndarray) -> Autoregressive:
        """The member with these parameters."""
        return Autoregressive(float(np.exp(parameters[0])), tuple(np.tanh(parameters[1:]).tolist()))


@dataclass(frozen=True)
class MaternFamily:
    """Parameters: ln of the correlation length along each axis."""

    smoothness: float

    @property
    def name(self) -> str:
        """With its smoothness."""
        return f"Matérn {self.smoothness:g}"

    def starts(self, seen: Periodogram) -> list[np.ndarray]:
        """At the length that fits the correlation of neighbours, and far beyond it: noise hides long correlations."""
        close = 1 / np.sqrt(np.maximum(-2 * np.log(np.clip(_of_neighbours(seen), 0.05, 0.9999)), 1e-4))
        return [np.append(_log_variance(seen), np.log(close))]

    def bounds(self, seen: Periodogram) -> Bounds:
        """From a fraction of a cell to many blocks."""
        return [_around(_log_variance(seen)), *((np.log(0.05), np.log(20.0 * side)) for side in seen.side)]

    def covariance(self, parameters: np.ndarray) -> Matern:
        """The member with these parameters."""
        return Matern(float(np.exp(parameters[0])), tuple(np.exp(parameters[1:]).tolist()), self.smoothness)


@dataclass(frozen=True)
class Noisy:
    """A family with white noise on top; the last parameter is ln of its share."""

    family: Family

    @property
    def name(self) -> str:
        """With its noise."""
        return f"{self.family.name} and noise"

    def starts(self, seen: Periodogram) -> list[np.ndarray]:
        """With little noise and with much, which hides how long correlations are."""
        return [np.append(start, np.log(share)) for start in self.family.starts(seen) for share in (1e-4, 1e-1)]

    def bounds(self, seen: Periodogram) -> Bounds:
        """From nothing to hardly anything else."""
        return [*self.family.bounds(seen), (np.log(LEAST_NOISE), np.log(MOST_NOISE))]

    def covariance(self, parameters: np.ndarray) -> Autoregressive | Matern:
        """The member with these parameters."""
        clean = self.family.covariance(parameters[:-1])
        return replace(clean, nugget=clean.variance * float(np.exp(parameters[-1])))


def sampled(seen: Periodogram, power: np.ndarray) -> Sampled:
    """The covariance with this power, at lags up to half a block: what was measured, blurred by the blocks' fading."""
    values = lagged(seen, np.maximum(power, 0.0))
    for axis, length in enumerate(values.shape):
        values = values * _parzen(length).reshape([-1 if each == axis else 1 for each in range(values.ndim)])
    return Sampled(values)


def lagged(seen: Periodogram, power: np.ndarray) -> np.ndarray:
    """The covariance that belongs to a power, at lags up to half a block."""
    for axis, length in enumerate(seen.side):
        lags = np.fft.irfft(np.moveaxis(power, axis, 0), length, axis=0)
        power = np.moveaxis(lags[: length // 2 + 1], 0, axis)
    return power


def _parzen(length: int) -> np.ndarray:
    """A weight for each lag that makes no power negative: 1 at lag 0, 0 beyond the last."""
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
