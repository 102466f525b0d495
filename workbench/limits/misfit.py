"""The misfit of a fitted spectrum, by bands of frequency or of direction: its significance and its cost in bits.

With enough data every model is rejected. So a misfit has two figures: the probability that it is chance, and the bits per
sample that a coder with the true spectrum would save over a coder with the fitted one. Bands of frequency do not see that
waves along one diagonal are stronger than those along the other; bands of direction see that, but are few in frequency. So
both are compared, and of those that are significant, the one that costs more counts.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from workbench.limits.periodogram import Periodogram, SignedPeriodogram
from workbench.limits.spectrum import LOG2E

BANDS, BANDS_OF_DIRECTION = 10, 3
SERIOUS = 0.02   # bits per sample
CHANCE = 1e-3    # the greatest probability of a misfit that counts


@dataclass(frozen=True, eq=False)
class Misfit:
    """Ratios of measured to expected power in bands, from long to short waves; also by direction, if `of_direction`."""

    waves: tuple[str, ...]   # what the waves of each band are
    ratios: np.ndarray
    errors: np.ndarray   # standard errors of the ratios
    probability: float   # of deviations this large by chance
    bits: float          # cost of the misfit per sample
    shares: np.ndarray   # of the frequencies in each band
    of_direction: bool = False

    @property
    def significant(self) -> bool:
        """Whether it is not chance."""
        return self.probability < CHANCE

    @property
    def serious(self) -> bool:
        """Whether the misfit is significant and costs enough bits for a warning."""
        return self.significant and self.bits > SERIOUS

    def __str__(self) -> str:
        worst = int(np.argmax(np.abs(np.log(np.maximum(self.ratios, 1e-6)))))
        off = f"{100 * (self.ratios[worst] - 1):+.0f}% of the power"
        return f"{self.bits:.3f} bit a sample; at worst {off}, in {self.waves[worst]}"


def misfit(seen: Periodogram, expected: np.ndarray, free: int) -> Misfit:
    """Compare the periodogram with the expectation of a covariance that has `free` fitted parameters."""
    frequency, used = np.sqrt(sum(wave**2 for wave in seen.frequencies)), seen.multiplicity > 0
    order = np.sort(np.repeat(frequency[used], seen.multiplicity[used].astype(int)))
    band, waves = _bands(order, frequency, BANDS)
    by_frequency = _in_bands(seen, expected, free, band, waves)
    if not isinstance(seen, SignedPeriodogram):
        return by_frequency
    band, waves = _bands(order, frequency, BANDS_OF_DIRECTION)
    direction, names = _directions(seen.frequencies)
    both = tuple(f"{each} that run {name}" for each in waves for name in names)
    by_direction = _in_bands(seen, expected, free, band * len(names) + direction, both, of_direction=True)
    if not by_direction.significant or (by_frequency.significant and by_frequency.bits > by_direction.bits):
        return by_frequency
    return by_direction


def _bands(order: np.ndarray, frequency: np.ndarray, count: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """The band of each frequency, of bands with as many of the sorted ones each; and their names."""
    edges = np.unique(order[np.linspace(0, len(order) - 1, count + 1).astype(int)])
    if len(edges) == 1:   # a line of two or three values has a single frequency
        edges = np.append(0.0, edges)
    band = np.clip(np.searchsorted(edges, frequency, side="right") - 1, 0, len(edges) - 2)
    lengths = 1 / np.maximum(edges, 1e-3)
    return band, tuple(f"waves of {short:.3g} to {long:.3g} cells" for long, short in itertools.pairwise(lengths))


def _directions(frequencies: list[np.ndarray]) -> tuple[np.ndarray, tuple[str, ...]]:
    """The direction of each wave: along which axis it is shortest, and whether the others rise or fall there."""
    waves = np.stack(np.broadcast_arrays(*frequencies))
    axis, axes = np.argmax(abs(waves), axis=0), range(len(waves))
    along = np.take_along_axis(waves, axis[None], 0)[0]
    place = sum(((wave * along > 0) << bit for bit, wave in enumerate(waves)), axis << len(waves))
    return place, tuple(_direction(first, signs, axes) for first in axes for signs in range(1 << len(waves)))


def _direction(first: int, signs: int, axes: range) -> str:
    others = (f"axis {axis} {'rising' if signs >> axis & 1 else 'falling'}" for axis in axes if axis != first)
    return f"mostly along axis {first}, with {' and '.join(others)}"


def _in_bands(
    seen: Periodogram, expected: np.ndarray, free: int, band: np.ndarray, waves: tuple[str, ...], of_direction: bool = False
) -> Misfit:
    """The misfit by these bands; those without frequencies are left out."""
    place, multiplicity = band.ravel(), seen.multiplicity.ravel()
    shares = np.bincount(place, multiplicity, len(waves))
    occupied = shares > 0
    weights = np.zeros((len(waves), place.size))
    weights[place, np.arange(place.size)] = multiplicity
    weights, shares = weights[occupied], shares[occupied]
    by_block = seen.blocks.reshape(len(seen.weights), -1) @ (weights / expected.ravel() / shares[:, None]).T
    ratios = seen.weights @ by_block
    in_theory = 2 * shares.sum() / (shares * seen.independent)
    scatter = seen.weights**2 @ (by_block - ratios) ** 2
    variance = np.maximum(scatter, in_theory) if len(seen.weights) > 1 else in_theory
    deviations = (ratios - 1) / np.sqrt(variance)
    lost = np.maximum(ratios - 1 - np.log(np.maximum(ratios, 1e-12)) - 0.5 * variance, 0)
    bits = 0.5 * LOG2E * float(lost @ shares / shares.sum())
    named = tuple(name for name, used in zip(waves, occupied, strict=True) if used)
    return Misfit(named, ratios, np.sqrt(variance), _probability(deviations, len(shares) - free), bits,
                  shares / shares.sum(), of_direction)


def _probability(deviations: np.ndarray, freedom: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(max(freedom, 1), float(np.sum(deviations**2))))
