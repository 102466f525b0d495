"""Shares of outcomes and means with their confidence intervals, and how many trials an interval needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, stdev

from workbench.arguments import number, whole_number

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Rate:
    """A share, the ends of its interval, and the number of trials behind it.

    >>> print(wilson(0, 300))
    0.000 [0.000, 0.013] in 300 trials
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


def wilson(successes: int, trials: int, confidence: float = CONFIDENCE) -> Rate:
    """The share of successes with its Wilson interval, which is sound for rare events too; [0, 1] without trials.

    >>> wilson(8, 21).low.__round__(2), wilson(8, 21).high.__round__(2)
    (0.21, 0.59)
    """
    if trials == 0:
        return Rate(math.nan, 0.0, 1.0, 0)
    z2 = _z(confidence) ** 2
    share = successes / trials
    middle = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = math.sqrt(z2 * (share * (1 - share) / trials + z2 / (4 * trials**2))) / (1 + z2 / trials)
    low = 0.0 if successes == 0 else max(middle - half, 0.0)
    high = 1.0 if successes == trials else min(middle + half, 1.0)
    return Rate(share, low, high, trials)


def weighted(rates: Sequence[Rate], weights: Sequence[float]) -> Rate:
    """The mean of independent shares, each with its weight; the squared distances to the ends add (Zou and Donner 2008).

    >>> rate = wilson(5, 50)
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
    share = math.fsum(weight * rate.estimate for rate, weight in used)
    below = math.sqrt(math.fsum((weight * (rate.estimate - rate.low)) ** 2 for rate, weight in used))
    above = math.sqrt(math.fsum((weight * (rate.high - rate.estimate)) ** 2 for rate, weight in used))
    return Rate(share, max(share - below, 0.0), min(share + above, 1.0), trials)


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
    return NormalDist().inv_cdf((1 + number("confidence", confidence, 0.5, 0.9999)) / 2)


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
