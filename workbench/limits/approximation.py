"""Normal approximation of the finite-length rate: the asymptotic rate plus a correction by the dispersion.

The information in a field of n samples is a sum of many small terms. By the central limit theorem it is nearly normal, with
mean n times the rate and variance n times the dispersion. A fixed-length code must cover all but a share eps of the fields,
which costs about 1/sqrt(n) bits per sample. A variable-length code may ignore this share, which is the most expensive one,
and needs less than the rate. Both estimates have an error of about (log2 n)/n of either sign, so they are not bounds.
"""

from __future__ import annotations

import numpy as np

from workbench.limits.spectrum import Spectrum, require_excess


def normal(spectrum: Spectrum, distortion: float, eps: float) -> float:
    """Approximate bits per sample of the best fixed-length code with P[mean square error > distortion] = eps.

    Kostina and Verdu 2012 for equal variances, Tasci and Kostina 2026 for unequal ones.

    >>> round(normal(Spectrum.of(1.0, 100), 0.25, 0.01), 6)
    1.23732
    """
    require_excess(eps)
    spread = np.sqrt(spectrum.dispersion(distortion) / spectrum.size)
    return spectrum.rate(distortion) + float(spread) * _exceeded(eps)


def variable_length(spectrum: Spectrum, distortion: float, eps: float) -> float:
    """Approximate mean bits per sample of the best variable-length code with P[mean square error > distortion] = eps.

    Kostina, Polyanskiy and Verdu 2015. Codes that never exceed the distortion, such as error-bounded ones, need the rate.

    >>> round(variable_length(Spectrum.of(1.0, 1000), 0.25, 0.01), 5)
    0.98914
    """
    require_excess(eps)
    spread = np.sqrt(spectrum.dispersion(distortion) / (2 * np.pi * spectrum.size))
    saved = float(spread * np.exp(-0.5 * _exceeded(eps) ** 2))
    return max(0.0, (1 - eps) * spectrum.rate(distortion) - saved)


def _exceeded(eps: float) -> float:
    """The threshold that a standard Gaussian variable exceeds with probability eps."""
    from scipy.special import ndtri

    return -float(ndtri(eps))
