"""Every component by itself, in intervals of equal length: achievability that always says something.

For one sample this is the best code there is. For many it is far from that, but it is finite for any variances, and the
only answer where random codes have none.
"""

from __future__ import annotations

import numpy as np

from workbench.limits.spectrum import Spectrum, require_distortion, require_excess


def intervals(spectrum: Spectrum, distortion: float, eps: float) -> float:
    """Bits per sample when intervals of half length sqrt(d) cover each component, but for tails that together have eps.

    >>> round(2 ** intervals(Spectrum.of(1.0), 0.01, 0.05), 9)   # of length 0.2, between -1.96 and 1.96
    20.0
    """
    from scipy.special import ndtri

    require_distortion(distortion)
    require_excess(eps)
    random = spectrum.values > 0
    number = float(spectrum.counts[random].sum())
    if number == 0:
        return 0.0
    half_length = np.sqrt(distortion * spectrum.size / number)       # constant components leave theirs to the others
    farthest = -ndtri(-0.5 * np.expm1(np.log1p(-eps) / number))      # in standard deviations
    needed = np.ceil(np.sqrt(spectrum.values[random]) * farthest / half_length * (1 - 1e-12))
    return float(np.log2(np.maximum(needed, 1.0)) @ spectrum.counts[random] / spectrum.size)
