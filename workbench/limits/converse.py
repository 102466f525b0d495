"""What no code can do: the least rate at which a field of finite length is kept within a distortion, nearly always.

A code of M words keeps the mean square error within d, except with probability eps: M balls of radius sqrt(n d) hold
all but eps of the probability. Measure them by something other than that probability. A set so probable has at least
the measure of the smallest such set (Neyman and Pearson say which it is), a ball at most that of the one at the centre
(Anderson), and M is at least the ratio (Kostina and Verdu 2012, theorem 8).

The measures used here are volume in the components above the water level, and in one at u times the level, u < 1, a
Gaussian function that is so narrow that the smallest set gives it the weight w = 1 - s (1 - u). With s = 0 that is
plain volume, best for short fields, rare failures and fine distortions; with s = 1 it is what the d-tilted information
stands for, best for long fields. Every s is a bound, for any spectrum and at any distortion. Beyond the variance there
is no water level; the largest component takes its place, since a field that rarely exceeds its variance may still need
a word for when it does.

Rates are bits per sample, never below 0. Components of variance zero are known beforehand, and only count as samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from workbench.errors import WorkbenchError
from workbench.limits.spectrum import LOG2E, Spectrum, require_distortion, require_excess
from workbench.limits.tails import SumOfSquares

WEAK_CLASSES = 256   # different weak components, at most: more change no bound by 1e-6 bit
NEARLY = 1e-9        # so near the level, components count as strong, and so near 0, s as 0: a bound all the same


def converse(spectrum: Spectrum, distortion: float, eps: float) -> float:
    """The best lower bound known here: bits per sample for P[mean square error > distortion] <= eps, at any block length.

    >>> white = Spectrum.of(1.0, 100)
    >>> round(white.rate(0.25), 6), round(converse(white, 0.25, 0.01), 6)
    (1.0, 1.220777)
    """
    plain = volume(spectrum, distortion, eps)
    if spectrum.variance == 0:
        return plain
    filled = _Filled.of(spectrum, distortion)
    if not filled.weak.size:
        return plain
    best = _highest(lambda s: filled.nats(s, eps), 0.0, 1.0, tolerance=0.02)
    return max(plain, filled.bits_per_sample(max(best, filled.nats(1.0, eps))))   # the search stops short of its ends


def volume(spectrum: Spectrum, distortion: float, eps: float) -> float:
    """The bound by volume alone: an ellipsoid that holds 1 - eps of the probability, in units of the ball.

    Exact for one component, apart from the whole number of words; for equal variances no better bound is known here.
    The ellipsoid and the ball are in the space of the components that vary, but the ball's radius is what all samples
    are allowed.

    >>> round(2 ** volume(Spectrum.of(1.0), 0.01, 0.05), 4)   # how many intervals of length 0.2 hold 95%
    19.5996
    """
    require_distortion(distortion)
    require_excess(eps)
    varying = spectrum.values > 0
    number = float(spectrum.counts[varying].sum())
    if number == 0:
        return 0.0
    logs = float(np.log(spectrum.values[varying] / distortion) @ spectrum.counts[varying])
    nats = 0.5 * (logs + number * np.log(chi_square_exceeded(number, eps) / spectrum.size))
    return max(0.0, float(nats) * LOG2E / spectrum.size)


def family(spectrum: Spectrum, distortion: float, eps: float, s: float) -> float:
    """One of the bounds between volume (s = 0) and d-tilted information (s = 1); without weak components all are the same.

    >>> mixed = Spectrum.of([4.0, 0.5], [50, 50])
    >>> [round(family(mixed, 0.75, 0.01, s), 4) for s in (0, 0.25, 1)]
    [0.6783, 0.6822, 0.6698]
    """
    require_distortion(distortion)
    require_excess(eps)
    if not 0 <= s <= 1:
        raise WorkbenchError(f"s must lie in [0, 1], from plain volume to d-tilted information; got {s!r}")
    if s < NEARLY or spectrum.variance == 0 or not (filled := _Filled.of(spectrum, distortion)).weak.size:
        return volume(spectrum, distortion, eps)
    return filled.bits_per_sample(filled.nats(s, eps))


def d_tilted(spectrum: Spectrum, distortion: float, eps: float) -> float:
    """The bound by the d-tilted information j of a field, exactly distributed: ln M >= j(p) - g, with p = eps + exp(-g).

    j(p) is what j exceeds with probability p, and g is the best there is (Kostina and Verdu's theorem 7). The measure
    of a ball is taken to be 1, more than it is, so this is never above `family` with s = 1. It is here to be compared
    with: j is the quantity whose variance is the dispersion.

    >>> round(d_tilted(Spectrum.of(1.0, 100), 0.25, 0.01), 6)
    1.162622
    """
    require_distortion(distortion)
    require_excess(eps)
    if spectrum.variance == 0:
        return 0.0
    filled = _Filled.of(spectrum, distortion)
    squares = SumOfSquares(0.5 * filled.weights(1.0), filled.freedom)
    spread = float(np.sqrt(squares.variance))
    last = squares.quantile(float(np.log(eps)))
    first = max(0.0, squares.mean - 6 * spread)   # before this, P[j] is 1 and what is gained grows with the threshold

    def gained(threshold: float) -> float:
        spare = float(np.exp(squares.log_above(threshold))) - eps   # what exp(-g) may be
        return threshold + float(np.log(max(spare, 1e-300)))

    best = _highest(gained, first, last, tolerance=1e-5 * spread)
    return filled.bits_per_sample(filled.strong_nats - 0.5 * filled.allowed + best)


@dataclass(frozen=True, eq=False)
class _Filled:
    """A spectrum parted by its water level, which is the unit: how many are strong, and which are weak, a few at a time."""

    size: float           # how many samples there are
    allowed: float        # the squared error of all of them
    strong: float         # how many components are as high as the level, but for rounding, or higher
    strong_nats: float    # the rate of all of them
    weak: np.ndarray      # variances of the others, below 1; nearly equal ones made equal
    number: np.ndarray    # how many there are of each

    @classmethod
    def of(cls, spectrum: Spectrum, distortion: float) -> _Filled:
        """Parted at this distortion; when it is the variance or more, at the largest component."""
        level = min(spectrum.level(distortion), float(spectrum.values[-1]))
        heights = spectrum.values / level
        first = int(np.searchsorted(heights, 1 - NEARLY))
        dry = int(np.searchsorted(heights, 0.0, side="right"))
        logs = float(np.log(heights[first:]) @ spectrum.counts[first:])
        weak, number = _few(heights[dry:first], spectrum.counts[dry:first])
        allowed, strong = distortion / level * spectrum.size, float(spectrum.counts[first:].sum())
        return cls(spectrum.size, allowed, strong, 0.5 * logs, weak, number)

    @property
    def freedom(self) -> np.ndarray:
        """How many components each of the weights is for."""
        return np.append(self.number, self.strong)

    def weights(self, s: float) -> np.ndarray:
        """What a squared component, in its own variance, counts in the smallest set: a strong one 1, a weak one less."""
        return np.append(1 - s * (1 - self.weak), 1.0)

    def nats(self, s: float, eps: float) -> float:
        """The bound for the whole field: ln of the measure of the set that holds 1 - eps, less that of the ball."""
        end = SumOfSquares(self.weights(s), self.freedom).quantile(float(np.log(eps)))
        narrow = s * (1 - self.weak)   # in the measure, a weak component has its own variance over this
        half = 0.5 * self.strong       # what a sum of the strong squares leaves is the measure, to this power
        smallest_set = SumOfSquares((1 - narrow) / narrow, self.number).log_power(end, half)
        ball = SumOfSquares(self.weak / narrow, self.number).log_power(self.allowed, half)
        return self.strong_nats + smallest_set - ball

    def bits_per_sample(self, nats: float) -> float:
        """Of the whole field; a negative bound is one that says nothing."""
        return max(0.0, float(nats) * LOG2E / self.size)


def _few(weak: np.ndarray, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Classes of equal width in the standard deviation, each of which keeps its number and its mean variance.

    A weak component counts by its variance over the level. So, unlike classes of equal width in the logarithm, these lose
    nothing where the components are many and strong, and spend little on those that hardly count.
    """
    if weak.size <= WEAK_CLASSES:
        return weak, number
    place = (np.sqrt(weak) * WEAK_CLASSES).astype(np.int64)
    counts = np.bincount(place, number, WEAK_CLASSES)
    sums = np.bincount(place, number * weak, WEAK_CLASSES)
    used = counts > 0
    return sums[used] / counts[used], counts[used]


def chi_square_exceeded(freedom: float, eps: float) -> float:
    """What a sum of so many squares of standard Gaussian numbers exceeds with probability eps."""
    from scipy.special import gammainccinv

    return 2 * float(gammainccinv(0.5 * freedom, eps))


def _highest(bound: Callable[[float], float], first: float, last: float, tolerance: float) -> float:
    """The highest value of a function with one peak, found to this distance from the peak."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(lambda x: -bound(x), bounds=(first, last), method="bounded", options={"xatol": tolerance})
    return -float(found.fun)
