"""Scalar coding of each component in intervals of equal length: an achievability bound that is always finite.

For one sample this code is optimal. For many samples it is far from optimal, but it is finite for any variances, and the
only bound where random codes have none.
"""

from __future__ import annotations

import numpy as np

from workbench.limits.spectrum import Spectrum, require_distortion, require_excess


def intervals(spectrum: Spectrum, distortion: float, eps: float) -> float:
    """Bits per sample if intervals of half length sqrt(d) cover each component except tails of total probability eps.

    >>> round(2 ** intervals(Spectrum.of(1.0), 0.01, 0.05), 9)   # of length 0.2, between -1.96 and 1.96
    20.0
    """
    from scipy.special import ndtri

    distortion = require_distortion(distortion)
    require_excess(eps)
    random = spectrum.values > 0
    number = float(spectrum.counts[random].sum())
    if number == 0:
        return 0.0
    half_length = np.sqrt(distortion * spectrum.size / number)       # constant components leave theirs to others
    farthest = -ndtri(-0.5 * np.expm1(np.log1p(-eps) / number))      # in standard deviations
    needed = np.ceil(np.sqrt(spectrum.values[random]) * farthest / half_length * (1 - 1e-12))
    return float(np.log2(np.maximum(needed, 1.0)) @ spectrum.counts[random] / spectrum.size)
