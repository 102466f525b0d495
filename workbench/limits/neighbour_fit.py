"""The covariance of a region by the likelihood of its values, each given its neighbours.

The periodogram sees a masked region through the leakage of its edges. If the field is much smoother than they are, leakage
hides its short waves, and the fit may be off by orders of magnitude without a misfit. Prediction errors do not leak: under
the right covariance their mean square is that which it predicts. So every fit is checked with a sample of prediction
errors, and if it fails, or borders cross most blocks of the periodogram, parameters are fitted to the conditional
likelihood of a larger sample instead (Vecchia 1988): those of the family that predicts it best. Cells on the wrong side of
a border must not decide, so there is a limit to what one error counts. Neighbours say little about long waves, so the
variance stays near that of the values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.limits.correlation import Correlation
from workbench.limits.families import FAMILIES, Family, Noisy, Wider
from workbench.limits.innovations import Offsets, conditionals, default_neighbours
from workbench.limits.periodogram import Periodogram

CELLS = 400        # of a sample, for the search; a check takes as many
BELIEVED = 1.5     # factor by which the mean squared prediction error may differ from the predicted one
REFINED = 8000     # the same where parameters of a known family are refined
OUTLIER = 16.0     # squared errors over predicted ones count up to this
NEAR = 1.1         # greatest logarithm of the ratio of the fitted variance to that of the values


Members = list[Wider]   # families, each with parameters


@dataclass(frozen=True, eq=False)
class Predicted:
    """A sample of cells of a region, with the neighbours that were visited before them."""

    offsets: Offsets
    values: np.ndarray    # around the mean of the region
    near: np.ndarray      # the same for each neighbour, 0 where there is none
    patterns: np.ndarray  # of the neighbours that there are

    @classmethod
    def of(cls, values: np.ndarray, inside: np.ndarray, mean: float, cells: int = CELLS) -> Predicted:
        """Cells spread evenly over the region.

        >>> line = Predicted.of(np.arange(6.0), np.ones(6, bool), mean=0.0)
        >>> line.values.tolist(), line.near[:, 0].tolist()
        ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 0.0, 1.0, 2.0, 3.0, 4.0])
        """
        offsets = default_neighbours(values.ndim)
        flat = np.flatnonzero(inside)
        chosen = np.stack(np.unravel_index(flat[:: max(1, flat.size // cells)], inside.shape))
        near, patterns = np.zeros((chosen.shape[1], len(offsets))), np.zeros(chosen.shape[1], np.int64)
        for bit, step in enumerate(offsets):
            place = chosen + np.array(step)[:, None]
            there = ((place >= 0) & (place < np.array(inside.shape)[:, None])).all(axis=0)
            place = tuple(np.where(there, place, 0))
            there &= inside[place]
            near[there, bit] = values[place][there] - mean
            patterns |= there.astype(np.int64) << bit
        return cls(offsets, np.asarray(values[tuple(chosen)] - mean, np.float64), near, patterns)

    def errors(self, covariance: Correlation) -> tuple[np.ndarray, np.ndarray]:
        """The prediction errors, and their variances under this covariance."""
        different, which = np.unique(self.patterns, return_inverse=True)
        weights, variances = conditionals(covariance, self.offsets, different)
        return self.values - np.einsum("ij,ij->i", weights[which], self.near), variances[which]

    def excess(self, covariance: Correlation) -> float:
        """The mean squared error over the predicted one; 1 for the right covariance."""
        errors, variances = self.errors(covariance)
        return float(np.mean(np.minimum(errors**2 / variances, OUTLIER)))

    def deviances(self, covariance: Correlation) -> np.ndarray:
        """Minus twice the logarithm of the likelihood of each cell, up to a constant."""
        errors, variances = self.errors(covariance)
        return np.asarray(np.log(variances) + np.minimum(errors**2 / variances, OUTLIER))

    def deviance(self, covariance: Correlation) -> float:
        """Their mean."""
        return float(self.deviances(covariance).mean())

    def believes(self, covariance: Correlation) -> bool:
        """Whether the errors are about as large as this covariance predicts."""
        return 1 / BELIEVED < self.excess(covariance) < BELIEVED


@dataclass(frozen=True, eq=False)
class NeighbourFit:
    """The most likely member of several families."""

    covariance: Correlation
    family: str
    deviances: dict[str, float]
    member: Wider


def all_families(seen: Periodogram, variance: float) -> Members:
    """All families with noise, with parameters from the correlation of neighbours."""
    return [(family, np.append(np.log(variance), family.starts(seen)[0][1:])) for family in map(Noisy, FAMILIES)]


def fit_neighbours(seen: Periodogram, sample: Predicted, members: Members) -> NeighbourFit:
    """The most likely of these families for the sample, each from a start; variances stay near those of the starts."""
    from scipy.optimize import minimize

    found: dict[str, tuple[float, Family, np.ndarray]] = {}
    for family, near in members:
        low, high = np.array([(near[0] - NEAR, near[0] + NEAR), *family.bounds(seen)[1:]]).T
        bounds = list(zip(low.tolist(), high.tolist(), strict=True))
        start = np.clip(near, low, high)

        def cost(parameters: np.ndarray, family: Family = family) -> float:
            return sample.deviance(family.covariance(parameters))

        best = minimize(cost, start, method="L-BFGS-B", bounds=bounds, options={"maxiter": 12, "eps": 1e-3})
        found[family.name] = (float(best.fun), family, np.asarray(best.x))
    name = min(found, key=lambda each: found[each][0])
    _, family, best_at = found[name]
    deviances = {each: run[0] for each, run in found.items()}
    return NeighbourFit(family.covariance(best_at), f"{name}, by neighbours", deviances, (family, best_at))
