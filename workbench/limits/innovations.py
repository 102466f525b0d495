"""The likelihood of one given field under a Gaussian model, value by value: the basis of bounds for this field.

Values are visited in memory order. Each has an exact conditional mean and variance given the values of its region in a
small neighbourhood that were visited before. For any neighbourhood the product of these conditional densities is a proper
density of the whole field (Vecchia's approximation, 1988). For the separable first-order recursion on a box, the cube
behind a value is a sufficient neighbourhood and the density is exact. Smooth fields need more neighbours: with
`default_neighbours`, the description is too long by 0.01 to 0.03 bits per value for a Matern field of smoothness 1.5, and
by up to 0.15 bits for smoothness 2.5.

A bound follows for any file that keeps |x - x'| <= eb. A reconstruction covers a cube of volume (2 eb)^n, so no prefix
code is shorter than -log2 p(x) - n log2(2 eb) - g bits with probability more than 2^-g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from workbench.arguments import whole_number
from workbench.errors import WorkbenchError
from workbench.limits.correlation import Correlation
from workbench.limits.spectrum import LOG2E
from workbench.slabs import rows_of

NEAR = {1: 4.0, 2: 10**0.5, 3: 5**0.5, 4: 2.0}   # the distance of the furthest neighbour, in grid steps
SLAB = 2**18       # values processed together
TOGETHER = 2048    # neighbour patterns solved together
MOST_NEIGHBOURS = 62   # bits of a pattern
ROUNDING = 1e-13   # of the variance: added to the diagonal, so that covariances of very smooth fields are invertible

Offsets = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Innovations:
    """The prediction errors of a field, each value predicted from the values before it.

    `residuals` are the prediction errors in units of their standard deviation: white noise if the model holds. `bits` are
    the terms of -log2 p(x). Both are NaN outside the regions and 0 in constant regions. `samples` is the number of values
    in regions that vary.
    """

    residuals: np.ndarray
    bits: np.ndarray
    samples: int

    @cached_property
    def total_bits(self) -> float:
        """-log2 of the probability density of the field; negative where the density exceeds 1."""
        return float(np.nansum(self.bits))

    def description_length(self, eb: float) -> float:
        """Least bits, within a few, of a file that keeps all values within `eb`, if the model holds."""
        if not 0 < eb < np.inf:
            raise WorkbenchError(f"eb must be a positive error bound; got {eb!r}")
        return self.total_bits - self.samples * float(np.log2(2 * eb))


def innovations(
    values: np.ndarray,
    labels: np.ndarray,
    correlations: Sequence[Correlation],
    means: Sequence[float] | None = None,
    neighbours: Sequence[Sequence[int]] | None = None,
) -> Innovations:
    """The innovations of a field whose regions (labels from 0; -1 for none) have these covariances and means.

    Without `means`, the mean of the values of each region is used. `neighbours` are offsets to values visited before, so
    the first nonzero number of an offset must be negative; the default is `default_neighbours`.

    >>> from workbench.limits.correlation import Autoregressive
    >>> found = innovations(np.array([1.0, 0.5, 2.0]), np.zeros(3, int), [Autoregressive(1.0, 0.5)], means=[0.0])
    >>> found.residuals.round(4).tolist(), round(found.description_length(0.01), 3)
    ([1.0, 0.0, 2.0207], 24.161)
    """
    given = np.asarray(values)
    regions = _checked_labels(labels, given, correlations)
    offsets = default_neighbours(given.ndim) if neighbours is None else _checked_neighbours(neighbours, given.ndim)
    centres = _centres(given, regions, len(correlations)) if means is None else np.asarray(means, np.float64)
    if centres.shape != (len(correlations),) or not np.isfinite(centres).all():
        raise WorkbenchError(f"means must be {len(correlations)} finite numbers, one for each region; got {means!r}")
    varies = np.array([each.variance > 0 for each in correlations], bool)
    for region in np.flatnonzero(~varies):
        _require_constant(given[regions == region], int(region))
    residuals, bits = np.full(given.shape, np.nan), np.full(given.shape, np.nan)
    for rows in rows_of(given.shape, SLAB):
        visit = _Visit.of(given, regions, rows, offsets, centres)
        residuals[rows], bits[rows] = visit.result(correlations, varies, offsets)
    samples = np.bincount(regions[regions >= 0], minlength=len(correlations))[varies].sum()
    return Innovations(residuals, bits, int(samples))


def default_neighbours(dimensions: int) -> Offsets:
    """Offsets to all near values that were visited before: 4 in 1-D, 18 in 2-D, 28 in 3-D, 44 in 4-D.

    >>> default_neighbours(1)
    ((-1,), (-2,), (-3,), (-4,))
    """
    reach = int(NEAR[dimensions])
    here = (0,) * dimensions
    visited = (step for step in product(range(-reach, reach + 1), repeat=dimensions) if step < here)
    distances = {step: sum(each * each for each in step) for step in visited}
    near = (step for step, squared in distances.items() if squared <= NEAR[dimensions] ** 2 + 1e-9)
    return tuple(sorted(near, key=lambda step: (distances[step], step)))


@dataclass(frozen=True, eq=False)
class _Visit:
    """Some rows of a field that are processed together, with the values that predict them.

    Bit k of `pattern` tells whether neighbour k exists and belongs to the same region.
    """

    labels: np.ndarray
    centred: np.ndarray          # the values minus the means of their regions
    around: list[np.ndarray]     # the centred values of each neighbour, 0 where it is not used
    pattern: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, labels: np.ndarray, rows: slice, offsets: Offsets, centres: np.ndarray) -> _Visit:
        """The rows with their neighbours."""
        margin = [max((abs(step[axis]) for step in offsets), default=0) for axis in range(values.ndim)]
        start = max(rows.start - margin[0], 0)
        widths = [(margin[0] - (rows.start - start), 0), *((each, each) for each in margin[1:])]
        seen = np.pad(labels[start : rows.stop], widths, constant_values=-1)
        level = np.append(centres, 0.0)[seen]   # a label of -1 indexes the last
        value = np.where(seen >= 0, np.pad(values[start : rows.stop].astype(np.float64), widths) - level, 0.0)
        shape = (rows.stop - rows.start, *values.shape[1:])

        def shifted(step: tuple[int, ...]) -> tuple[slice, ...]:
            firsts = (each + move for each, move in zip(margin, step, strict=True))
            return tuple(slice(first, first + length) for first, length in zip(firsts, shape, strict=True))

        inner = shifted((0,) * values.ndim)
        around, pattern = [], np.zeros(shape, np.int64)
        for bit, step in enumerate(offsets):
            same = seen[shifted(step)] == seen[inner]
            pattern |= same.astype(np.int64) << bit
            around.append(np.where(same, value[shifted(step)], 0.0))
        return cls(seen[inner], value[inner], around, pattern)

    def result(
        self, correlations: Sequence[Correlation], varies: np.ndarray, offsets: Offsets
    ) -> tuple[np.ndarray, np.ndarray]:
        """Residuals and bits."""
        residuals = np.where(self.labels >= 0, 0.0, np.nan)
        bits = residuals.copy()
        for region in np.flatnonzero(varies).tolist():
            chosen = self.labels == region
            if not chosen.any():
                continue
            patterns, which = np.unique(self.pattern[chosen], return_inverse=True)
            weights, variances = conditionals(correlations[region], offsets, patterns)
            error = self.centred[chosen]
            for weight, near in zip(weights.T, self.around, strict=True):
                error = error - weight[which] * near[chosen]
            residuals[chosen] = error / np.sqrt(variances)[which]
            bits[chosen] = 0.5 * (np.log2(2 * np.pi * variances)[which] + LOG2E * residuals[chosen] ** 2)
        return residuals, bits


def conditionals(correlation: Correlation, offsets: Offsets, patterns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each pattern, the weights of the neighbours in the conditional mean, and the conditional variance.

    >>> from workbench.limits.correlation import Autoregressive
    >>> conditionals(Autoregressive(1.0, 0.5), ((-1,), (-2,)), np.array([0, 1, 3]))[1].round(4).tolist()
    [1.0, 0.75, 0.75]
    """
    steps = np.array(offsets, np.int64).reshape(len(offsets), correlation.dimensions)
    apart = steps[:, None] - steps
    covariance = np.array(correlation.at(*np.moveaxis(apart, -1, 0)), np.float64)
    covariance[np.diag_indices(len(steps))] += correlation.nugget + ROUNDING * correlation.variance
    to_here = np.asarray(correlation.at(*steps.T), np.float64)
    there = (patterns[:, None] >> np.arange(len(steps)) & 1).astype(bool)
    parts = np.array_split(there, 1 + len(there) // TOGETHER)
    weights = np.concatenate([_solved(covariance, to_here, part) for part in parts])
    variances = correlation.variance - weights @ to_here
    return weights, np.maximum(variances, ROUNDING * correlation.variance)


def _solved(covariance: np.ndarray, to_here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """The weights of the neighbours that exist; the others have weight 0."""
    systems = np.where(there[:, :, None] & there[:, None, :], covariance, 0.0)
    diagonal = np.arange(len(covariance))
    systems[:, diagonal, diagonal] = np.where(there, covariance.diagonal(), 1.0)
    return np.asarray(np.linalg.solve(systems, np.where(there, to_here, 0.0)[..., None])[..., 0])


def _checked_labels(labels: np.ndarray, values: np.ndarray, correlations: Sequence[Correlation]) -> np.ndarray:
    regions = np.asarray(labels)
    if regions.dtype.kind not in "iu" or regions.shape != values.shape:
        raise WorkbenchError(
            f"labels must be whole numbers in the shape of the field, {values.shape}; "
            f"got {regions.dtype} of shape {regions.shape}"
        )
    if regions.max(initial=-1) >= len(correlations):
        raise WorkbenchError(f"correlations must be one for each region, {int(regions.max()) + 1}; got {len(correlations)}")
    if any(each.dimensions != values.ndim for each in correlations):
        raise WorkbenchError(f"correlations must have {values.ndim} dimensions, as the field has")
    if not np.isfinite(values[regions >= 0]).all():
        raise WorkbenchError("values must be finite in all regions: label others -1")
    return regions


def _checked_neighbours(neighbours: Sequence[Sequence[int]], dimensions: int) -> Offsets:
    offsets = tuple(
        tuple(whole_number("each step of neighbours", step, least=-(2**31)) for step in each) for each in neighbours
    )
    here = (0,) * dimensions
    visited = all(len(step) == dimensions and step < here for step in offsets)
    if not visited or len(offsets) > MOST_NEIGHBOURS or len(set(offsets)) < len(offsets):
        raise WorkbenchError(
            f"neighbours must be up to {MOST_NEIGHBOURS} different offsets of {dimensions} whole numbers, "
            f"with a negative first nonzero number; got {neighbours!r}"
        )
    return offsets


def _centres(values: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    """The mean value of each region; 0 for one without values."""
    inside = labels >= 0
    totals = np.bincount(labels[inside], values[inside].astype(np.float64), count)
    return np.asarray(totals / np.maximum(np.bincount(labels[inside], minlength=count), 1))


def _require_constant(values: np.ndarray, region: int) -> None:
    if values.size and values.min() != values.max():
        raise WorkbenchError(
            f"correlations must have a positive variance where values vary: region {region} has variance 0 "
            f"and values from {values.min():g} to {values.max():g}"
        )
