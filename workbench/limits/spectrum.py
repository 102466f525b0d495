"""Reverse water-filling: what it costs to describe Gaussian components of unequal variance.

A Gaussian vector, turned into its principal axes, is a list of independent components; mean square error does not notice
the turn. At a water level, each component above it is described until its error is the level, and each below is left out
(Shannon; Kolmogorov 1956). Rate and dispersion of any finite Gaussian source follow from the variances alone, so that a
whole field is this list, with equal ones counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.errors import WorkbenchError

Numbers = float | Sequence[float] | np.ndarray
LOG2E = float(np.log2(np.e))   # bits in a nat


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The variances of independent Gaussian components, ascending, and how many components have each.

    >>> two = Spectrum.of([4.0, 4.0, 0.5, 0.5])
    >>> two.rate(0.75), two.level(0.75)
    (0.5, 1.0)
    """

    values: np.ndarray
    counts: np.ndarray   # not whole numbers where components are shares of a larger field

    @classmethod
    def of(cls, variances: Numbers, counts: Numbers = 1) -> Spectrum:
        """The spectrum of these variances, in any order, each so many times."""
        values = np.atleast_1d(np.asarray(variances, np.float64)).ravel()
        if values.size == 0 or not np.isfinite(values).all() or values.min() < 0:
            found = "none" if values.size == 0 else f"values in [{values.min():g}, {values.max():g}]"
            raise WorkbenchError(f"variances must be finite and not negative, at least one; got {found}")
        number = np.broadcast_to(np.asarray(counts, np.float64), values.shape)
        if not (np.isfinite(number).all() and (number > 0).all()):
            raise WorkbenchError("counts must be positive, one for each variance")
        order = np.argsort(values, kind="stable")
        return cls(values[order], number[order])

    @classmethod
    def joined(cls, parts: Sequence[Spectrum]) -> Spectrum:
        """All components of several sources that do not know of each other."""
        return cls.of(np.concatenate([part.values for part in parts]), np.concatenate([part.counts for part in parts]))

    @cached_property
    def size(self) -> float:
        """How many components there are: samples of the field."""
        return float(self.counts.sum())

    @cached_property
    def variance(self) -> float:
        """The mean variance of a sample: a distortion as large costs nothing."""
        return float(self.values @ self.counts) / self.size

    @cached_property
    def _filled(self) -> np.ndarray:
        """The distortion per sample when the level stands at each value."""
        below = np.concatenate([[0.0], np.cumsum(self.values * self.counts)[:-1]])
        above = self.counts[::-1].cumsum()[::-1]
        return np.asarray((below + above * self.values) / self.size)

    def level(self, distortion: float) -> float:
        """The water level that leaves this mean square error; infinite when everything may be left out."""
        require_distortion(distortion)
        if distortion >= self.variance:
            return float("inf")
        first = min(int(np.searchsorted(self._filled, distortion)), self.values.size - 1)   # the lowest that is described
        below = float(self.values[:first] @ self.counts[:first])
        return (distortion * self.size - below) / float(self.counts[first:].sum())

    def distortion(self, level: float) -> float:
        """The mean square error that a water level leaves."""
        return float(np.minimum(self.values, level) @ self.counts) / self.size

    def rate(self, distortion: float) -> float:
        """Bits per sample that no code of any length can do without, on average: 0 at the variance and beyond."""
        level = self.level(distortion)
        strong = self.values > level
        return 0.5 * float(np.log2(self.values[strong] / level) @ self.counts[strong]) / self.size

    def dispersion(self, distortion: float) -> float:
        """The variance of the information in a sample, in bits squared: how much finite fields differ."""
        level = self.level(distortion)
        return 0.5 * LOG2E**2 * float(np.minimum(1.0, self.values / level) ** 2 @ self.counts) / self.size

    def grouped(self, classes: int) -> Spectrum:
        """Nearly equal components made equal, in so many classes of equal width on a logarithmic scale.

        Each class keeps its number and its mean variance; what is so small that it adds nothing to the variance is one
        class. Distributions of sums, which need every class many times, are then quick, and hardly differ.
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
        return Spectrum(sums[used] / counts[used], counts[used])


def require_distortion(distortion: float) -> None:
    """A mean square error that a question may be asked about."""
    if not (np.isfinite(distortion) and distortion > 0):
        raise WorkbenchError(f"distortion must be a positive mean square error; got {distortion!r}")


def require_excess(eps: float) -> None:
    """A probability of exceeding the distortion that a question may be asked about."""
    if not 0 < eps <= 0.5:
        raise WorkbenchError(f"eps, the probability of exceeding the distortion, must lie in (0, 0.5]; got {eps!r}")
