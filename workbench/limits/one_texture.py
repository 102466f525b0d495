"""One texture of varying strength: one homogeneous field, times a standard deviation for each region.

Independent regions know nothing of each other, so each border costs bits. Where the same waves go on across a border, only
weaker or stronger, this cost is not real: for stripes of 8 cells whose strengths differ by a factor of 4, the bound would
be 0.2 bits too high. Regions that are given are described in both ways, and the shorter description is taken.

The components of such a field are those of the texture, scaled by the strength of each region. The rate that follows is
exact at fine distortions, where only determinants count, and slightly too low at coarse ones: by at most 0.03 bits for
regions at least 4 cells wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.limits.fit import Fit
from workbench.limits.innovations import Innovations, innovations
from workbench.limits.misfit import misfit

ALIKE = 0.1   # difference of the correlations of neighbours, above which regions do not share a texture


@dataclass(frozen=True, eq=False)
class OneTexture:
    """A homogeneous texture, its mean, and the standard deviation of each region in units of the texture's."""

    fit: Fit
    mean: float
    deviations: np.ndarray

    def standardised(self, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The texture: the values without mean and strength; NaN outside the regions."""
        return standardised(values, labels, self.mean, self.deviations)

    def innovations(self, values: np.ndarray, labels: np.ndarray) -> Innovations:
        """The prediction errors of the field, predicted across the borders of regions."""
        inside = labels >= 0
        found = innovations(self.standardised(values, labels), np.where(inside, 0, -1), [self.fit.covariance], [0.0])
        bits = found.bits + np.where(inside, np.log2(self.deviations[labels]), np.nan)
        return Innovations(found.residuals, bits, found.samples)

    def of_region(self, region: int, alone: Fit) -> Fit:
        """The fit of a region as a part of this texture; `alone` is its own."""
        factor = float(self.deviations[region]) ** 2
        covariance = self.fit.covariance.times(factor)
        expected = alone.seen.expected(covariance)
        judged = misfit(alone.seen, expected, 0)
        return replace(alone, covariance=covariance, family=self.fit.family, misfit=judged, expected=expected,
                       deviances=self.fit.deviances, parameters=1, members=())


def standardised(values: np.ndarray, labels: np.ndarray, mean: float, deviations: np.ndarray) -> np.ndarray:
    """Values without their mean, in units of the standard deviation of their region; NaN where the label is -1.

    >>> standardised(np.array([3.0, 5.0, 9.0]), np.array([0, 1, -1]), 1.0, np.array([2.0, 4.0])).tolist()
    [1.0, 1.0, nan]
    """
    return np.where(labels >= 0, (values - mean) / deviations[labels], np.nan)


def strengths(values: np.ndarray, labels: np.ndarray, regions: int) -> np.ndarray | None:
    """The root mean square of the differences of neighbours in each region; None if a region has none.

    Not the deviation from the mean: in a small region, that of the same texture depends on the size.

    >>> strengths(np.array([0.0, 1.0, 0.0, 3.0, 9.0, 3.0]), np.array([0, 0, 0, 1, 1, 1]), 2).tolist()
    [1.0, 6.0]
    """
    squares, numbers = np.zeros(regions), np.zeros(regions)
    for axis in range(values.ndim):
        one = [slice(None)] * values.ndim
        other = list(one)
        one[axis], other[axis] = slice(None, -1), slice(1, None)
        label = labels[tuple(one)]
        same = (label >= 0) & (label == labels[tuple(other)])
        steps = (values[tuple(other)] - values[tuple(one)])[same] ** 2
        squares += np.bincount(label[same], steps, regions)
        numbers += np.bincount(label[same], minlength=regions)
    return np.sqrt(squares / numbers) if numbers.all() and squares.all() else None


def mean_of_texture(values: np.ndarray, labels: np.ndarray, deviations: np.ndarray) -> float:
    """The mean, for which weak regions tell most."""
    inside = labels >= 0
    return float(np.average(values[inside], weights=deviations[labels[inside]] ** -2.0))


def alike(fits: Sequence[Fit | None]) -> bool:
    """Whether there are several regions, and their textures may be the same: neighbours are equally correlated."""
    known = [each.covariance for each in fits if each is not None]
    if len(known) < max(2, len(fits)):
        return False
    nearest = [[float(one.along(axis, 2)[1]) / one.variance for axis in range(one.dimensions)] for one in known]
    return bool((np.ptp(nearest, axis=0) < ALIKE).all())
