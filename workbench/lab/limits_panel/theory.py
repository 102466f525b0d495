"""What the limits panel computes in the background: a model of the field, and what theory says of it.

Each piece is small and depends on a part of the state alone, so that a slider finds most of them made. The slow ones, the
fit and what codes of fixed length can do, come to at most a few seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.data import Field
from workbench.lab.limits_panel.state import LimitsState
from workbench.limits.field_model import estimate
from workbench.limits.fit import Fit
from workbench.limits.gaussianity import Gaussianity
from workbench.limits.result import FieldLimits, RateDistortion
from workbench.limits.spectrum import Spectrum

Progress = Callable[[float, str], object]

LEAST = 1e-9     # of the variance: the smallest distortion that curves are drawn for
STEPS, BAND = 49, 7   # how many distortions a curve has, and the band
BINS = 24        # of a spectrum on a chart


@dataclass(frozen=True, eq=False)
class RadialSpectrum:
    """The power of a region by frequency, in cycles per cell: as measured, and as fitted. White noise has its variance."""

    region: int   # from 0, as everywhere but on the page
    frequency: np.ndarray
    measured: np.ndarray
    fitted: np.ndarray


@dataclass(frozen=True, eq=False)
class Model:
    """The limits of the field as a whole, and what pictures and charts need of its model."""

    limits: FieldLimits
    spectra: tuple[RadialSpectrum, ...]
    shares: tuple[float, ...]   # of the values, region by region

    @property
    def nbytes(self) -> int:
        """About the memory it holds."""
        spectrum = self.limits.spectrum
        return int(spectrum.values.nbytes + spectrum.counts.nbytes + self.limits.source.regions.labels.nbytes) + 2**16


@dataclass(frozen=True, eq=False)
class News:
    """How many bits of new information are in each value, and whether it comes as it would in a Gaussian field."""

    bits: np.ndarray   # at an error bound of 1, which need not be positive
    gaussianity: Gaussianity | None
    warnings: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """About the memory it holds, the model's share included."""
        return 3 * int(self.bits.nbytes)


@dataclass(frozen=True, eq=False)
class Curves:
    """The bound against the distortion, the interval in which that of the field's kind is, and one variance for all."""

    distortions: np.ndarray
    rate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    pooled: np.ndarray

    @property
    def nbytes(self) -> int:
        """About the memory it holds."""
        return 5 * int(self.rate.nbytes)


@dataclass(frozen=True, eq=False)
class Tiled:
    """The limits of codecs that code tiles apart from each other, and their bound at the distortions of the curves."""

    limits: RateDistortion
    rate: np.ndarray

    @property
    def nbytes(self) -> int:
        """About the memory it holds."""
        return int(self.limits.spectrum.values.nbytes + self.limits.spectrum.counts.nbytes + self.rate.nbytes)


@dataclass(frozen=True, eq=False)
class Band:
    """Between converse and achievability, for codes of fixed length."""

    distortions: np.ndarray
    rate: np.ndarray   # the bound of the whole field there
    converse: np.ndarray
    achievable: np.ndarray
    nbytes: int = 2**10


@dataclass(frozen=True)
class Figures:
    """What there is to say at one error bound, in bits per value."""

    distortion: float
    level: float       # of the water: components of the spectrum below it are left out
    rate: float
    low: float
    high: float
    tiled: float
    pooled: float      # more, for one variance in all regions
    borders: float     # of the rate, what the borders of regions cost
    pointwise: float
    nbytes: int = 2**10


@dataclass(frozen=True)
class FixedLength:
    """What codes of fixed length can do at one error bound, in bits per value."""

    converse: float
    achievable: float
    normal: float
    nbytes: int = 2**10


def fit_model(field: Field, state: LimitsState, progress: Progress) -> Model:
    """Find regions, and fit each; then the variances of the components that the whole field consists of."""
    progress(0.05, "finding regions, fitting their spectra")
    source = estimate(field, state.regions)
    limits = FieldLimits(source)
    progress(0.7, "components of the whole field")
    _ = limits.spectrum
    spectra = [radial(region, fit) for region, fit in enumerate(source.fits) if fit is not None]
    return Model(limits, tuple(spectra), tuple((source.regions.sizes / source.size).tolist()))


def radial(region: int, fit: Fit) -> RadialSpectrum:
    """A region's power, averaged over directions in rings of frequency."""
    seen = fit.seen
    grids = np.ogrid[tuple(slice(0, count) for count in seen.power.shape)]
    frequency = np.sqrt(sum((grid / side) ** 2 for grid, side in zip(grids, seen.side, strict=True)))
    used = seen.multiplicity > 0
    weights, frequency = seen.multiplicity[used], frequency[used]
    edges = np.geomspace(frequency.min() * (1 - 1e-9), frequency.max() * (1 + 1e-9), BINS + 1)
    ring = np.searchsorted(edges, frequency) - 1
    modes = np.bincount(ring, weights, BINS)
    sums = [np.bincount(ring, weights * each, BINS) for each in (frequency, seen.power[used], fit.expected[used])]
    found = modes > 0
    return RadialSpectrum(region, *(each[found] / modes[found] for each in sums))


def curves(model: Model, progress: Progress) -> Curves:
    """The bound from a tiny distortion to the variance."""
    limits = model.limits
    distortions = np.geomspace(LEAST * limits.variance, limits.variance, STEPS)
    rate = rates(limits.spectrum, distortions)
    progress(0.3, "how certain the bound is")
    low, high = np.transpose([interval(limits, float(each)) for each in distortions])
    progress(0.7, "one variance for all")
    return Curves(distortions, rate, low, high, rate + [limits.price_of_one_model(float(each)) for each in distortions])


def interval(limits: FieldLimits, distortion: float) -> tuple[float, float]:
    """Between which rates that of the field's kind is; NaN where nothing can be said."""
    low, high = limits.interval(distortion)
    return (low, high) if np.isfinite(high) else (np.nan, np.nan)


def rates(spectrum: Spectrum, distortions: Sequence[float] | np.ndarray) -> np.ndarray:
    """The rate at each distortion."""
    return np.array([spectrum.rate(float(each)) for each in distortions])


def tiled(model: Model, found: Curves, state: LimitsState) -> Tiled:
    """The limits in tiles; of the whole field, when there are none, those that are known."""
    if state.tile is None:
        return Tiled(model.limits, found.rate)
    limits = model.limits.tiled(state.tile)
    return Tiled(limits, rates(limits.spectrum, found.distortions))


def figures(model: Model, in_tiles: Tiled, state: LimitsState) -> Figures:
    """All that is quickly said at one error bound."""
    limits, distortion = model.limits, state.distortion
    low, high = interval(limits, distortion)
    return Figures(
        distortion, limits.spectrum.level(distortion), limits.rate(distortion), low, high,
        in_tiles.limits.rate(distortion), limits.price_of_one_model(distortion), limits.price_of_borders(distortion),
        limits.pointwise(state.eb),
    )


def fixed_length(in_tiles: Tiled, state: LimitsState, progress: Progress) -> FixedLength:
    """What is said of codes of fixed length at one error bound."""
    limits, distortion = in_tiles.limits, state.distortion
    progress(0.1, "codes of fixed length: what none can do")
    converse = limits.converse(distortion, state.eps)
    progress(0.4, "codes of fixed length: what some can do")
    return FixedLength(
        converse, limits.achievable(distortion, state.eps), limits.normal_approximation(distortion, state.eps)
    )


def band(found: Curves, in_tiles: Tiled, state: LimitsState, progress: Progress) -> Band:
    """The same along the curves, where the bound is not zero."""
    places = np.arange(0, STEPS - 1, STEPS // BAND)
    below, above = [], []
    for done, place in enumerate(places):
        progress(done / len(places), "codes of fixed length at other distortions")
        distortion = float(found.distortions[place])
        below.append(in_tiles.limits.converse(distortion, state.eps))
        above.append(in_tiles.limits.achievable(distortion, state.eps))
    return Band(found.distortions[places], found.rate[places], np.array(below), np.array(above))


def news(model: Model, progress: Progress) -> News:
    """What is new in each value, given those before it, and what that says against the model."""
    progress(0.1, "what is new in each value")
    innovations = model.limits.source.innovations
    progress(0.6, "whether the field is Gaussian")
    return News(innovations.bits, model.limits.gaussianity, model.limits.warnings)
