"""The random coding bound: the number of random codewords needed, from the probability p(x) that one of them covers x.

M independent codewords all miss x with probability (1 - p(x))^M, so some code of M words exceeds the distortion with
probability at most E[(1 - p(X))^M] (Shannon 1959). The expectation is computed as a weighted sum over values of x, by
quadrature or sampling. M overflows floating point, so only its logarithm is used.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

STANDARD_ERRORS = 4.0   # added to estimates by sampling


@dataclass(frozen=True, eq=False)
class RandomCode:
    """The probabilities of values of x, and ln p(x) for each."""

    log_hits: np.ndarray      # ln p(x)
    weights: np.ndarray       # their sum is the probability that the values represent
    missed: float = 0.0       # the remaining probability, counted as exceeded
    sampled: bool = False     # the values are samples, one from each of many equally probable strata, in order

    def excess(self, log_codewords: float) -> float:
        """An upper bound on the probability of exceeding the distortion with exp(log_codewords) codewords."""
        with np.errstate(over="ignore"):
            return self._total(self.weights * np.exp(-np.exp(log_codewords + self._log_rates)))

    @property
    def floor(self) -> float:
        """The limit of `excess` for infinitely many codewords."""
        return self._total(np.where(np.isneginf(self.log_hits), self.weights, 0.0))

    def _total(self, missing: np.ndarray) -> float:
        """The sum, plus standard errors if it is an estimate."""
        total = float(missing.sum()) + self.missed
        if not self.sampled:
            return total
        pairs = missing[: missing.size // 2 * 2].reshape(-1, 2)   # neighbours differ at least as samples of one stratum
        return total + STANDARD_ERRORS * float(np.sqrt(((pairs[:, 0] - pairs[:, 1]) ** 2).sum()))

    @functools.cached_property
    def _log_rates(self) -> np.ndarray:
        """ln(-ln(1 - p)), so that (1 - p)^M = exp(-exp(ln M + this)); ln p itself where p is small."""
        hits = np.minimum(self.log_hits, -1e-12)
        with np.errstate(divide="ignore"):
            exact = np.log(-np.log(-np.expm1(np.maximum(hits, -30.0))))
        return np.where(hits < -30.0, hits, exact)

    def log_codewords(self, eps: float) -> float:
        """The logarithm of the least sufficient M >= 2; infinite if there is none.

        The case of a single word, which is better put at the mean than drawn, is handled by the caller.
        """
        from scipy.optimize import brentq

        fewest = float(np.log(2))
        if self.excess(fewest) <= eps:
            return fewest
        if self.floor >= eps:
            return np.inf
        guess = self._hits_exceeded(eps)
        low, high, step = guess, guess, 1.0
        while self.excess(low) <= eps:
            low, step = max(low - step, fewest), 2 * step
        while self.excess(high) > eps:
            high, step = high + step, 2 * step
        return float(brentq(lambda log_words: self.excess(log_words) - eps, low, high, xtol=1e-9, rtol=1e-13))

    def _hits_exceeded(self, eps: float) -> float:
        """-ln p at the eps-quantile of the vectors with the smallest p: ln M within a few nats."""
        order = np.argsort(self.log_hits)
        worst = self.missed + np.cumsum(self.weights[order])
        return max(float(np.log(2)), -float(self.log_hits[order[min(int(np.searchsorted(worst, eps)), order.size - 1)]]))


@functools.cache
def gauss(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss-Legendre quadrature on [-1, 1]."""
    return np.polynomial.legendre.leggauss(nodes)


def around(fronts: np.ndarray, nat: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of a quadrature from `low` to `high`, dense around the fronts; one row per front.

    At a front, the probability of a miss rises from 0 to 1 within a few nats of ln p; `nat` is the distance per nat.
    Elsewhere only the density of the source varies. So the widths of the Gauss-Legendre panels double outwards.
    """
    doublings = max(2, int(np.ceil(np.log2(np.max((high - low) / nat)))) + 1)
    outwards = 1.5 * (2.0 ** np.arange(doublings) - 1)
    offsets = np.concatenate([-outwards[:0:-1], outwards])
    edges = np.clip(fronts[:, None] + nat[:, None] * offsets, low[:, None], high[:, None])
    edges[:, 0], edges[:, -1] = low, high
    half = 0.5 * np.diff(edges)
    place, weight = gauss(10)
    nodes = (edges[:, :-1] + half)[:, :, None] + half[:, :, None] * place
    return nodes.reshape(fronts.size, -1), (half[:, :, None] * weight).reshape(fronts.size, -1)


def log_chi(radius: np.ndarray, size: float) -> np.ndarray:
    """The logarithm of the density of the length of a vector of `size` standard Gaussian numbers."""
    from scipy.special import gammaln

    return np.asarray((size - 1) * np.log(radius) - radius**2 / 2 - (size / 2 - 1) * np.log(2) - gammaln(size / 2))


def farthest(size: float, eps: float) -> tuple[float, float]:
    """The range of lengths of such a vector, except for a tiny share of eps, from Gaussian concentration of the norm."""
    spread = float(np.sqrt(2 * np.log(1e9 / eps)))
    return max(0.0, float(np.sqrt(size)) - 1 - spread), float(np.sqrt(size)) + spread
