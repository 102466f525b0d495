"""Spectra compared and changed quantile by quantile.

What holes, or couplings that a basis leaves out, do to a spectrum can be computed on a small piece only. The change is
carried over to the large field by quantiles: the largest percent of its variances changes as the largest percent of the
piece's does. Variances stay positive, and the mean change of their logarithms is conserved.
"""

from __future__ import annotations

import numpy as np

from workbench.limits.spectrum import Spectrum

PARTS = 512   # quantile classes of a comparison
MOST_STRETCHED = 2.0   # power of the values that restores their sum
ACCURACY = 1e-10       # of that power
TINY = 1e-300          # of the mean: a smaller value counts as this


def log_ratios(changed: Spectrum, plain: Spectrum, parts: int = PARTS) -> np.ndarray:
    """The mean logarithm of the variances in each quantile class, ascending, minus that of another spectrum.

    >>> two, one = Spectrum.of([1.0, 2.0]), Spectrum.of([1.0, 1.0])
    >>> log_ratios(two, one, parts=4).round(3).tolist()
    [0.0, 0.0, 0.693, 0.693]
    """
    return _logs(changed, parts) - _logs(plain, parts)


def moved(spectrum: Spectrum, ratios: np.ndarray) -> Spectrum:
    """The spectrum with the logarithms of its variances changed by the mean ratio of their quantiles; the sum is conserved.

    Afterwards all logarithms are stretched about their mean by the little that restores the sum: a common factor would
    restore it, too, but change the rate at fine distortions, which is given by the mean of the logarithms.

    >>> moved(Spectrum.of([1.0, 4.0]), np.array([np.log(1.5), 0.0])).values.round(6).tolist()   # 1.5 * 4 = 6, 1 + 4 = 5
    [2.0, 3.0]
    """
    ends = np.concatenate([[0.0], np.cumsum(spectrum.counts)]) / spectrum.size
    sums = np.concatenate([[0.0], np.cumsum(ratios)]) / len(ratios)
    gained = np.diff(np.interp(ends, np.linspace(0, 1, len(ratios) + 1), sums)) / np.maximum(np.diff(ends), 1e-300)
    values = _stretched(spectrum.values * np.exp(gained), spectrum.counts / spectrum.size, spectrum.variance)
    order = np.argsort(values, kind="stable")
    return Spectrum(values[order], spectrum.counts[order], spectrum.slack)


def with_mean_log(spectrum: Spectrum, mean: float) -> Spectrum:
    """The spectrum with this mean of the logarithms of its variances, and the same sum.

    >>> with_mean_log(Spectrum.of([1.0, 4.0]), 0.5 * np.log(6)).values.round(6).tolist()
    [2.0, 3.0]
    """
    return moved(spectrum, np.full(1, mean - float(np.log(spectrum.values) @ spectrum.counts) / spectrum.size))


def _stretched(values: np.ndarray, shares: np.ndarray, mean: float) -> np.ndarray:
    """The values with this mean, by a power of them that leaves their geometric mean, or by a factor if there is none."""
    total = float(values @ shares)
    if not total > 0:
        return values
    logs = np.log(np.maximum(values, TINY * total))
    centre, top = float(logs @ shares), float(logs.max())
    power, step = 1.0, np.inf
    while centre < np.log(mean) and abs(step) > ACCURACY:   # Newton: the logarithm of the mean is convex in the power
        weights = shares * np.exp(power * (logs - top))
        sum_of_weights = float(weights.sum())
        missing = np.log(mean / sum_of_weights) - centre - power * (top - centre)
        step = missing * sum_of_weights / max(float(weights @ (logs - centre)), TINY)
        power += step
        if not 0 < power < MOST_STRETCHED:
            return values * (mean / total)
    return np.exp(centre + power * (logs - centre)) if np.isfinite(step) else values * (mean / total)


def _logs(spectrum: Spectrum, parts: int) -> np.ndarray:
    least = max(1e-16 * float(spectrum.values[-1]), float(np.finfo(np.float64).tiny))
    logs = np.log(np.maximum(spectrum.values, least))
    ends = np.concatenate([[0.0], np.cumsum(spectrum.counts)]) / spectrum.size
    sums = np.concatenate([[0.0], np.cumsum(logs * spectrum.counts)]) / spectrum.size
    return np.asarray(parts * np.diff(np.interp(np.linspace(0, 1, parts + 1), ends, sums)))
