"""Tail probabilities of weighted sums of squares of Gaussian variables.

All bounds for finite fields need the probability that Q = w1 Z1^2 + w2 Z2^2 + ... is above or below a value. There is no
closed form for different weights, and normal approximations fail at probabilities of 1e-12. The method here is an inverse
Laplace transform of the exact moment generating function along a parabola through its saddle point, bent away from the
singularities. The integrand decays like a Gaussian, and the trapezoidal rule converges geometrically. All results are
logarithms, with the same accuracy for one term and for millions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from workbench.errors import WorkbenchError

ACCURACY = 1e-13   # of an integral, relative
FEW = 2**8         # nodes, usually enough: other paths are tried before more nodes
FINEST = 2**14     # nodes


@dataclass(frozen=True, eq=False)
class SumOfSquares:
    """Q = sum of weight * chi-squared(freedom, shift), independent; the shift is that of a non-central distribution.

    >>> two = SumOfSquares(np.array([1.0]), np.array([2.0]))   # an exponential distribution of mean 2
    >>> round(two.log_above(6.0), 12), round(float(np.exp(two.log_below(2.0))), 12)
    (-3.0, 0.632120558829)
    """

    weights: np.ndarray            # positive
    freedom: np.ndarray            # number of squares with each weight
    shifts: np.ndarray | None = None   # sum of their squared means

    @property
    def mean(self) -> float:
        """The expectation of Q."""
        shifts = 0.0 if self.shifts is None else self.shifts
        return float(np.sum(self.weights * (self.freedom + shifts)))

    @property
    def variance(self) -> float:
        """The variance of Q."""
        shifts = 0.0 if self.shifts is None else self.shifts
        return float(2 * np.sum(self.weights**2 * (self.freedom + 2 * shifts)))

    @property
    def third(self) -> float:
        """The third cumulant of Q."""
        shifts = 0.0 if self.shifts is None else self.shifts
        return float(8 * np.sum(self.weights**3 * (self.freedom + 3 * shifts)))

    def cumulants(self, s: np.ndarray) -> np.ndarray:
        """The logarithm of E[exp(s Q)], for any complex s except the singularities."""
        scaled = np.multiply.outer(s, 2 * self.weights)
        total = -0.5 * _log1p(-scaled) @ self.freedom
        return total if self.shifts is None else total + 0.5 * (scaled / (1 - scaled)) @ self.shifts

    def scaled(self, factor: float) -> SumOfSquares:
        """The distribution of `factor` times Q."""
        return SumOfSquares(factor * self.weights, self.freedom, self.shifts)

    def tilted(self, s: float) -> SumOfSquares:
        """The exponential tilt of Q, with density proportional to exp(s Q): again a sum of squares."""
        free = 1 - 2 * s * self.weights
        return SumOfSquares(self.weights / free, self.freedom, None if self.shifts is None else self.shifts / free)

    def log_above(self, value: float) -> float:
        """The logarithm of P[Q > value]."""
        if value < self._middle:
            return float(np.log1p(-np.exp(self.log_power(value, 0.0))))
        saddle = _root(lambda s: self.tilted(s).mean - value - 1 / s, 0.5 / float(self.weights.max()))
        tilted, turning = self.scaled(saddle).tilted(1.0), saddle * value

        def exponent(step: np.ndarray) -> np.ndarray:
            return np.asarray(tilted.cumulants(step) - step * turning - _log1p(step))

        top = float(self.cumulants(np.array([saddle + 0j])).real[0]) - turning
        return top + _along_parabola(exponent, tilted.variance + 1, max(tilted.third - 2, 0.0))   # away from the pole at 0

    @property
    def _middle(self) -> float:
        """Above the mean, near which the saddle point of the upper tail is near a pole: one tail follows from the other."""
        return self.mean + 0.25 * float(np.sqrt(self.variance))

    def log_below(self, value: float) -> float:
        """The logarithm of P[Q <= value]."""
        if value > self._middle:
            return float(np.log1p(-np.exp(self.log_above(value))))
        return self.log_power(value, 0.0)

    def log_power(self, value: float, power: float) -> float:
        """The logarithm of E[(value - Q)^power / Gamma(power + 1); Q < value]; for power 0, of P[Q < value]."""
        if value <= 0:
            return -np.inf

        saddle = _root(lambda s: value - self.tilted(-s).mean - (power + 1) / s, np.inf)
        tilted, turning = self.scaled(saddle).tilted(-1.0), saddle * value

        def exponent(step: np.ndarray) -> np.ndarray:
            return np.asarray(tilted.cumulants(-step) + step * turning - (power + 1) * _log1p(step))

        top = float(self.cumulants(np.array([-saddle + 0j])).real[0]) + turning - power * np.log(saddle)
        return top + _along_parabola(exponent, tilted.variance + power + 1, -tilted.third - 2 * (power + 1))

    def quantile(self, log_eps: float) -> float:
        """The value that Q exceeds with probability exp(log_eps)."""
        from scipy.optimize import brentq

        def excess(value: float) -> float:
            return self.log_above(value) - log_eps

        guess, step = self._by_cumulants(log_eps), 0.003 * np.sqrt(self.variance)
        low = high = guess
        if excess(guess) > 0:
            while excess(high) > 0:
                low, high, step = high, high + step, 4 * step
        else:
            while excess(low) <= 0:
                high, low, step = low, max(low - step, 0.5 * low), 4 * step
        return float(brentq(excess, low, high, xtol=1e-14 * high, rtol=1e-13))

    def _by_cumulants(self, log_eps: float) -> float:
        """Approximate quantile from the shifted gamma distribution with the same mean, variance and third cumulant."""
        from scipy.special import gammainccinv

        shape, scale = 4 * self.variance**3 / self.third**2, 0.5 * self.third / self.variance
        guess = self.mean + scale * (float(gammainccinv(shape, max(np.exp(log_eps), 1e-300))) - shape)
        return guess if np.isfinite(guess) and guess > 0 else self.mean


def _log1p(z: np.ndarray) -> np.ndarray:
    """ln(1 + z) of complex numbers, accurate for small z, where NumPy's log1p loses digits."""
    result = np.empty(z.shape, np.complex128)
    result.real = np.log(np.hypot(1 + z.real, z.imag))
    small = (np.abs(z.real) < 0.5) & (np.abs(z.imag) < 0.5)
    real, imag = z.real[small], z.imag[small]
    result.real[small] = 0.5 * np.log1p(real * (2 + real) + imag * imag)
    result.imag = np.arctan2(z.imag, 1 + z.real)
    return result


def _root(slope: Callable[[float], float], end: float) -> float:
    """The root of an increasing function on (0, end) that starts at minus infinity."""
    from scipy.optimize import brentq

    def place(t: float) -> float:   # maps the real line to (0, end), logarithmically at both ends
        return float(np.exp(t)) if np.isinf(end) else float(end * (np.exp(t) / (1 + np.exp(t))))

    low, high = -1.0, 1.0
    while slope(place(low)) > 0:
        low *= 2
    while slope(place(high)) < 0:
        high *= 2
        if high > 600 or place(high) == end:
            break   # the root equals the end within rounding
    return place(brentq(lambda t: slope(place(t)), low, high, xtol=1e-9)) if slope(place(high)) > 0 else place(high / 2)


def _along_parabola(exponent: Callable[[np.ndarray], np.ndarray], second: float, third: float) -> float:
    """The logarithm of 1/(2 pi i) times the integral of exp(exponent(step)) upwards through the saddle point at step 0.

    At the saddle point the exponent is 0 and has the derivatives `second` and `third`. Steps are in units of the saddle
    point.
    """
    width = 1 / np.sqrt(second)
    steepest = third * width / (6 * second)   # curvature of the path of steepest descent at the saddle point
    for most, lean in product((FEW, FINEST), (steepest, steepest / 4, steepest / 16, 0.0)):

        def heights(y: np.ndarray, lean: float = lean) -> np.ndarray:
            with np.errstate(over="ignore", invalid="ignore"):   # on a path bent too far the integrand grows
                return np.asarray((np.exp(exponent(width * (1j * y + lean * y * y))) * (1 - 2j * lean * y)).real)

        if (total := _trapezoids(heights, most)) is not None:
            return float(np.log(total * width / np.pi))
    raise WorkbenchError("the probability could not be computed: the weights span too many magnitudes")


def _trapezoids(heights: Callable[[np.ndarray], np.ndarray], most: int) -> float | None:
    """The integral from 0 to where the integrand vanishes, with doubled nodes until it converges; None if it does not."""
    reach = 8.0
    while not np.abs(heights(np.linspace(reach, 1.2 * reach, 4))).max() < 1e-17:
        reach *= 1.5
        if reach > 1e5:
            return None
    nodes, before = 32, np.nan
    while nodes <= most:
        height = heights(np.linspace(0, reach, nodes + 1))
        if not np.abs(height).max() < 10:
            return None   # the integrand grows before it decays: cancellation would lose digits
        total = float((height.sum() - 0.5 * height[0]) * (reach / nodes))
        if abs(total - before) <= ACCURACY * total:
            return total
        nodes, before = 2 * nodes, total
    return None
