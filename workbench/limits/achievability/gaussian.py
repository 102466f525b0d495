"""Random Gaussian codewords: achievability for components of any variances.

The codeword distribution of rate-distortion theory has variance lambda - theta on each component above the water level
theta, and leaves out the others (`codebook="plain"`). But the rate is determined by the source vectors at the eps-quantile,
not by typical ones. So the codewords are designed for the source tilted exponentially along the information density, until
its mean lies at this quantile (`codebook="tilted"`). Any distribution of codewords proves that a code exists; this one
proves a shorter code, except for eps near 1/2.

The result depends on a source vector through its energy in each class of equal variances: in polar coordinates, a length
and a direction among the classes. One class has one direction and two classes have an arc of directions, so the
expectation is computed by quadrature. For more classes it is estimated by importance sampling around the vectors at the
eps-quantile, stratified in length. Four standard errors are added, so a larger sampling error is unlikely.
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

ARC = 40             # quadrature nodes for the direction of two classes
NUMBERS = 2**16      # of a sample: vectors times classes
NEGLIGIBLE = 0.01    # of eps: largest probability that the components left out exceed the distortion by themselves
LOWER = 0.7          # factor by which the water level is lowered until the components left out are negligible
NEXT = 0.5           # ratio of a water level to the one that is tried before
LITTLE = 0.05        # nats of all codewords: a lower level that saves less is not followed by others
MANY = 4096          # components: with more, no lower level saves a thousandth of a bit


def gaussian_codebook(spectrum: Spectrum, distortion: float, eps: float, codebook: Codebook = "tilted") -> float:
    """Bits per sample of a random Gaussian code; infinite where the bound is void, which only "plain" can be.

    >>> one_variance = Spectrum.of(1.0, 100)
    >>> round(gaussian_codebook(one_variance, 0.25, 0.01, "plain"), 4)
    1.2978
    """
    if codebook not in ("plain", "tilted"):
        raise WorkbenchError(f'codebook must be "plain" or "tilted"; got {codebook!r}')
    require_excess(eps)
    return gaussian_rate(Classes.of(spectrum, distortion), eps, codebook)


def gaussian_rate(source: Classes, eps: float, codebook: Codebook = "tilted") -> float:
    """The same for a source given by its classes."""
    if _left_out(source, source.variances > 0) <= eps:
        return 0.0   # one codeword, the mean, is enough
    if codebook == "plain":
        return source.bits(_log_codewords(source, plain(source), eps))
    failing, level = tilted(source, eps)
    return source.bits(_at_best_level(source, failing, level, eps))


def _log_codewords(source: Classes, codewords: np.ndarray, eps: float) -> float:
    """The logarithm of the number of random codewords of these variances, by class; infinite if the bound is void."""
    code = random_code(source, codewords, eps)
    return np.inf if code is None else code.log_codewords(eps)


def _at_best_level(source: Classes, failing: np.ndarray, highest: float, eps: float) -> float:
    """The same for the tilted source, at the best of the levels below one, which are tried while they are better.

    The level of water-filling is best for many components. Of a few components, those just above it fail by chance, far
    above their variance, and codewords that hardly vary there almost never come near: this may cost ten nats.
    """
    best, level = _log_codewords(source, np.maximum(failing - highest, 0.0), eps), highest
    while source.size < MANY:
        level *= NEXT
        tried = _log_codewords(source, np.maximum(failing - level, 0.0), eps)
        if tried > best - LITTLE:
            return min(best, tried)
        best = tried
    return best


def plain(source: Classes) -> np.ndarray:
    """The variances of codewords for the source itself, by class."""
    return np.maximum(source.variances - source.spectrum.level(source.distortion), 0.0)


def tilted(source: Classes, eps: float) -> tuple[np.ndarray, float]:
    """The variances of the source tilted to its eps-quantile, by class, and the water level of its codewords.

    The level is lowered until components below it exceed the distortion by themselves with negligible probability.
    """
    level = min(source.spectrum.level(source.distortion), float(source.variances[-1]))
    slopes = 0.5 * np.minimum(1 / source.variances, 1 / level)   # of the information density
    failing = Spectrum(source.variances * _gains(source, slopes, eps), source.counts)
    level = min(failing.level(source.distortion), float(failing.values[-1]))
    while _left_out(source, failing.values <= level) > NEGLIGIBLE * eps:
        level *= LOWER
    return failing.values, level


def _left_out(source: Classes, silent: np.ndarray) -> float:
    """The probability that the classes left out by the codewords exceed the squared distance by themselves."""
    if not silent.any():
        return 0.0
    return float(np.exp(SumOfSquares(source.variances[silent], source.counts[silent]).log_above(source.room)))


def _gains(source: Classes, slopes: np.ndarray, eps: float) -> np.ndarray:
    """The factors by which tilting to the eps-quantile of the sum of slopes times energies scales the variances.

    The divergence of the tilted source from the source equals that of a Gaussian variable shifted to its eps-quantile. This
    is the first term of the tail expansion; the choice of the codebook needs no more accuracy.
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
    """The random code with codewords of these variances; None if the classes left out fail too often, or nearly so."""
    missed = _left_out(source, codewords == 0)
    if missed > NEGLIGIBLE * eps:
        return None
    polar = _Polar.about_to_fail(source, Ball(codewords, source.counts, source.room), eps)
    if polar is None:
        return None
    return polar.integrated(eps) if source.variances.size <= 2 else polar.sampled(missed)


@dataclass(frozen=True, eq=False)
class _Polar:
    """The energies of a source vector as a length and a direction, scaled so that vectors that fail have typical length.

    energies = variances * gains * length^2 * direction, where the shares in `direction` sum to 1.
    """

    source: Classes
    ball: Ball
    slopes: np.ndarray   # minus the derivative of ln p by each energy
    gains: np.ndarray

    @classmethod
    def about_to_fail(cls, source: Classes, ball: Ball, eps: float) -> _Polar | None:
        """The scaling to the vectors where this code fails, by fixed-point iteration of slopes and gains, or None."""
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
        """The logarithm of the density of the source over the density of the scaled source."""
        loss = 0.5 * (1 - 1 / self.gains) / self.source.variances
        return np.asarray(0.5 * self.source.counts @ np.log(self.gains) - energies @ loss)

    def integrated(self, eps: float) -> RandomCode:
        """The random code by quadrature over the directions (an arc for two classes) and over the length."""
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
        return RandomCode(self.ball.log_hit(energies), shares, missed=1e-8 * eps)   # an upper bound for the rest

    def _arc(self, eps: float) -> tuple[np.ndarray, np.ndarray]:
        """Directions and their probabilities; for two classes, by Gauss-Legendre quadrature on the arc between them."""
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
        """The random code by sampling the scaled source, stratified in length, with a fixed seed."""
        from scipy.special import gammaincinv

        number = int(np.clip(NUMBERS // self.gains.size, 1024, 8192))
        random = np.random.Generator(np.random.PCG64(20))
        shares = random.standard_gamma(0.5 * self.source.counts, (number, self.gains.size))
        layers = (np.arange(number) + random.random(number)) / number
        lengths = np.sqrt(2 * gammaincinv(0.5 * self.source.size, layers))
        energies = self._energies(lengths, shares / shares.sum(axis=1, keepdims=True))
        weights = np.exp(self._log_ratio(energies)) / number
        return RandomCode(self.ball.log_hit(energies), weights, missed=missed, sampled=True)
