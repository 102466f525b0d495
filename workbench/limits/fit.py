"""The covariance of a region: the likeliest of several families, how sure that is, and how far it still is from the field.

The likelihood is Whittle's, of the mean periodogram of the region's blocks (`periodogram.py`). Blocks are little
dependent on each other, so that the scatter of their scores says how uncertain the parameters are, whether or not the
model is right (Huber's sandwich). The same scatter tells a misfit from chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workbench.limits.correlation import Correlation
from workbench.limits.families import AutoregressiveFamily, Family, MaternFamily, Noisy, sampled
from workbench.limits.misfit import Misfit, misfit
from workbench.limits.periodogram import Periodogram

SMOOTHNESSES = (0.5, 1.5, 2.5)
DRAWS = 40            # plausible covariances beside the likeliest
FEW_BLOCKS = 12       # fewer say little about their own scatter
STEP = 1e-4           # of a parameter, for slopes
LEAST_GAIN = 1e-6     # of the deviance, at which a search ends
PASSES = 40


@dataclass(frozen=True, eq=False)
class Fit:
    """The likeliest covariance of a region, others that are plausible, and what speaks for and against."""

    covariance: Correlation
    family: str
    deviances: Mapping[str, float]   # of each family: minus twice the log-likelihood per cell, with a price for parameters
    draws: tuple[Correlation, ...]
    misfit: Misfit
    seen: Periodogram
    expected: np.ndarray             # what the periodogram should be


def fit(seen: Periodogram, cells: int, seed: int = 0) -> Fit:
    """Fit all families to a region of so many cells, without noise and with it, and take the likeliest."""
    price = np.log(cells) / cells
    found: dict[str, tuple[float, Family, np.ndarray]] = {}
    clean: list[Family] = [AutoregressiveFamily(), *map(MaternFamily, SMOOTHNESSES)]
    for family in (*clean, *map(Noisy, clean)):
        deviance, best = min((_search(family, seen, start) for start in family.starts(seen)), key=lambda run: run[0])
        found[family.name] = (deviance + price * len(best), family, best)
    deviances = {name: deviance for name, (deviance, _, _) in found.items()}
    deviances["as sampled"] = _of_the_other_half(seen)
    name = min(deviances, key=lambda each: deviances[each])
    random = np.random.default_rng(seed)
    if name in found:
        _, family, best = found[name]
        covariance: Correlation = family.covariance(best)
        draws, free = _plausible(family, best, seen, random), len(best)
    else:
        covariance, draws, free = sampled(seen, seen.power), _resampled(seen, random), 0
    expected = seen.expected(covariance)
    return Fit(covariance, name, deviances, draws, misfit(seen, expected, free), seen, expected)


def _search(family: Family, seen: Periodogram, start: np.ndarray) -> tuple[float, np.ndarray]:
    """The least deviance near a start, and where it is: Fisher's scoring, damped where a step would lead upwards."""
    low, high = np.array(family.bounds(seen)).T
    best = np.clip(start, low, high)
    expected = _expected(family, best, seen)
    least, damping = seen.deviance(expected), 1e-3
    for _ in range(PASSES):
        slopes = _slopes(family, best, seen, expected)
        weighted = slopes * seen.multiplicity.ravel()
        pull = weighted @ (seen.power / expected - 1).ravel()
        bread = weighted @ slopes.T
        gained = 0.0
        while damping < 1e8:
            step = np.linalg.solve(bread + damping * np.diag(np.diag(bread) + 1e-12 * np.trace(bread)), pull)
            tried = np.clip(best + np.clip(step, -2, 2), low, high)
            there = _expected(family, tried, seen)
            gained = least - seen.deviance(there)
            if gained >= 0:
                best, expected, least, damping = tried, there, least - gained, 0.1 * damping
                break
            damping *= 10
        if gained < LEAST_GAIN:
            break
    return least, best


def _expected(family: Family, parameters: np.ndarray, seen: Periodogram) -> np.ndarray:
    """The expected periodogram, without what rounding makes of very small powers."""
    expected = seen.expected(family.covariance(parameters))
    return np.maximum(expected, 1e-13 * expected.max())


def _slopes(family: Family, at: np.ndarray, seen: Periodogram, expected: np.ndarray) -> np.ndarray:
    """How the logarithm of the expected power changes with each parameter."""
    slopes = np.empty((len(at), expected.size))
    slopes[0] = 1.0   # the logarithm of the variance
    for place in range(1, len(at)):
        moved = at.copy()
        moved[place] += STEP
        slopes[place] = (np.log(_expected(family, moved, seen) / expected) / STEP).ravel()
    return slopes


def _of_the_other_half(seen: Periodogram) -> float:
    """The deviance of half of the blocks from the covariance measured on the others, which is what predicting is worth."""
    if len(seen.weights) < 4:
        return np.inf
    middle, halves = len(seen.weights) // 2, []
    for half in (slice(None, middle), slice(middle, None)):   # side by side: neighbours overlap
        weights = seen.weights[half] / seen.weights[half].sum()
        halves.append(np.tensordot(weights, seen.blocks[half], 1))
    one, other = (seen.expected(sampled(seen, half)) for half in halves)
    if min(one.min(), other.min()) <= 0:
        return np.inf
    return 0.5 * (seen.deviance(one, halves[1]) + seen.deviance(other, halves[0]))


def _resampled(seen: Periodogram, random: np.random.Generator) -> tuple[Correlation, ...]:
    """Covariances as sampled on blocks that were drawn with replacement."""
    draws = DRAWS if len(seen.weights) > 1 else 0
    return tuple(sampled(seen, seen.resampled(random)) for _ in range(draws))


def _plausible(
    family: Family, best: np.ndarray, seen: Periodogram, random: np.random.Generator
) -> tuple[Correlation, ...]:
    """Members drawn from the distribution of the estimate."""
    expected = _expected(family, best, seen)
    slopes = _slopes(family, best, seen, expected)
    weighted = slopes * seen.multiplicity.ravel()
    scores = weighted @ (1 - seen.blocks.reshape(len(seen.weights), -1) / expected.ravel()).T
    meat = (scores * seen.weights**2) @ scores.T
    if len(seen.weights) < FEW_BLOCKS:   # theory: each frequency is seen with its negative, and blurred by the fading
        meat = meat + 2 * (35 / 18) ** len(seen.side) * float(np.sum(seen.weights**2)) * weighted @ slopes.T
    inverse = np.linalg.pinv(weighted @ slopes.T, rcond=1e-8, hermitian=True)
    values, vectors = np.linalg.eigh(inverse @ meat @ inverse)
    low, high = np.array(family.bounds(seen)).T
    steps = random.standard_normal((DRAWS, len(values))) * np.sqrt(np.maximum(values, 0)) @ vectors.T
    return tuple(family.covariance(np.clip(best + np.clip(step, -2, 2), low, high)) for step in steps)
