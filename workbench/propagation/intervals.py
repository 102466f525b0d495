"""Shares of outcomes and means with their confidence intervals, and how many trials an interval needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, stdev

import numpy as np

from workbench.arguments import number, whole_number
from workbench.propagation.beta_quantiles import beta_quantile

CONFIDENCE = 0.95
STRETCH = 64   # rows that are one draw of an interval: errors of neighbours are alike


@dataclass(frozen=True)
class Rate:
    """A share, the ends of its interval, and the number of trials behind it.

    >>> print(clopper_pearson(0, 300))
    0.000 [0.000, 0.012] in 300 trials
    """

    estimate: float
    low: float
    high: float
    trials: int

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2

    def __str__(self) -> str:
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}] in {self.trials:,} trials"


@dataclass(frozen=True)
class Mean:
    """A mean with the ends of its interval, which has no ends where there is a single draw."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def mean_of(draws: Sequence[float], value: float | None = None, confidence: float = CONFIDENCE) -> Mean:
    """The mean of independent draws with its interval by Student's t distribution, around a `value` that is known better.

    >>> print(mean_of([1.0, 2.0, 3.0]))
    2 [-0.484, 4.48]
    """
    middle = math.fsum(draws) / len(draws) if value is None else value
    half = _student(len(draws) - 1, confidence) * stdev(draws) / math.sqrt(len(draws)) if len(draws) > 1 else math.inf
    return Mean(middle, middle - half, middle + half)


def mean_of_rows(inputs: Sequence[np.ndarray]) -> Mean:
    """The mean of a figure of each row of these inputs; the draws of its interval are stretches of rows.

    >>> print(mean_of_rows([np.arange(256.0)]))
    128 [-3.97, 259]
    """
    stretches = [part for rows in inputs for part in np.array_split(rows, max(len(rows) // STRETCH, 1))]
    return mean_of([float(part.mean()) for part in stretches], float(np.concatenate(inputs).mean()))


def clopper_pearson(successes: int, trials: int, confidence: float = CONFIDENCE) -> Rate:
    """The share of successes with its Clopper-Pearson interval, which holds at least as often as it says for any share.

    [0, 1] without trials.

    >>> print(clopper_pearson(8, 21))
    0.381 [0.181, 0.616] in 21 trials
    """
    return weighted([Rate(successes / trials if trials else math.nan, 0.0, 1.0, trials)], [1], confidence)


def weighted(rates: Sequence[Rate], weights: Sequence[float], confidence: float = CONFIDENCE) -> Rate:
    """The mean of independent shares, each with its weight, and an interval that also holds for rare outcomes.

    Each end is a quantile of a beta distribution that has the mean and the variance of the shares as they were counted, in
    the stratum that weighs most with one more success above, and one more failure below. This is the interval of Fay and
    Feuer (1997) for standardised rates, with betas in place of gammas. It is that of Clopper and Pearson for one stratum,
    and for strata that count alike, in the limit of rare outcomes, that of their sum.

    >>> rate = clopper_pearson(5, 50)
    >>> weighted([rate, rate], [1, 1]).half_width < rate.half_width
    True
    """
    total = math.fsum(weights)
    if not rates or not total > 0:
        return Rate(math.nan, 0.0, 1.0, 0)
    used = [(rate, weight / total) for rate, weight in zip(rates, weights, strict=True) if weight > 0]
    trials = sum(rate.trials for rate, _ in used)
    if any(rate.trials == 0 for rate, _ in used):
        return Rate(math.nan, 0.0, 1.0, trials)
    strata = tuple((weight, rate.estimate, rate.trials) for rate, weight in used)
    failures = tuple((weight, 1 - share, trials) for weight, share, trials in strata)
    share, level = math.fsum(weight * share for weight, share, _ in strata), _level(confidence)
    return Rate(share, min(1 - _upper(failures, level), share), max(_upper(strata, level), share), trials)


@lru_cache(maxsize=2**16)   # a campaign asks for the same ones again and again
def _upper(strata: tuple[tuple[float, float, int], ...], level: float) -> float:
    """The upper end for the mean of these strata, each its weight, its share of successes and its trials."""
    most = max(strata, key=lambda each: each[0] * (1 - each[1]) / (each[2] + 1))
    weight, share, trials = most
    successes, failures = share * trials + 1, (1 - share) * trials
    mean = weight * successes / (trials + 1)
    variance = weight**2 * successes * failures / ((trials + 1) ** 2 * (trials + 2))
    rest = list(strata)
    rest.remove(most)
    mean += math.fsum(weight * share for weight, share, _ in rest)
    variance += math.fsum(weight**2 * _variance(share, trials) for weight, share, trials in rest)
    if not (mean < 1 and variance > 0):
        return 1.0
    size = mean * (1 - mean) / variance - 1   # the sum of the parameters of the beta distribution
    return beta_quantile(level, mean * size, (1 - mean) * size)


def _variance(share: float, trials: int) -> float:
    """That of a share, without bias; the largest possible where a single trial tells nothing of it."""
    return share * (1 - share) / (trials - 1) if trials > 1 else 0.25


def sample_size(population: int, half_width: float, confidence: float = CONFIDENCE, share: float = 0.5) -> int:
    """How many of all possible faults must be tried for an interval of this half-width (Leveugle et al. 2009).

    >>> sample_size(4_300_000_000, 0.05), sample_size(4_300_000_000, 0.01, 0.99)
    (385, 16588)
    """
    population = whole_number("population", population, least=1)
    half_width = number("half_width", half_width, 1e-6, 1.0)
    spread = _z(confidence) ** 2 * share * (1 - share)
    return math.ceil(population * spread / (half_width**2 * (population - 1) + spread))


def _z(confidence: float) -> float:
    return NormalDist().inv_cdf(_level(confidence))


def _level(confidence: float) -> float:
    """The share of a distribution below the upper end of its interval."""
    return (1 + number("confidence", confidence, 0.5, 0.9999)) / 2


def _student(degrees: int, confidence: float) -> float:
    """The standard errors on each side of a mean's interval, by bisection.

    >>> _student(1, 0.95).__round__(3), _student(2, 0.95).__round__(3), _student(13, 0.95).__round__(3)
    (12.706, 4.303, 2.16)
    """
    wanted, low, high = number("confidence", confidence, 0.5, 0.9999), 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < wanted else (low, middle)
    return math.sqrt(degrees) * math.tan(low)


def _within(angle: float, degrees: int) -> float:
    """The probability that |t| is below the root of the degrees times tan(angle) (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    odd, sine, cosine = degrees % 2, math.sin(angle), math.cos(angle)
    total, term = 0.0, cosine if odd else 1.0
    for power in range(odd, degrees - 1, 2):
        total += term
        term *= cosine * cosine * (power + 1) / (power + 2)
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
