"""Achievability: rates at which a code exists, for a finite number of Gaussian components.

They complement the converse. Each is the rate, in bits per sample, of a fixed-length code whose mean square error exceeds
the distortion with probability at most eps: random codewords on a sphere or from a Gaussian distribution, a covering of a
ball, or scalar intervals. No bound is the best everywhere.
"""

from __future__ import annotations

import numpy as np

from workbench.limits.achievability.caps import sphere
from workbench.limits.achievability.classes import Classes
from workbench.limits.achievability.covering import rogers
from workbench.limits.achievability.gaussian import gaussian_codebook, gaussian_rate
from workbench.limits.achievability.scalar import intervals
from workbench.limits.spectrum import Spectrum, require_distortion, require_excess

__all__ = ["achievable", "gaussian_codebook", "intervals", "rogers", "sphere"]


def achievable(spectrum: Spectrum, distortion: float, eps: float) -> float:
    """The lowest rate, in bits per sample, at which one of these codes exceeds the distortion with probability at most eps.

    Always finite. Zero if a single codeword is enough; for few samples, this needs a distortion above the variance.

    >>> from workbench.limits.spectrum import Spectrum
    >>> round(achievable(Spectrum.of(1.0, 100), 0.25, 0.01), 4)   # the rate-distortion function is 1 bit
    1.2496
    """
    distortion = require_distortion(distortion)
    require_excess(eps)
    if spectrum.variance <= eps * distortion:   # by Markov's inequality, one codeword is enough
        return 0.0
    source = Classes.of(spectrum, distortion)
    rates = [intervals(spectrum, distortion, eps), gaussian_rate(source, eps)]
    if source.variances.size == 1:
        rates += _of_one_variance(source, eps)
    return float(np.min(rates))


def _of_one_variance(source: Classes, eps: float) -> list[float]:
    """The bounds for memoryless sources only, in bits per sample of the field."""
    relative = source.distortion / float(source.variances[0])
    share = source.size / source.samples
    covers = [rogers(source.size, relative, eps)] if source.size >= 3 else []
    spheres = [sphere(source.size, relative, eps)] if source.size >= 2 else []
    return [share * rate for rate in covers + spheres]
