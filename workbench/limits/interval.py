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
the words of semiparametric statistics). So does the ratio of measured to expected squared prediction errors, which do not
leak from strong waves to weak ones. The interval holds the rate with these corrections and without them; and what is known
to be wrong with a model, a misfit that is not chance or peaks that blocks do not resolve, widens it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.limits.fit import Fit
from workbench.limits.spectrum import LOG2E, Spectrum

STILL_UNRESOLVED = 3.0   # times what resolving peaks has saved: what may be left, because each step saves less
Numbers = float | np.ndarray


@dataclass(frozen=True, eq=False)
class Region:
    """The fit of a region of so many cells, at a water level; `excess` is the ratio of squared prediction errors."""

    fit: Fit
    cells: int
    level: float
    excess: float = 1.0

    @cached_property
    def weights(self) -> np.ndarray:
        """How much the power at each frequency counts."""
        return np.minimum(1.0, self.fit.expected / self.level)

    def total(self, change: Numbers) -> float:
        """The sum over all components of such a change of the logarithm of their power, by frequency."""
        return self.cells * float(np.average(self.weights * change, weights=self.fit.seen.multiplicity))

    @property
    def corrections(self) -> tuple[float, float, float]:
        """Bits that the rate would change with the measured power, and with the measured prediction errors; and none."""
        measured, predicted = self.fit.seen.power / self.fit.expected - 1, float(np.log(max(self.excess, 1e-6)))
        return 0.5 * LOG2E * self.total(measured), 0.5 * LOG2E * self.total(predicted), 0.0

    @property
    def below(self) -> float:
        """Bits that the rate may be too high."""
        known = self.fit.misfit.bits * self.fit.misfit.significant + STILL_UNRESOLVED * self.fit.unresolved
        return self.total(known) - min(self.corrections)

    @property
    def above(self) -> float:
        """Bits that the rate may be too low."""
        return self.total(self.fit.misfit.bits * self.fit.misfit.significant) + max(self.corrections)


def sampling_interval(
    spectrum: Spectrum, regions: Sequence[Region], distortion: float, confidence: float
) -> tuple[float, float]:
    """The interval of the rate if the models are flexible enough.

    Nothing is known about regions that are too small for an estimate: then any rate is possible.
    """
    from scipy.special import chdtri

    if not all(region.fit.independent for region in regions):
        return 0.0, float("inf")
    squares = sum(region.cells / region.fit.independent * region.total(region.weights) for region in regions)
    if not squares:
        return 0.0, 0.0
    freedom = sum(region.total(1.0) for region in regions) ** 2 / squares
    least, most = (freedom / float(chdtri(freedom, tail)) for tail in ((1 - confidence) / 2, (1 + confidence) / 2))
    return spectrum.rate(distortion / least), spectrum.rate(distortion / most)
