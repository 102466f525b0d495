"""How many random codewords are enough, once it is known how likely one of them serves each source vector.

M codewords drawn independently all miss x with probability (1 - p(x))^M, so that some code of M words exceeds the
distortion with probability at most E[(1 - p(X))^M] (Shannon 1959). Here the expectation is a weighted sum over values of x,
by quadrature or by sampling, and M so large a number that only its logarithm exists.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

STANDARD_ERRORS = 4.0   # added to what is estimated by sampling


@dataclass(frozen=True, eq=False)
class RandomCode:
    """What is needed about the source and one random codeword: values of x, how probable, and ln p(x) for each."""

    log_hits: np.ndarray      # ln p(x)
    weights: np.ndarray       # they sum to the probability of what the values stand for
    missed: float = 0.0       # the probability that x is nowhere among them: counted as exceeded
    sampled: bool = False     # the values are samples, one from each of many equally probable layers, in order

    def excess(self, log_codewords: float) -> float:
        """The probability of exceeding the distortion with so many codewords, or a little more than that."""
        with np.errstate(over="ignore"):
            return self._total(self.weights * np.exp(-np.exp(log_codewords + self._log_rates)))

    @property
    def floor(self) -> float:
        """The same with as many codewords as one likes."""
        return self._total(np.where(np.isneginf(self.log_hits), self.weights, 0.0))

    def _total(self, missing: np.ndarray) -> float:
        """The sum, with its error where it is an estimate."""
        total = float(missing.sum()) + self.missed
        if not self.sampled:
            return total
        pairs = missing[: missing.size // 2 * 2].reshape(-1, 2)   # neighbours differ as two samples of a layer do, or more
        return total + STANDARD_ERRORS * float(np.sqrt(((pairs[:, 0] - pairs[:, 1]) ** 2).sum()))

    @functools.cached_property
    def _log_rates(self) -> np.ndarray:
        """ln(-ln(1 - p)), so that (1 - p)^M = exp(-exp(ln M + this)); ln p itself where p is small."""
        hits = np.minimum(self.log_hits, -1e-12)
        with np.errstate(divide="ignore"):
            exact = np.log(-np.log(-np.expm1(np.maximum(hits, -30.0))))
        return np.where(hits < -30.0, hits, exact)

    def log_codewords(self, eps: float) -> float:
        """The logarithm of the least M that is enough, of two or more; infinite where none is.

        A single word is better put at the mean than drawn: whoever asks has looked whether that is enough.
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
        """-ln p of the vector that is served as badly as only eps are: where ln M must be, within a few nats."""
        order = np.argsort(self.log_hits)
        worst = self.missed + np.cumsum(self.weights[order])
        return max(float(np.log(2)), -float(self.log_hits[order[min(int(np.searchsorted(worst, eps)), order.size - 1)]]))


@functools.cache
def gauss(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Places and weights of a quadrature on [-1, 1]."""
    return np.polynomial.legendre.leggauss(nodes)


def around(fronts: np.ndarray, nat: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of a quadrature from `low` to `high`, dense around the fronts; one row for each of them.

    At a front, what is missed rises from nothing to everything within a few nats of ln p: `nat` is how far one of them is.
    Elsewhere only the density of the source varies. So panels, each with Gauss and Legendre's nodes, double in width.
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
    """Between which lengths such a vector is, but for a tiny share of eps: a length is concentrated as one number is."""
    spread = float(np.sqrt(2 * np.log(1e9 / eps)))
    return max(0.0, float(np.sqrt(size)) - 1 - spread), float(np.sqrt(size)) + spread
