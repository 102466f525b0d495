"""Bounds for a pointwise error bound, |decoded - original| <= eb, the guarantee of error-bounded codecs.

Errors within the bound fill a cube, errors of a given mean square a ball. At equal mean square error the ball has the
larger volume. At fine bounds the difference is 0.2546 bit per sample: the price of the guarantee, which all codecs that
keep it pay. The simplest such codec is a uniform quantiser with an entropy coder. For independent samples it is optimal
at fine bounds.

A spectrum gives the variances along the principal axes of the field but not their orientation relative to the samples. The
bounds here hold for any orientation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.errors import WorkbenchError
from workbench.limits.converse import chi_square_exceeded, converse
from workbench.limits.spectrum import LOG2E, Spectrum, require_excess

PRICE = float(0.5 * np.log2(2 * np.pi * math.e / 12))
"""Extra bits per sample of a pointwise bound over a bound on the mean square, at fine bounds; equal to 1.53 dB."""

FINE = 0.1   # step in standard deviations, below which the expansions are exact in double precision


def uniform_mse(eb: float) -> float:
    """The mean square error of errors uniform in [-eb, eb], as they are at fine bounds.

    >>> uniform_mse(0.3)
    0.03
    """
    require_bound(eb)
    return eb * eb / 3


def pointwise_rate(spectrum: Spectrum, eb: float) -> float:
    """The Shannon lower bound: least mean bits per sample of a code that keeps every value within eb.

    It is the differential entropy of the field minus that of uniform errors. It is tight at fine bounds. At coarse bounds
    it is loose and may be negative; it is returned unchanged, and 0 or `Spectrum.rate` at eb^2 is then the better bound.
    Components of variance zero cost nothing: the field lies in a plane, and a codeword covers the section of this plane
    with a cube.

    >>> round(pointwise_rate(Spectrum.of(1.0), 0.01), 5)
    7.69095
    """
    require_bound(eb)
    varying, _, room = _plane(spectrum, eb)
    entropies = np.log2(2 * np.pi * math.e * spectrum.values[varying]) @ spectrum.counts[varying]
    return (0.5 * float(entropies) - room) / spectrum.size


def pointwise_converse(spectrum: Spectrum, eb: float, eps: float) -> float:
    """A lower bound on the bits per sample of a fixed-length code with P[some |error| > eb] <= eps; never below 0.

    The larger of two bounds. The first is the volume of the set of probability 1 - eps over the volume of the cube, the
    second the converse for the mean square error, which is at most eb^2. The first is better at fine bounds, the second
    at coarse ones. Where the variances are estimates, the bound is lowered by the `slack` of the spectrum.

    >>> round(pointwise_converse(Spectrum.of(1.0, 100), 0.01, 0.01), 6)
    7.870228
    """
    from scipy.special import gammaln

    require_bound(eb)
    require_excess(eps)
    varying, number, room = _plane(spectrum, eb)
    if number == 0:
        return 0.0
    logs = 0.5 * float(np.log2(spectrum.values[varying]) @ spectrum.counts[varying])
    half = 0.5 * number
    ball = half * np.log2(np.pi * chi_square_exceeded(number, eps)) - float(gammaln(half + 1)) * LOG2E
    return max(float(logs + ball - room) / spectrum.size - spectrum.slack, converse(spectrum, eb * eb, eps))


@dataclass(frozen=True)
class ScalarQuantiser:
    """A uniform quantiser of Gaussian numbers, each rounded to the nearest multiple of a step, with ideal entropy coding.

    >>> plain = ScalarQuantiser(sigma=1.0, step=0.1)
    >>> round(plain.entropy, 4), round(plain.mse / (0.1**2 / 12), 4), round(plain.gap_to_rate, 4)
    (5.3696, 1.0, 0.2552)
    """

    sigma: float
    """The standard deviation of the numbers."""
    step: float
    """The distance between levels: twice the error bound."""

    def __post_init__(self) -> None:
        for name, value in (("sigma", self.sigma), ("step", self.step)):
            if not 0 < value < np.inf:
                raise WorkbenchError(f"{name} must be positive and finite; got {value!r}")

    @property
    def ratio(self) -> float:
        """The step in standard deviations."""
        return self.step / self.sigma

    @cached_property
    def entropy(self) -> float:
        """Bits per number.

        The error of fine steps is nearly independent noise, so the quantised numbers are nearly Gaussian with the sum of
        the variances. The entropy of the levels is then the differential entropy in units of the step.
        """
        if self.ratio < FINE:
            return float(0.5 * np.log2(2 * np.pi * math.e * (1 + self.ratio**2 / 12)) - np.log2(self.ratio))
        from scipy.special import entr

        _, shares = self._levels
        return float(entr(self.zero_share) + 2 * entr(shares).sum()) * LOG2E

    @cached_property
    def mse(self) -> float:
        """The mean square error; nearly step^2 / 12, unless most numbers become zero."""
        if self.ratio < FINE:
            return self.step**2 / 12
        levels, shares = self._levels
        edges = (levels - 0.5) * self.ratio
        density = np.exp(-0.5 * edges**2) / np.sqrt(2 * np.pi)
        moments = density - np.append(density[1:], 0.0)   # of the numbers in each interval
        kept = 2 * np.sum(self.ratio * levels * (2 * moments - self.ratio * levels * shares))
        return float(self.sigma**2 * (1 - kept))

    @cached_property
    def zero_share(self) -> float:
        """The share of the numbers that become zero."""
        from scipy.special import erf

        return float(erf(self.ratio / np.sqrt(8)))

    @property
    def gap_to_rate(self) -> float:
        """Bits per number above the rate-distortion function at the same mean square error."""
        return self.entropy + float(np.log2(np.sqrt(self.mse) / self.sigma))

    @cached_property
    def _levels(self) -> tuple[np.ndarray, np.ndarray]:
        """The levels above zero, as whole numbers, and the share of each; none beyond 40 standard deviations."""
        from scipy.special import ndtr

        levels = np.arange(1, int(40 / self.ratio) + 2, dtype=np.float64)
        above = ndtr(-(levels - 0.5) * self.ratio)
        return levels, above - np.append(above[1:], 0.0)


def require_bound(eb: float) -> None:
    """Check that an error bound is positive and finite."""
    if not 0 < eb < np.inf:
        raise WorkbenchError(f"eb, the error bound, must be positive and finite; got {eb!r}")


def _plane(spectrum: Spectrum, eb: float) -> tuple[np.ndarray, float, float]:
    """The components that vary, their number, and log2 of the largest section of the cube with their plane.

    A section of dimension r of a cube of side 1 has a volume of at most (n/r)^(r/2) and at most 2^((n-r)/2) (Ball 1989).
    """
    varying = spectrum.values > 0
    number = float(spectrum.counts[varying].sum())
    constant = max(0.0, spectrum.size - number)
    slanted = min(0.5 * constant, 0.5 * number * float(np.log2(spectrum.size / number))) if number else 0.0
    return varying, number, number * float(np.log2(2 * eb)) + slanted
