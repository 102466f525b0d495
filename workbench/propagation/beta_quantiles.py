"""Quantiles of the beta distribution, which exact intervals of shares consist of, without SciPy.

The cumulative distribution is the continued fraction of Numerical Recipes (6.4); its inverse is Newton's method, kept
within a bracket that halves where a step leaves it.
"""

from __future__ import annotations

import math

_STEPS = 200            # of Newton's method, each of which halves the bracket at worst
_TERMS = 10_000         # of the continued fraction: about the root of the larger parameter
_TINY = 1e-300
_EXACT = 1e-15


def beta_quantile(level: float, a: float, b: float) -> float:
    """Where the cumulative beta distribution with these parameters reaches a level; 0 without `a`, 1 without `b`.

    >>> beta_quantile(0.975, 1, 300).__round__(6) == round(1 - 0.025 ** (1 / 300), 6)
    True
    """
    if a <= 0 or b <= 0:
        return 0.0 if a <= 0 else 1.0
    if a > b:   # the smaller end has all its digits
        return 1.0 - beta_quantile(1.0 - level, b, a)
    low, high, x = 0.0, 1.0, a / (a + b)
    for _ in range(_STEPS):
        off = _cumulative(x, a, b) - level
        low, high = (low, x) if off > 0 else (x, high)
        slope = math.exp(_log_density(x, a, b))
        following = x - off / slope if slope > 0 else -1.0
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - x) <= _EXACT * x:
            break
        x = following
    return x


def _cumulative(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function."""
    if not 0 < x < 1:
        return float(x >= 1)
    front = math.exp(_log_density(x, a, b)) * x * (1 - x)
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(1 - x, b, a) / b


def _log_density(x: float, a: float, b: float) -> float:
    factor = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return factor + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x)


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction, by the method of Lentz."""
    c, d = 1.0, 1.0 / _away(1.0 - (a + b) * x / (a + 1))
    total = d
    for m in range(1, _TERMS):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _away(1.0 + numerator * d)
            c = _away(1.0 + numerator / c)
            total *= d * c
        if abs(d * c - 1.0) < _EXACT:
            break
    return total


def _away(value: float) -> float:
    """A denominator that is not zero."""
    return value if abs(value) > _TINY else _TINY
