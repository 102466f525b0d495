"""Converse bounds: lower bounds on the rate of any fixed-length code for a field of finite length.

A code of M words keeps the mean square error within d, except with probability eps, so M balls of radius sqrt(n d) hold
probability 1 - eps. Choose another measure. A set of probability 1 - eps has at least the measure of the smallest such
set, which the Neyman-Pearson lemma gives. A ball has at most the measure of the ball at the centre (Anderson's
inequality). M is at least the ratio of the two measures (Kostina and Verdu 2012, theorem 8).

The measures used here are volume in the components above the water level, and a Gaussian function in a component at u
times the level, u < 1. Its width is chosen so that the component has the weight w = 1 - s (1 - u) in the smallest set.
s = 0 is plain volume, best for short fields, rare failures and fine distortions; s = 1 corresponds to the d-tilted
information, best for long fields. Every s gives a bound, for any spectrum and distortion. Above the variance there is no
water level and the largest component replaces it: a field that rarely exceeds its variance may still need a codeword
for these cases.

Rates are bits per sample, never below 0. Components of variance zero are known in advance and only count as samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from workbench.errors import WorkbenchError
from workbench.limits.spectrum import LOG2E, Spectrum, require_distortion, require_excess
from workbench.limits.tails import SumOfSquares

WEAK_CLASSES = 256   # of weak components, at most: more change no bound by 1e-6 bit
NEARLY = 1e-9        # tolerance for components at the level, and for s = 0: the result is still a bound


def converse(spectrum: Spectrum, distortion: float, eps: float) -> float:
    """The best of the lower bounds: bits per sample for P[mean square error > distortion] <= eps, at any block length.

    Where the variances are estimates, the bound is lowered by the `slack` of the spectrum.

    >>> white = Spectrum.of(1.0, 100)
    >>> round(white.rate(0.25), 6), round(converse(white, 0.25, 0.01), 6)
    (1.0, 1.220777)
    """
    return max(0.0, _best(spectrum, distortion, eps) - spectrum.slack)


def _best(spectrum: Spectrum, distortion: float, eps: float) -> float:
    plain = volume(spectrum, distortion, eps)
    if spectrum.variance == 0:
        return plain
    filled = _Filled.of(spectrum, distortion)
    if not filled.weak.size:
        return plain
    best = _highest(lambda s: filled.nats(s, eps), 0.0, 1.0, tolerance=0.02)
    return max(plain, filled.bits_per_sample(max(best, filled.nats(1.0, eps))))   # the search does not evaluate its ends


def volume(spectrum: Spectrum, distortion: float, eps: float) -> float:
    """The volume bound: the volume of the ellipsoid of probability 1 - eps over the volume of the ball.

    Exact for one component, except that the number of words is an integer; for equal variances it is the best bound here.
    Ellipsoid and ball lie in the space of the components that vary, but the radius of the ball is the error allowed to
    all samples.

    >>> round(2 ** volume(Spectrum.of(1.0), 0.01, 0.05), 4)   # how many intervals of length 0.2 hold 95%
    19.5996
    """
    distortion = require_distortion(distortion)
    require_excess(eps)
    varying = spectrum.values > 0
    number = float(spectrum.counts[varying].sum())
    if number == 0:
        return 0.0
    logs = float(np.log(spectrum.values[varying] / distortion) @ spectrum.counts[varying])
    nats = 0.5 * (logs + number * np.log(chi_square_exceeded(number, eps) / spectrum.size))
    return max(0.0, float(nats) * LOG2E / spectrum.size)


def family(spectrum: Spectrum, distortion: float, eps: float, s: float) -> float:
    """One of the bounds between volume (s = 0) and d-tilted information (s = 1), all equal without weak components.

    >>> mixed = Spectrum.of([4.0, 0.5], [50, 50])
    >>> [round(family(mixed, 0.75, 0.01, s), 4) for s in (0, 0.25, 1)]
    [0.6783, 0.6822, 0.6698]
    """
    distortion = require_distortion(distortion)
    require_excess(eps)
    if not 0 <= s <= 1:
        raise WorkbenchError(f"s must lie in [0, 1], from plain volume to d-tilted information; got {s!r}")
    if s < NEARLY or spectrum.variance == 0 or not (filled := _Filled.of(spectrum, distortion)).weak.size:
        return volume(spectrum, distortion, eps)
    return filled.bits_per_sample(filled.nats(s, eps))


def d_tilted(spectrum: Spectrum, distortion: float, eps: float) -> float:
    """The bound from the exact distribution of the d-tilted information j: ln M >= j(p) - g, with p = eps + exp(-g).

    j(p) is the value that j exceeds with probability p, and g is optimised (Kostina and Verdu 2012, theorem 7). The
    measure of a ball is bounded by 1, so the result is never above `family` with s = 1. It serves for comparison: the
    dispersion is the variance of j.

    >>> round(d_tilted(Spectrum.of(1.0, 100), 0.25, 0.01), 6)
    1.162622
    """
    distortion = require_distortion(distortion)
    require_excess(eps)
    if spectrum.variance == 0:
        return 0.0
    filled = _Filled.of(spectrum, distortion)
    squares = SumOfSquares(0.5 * filled.weights(1.0), filled.freedom)
    spread = float(np.sqrt(squares.variance))
    last = squares.quantile(float(np.log(eps)))
    first = max(0.0, squares.mean - 6 * spread)   # below this, P[j] is 1 and the bound grows with the threshold

    def gained(threshold: float) -> float:
        spare = float(np.exp(squares.log_above(threshold))) - eps   # the largest exp(-g)
        return threshold + float(np.log(max(spare, 1e-300)))

    best = _highest(gained, first, last, tolerance=1e-5 * spread)
    return filled.bits_per_sample(filled.strong_nats - 0.5 * filled.allowed + best)


@dataclass(frozen=True, eq=False)
class _Filled:
    """A spectrum in units of its water level, split into strong components and classes of weak ones."""

    size: float           # number of samples
    allowed: float        # squared error of all samples together
    strong: float         # number of components at the level (within rounding) or above
    strong_nats: float    # their total rate
    weak: np.ndarray      # variances of the others, below 1; nearly equal ones are merged
    number: np.ndarray    # number of components in each weak class

    @classmethod
    def of(cls, spectrum: Spectrum, distortion: float) -> _Filled:
        """The split at this distortion; at the variance and above it, at the largest component."""
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
        """The number of components of each weight."""
        return np.append(self.number, self.strong)

    def weights(self, s: float) -> np.ndarray:
        """The weight of a normalised squared component in the smallest set: 1 for strong components, less for weak ones."""
        return np.append(1 - s * (1 - self.weak), 1.0)

    def nats(self, s: float, eps: float) -> float:
        """The bound for the whole field: ln of the measure of the set of probability 1 - eps, minus that of the ball."""
        end = SumOfSquares(self.weights(s), self.freedom).quantile(float(np.log(eps)))
        narrow = s * (1 - self.weak)   # a weak component's variance in the measure is its own divided by this
        half = 0.5 * self.strong       # the measure is the remaining squared radius to this power
        smallest_set = SumOfSquares((1 - narrow) / narrow, self.number).log_power(end, half)
        ball = SumOfSquares(self.weak / narrow, self.number).log_power(self.allowed, half)
        return self.strong_nats + smallest_set - ball

    def bits_per_sample(self, nats: float) -> float:
        """The bound for the whole field per sample; a negative bound is trivial and becomes 0."""
        return max(0.0, float(nats) * LOG2E / self.size)


def _few(weak: np.ndarray, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merge weak components into classes of equal width in the standard deviation, with their number and mean variance.

    The contribution of a weak component is its variance over the level. Compared with logarithmic classes, these resolve
    the many components near the level and spend few classes on negligible ones.
    """
    if weak.size <= WEAK_CLASSES:
        return weak, number
    place = (np.sqrt(weak) * WEAK_CLASSES).astype(np.int64)
    counts = np.bincount(place, number, WEAK_CLASSES)
    sums = np.bincount(place, number * weak, WEAK_CLASSES)
    used = counts > 0
    return sums[used] / counts[used], counts[used]


def chi_square_exceeded(freedom: float, eps: float) -> float:
    """The value that a chi-squared variable exceeds with probability eps."""
    from scipy.special import gammainccinv

    return 2 * float(gammainccinv(0.5 * freedom, eps))


def _highest(bound: Callable[[float], float], first: float, last: float, tolerance: float) -> float:
    """The maximum of a unimodal function; `tolerance` is the error of its position."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(lambda x: -bound(x), bounds=(first, last), method="bounded", options={"xatol": tolerance})
    return -float(found.fun)
