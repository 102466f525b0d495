"""Spectra compared and changed quantile by quantile.

What holes, or couplings that a basis leaves out, do to a spectrum can be computed on a small piece only. The change is
carried over to the large field by quantiles: the largest percent of its variances changes as the largest percent of the
piece's does. Variances stay positive, and the mean change of their logarithms is conserved.
"""

from __future__ import annotations

import numpy as np

from workbench.limits.spectrum import Spectrum

PARTS = 512   # quantile classes of a comparison


def log_ratios(changed: Spectrum, plain: Spectrum, parts: int = PARTS) -> np.ndarray:
    """The mean logarithm of the variances in each quantile class, ascending, minus that of another spectrum.

    >>> two, one = Spectrum.of([1.0, 2.0]), Spectrum.of([1.0, 1.0])
    >>> log_ratios(two, one, parts=4).round(3).tolist()
    [0.0, 0.0, 0.693, 0.693]
    """
    return _logs(changed, parts) - _logs(plain, parts)


def moved(spectrum: Spectrum, ratios: np.ndarray) -> Spectrum:
    """The spectrum with the logarithms of its variances changed by the mean ratio of their quantiles; the sum is conserved.

    >>> moved(Spectrum.of([1.0, 2.0]), np.array([0.0, np.log(2.5)])).values.round(6).tolist()
    [0.5, 2.5]
    """
    ends = np.concatenate([[0.0], np.cumsum(spectrum.counts)]) / spectrum.size
    sums = np.concatenate([[0.0], np.cumsum(ratios)]) / len(ratios)
    gained = np.diff(np.interp(ends, np.linspace(0, 1, len(ratios) + 1), sums)) / np.maximum(np.diff(ends), 1e-300)
    values = spectrum.values * np.exp(gained)
    total = float(values @ spectrum.counts)
    kept = spectrum.variance * spectrum.size / total if total > 0 else 1.0
    order = np.argsort(values, kind="stable")
    return Spectrum(values[order] * kept, spectrum.counts[order], spectrum.slack)


def _logs(spectrum: Spectrum, parts: int) -> np.ndarray:
    least = max(1e-16 * float(spectrum.values[-1]), float(np.finfo(np.float64).tiny))
    logs = np.log(np.maximum(spectrum.values, least))
    ends = np.concatenate([[0.0], np.cumsum(spectrum.counts)]) / spectrum.size
    sums = np.concatenate([[0.0], np.cumsum(logs * spectrum.counts)]) / spectrum.size
    return np.asarray(parts * np.diff(np.interp(np.linspace(0, 1, parts + 1), ends, sums)))
