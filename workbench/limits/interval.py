"""The interval of a rate that was estimated from one field: how much power the field may really have.

If the power S of each component changes by a share, the rate at a fixed distortion changes by

    dR = 1/2 log2(e) / n sum min(1, S / level) dS / S

A component above the water level counts fully, one below it by what it adds to the distortion. In one field each component
is one Gaussian number, whose square gives the power up to a factor that is chi-squared with one degree of freedom. So the
rate is as uncertain as if all power were known up to one factor, which is chi-squared with

    nu = share (sum min(1, S / level))^2 / sum min(1, S / level)^2

degrees of freedom. The variance of the estimate is then the rate-dispersion function over n: what limits codes of finite
length limits estimates (of plug-in estimates: Harrison & Kontoyiannis 2008). `share` is that of the values that the
periodogram is worth, because tapers leave out much of each block. The interval is that of the rates with so much more or
less power. At coarse distortions few components are above the level, and it is skew.

This is the error of sampling, for a model with as many parameters as one likes. With the ratio of measured to expected
power in place of the change, the same derivative says what the misfit of a model does to the rate (a one-step estimate, in
the words of semiparametric statistics). The interval holds the rate with this correction and without it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.limits.fit import Fit
from workbench.limits.spectrum import LOG2E, Spectrum


def sampling_interval(
    spectrum: Spectrum, fits: Sequence[Fit | None], sizes: Sequence[int], distortion: float, confidence: float
) -> tuple[float, float]:
    """The interval of the rate of regions of these sizes, if their models are flexible enough.

    Nothing is known about regions that are too small for an estimate: then any rate is possible.
    """
    from scipy.special import chdtri

    if any(each is not None and not each.independent for each in fits):
        return 0.0, float("inf")
    level, weight, squares = min(spectrum.level(distortion), float(spectrum.values[-1])), 0.0, 0.0
    for each, cells in zip(fits, sizes, strict=True):
        if each is not None:
            known, shares = _weights(each, level), each.seen.multiplicity / each.seen.multiplicity.sum()
            weight += cells * float(np.sum(shares * known))
            squares += cells**2 / each.independent * float(np.sum(shares * known**2))
    if not weight:
        return 0.0, 0.0
    freedom = weight**2 / squares
    least, most = (freedom / float(chdtri(freedom, tail)) for tail in ((1 - confidence) / 2, (1 + confidence) / 2))
    return spectrum.rate(distortion / least), spectrum.rate(distortion / most)


def correction(spectrum: Spectrum, fits: Sequence[Fit | None], sizes: Sequence[int], distortion: float) -> float:
    """Bits per sample that the rate would change if the spectra had the measured power."""
    level, total = min(spectrum.level(distortion), float(spectrum.values[-1])), 0.0
    for each, cells in zip(fits, sizes, strict=True):
        if each is not None:
            off = each.seen.power / each.expected - 1
            total += cells * float(np.average(_weights(each, level) * off, weights=each.seen.multiplicity))
    return 0.5 * LOG2E * total / spectrum.size


def _weights(fit: Fit, level: float) -> np.ndarray:
    """How much the power at each frequency counts."""
    return np.minimum(1.0, fit.expected / level)
