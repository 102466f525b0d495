"""Reverse water-filling: the rate and the dispersion of Gaussian components of unequal variance.

A Gaussian vector in its principal axes is a list of independent components, and the rotation conserves the mean square
error. Components above the water level are described with an error equal to the level; components below are left out
(Shannon; Kolmogorov 1956). Rate and dispersion of any finite Gaussian source depend on the variances alone, so a field is
represented by the list of different variances and their counts.
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from workbench.data.taking import as_array, unmasked
from workbench.errors import WorkbenchError, briefly

Numbers = float | Sequence[float] | np.ndarray
LOG2E = float(np.log2(math.e))   # bits in a nat


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The variances of independent Gaussian components, ascending, and the number of components of each.

    >>> two = Spectrum.of([4.0, 4.0, 0.5, 0.5])
    >>> two.rate(0.75), two.level(0.75)
    (0.5, 1.0)
    """

    values: np.ndarray
    counts: np.ndarray   # may be fractional for shares of a larger field
    slack: float = 0.0   # bits per sample by which the rate may be too high; 0 where the variances are exact

    @classmethod
    def of(cls, variances: Numbers, counts: Numbers = 1) -> Spectrum:
        """The spectrum of these variances, in any order, with these counts."""
        found = as_array("variances", unmasked("variances", variances, "leave them out"))
        if found.dtype.kind not in "fiu" and found.size:
            raise WorkbenchError(f"variances must be numbers; got {briefly(variances)}")
        values = np.atleast_1d(found.astype(np.float64)).ravel()
        if values.size == 0 or not np.isfinite(values).all() or values.min() < 0:
            got = "none" if values.size == 0 else f"values in [{values.min():g}, {values.max():g}]"
            raise WorkbenchError(f"variances must be finite and not negative, at least one; got {got}")
        number = np.broadcast_to(np.asarray(counts, np.float64), values.shape)
        if not (np.isfinite(number).all() and (number > 0).all()):
            raise WorkbenchError("counts must be positive, one for each variance")
        order = np.argsort(values, kind="stable")
        return cls(values[order], number[order])

    @classmethod
    def joined(cls, parts: Sequence[Spectrum]) -> Spectrum:
        """All components of several independent sources."""
        whole = cls.of(np.concatenate([part.values for part in parts]), np.concatenate([part.counts for part in parts]))
        slack = sum(part.slack * part.size for part in parts) / whole.size
        return replace(whole, slack=slack) if slack else whole

    def times(self, number: float) -> Spectrum:
        """The components of so many copies of the source, which may be a fraction."""
        return replace(self, counts=self.counts * number)

    @cached_property
    def size(self) -> float:
        """The number of components, equal to the number of samples of the field."""
        return float(self.counts.sum())

    @cached_property
    def variance(self) -> float:
        """The mean variance of a sample; at this distortion the rate is 0."""
        return float(self.values @ self.counts) / self.size

    @cached_property
    def _filled(self) -> np.ndarray:
        """The distortion per sample with the water level at each value."""
        below = np.concatenate([[0.0], np.cumsum(self.values * self.counts)[:-1]])
        above = self.counts[::-1].cumsum()[::-1]
        return np.asarray((below + above * self.values) / self.size)

    def level(self, distortion: float) -> float:
        """The water level at this mean square error; infinite at the variance and above."""
        distortion = require_distortion(distortion)
        if distortion >= self.variance:
            return float("inf")
        first = min(int(np.searchsorted(self._filled, distortion)), self.values.size - 1)   # the lowest described component
        below = float(self.values[:first] @ self.counts[:first])
        return (distortion * self.size - below) / float(self.counts[first:].sum())

    def distortion(self, level: float) -> float:
        """The mean square error at a water level."""
        return float(np.minimum(self.values, level) @ self.counts) / self.size

    def rate(self, distortion: float) -> float:
        """The rate-distortion function: least mean bits per sample of any code; 0 at the variance and above."""
        level = self.level(distortion)
        strong = self.values > level
        return 0.5 * float(np.log2(self.values[strong] / level) @ self.counts[strong]) / self.size

    def dispersion(self, distortion: float) -> float:
        """The variance of the information per sample, in bits squared: the variability of finite fields."""
        level = self.level(distortion)
        return 0.5 * LOG2E**2 * float(np.minimum(1.0, self.values / level) ** 2 @ self.counts) / self.size

    def grouped(self, classes: int) -> Spectrum:
        """Merge nearly equal components into at most `classes` logarithmic classes of equal width.

        Each class keeps its number and its mean variance; components that are negligible in the total variance form one
        class. This speeds up distributions of sums, which evaluate each class many times, and hardly changes them.
        """
        if self.values.size <= classes:
            return self
        least = max(1e-16 * float(self.values[-1]), float(np.finfo(np.float64).tiny))
        logs = np.log(np.maximum(self.values, least))
        edges = np.linspace(logs[0], logs[-1], classes + 1)[1:-1]
        place = np.searchsorted(edges, logs)
        counts = np.bincount(place, self.counts, classes)
        sums = np.bincount(place, self.counts * self.values, classes)
        used = counts > 0
        return Spectrum(sums[used] / counts[used], counts[used], self.slack)


def require_distortion(distortion: float) -> float:
    """A positive mean square error, in double precision."""
    value = float(distortion) if isinstance(distortion, np.floating) else distortion   # integers may be beyond all floats
    if not (isinstance(value, numbers.Real) and 0 < value <= sys.float_info.max):
        raise WorkbenchError(f"distortion must be a positive mean square error; got {briefly(distortion)}")
    return float(value)


def require_excess(eps: float) -> None:
    """Check that a probability of exceeding the distortion lies in (0, 0.5]."""
    if not (isinstance(eps, numbers.Real) and 0 < eps <= 0.5):
        raise WorkbenchError(f"eps, the probability of exceeding the distortion, must lie in (0, 0.5]; got {eps!r}")
