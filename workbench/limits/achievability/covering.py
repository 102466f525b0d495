"""Covering a ball by smaller balls: achievability for equal variances with a deterministic code.

The vectors of squared length up to the quantile of chi-squared fill a ball; balls of the allowed distortion cover it. Upper
bounds on the number of balls: Rogers 1957 (for all of space) and 1963 (for a ball), and Verger-Gaugry 2005 for radii
below n / ln n.
"""

from __future__ import annotations

import numpy as np

from workbench.errors import WorkbenchError
from workbench.limits.achievability.classes import bits
from workbench.limits.spectrum import require_distortion, require_excess

SMALLEST = 9   # samples, the least for which the bounds for small radii hold: 1 - 2/ln n must be positive


def rogers(size: float, distortion: float, eps: float) -> float:
    """Bits per sample of `size` samples of variance 1, three or more.

    For fewer than nine samples, and for radii below n / ln n, the density of a covering of space is used directly.

    >>> round(rogers(100, 0.25, 0.01), 6)
    1.393991
    """
    from scipy.special import chdtri

    distortion = require_distortion(distortion)
    require_excess(eps)
    if not size >= 3:
        raise WorkbenchError(f"size must be at least 3 for the bound by coverings; got {size!r} samples")
    log_radius = 0.5 * float(np.log(chdtri(size, eps) / (size * distortion)))
    if log_radius <= 0:
        return 0.0   # one ball is enough
    return bits(log_cover(size, log_radius), size)


def log_cover(size: float, log_radius: float) -> float:
    """The logarithm of the number of balls of radius 1 that cover a ball of this larger radius."""
    logarithm = float(np.log(size))
    density = size * logarithm + size * np.log(logarithm) + 5 * size   # of a covering of space by balls
    radius = float(np.exp(min(log_radius, 500.0)))
    volume = size * log_radius
    if radius >= size:
        return float(1 + np.log(density) + volume)
    if radius >= size / logarithm:
        return float(np.log(size * density) + volume)
    if size < SMALLEST:   # centres within radius + 1, for the best translation
        return float(np.log(density) + volume + size * np.log1p(1 / radius))
    root = np.sqrt(np.pi * size)
    gap = np.log(logarithm + logarithm / 2 + np.log(np.pi * np.sqrt(2 * size) / (root - 2)))
    shell = (size - 1) * (np.log(radius * size) + gap) / (radius * (1 - 2 / logarithm) * (1 - 2 / root))
    if radius <= 2:
        return float(np.log(np.sqrt(2 * np.pi * size) * shell) + volume)
    constant = 7 ** (4 * np.log(7) / 7) / 4 * np.sqrt(2 * np.pi) * size**1.5 / logarithm**2
    return float(np.log(constant * shell) + volume)
