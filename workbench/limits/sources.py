"""Exact sources: Gaussian fields with a known model instead of a fitted one.

They serve for teaching, tests and parameter studies. Each source has a spectrum, from which all bounds follow. Sources with
a geometry can be cut into independently coded tiles, as in compressors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from workbench.arguments import flag, grid_shape, number, positive, whole_number
from workbench.errors import WorkbenchError
from workbench.limits.axis import sine_frequencies
from workbench.limits.blocks import Tile, lattice_spectrum, tile_lengths
from workbench.limits.correlation import Autoregressive, Correlation
from workbench.limits.shapes import region_spectrum
from workbench.limits.spectrum import LOG2E, Spectrum, require_distortion

MOST_SHOWN = 3        # correlations in a description
ROUNDING = 1e-12      # relative distance from the variance within which the rate is 0
MOST_GROWTH = 1e100   # per sample
MOST_UNSTABLE = 8192  # samples of a recursion that grows: its components have no closed form


@runtime_checkable
class Source(Protocol):
    """Gaussian samples with a known distribution."""

    @property
    def size(self) -> int:
        """How many samples there are."""

    def spectrum(self, tile: Tile = None) -> Spectrum:
        """The variances of independent components, of the whole or of tiles that are coded independently."""

    def geometry(self) -> tuple[np.ndarray, list[Correlation | None]]:
        """The map of the regions, and the covariance of each; None for a constant region."""

    def describe(self) -> str:
        """A description in one line."""


@dataclass(frozen=True, eq=False)
class Components:
    """Independent samples without a geometry, which cannot be cut into tiles."""

    components: Spectrum

    @property
    def size(self) -> int:
        """How many samples there are."""
        return round(self.components.size)

    def spectrum(self, tile: Tile = None) -> Spectrum:
        """The variances."""
        if tile is not None:
            raise WorkbenchError(f"tile must be None for independent samples, which have no geometry; got {tile!r}")
        return self.components

    def geometry(self) -> tuple[np.ndarray, list[Correlation | None]]:
        """The map of the regions, and the covariance of each."""
        raise WorkbenchError("independent samples have no geometry, and so no tiles")

    def describe(self) -> str:
        """A description in one line."""
        low, high = self.components.values[[0, -1]]
        return f"{self.size:,} independent samples of variance {low:g}" + (f" to {high:g}" if high > low else "")


@dataclass(frozen=True)
class GaussMarkov:
    """The recursion X[i] = a X[i-1] + Z[i] with noise of standard deviation sigma, stationary or started at 0."""

    a: float
    sigma: float
    n: int
    stationary: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", number("a", self.a, -MOST_GROWTH, MOST_GROWTH))
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))
        object.__setattr__(self, "n", whole_number("n", self.n, least=1))
        flag("stationary", self.stationary)
        if self.stationary and not abs(self.a) < 1:
            raise WorkbenchError(f"a must be in (-1, 1) for a stationary source; got {self.a:g}: set stationary=False")

    @property
    def size(self) -> int:
        """How many samples there are."""
        return self.n

    @property
    def critical_distortion(self) -> float:
        """The minimum of the power spectrum: up to this distortion, an infinite source has the rate of its noise."""
        return (self.sigma / (1 + abs(self.a))) ** 2

    def spectrum(self, tile: Tile = None) -> Spectrum:
        """The variances of independent components, of the whole or of tiles; only stationary sources have tiles."""
        if self.stationary:
            correlation = Autoregressive(self.sigma**2 / (1 - self.a**2), (self.a,))
            return lattice_spectrum(correlation, (self.n,), tile)
        if tile is not None and tile_lengths(tile, (self.n,)) != (self.n,):
            raise WorkbenchError(f"tile must be None for a source that is not stationary; got {tile!r}")
        return Spectrum.of(self.sigma**2 / _precisions(abs(self.a), self.n))

    def geometry(self) -> tuple[np.ndarray, list[Correlation | None]]:
        """The map of the regions, and the covariance of each."""
        if not self.stationary:
            raise WorkbenchError("a source must be stationary to be cut into tiles")
        return np.zeros(self.n, np.int8), [Autoregressive(self.sigma**2 / (1 - self.a**2), (self.a,))]

    def level_distortion(self, level: float) -> float:
        """The mean square error of an infinite source at a water level."""
        a, level = self._recursion(), positive("level", level) / self.sigma**2
        if level <= 1 / (1 + a) ** 2:
            return level * self.sigma**2
        turn = _turn(a, level)
        return (turn * level + _beyond(a, turn)) / math.pi * self.sigma**2

    def limit(self, distortion: float) -> tuple[float, float]:
        """Rate in bits and dispersion in bits^2 per sample of an infinite source (Tian and Kostina 2019).

        >>> [round(figure, 6) for figure in gauss_markov(0.5, 1.0, n=100).limit(4 / 9)]
        [0.584963, 1.040684]
        """
        distortion = require_distortion(distortion)
        a, variance = self._recursion(), self.sigma**2
        if distortion >= variance / (1 - a**2) * (1 - ROUNDING):
            return 0.0, 0.0
        level = self._level(distortion) / variance
        turn = _turn(a, level) if level > 1 / (1 + a) ** 2 else math.pi
        rate = (-turn * math.log(level) + 2 * _dilogarithm(a, turn)) / (2 * math.pi)
        dispersion = (turn + _squares_beyond(a, turn) / level**2) / (2 * math.pi)
        return rate * LOG2E, dispersion * LOG2E**2

    def describe(self) -> str:
        """A description in one line."""
        start = "stationary" if self.stationary else "started at 0"
        return f"Gauss-Markov source of {self.n:,} samples, a = {self.a:g}, sigma = {self.sigma:g}, {start}"

    def _recursion(self) -> float:
        """The absolute value of a: its sign only mirrors the power spectrum."""
        if not abs(self.a) < 1:
            raise WorkbenchError(f"a must lie between -1 and 1 for the limit of infinite length; got {self.a:g}")
        return abs(self.a)

    def _level(self, distortion: float) -> float:
        """The water level of an infinite source at this distortion."""
        from scipy.optimize import brentq

        if distortion <= self.critical_distortion:
            return distortion
        low, high = math.log(self.critical_distortion) - 1, 2 * math.log(self.sigma / (1 - abs(self.a)))
        found = brentq(lambda log: self.level_distortion(math.exp(log)) - distortion, low, high, xtol=1e-15, rtol=1e-14)
        return math.exp(found)


@dataclass(frozen=True)
class Homogeneous:
    """A stationary field on a box."""

    correlation: Correlation
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many samples there are."""
        return math.prod(self.shape)

    def spectrum(self, tile: Tile = None) -> Spectrum:
        """The variances of independent components, of the whole or of tiles that are coded independently."""
        return lattice_spectrum(self.correlation, self.shape, tile)

    def geometry(self) -> tuple[np.ndarray, list[Correlation | None]]:
        """The map of the regions, and the covariance of each."""
        return np.zeros(self.shape, np.int8), [self.correlation]

    def describe(self) -> str:
        """A description in one line."""
        return f"homogeneous field of {_by(self.shape)}: {self.correlation}"


@dataclass(frozen=True, eq=False)
class Piecewise:
    """Stationary regions; one water level for all allocates the distortion.

    Regions are independent, or parts of one texture, which goes on across their borders with another strength.
    """

    labels: np.ndarray = field(repr=False)
    covariances: tuple[Correlation, ...]   # one per label
    one_texture: bool = False

    @property
    def size(self) -> int:
        """How many samples belong to a region."""
        return int(np.count_nonzero(self.labels >= 0))

    def geometry(self) -> tuple[np.ndarray, list[Correlation | None]]:
        """The map of the regions, and the covariance of each."""
        return self.labels, list(self.covariances)

    def regions(self, tile: Tile = None) -> list[Spectrum]:
        """The spectrum of each region, in the order of the labels that occur."""
        sides = tile_lengths(tile, self.labels.shape)
        if sides not in self._known:
            self._known[sides] = self._shares(tile) if self.one_texture else [
                region_spectrum(self.covariances[each], self.labels == each, tile) for each in self._used()
            ]
        return self._known[sides]

    @cached_property
    def _known(self) -> dict[tuple[int, ...], list[Spectrum]]:
        """The spectra of the regions computed so far, by the sides of tiles."""
        return {}

    def spectrum(self, tile: Tile = None) -> Spectrum:
        """The variances of independent components of all regions."""
        return Spectrum.joined(self.regions(tile))

    def borderless_spectrum(self, tile: Tile = None) -> Spectrum:
        """The same if borders between regions cost nothing: each region is a share of a homogeneous lattice."""
        return Spectrum.joined(self._shares(tile))

    def _shares(self, tile: Tile) -> list[Spectrum]:
        """For each region, its share of a homogeneous lattice with its covariance."""
        used = self._used()
        wholes = [lattice_spectrum(self.covariances[label], self.labels.shape, tile) for label in used]
        sizes = [np.count_nonzero(self.labels == label) for label in used]
        return [whole.times(size / whole.size) for whole, size in zip(wholes, sizes, strict=True)]

    def pooled_variance_spectrum(self, tile: Tile = None) -> Spectrum:
        """The spectrum of a coder that assumes the same variance everywhere.

        Each region keeps the shape of its correlation, including noise, but has the mean variance of the field. At high
        resolution the mismatch costs half the logarithm of the arithmetic over the geometric mean of the variances.
        """
        regions = self.regions(tile)
        mean = sum(region.variance * region.size for region in regions) / self.size
        return Spectrum.joined([
            Spectrum(region.values * (mean / region.variance), region.counts) if region.variance > 0
            else Spectrum.of(mean, region.size)   # a constant region has no correlation
            for region in regions
        ])

    def describe(self) -> str:
        """A description in one line."""
        used = self._used()
        models = ", ".join(str(self.covariances[label]) for label in used[:MOST_SHOWN])
        more = f" and {len(used) - MOST_SHOWN} more" if len(used) > MOST_SHOWN else ""
        regions = "1 region" if len(used) == 1 else f"{len(used)} regions"
        return f"piecewise field of {_by(self.labels.shape)}, {self.size:,} samples in {regions}: {models}{more}"

    def _used(self) -> list[int]:
        present = np.unique(self.labels)
        return [int(label) for label in present if label >= 0]


def memoryless(variance: float, n: int) -> Components:
    """Independent samples, n of them, of one variance.

    >>> memoryless(4.0, 100).spectrum().rate(1.0)
    1.0
    """
    return Components(Spectrum.of(positive("variance", variance), whole_number("n", n, least=1)))


def gaussian(variances: Sequence[float] | np.ndarray) -> Components:
    """Independent samples with these variances: any Gaussian vector in its principal axes.

    >>> gaussian([4.0] * 50 + [0.5] * 50).describe()
    '100 independent samples of variance 0.5 to 4'
    """
    return Components(Spectrum.of(variances))


def gauss_markov(a: float, sigma: float, n: int, stationary: bool = True) -> GaussMarkov:
    """The recursion X[i] = a X[i-1] + Z[i] over n samples, with Gaussian noise Z of standard deviation `sigma`.

    A stationary source needs a in (-1, 1); a source that starts at X[0] = 0 takes any a.

    >>> round(gauss_markov(0.5, 1.0, n=50).spectrum().rate(0.1) - gauss_markov(0.5, 1.0, 50, False).spectrum().rate(0.1), 6)
    0.00415
    """
    return GaussMarkov(a, sigma, n, stationary)


def homogeneous(correlation: Correlation, shape: int | Sequence[int]) -> Homogeneous:
    """A stationary field on a box.

    >>> homogeneous(Autoregressive(1.0, 0.9), 100).describe()
    'homogeneous field of 100: Autoregressive(signal=1.0, rhos=(0.9,), nugget=0.0)'
    """
    axes = grid_shape(shape)
    if len(axes) != _correlation(correlation).dimensions:
        raise WorkbenchError(f"shape must have {correlation.dimensions} axes, as the correlation has; got {shape!r}")
    return Homogeneous(correlation, axes)


def separable(rho: float | Sequence[float], shape: int | Sequence[int], variance: float = 1.0) -> Homogeneous:
    """A first-order recursion along each axis; `rho`, the correlation of neighbours, is one number or one per axis.

    >>> round(separable(0.95, (512, 512)).spectrum(tile=8).rate(0.01), 4)
    0.7334
    """
    axes = grid_shape(shape)
    rhos = np.ravel(rho)
    return homogeneous(Autoregressive(variance, tuple(rhos) * (len(axes) if rhos.size == 1 else 1)), axes)


def piecewise(labels: np.ndarray, correlations: Sequence[Correlation], *, one_texture: bool = False) -> Piecewise:
    """A field of regions: `labels` gives the index of the correlation of each sample, or -1 for no sample.

    Regions are independent of each other. With `one_texture`, the field is a homogeneous one, times a standard deviation
    for each region: the correlations must be multiples of each other.

    >>> halves = np.repeat([0, 1], 500)
    >>> source = piecewise(halves, [Autoregressive(1.0, 0.0), Autoregressive(100.0, 0.0)])
    >>> round(source.spectrum().rate(0.5), 5), round(source.pooled_variance_spectrum().rate(0.5), 5)
    (2.16096, 3.32911)
    """
    models = tuple(_correlation(correlation) for correlation in correlations)
    where = np.array(labels)
    if where.dtype.kind not in "iu" or not where.size or where.min() < -1 or not 0 <= where.max() < len(models):
        span = f" in [{where.min()}, {where.max()}]" if where.size and where.dtype.kind in "iuf" else ""
        raise WorkbenchError(
            f"labels must be whole numbers from 0 to {len(models) - 1}, one per correlation, or -1 where there is no "
            f"sample, and not -1 everywhere; got {where.dtype} of shape {where.shape}{span}"
        )
    if any(model.dimensions != where.ndim for model in models):
        raise WorkbenchError(f"correlations must have {where.ndim} axes, as the labels have; got {models}")
    if one_texture and not all(_multiples(models[0], model) for model in models[1:]):
        raise WorkbenchError(f"correlations must be multiples of each other, as regions have one texture; got {models}")
    where.flags.writeable = False
    return Piecewise(where, models, one_texture)


def _multiples(one: Correlation, other: Correlation) -> bool:
    """Whether two covariances differ by a factor only."""
    if one.variance == 0 or other.variance == 0:
        return one.variance == other.variance
    lags = np.ogrid[(slice(-3, 4),) * one.dimensions]
    table, again = (np.append(each.at(*lags).ravel(), each.nugget) / each.variance for each in (one, other))
    return bool(np.allclose(table, again, rtol=0, atol=1e-9))


def _correlation(given: Correlation) -> Correlation:
    if not isinstance(given, Correlation):
        raise WorkbenchError(f"a correlation must be Autoregressive, Matern or Sampled; got {given!r}")
    return given


def _by(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def _precisions(a: float, n: int) -> np.ndarray:
    """The inverse variances of n samples of the recursion with unit noise, started at 0; their product is 1."""
    if a <= 1:
        walk = np.pi * np.arange(1, 2 * n, 2) / (2 * n + 1)
        frequencies = walk if a == 1 else sine_frequencies(n, a, ends=1)
        return np.asarray((1 - a) ** 2 + 4 * a * np.sin(frequencies / 2) ** 2)
    whole_number("n of a source that grows", n, 1, MOST_UNSTABLE)
    from scipy.linalg import eigvalsh_tridiagonal

    diagonal = np.full(n, 1 + a * a)
    diagonal[-1] = 1
    values = np.maximum(eigvalsh_tridiagonal(diagonal, np.full(n - 1, -a)), np.finfo(float).tiny)
    log_least = -float(np.log(values[1:]).sum())   # rounding loses the least eigenvalue; the determinant, 1, gives it
    if log_least < -700:
        raise WorkbenchError(f"a and n must give finite variances; got a = {a:g}, n = {n}: take fewer samples")
    values[0] = math.exp(log_least)
    return np.asarray(values)


def _turn(a: float, level: float) -> float:
    """The frequency where the power spectrum of the recursion with unit noise falls to the level."""
    if a == 0:
        return 0.0 if level > 1 else math.pi
    return math.acos(min(1.0, max(-1.0, (1 + a * a - 1 / level) / (2 * a))))


def _beyond(a: float, turn: float) -> float:
    """The integral of the power spectrum from a frequency to pi."""
    return 2 / (1 - a * a) * (math.pi / 2 - math.atan2((1 + a) * math.sin(turn / 2), (1 - a) * math.cos(turn / 2)))


def _squares_beyond(a: float, turn: float) -> float:
    """The integral of the squared power spectrum from a frequency to pi."""
    power = 1 / (1 + a * a - 2 * a * math.cos(turn))
    return ((1 + a * a) * _beyond(a, turn) - 2 * a * math.sin(turn) * power) / (1 - a * a) ** 2


def _dilogarithm(a: float, angle: float) -> float:
    """The imaginary part of Li2(a exp(i angle)): minus half the integral of ln(1 + a^2 - 2 a cos w) from 0 to the angle."""
    from scipy.special import spence

    return float(spence(1 - a * complex(math.cos(angle), math.sin(angle))).imag)
