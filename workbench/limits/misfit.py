"""The misfit of a fitted spectrum, by frequency band: its significance and its cost in bits.

With enough data every model is rejected. So a misfit has two figures: the probability that it is chance, and the bits per
sample that a coder with the true spectrum would save over a coder with the fitted one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.limits.periodogram import Periodogram
from workbench.limits.spectrum import LOG2E

BANDS = 10
SERIOUS = 0.02   # bits per sample


@dataclass(frozen=True, eq=False)
class Misfit:
    """Ratios of measured to expected power in frequency bands, from long to short waves."""

    edges: np.ndarray    # of the bands, in cycles per cell along an axis (root of the sum of squares)
    ratios: np.ndarray
    errors: np.ndarray   # standard errors of the ratios
    probability: float   # of deviations this large by chance
    bits: float          # cost of the misfit per sample
    shares: np.ndarray   # of the frequencies in each band
    power: np.ndarray    # mean expected power of each band

    def change(self, level: float) -> float:
        """Bits per sample that the rate at a water level would change with the measured power, beyond chance."""
        above = (self.power > level) & (self.ratios > 0)
        change = 0.5 * LOG2E * float(np.sum((self.shares * np.log(np.maximum(self.ratios, 1e-12)))[above]))
        chance = 0.5 * LOG2E * float(np.sqrt(np.sum((self.shares * self.errors)[above] ** 2)))
        return change * max(0.0, 1 - chance**2 / change**2) if change else 0.0

    @property
    def serious(self) -> bool:
        """Whether the misfit is significant and costs enough bits for a warning."""
        return self.probability < 1e-3 and self.bits > SERIOUS

    def __str__(self) -> str:
        worst = int(np.argmax(np.abs(np.log(np.maximum(self.ratios, 1e-6)))))
        waves = f"waves of {1 / self.edges[worst + 1]:.3g} to {1 / max(self.edges[worst], 1e-3):.3g} cells"
        return f"{self.bits:.3f} bit a sample; at worst {100 * (self.ratios[worst] - 1):+.0f}% of the power, in {waves}"


def misfit(seen: Periodogram, expected: np.ndarray, free: int) -> Misfit:
    """Compare the periodogram with the expectation of a covariance that has `free` fitted parameters."""
    grids = np.ogrid[tuple(slice(0, count) for count in expected.shape)]
    frequency = np.sqrt(sum((grid / side) ** 2 for grid, side in zip(grids, seen.side, strict=True)))
    used = seen.multiplicity > 0
    order = np.sort(np.repeat(frequency[used], seen.multiplicity[used].astype(int)))
    edges = np.unique(order[np.linspace(0, len(order) - 1, BANDS + 1).astype(int)])
    if len(edges) == 1:   # a line of two or three values has a single frequency
        edges = np.append(0.0, edges)
    band = np.clip(np.searchsorted(edges, frequency, side="right") - 1, 0, len(edges) - 2)
    weights = np.stack([np.where(used & (band == each), seen.multiplicity, 0.0) for each in range(len(edges) - 1)])
    shares = weights.sum(axis=tuple(range(1, weights.ndim)))
    weights, edges, shares = weights[shares > 0], np.append(edges[:-1][shares > 0], edges[-1]), shares[shares > 0]
    flat = (weights / expected).reshape(len(shares), -1) / shares[:, None]
    by_block = seen.blocks.reshape(len(seen.weights), -1) @ flat.T
    ratios = seen.weights @ by_block
    in_theory = 2 * (35 / 18) ** len(seen.side) / shares * np.sum(seen.weights**2)
    scatter = seen.weights**2 @ (by_block - ratios) ** 2
    variance = np.maximum(scatter, in_theory) if len(seen.weights) > 1 else in_theory
    deviations = (ratios - 1) / np.sqrt(variance)
    lost = np.maximum(ratios - 1 - np.log(np.maximum(ratios, 1e-12)) - 0.5 * variance, 0)
    bits = 0.5 * LOG2E * float(lost @ shares / shares.sum())
    return Misfit(edges, ratios, np.sqrt(variance), _probability(deviations, len(shares) - free), bits,
                  shares / shares.sum(), np.array([np.average(expected, weights=weight) for weight in weights]))


def _probability(deviations: np.ndarray, freedom: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(max(freedom, 1), float(np.sum(deviations**2))))
