"""Codewords drawn from the best Gaussian distribution: achievability for components of any variances.

The codeword that rate-distortion theory asks for has variance lambda - theta on each component above the water level
theta, and says nothing of the others (`codebook="plain"`). What decides is not the typical source vector, though, but the
one that fails with probability eps. So the codewords may as well be made for the source as it looks when it is about to
fail: tilted along the information density until its mean is where only eps lies beyond (`codebook="tilted"`). Any
distribution of codewords proves that a code exists; this one proves a shorter one, but for an eps near a half.

A source vector enters by its energy in each class of equal variances. In polar coordinates, these are a length and a
direction among the classes. One class has one direction and two have an arc of them: then the expectation is a quadrature,
exact. More classes are sampled, around the vectors about to fail, one sample from each of many layers of the length; four
standard errors are added, so that what is claimed can be achieved but for an error of the estimate of that size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from workbench.errors import WorkbenchError
from workbench.limits.achievability.ball import Ball
from workbench.limits.achievability.classes import Classes
from workbench.limits.achievability.random_code import RandomCode, around, farthest, gauss, log_chi
from workbench.limits.spectrum import Spectrum, require_excess
from workbench.limits.tails import SumOfSquares

Codebook = Literal["plain", "tilted"]

ARC = 40             # directions between two classes
NUMBERS = 2**16      # to sample: vectors times classes
NEGLIGIBLE = 0.01    # of eps: how often, at most, components that codewords leave out may alone exceed the distortion


def gaussian_codebook(spectrum: Spectrum, distortion: float, eps: float, codebook: Codebook = "tilted") -> float:
    """Bits per sample of a random Gaussian code; infinite where the bound says nothing, which only plain ones do.

    >>> one_variance = Spectrum.of(1.0, 100)
    >>> round(gaussian_codebook(one_variance, 0.25, 0.01, "plain"), 4)
    1.2978
    """
    if codebook not in ("plain", "tilted"):
        raise WorkbenchError(f'codebook must be "plain" or "tilted"; got {codebook!r}')
    require_excess(eps)
    return gaussian_rate(Classes.of(spectrum, distortion), eps, codebook)


def gaussian_rate(source: Classes, eps: float, codebook: Codebook = "tilted") -> float:
    """The same, of a source whose classes are known."""
    if _left_out(source, source.variances > 0) <= eps:
        return 0.0   # one codeword, the mean, is enough
    code = random_code(source, plain(source) if codebook == "plain" else tilted(source, eps), eps)
    return source.bits(np.inf if code is None else code.log_codewords(eps))


def plain(source: Classes) -> np.ndarray:
    """The variances of codewords for the source as it is, class by class."""
    return np.maximum(source.variances - source.spectrum.level(source.distortion), 0.0)


def tilted(source: Classes, eps: float) -> np.ndarray:
    """The variances of codewords for the source as it looks when it is about to fail, class by class.

    The water level is lowered until components below it hardly ever exceed the distortion by themselves.
    """
    level = min(source.spectrum.level(source.distortion), float(source.variances[-1]))
    slopes = 0.5 * np.minimum(1 / source.variances, 1 / level)   # of the information density
    failing = Spectrum(source.variances * _gains(source, slopes, eps), source.counts)
    level = min(failing.level(source.distortion), float(failing.values[-1]))
    while _left_out(source, failing.values <= level) > NEGLIGIBLE * eps:
        level *= 0.7
    return np.maximum(failing.values - level, 0.0)


def _left_out(source: Classes, silent: np.ndarray) -> float:
    """The probability that classes of which codewords say nothing exceed the squared distance by themselves."""
    if not silent.any():
        return 0.0
    return float(np.exp(SumOfSquares(source.variances[silent], source.counts[silent]).log_above(source.room)))


def _gains(source: Classes, slopes: np.ndarray, eps: float) -> np.ndarray:
    """By how much variances grow, where energies times these slopes sum to what only eps exceeds.

    The exponential tilt whose divergence from the source is that of a Gaussian number at its eps-quantile: the first term
    of the tail's expansion, which is near enough for a choice that only has to be good.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtri

    weights = slopes * source.variances
    weights = weights / weights.max()
    enough = float(ndtri(eps)) ** 2

    def divergence(tilt: float) -> float:
        free = 1 - tilt * weights
        return float(source.counts @ (np.log(free) + tilt * weights / free)) - enough

    tilt = float(brentq(divergence, 0.0, 1 - 1e-15, xtol=1e-15)) if enough > 1e-12 else 0.0
    return np.asarray(1 / (1 - tilt * weights))


def random_code(source: Classes, codewords: np.ndarray, eps: float) -> RandomCode | None:
    """The random code with codewords of these variances; None when what they leave out fails too often, or nearly so."""
    missed = _left_out(source, codewords == 0)
    if missed > NEGLIGIBLE * eps:
        return None
    polar = _Polar.about_to_fail(source, Ball(codewords, source.counts, source.room), eps)
    if polar is None:
        return None
    return polar.integrated(eps) if source.variances.size <= 2 else polar.sampled(missed)


@dataclass(frozen=True, eq=False)
class _Polar:
    """The energies of a source vector as a length and a direction, scaled so that failing ones are of typical length.

    energies = variances * gains * length^2 * direction, where the shares in `direction` sum to 1.
    """

    source: Classes
    ball: Ball
    slopes: np.ndarray   # how ln p falls with each energy
    gains: np.ndarray

    @classmethod
    def about_to_fail(cls, source: Classes, ball: Ball, eps: float) -> _Polar | None:
        """Scaled to where this code fails; a fixed point, as how ln p falls depends on where one is. None if nowhere."""
        gains = np.ones(source.variances.size)
        slopes = np.ones(gains.size)
        for _ in range(6):
            energies = source.counts * source.variances * gains
            if energies[ball.variances == 0].sum() >= ball.room:
                return None
            slopes = ball.slopes(energies)
            gains, before = _gains(source, slopes, eps), gains
            if np.allclose(gains, before, rtol=1e-6):
                break
        return cls(source, ball, slopes, gains)

    def _energies(self, lengths: np.ndarray, directions: np.ndarray) -> np.ndarray:
        return np.asarray((lengths**2)[:, None] * directions * (self.source.variances * self.gains))

    def _log_ratio(self, energies: np.ndarray) -> np.ndarray:
        """The logarithm of the density of the source over that of the scaled one."""
        loss = 0.5 * (1 - 1 / self.gains) / self.source.variances
        return np.asarray(0.5 * self.source.counts @ np.log(self.gains) - energies @ loss)

    def integrated(self, eps: float) -> RandomCode:
        """By quadrature: for two classes over the arc of directions, and in each direction over the length."""
        directions, weights = self._arc(eps)
        steepness = directions @ (self.source.variances * self.gains * self.slopes)
        typical = self.source.counts @ (self.source.variances * self.gains * self.slopes) / self.source.size
        fronts = np.sqrt(self.source.size * typical / steepness)
        low, high = farthest(self.source.size, eps)
        lows = np.full(fronts.size, low / np.sqrt(self.gains.max()))
        highs = np.full(fronts.size, high / np.sqrt(self.gains.min()))
        nodes, widths = around(np.clip(fronts, lows, highs), 1 / (2 * fronts * steepness), lows, highs)
        used = widths > 0
        lengths = nodes[used]
        energies = self._energies(lengths, directions[np.nonzero(used)[0]])
        density = np.exp(log_chi(lengths, self.source.size) + self._log_ratio(energies))
        shares = density * (weights[:, None] * widths)[used]
        return RandomCode(self.ball.log_hit(energies), shares, missed=1e-8 * eps)   # what lies outside, and more

    def _arc(self, eps: float) -> tuple[np.ndarray, np.ndarray]:
        """Directions and their probabilities: of two classes, Gauss and Legendre's on the arc between them."""
        from scipy.special import betainccinv, betaincinv, betaln

        counts = self.source.counts
        if counts.size == 1:
            return np.ones((1, 1)), np.ones(1)
        half = 0.5 * counts
        low, high = np.arcsin(np.sqrt([betaincinv(*half, 1e-8 * eps), betainccinv(*half, 1e-8 * eps)]))
        place, weight = gauss(ARC)
        angle = 0.5 * (low + high) + 0.5 * (high - low) * place
        sides = np.stack([np.sin(angle), np.cos(angle)], axis=1)
        log_density = np.log(sides) @ (counts - 1) + np.log(2) - betaln(*half)
        return sides**2, 0.5 * (high - low) * weight * np.exp(log_density)

    def sampled(self, missed: float) -> RandomCode:
        """By sampling from the scaled source, one vector from each layer of the length; the same vectors each time."""
        from scipy.special import gammaincinv

        number = int(np.clip(NUMBERS // self.gains.size, 1024, 8192))
        random = np.random.Generator(np.random.PCG64(20))
        shares = random.standard_gamma(0.5 * self.source.counts, (number, self.gains.size))
        layers = (np.arange(number) + random.random(number)) / number
        lengths = np.sqrt(2 * gammaincinv(0.5 * self.source.size, layers))
        energies = self._energies(lengths, shares / shares.sum(axis=1, keepdims=True))
        weights = np.exp(self._log_ratio(energies)) / number
        return RandomCode(self.ball.log_hit(energies), weights, missed=missed, sampled=True)
