"""The background work of the limits panel: a model of the field, and its theoretical bounds.

Each stage is small and depends on a part of the state only, so that most results are reused when a slider moves. The slow
stages, the fit and the bounds for fixed-length codes, take at most a few seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.data import Field
from workbench.lab.limits_panel.state import LimitsState
from workbench.limits.field_model import estimate
from workbench.limits.fit import Fit
from workbench.limits.gaussianity import Gaussianity
from workbench.limits.result import FieldLimits, RateDistortion
from workbench.limits.spectrum import Spectrum
from workbench.progress import Progress

LEAST = 1e-9     # of the variance: the smallest distortion that curves are drawn for
STEPS, BAND = 49, 7   # the numbers of distortions in a curve and in the band
BINS = 24        # of a spectrum on a chart


@dataclass(frozen=True, eq=False)
class RadialSpectrum:
    """Measured and fitted power of a region by frequency, in cycles per cell. White noise has a power of its variance."""

    region: int   # from 0; only the page counts from 1
    frequency: np.ndarray
    measured: np.ndarray
    fitted: np.ndarray


@dataclass(frozen=True, eq=False)
class Model:
    """The limits of the whole field, and the parts of its model for pictures and charts."""

    limits: FieldLimits
    spectra: tuple[RadialSpectrum, ...]
    shares: tuple[float, ...]   # of the values, region by region

    @property
    def nbytes(self) -> int:
        """Its approximate memory."""
        spectrum = self.limits.spectrum
        return int(spectrum.values.nbytes + spectrum.counts.nbytes + self.limits.source.regions.labels.nbytes) + 2**16


@dataclass(frozen=True, eq=False)
class News:
    """The bits of new information in each value, and whether their distribution is Gaussian."""

    bits: np.ndarray   # at an error bound of 1, which need not be positive
    gaussianity: Gaussianity | None
    warnings: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """Its approximate memory, including the model's share."""
        return 3 * int(self.bits.nbytes)


@dataclass(frozen=True, eq=False)
class Curves:
    """The bound by distortion, its confidence interval for fields of this kind, and the bound with one common variance."""

    distortions: np.ndarray
    rate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    pooled: np.ndarray


@dataclass(frozen=True, eq=False)
class Tiled:
    """The limits of codecs that code tiles independently, and their bound at the distortions of the curves."""

    limits: RateDistortion
    rate: np.ndarray

    @property
    def nbytes(self) -> int:
        """Its approximate memory."""
        return int(self.limits.spectrum.values.nbytes + self.limits.spectrum.counts.nbytes + self.rate.nbytes)


@dataclass(frozen=True, eq=False)
class Band:
    """The band between converse and achievability for fixed-length codes."""

    distortions: np.ndarray
    rate: np.ndarray   # the bound of the whole field there
    converse: np.ndarray
    achievable: np.ndarray


@dataclass(frozen=True)
class Figures:
    """The figures at one error bound, in bits per value."""

    distortion: float
    level: float       # the water level: components of the spectrum below it are left out
    rate: float
    low: float
    high: float
    tiled: float
    pooled: float      # the additional rate of one variance for all regions
    borders: float     # the part of the rate that the borders of regions cost
    pointwise: float
    description: float   # the map of the regions and the parameters, which no bound counts


@dataclass(frozen=True)
class FixedLength:
    """The bounds for fixed-length codes at one error bound, in bits per value; each tile keeps the error by itself."""

    converse: float
    achievable: float
    normal: float


def fit_model(field: Field, state: LimitsState, progress: Progress) -> Model:
    """Find regions and fit each; then find the variances of the components of the whole field."""
    progress(0.0, "finding regions, fitting their spectra")
    source = estimate(field, state.regions)
    limits = FieldLimits(source)
    progress(0.7, "components of the whole field")
    _ = limits.spectrum
    spectra = [radial(region, fit) for region, fit in enumerate(source.fits) if fit is not None]
    return Model(limits, tuple(spectra), tuple((source.regions.sizes / source.size).tolist()))


def radial(region: int, fit: Fit) -> RadialSpectrum:
    """A region's power, averaged over directions in rings of frequency."""
    seen = fit.seen
    frequency = np.sqrt(sum(along**2 for along in seen.frequencies))
    used = seen.multiplicity > 0
    weights, frequency = seen.multiplicity[used], frequency[used]
    edges = np.geomspace(frequency.min() * (1 - 1e-9), frequency.max() * (1 + 1e-9), BINS + 1)
    ring = np.searchsorted(edges, frequency) - 1
    modes = np.bincount(ring, weights, BINS)
    sums = [np.bincount(ring, weights * each, BINS) for each in (frequency, seen.power[used], fit.expected[used])]
    found = modes > 0
    return RadialSpectrum(region, *(each[found] / modes[found] for each in sums))


def curves(model: Model, progress: Progress) -> Curves:
    """The bound, for distortions from very small ones up to the variance."""
    progress(0.0, "the bound at other errors")
    limits = model.limits
    variance = limits.variance or 1.0   # a field of constant regions has a rate of 0 at any distortion
    distortions = np.geomspace(LEAST * variance, variance, STEPS)
    rate = rates(limits.spectrum, distortions)
    progress(0.3, "confidence interval of the bound")
    low, high = np.transpose([interval(limits, float(each)) for each in distortions])
    progress(0.7, "one variance for all")
    return Curves(distortions, rate, low, high, rate + [limits.price_of_one_model(float(each)) for each in distortions])


def interval(limits: FieldLimits, distortion: float) -> tuple[float, float]:
    """The confidence interval of the rate for fields of this kind; NaN if it cannot be estimated."""
    low, high = limits.interval(distortion)
    return (low, high) if np.isfinite(high) else (np.nan, np.nan)


def rates(spectrum: Spectrum, distortions: Sequence[float] | np.ndarray) -> np.ndarray:
    """The rate at each distortion."""
    return np.array([spectrum.rate(float(each)) for each in distortions])


def tiled(model: Model, found: Curves, state: LimitsState, progress: Progress) -> Tiled:
    """The limits in tiles; without tiles, the known limits of the whole field."""
    if state.tile is None:
        return Tiled(model.limits, found.rate)
    progress(0.0, "components of the tiles")
    limits = model.limits.tiled(state.tile)
    return Tiled(limits, rates(limits.spectrum, found.distortions))


def figures(model: Model, in_tiles: Tiled, state: LimitsState) -> Figures:
    """All figures at one error bound that are quick to compute."""
    limits, distortion = model.limits, state.distortion
    low, high = interval(limits, distortion)
    return Figures(
        distortion, limits.spectrum.level(distortion), limits.rate(distortion), low, high,
        in_tiles.limits.rate(distortion), limits.price_of_one_model(distortion), limits.price_of_borders(distortion),
        limits.pointwise(state.eb), limits.price_of_description(),
    )


def fixed_length(in_tiles: Tiled, state: LimitsState, progress: Progress) -> FixedLength:
    """The bounds for fixed-length codes at one error bound."""
    limits, distortion = in_tiles.limits, state.distortion
    progress(0.0, "fixed-length codes: converse")
    converse = limits.converse(distortion, state.eps, per="tile")
    progress(0.4, "fixed-length codes: achievability")
    return FixedLength(
        converse,
        limits.achievable(distortion, state.eps, per="tile"),
        limits.normal_approximation(distortion, state.eps, per="tile"),
    )


def band(found: Curves, in_tiles: Tiled, state: LimitsState, progress: Progress) -> Band:
    """The bounds for fixed-length codes along the curves, where the bound is not zero."""
    places = np.arange(0, STEPS - 1, STEPS // BAND)
    below, above = [], []
    for done, place in enumerate(places):
        progress(done / len(places), "fixed-length codes at other distortions")
        distortion = float(found.distortions[place])
        below.append(in_tiles.limits.converse(distortion, state.eps, per="tile"))
        above.append(in_tiles.limits.achievable(distortion, state.eps, per="tile"))
    return Band(found.distortions[places], found.rate[places], np.array(below), np.array(above))


def news(model: Model, progress: Progress) -> News:
    """The new information in each value, given the previous ones, and the test of the Gaussian model."""
    progress(0.1, "new information in each value")
    innovations = model.limits.source.innovations
    progress(0.6, "whether the field is Gaussian")
    return News(innovations.bits, model.limits.gaussianity, model.limits.warnings)
