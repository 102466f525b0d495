"""What codes for a finite field need, nearly: the rate of an infinite one, corrected by the dispersion.

The information in a field of n samples is the sum of many small parts, so it is nearly normal, with n times the rate as its
mean and n times the dispersion as its variance. A code of fixed length has to hold all but a share eps of the fields, which
costs some 1/sqrt(n) bits per sample; one of variable length may ignore that share, the costliest, and needs less than the
rate. Both are off by about (log2 n)/n, to either side: they are estimates, and no bounds.
"""

from __future__ import annotations

import numpy as np

from workbench.limits.spectrum import Spectrum, require_excess


def normal(spectrum: Spectrum, distortion: float, eps: float) -> float:
    """Bits per sample of the best code of fixed length with P[mean square error > distortion] = eps, nearly.

    Kostina and Verdu 2012 for equal variances, Tasci and Kostina 2026 for unequal ones.

    >>> round(normal(Spectrum.of(1.0, 100), 0.25, 0.01), 6)
    1.23732
    """
    require_excess(eps)
    spread = np.sqrt(spectrum.dispersion(distortion) / spectrum.size)
    return spectrum.rate(distortion) + float(spread) * _exceeded(eps)


def variable_length(spectrum: Spectrum, distortion: float, eps: float) -> float:
    """Mean bits per sample of the best code of variable length with P[mean square error > distortion] = eps, nearly.

    Kostina, Polyanskiy and Verdu 2015. A code that always keeps the distortion, as error-bounded codecs do, needs the rate.

    >>> round(variable_length(Spectrum.of(1.0, 1000), 0.25, 0.01), 5)
    0.98914
    """
    require_excess(eps)
    spread = np.sqrt(spectrum.dispersion(distortion) / (2 * np.pi * spectrum.size))
    saved = float(spread * np.exp(-0.5 * _exceeded(eps) ** 2))
    return max(0.0, (1 - eps) * spectrum.rate(distortion) - saved)


def _exceeded(eps: float) -> float:
    """What a standard Gaussian number exceeds with probability eps."""
    from scipy.special import ndtri

    return -float(ndtri(eps))
