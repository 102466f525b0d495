"""`wb.rate_distortion`: rate-distortion bounds of a Gaussian source, or of the Gaussian model of a field."""

from __future__ import annotations

import html
import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, overload

import numpy as np

from workbench.charts.description import Chart
from workbench.charts.table import html_table
from workbench.codecs import Codec
from workbench.data import Field
from workbench.data.labelled import is_labelled
from workbench.errors import WorkbenchError, briefly
from workbench.guarantees import Bound as ErrorBound
from workbench.limits import achievability, approximation, comparison, converse, pointwise
from workbench.limits.blocks import Tile
from workbench.limits.comparison import Comparison
from workbench.limits.field_model import FieldModel, estimate
from workbench.limits.gaussianity import Gaussianity, gaussianity
from workbench.limits.interval import STILL_UNRESOLVED, Region, sampling_interval
from workbench.limits.plot import plot
from workbench.limits.sources import Piecewise, Source
from workbench.limits.spectrum import Spectrum, require_distortion
from workbench.limits.tiles import Bound, Kinds, dispersion_of_true_field, of_each_tile, tile_kinds
from workbench.progress import Progress, Stoppable

CONFIDENCE = 0.95
EPS = 0.01
RAGGED = 0.5        # share of the cost of borders that may be due to ragged borders of regions that were found
TOO_HIGH = 0.02     # bits per sample: a smaller error of a rate is not mentioned
FEWEST_ERRORS = 64  # prediction errors whose mean square is looked at
MOST_SAVED = 3.0    # times what is seen: bits that codes may save where a field is not Gaussian
UNEXPECTED = 2.0    # factor by which it may differ from what the model predicts


@dataclass(frozen=True, eq=False, repr=False)
class RateDistortion:
    """Bounds in bits per sample as functions of the mean square error, for one source and one tiling.

    All are bounds of the Gaussian model. Variable-length codes that never exceed the distortion need `rate` on average.
    `converse` and `achievable` are for fixed-length codes that exceed the distortion with probability at most `eps`. For a
    model with one or two variances, or a separable one on a box, `rate` and `converse` are theorems, and so is `achievable`
    for one or two variances. In all other cases they are estimates: `slack` says by how much `rate` may be too high, and
    the converse is lowered by as much; `achievable` is sampled, plus four standard errors.

    >>> import workbench as wb
    >>> limits = wb.rate_distortion(wb.limits.memoryless(1.0, n=100))
    >>> limits.rate(0.25), round(limits.converse(0.25, eps=0.01), 6), round(limits.normal_approximation(0.25, eps=0.01), 6)
    (1.0, 1.220777, 1.23732)
    """

    source: Source
    tile: Tile = None

    @cached_property
    def spectrum(self) -> Spectrum:
        """The variances of the independent components of the source."""
        return self.source.spectrum(self.tile)

    @cached_property
    def _pooled(self) -> Spectrum:
        """The bounds for a coder that assumes one variance everywhere."""
        several = _by_regions(self.source)
        return self.spectrum if several is None else several.pooled_variance_spectrum(self.tile)

    @cached_property
    def _borderless(self) -> Spectrum:
        """The bounds if borders between regions cost nothing."""
        several = _by_regions(self.source)
        return self.spectrum if several is None else several.borderless_spectrum(self.tile)

    @cached_property
    def _tilings(self) -> dict[int | tuple[int, ...] | None, RateDistortion]:
        """The same source with other tilings, computed on demand, by tile."""
        return {}

    @property
    def variance(self) -> float:
        """The mean variance; at this distortion the rate is 0."""
        return self.spectrum.variance

    def rate(self, distortion: float) -> float:
        """The rate-distortion function: least mean bits per sample at this mean square error."""
        return self.spectrum.rate(distortion)

    def dispersion(self, distortion: float) -> float:
        """The dispersion: the variance of the information per sample, in bits squared."""
        return self.spectrum.dispersion(distortion)

    @property
    def slack(self) -> float:
        """Bits per sample by which `rate` may be too high; 0 if the variances of the model are exact."""
        return self.spectrum.slack

    def converse(self, distortion: float, eps: float = EPS, *, per: Literal["field", "tile"] = "field") -> float:
        """A lower bound on the bits per sample of any fixed-length code with P[excess distortion] <= eps.

        With `per="tile"`, every tile has its own code and keeps the distortion by itself, except with probability eps that
        any of them fails. Small tiles pay for this.

        >>> import workbench as wb
        >>> tiled = wb.rate_distortion(wb.limits.separable(0.95, (256, 256)), tile=4)
        >>> round(tiled.converse(0.01) - tiled.rate(0.01), 2), round(tiled.converse(0.01, per="tile") - tiled.rate(0.01), 2)
        (0.01, 0.67)
        """
        return self._of_codes(converse.converse, distortion, eps, per)

    def achievable(self, distortion: float, eps: float = EPS, *, per: Literal["field", "tile"] = "field") -> float:
        """Bits per sample at which a fixed-length code with P[excess distortion] <= eps exists; `per` as in `converse`."""
        return self._of_codes(achievability.achievable, distortion, eps, per)

    def normal_approximation(
        self, distortion: float, eps: float = EPS, *, per: Literal["field", "tile"] = "field"
    ) -> float:
        """Approximate bits per sample of the best fixed-length code: the rate plus a dispersion term."""
        return self._of_codes(approximation.normal, distortion, eps, per)

    def variable_length(self, distortion: float, eps: float = EPS) -> float:
        """Approximate mean bits per sample of the best variable-length code with P[excess distortion] <= eps.

        It spends nothing on the fields it may miss, so it needs less than `rate`, which is for codes that miss none.

        >>> import workbench as wb
        >>> round(wb.rate_distortion(wb.limits.memoryless(1.0, n=1000)).variable_length(0.25, eps=0.01), 5)
        0.98914
        """
        return approximation.variable_length(self.spectrum, distortion, eps)

    def _of_codes(self, bound: Bound, distortion: float, eps: float, per: str) -> float:
        """A bound for fixed-length codes of the field, or of each tile."""
        if per not in ("field", "tile"):
            raise WorkbenchError(f"per must be 'field' or 'tile', whichever keeps the distortion; got {per!r}")
        if per == "field" or self.tile is None:
            return bound(self.spectrum, distortion, eps)
        return of_each_tile(bound, self._tile_kinds, distortion, eps)

    @cached_property
    def _tile_kinds(self) -> Kinds:
        several = self.source if isinstance(self.source, Piecewise | FieldModel) else None
        return tile_kinds(*self.source.geometry(), self.tile, several is not None and several.one_texture)

    def mismatched_dispersion(self) -> float:
        """The dispersion of a code that treats tiles as independent although they are not, at fine distortions.

        `dispersion` is that of a field whose tiles really are independent. Both are in bits squared.

        >>> import workbench as wb
        >>> line = wb.rate_distortion(wb.limits.separable(0.95, 1024), tile=16)
        >>> round(line.dispersion(1e-4), 3), round(line.mismatched_dispersion(), 3)
        (1.041, 1.183)
        """
        labels, covariances = self.source.geometry()
        sizes = [int(np.count_nonzero(labels == each)) for each in range(len(covariances))]
        found = [0.0 if each is None else dispersion_of_true_field(each, labels.shape, self.tile) for each in covariances]
        return float(np.average(found, weights=sizes))

    def pointwise(self, eb: float) -> float:
        """Least mean bits per sample of a code that keeps every value within `eb`; loose, even negative, for large `eb`."""
        return pointwise.pointwise_rate(self.spectrum, eb)

    def pointwise_converse(self, eb: float, eps: float = EPS) -> float:
        """A lower bound on the bits per sample of any fixed-length code with P[some error > eb] <= eps.

        >>> import workbench as wb
        >>> limits = wb.rate_distortion(wb.limits.memoryless(1.0, n=100))
        >>> round(limits.pointwise(0.01), 6), round(limits.pointwise_converse(0.01, eps=0.01), 6)
        (7.690952, 7.870228)
        """
        return pointwise.pointwise_converse(self.spectrum, eb, eps)

    def tiled(self, tile: Tile) -> RateDistortion:
        """The bounds for codes that code tiles independently; None for codes without tiles."""
        key = tile if tile is None or isinstance(tile, int) else tuple(tile)
        if key not in self._tilings:
            self._tilings[key] = replace(self, tile=tile)
        return self._tilings[key]

    def price_of_tiles(self, tile: Tile, distortion: float) -> float:
        """Bits per sample that independent coding of tiles costs."""
        whole = self if self.tile is None else self.tiled(None)
        return max(0.0, self.tiled(tile).rate(distortion) - whole.rate(distortion))

    def price_of_one_model(self, distortion: float) -> float:
        """Bits per sample that assuming one variance for all regions costs; 0 for a source without regions."""
        return 0.0 if self._pooled is self.spectrum else max(0.0, self._pooled.rate(distortion) - self.rate(distortion))

    def price_of_borders(self, distortion: float) -> float:
        """Bits per sample that the borders of regions cost, because regions are independent of each other."""
        return max(0.0, self.rate(distortion) - self._borderless.rate(distortion))

    def interval(self, distortion: float) -> tuple[float, float]:
        """The 95% confidence interval of `rate`; for an exact model, both ends are the rate."""
        return self.interval_if_gaussian(distortion)

    def interval_if_gaussian(self, distortion: float) -> tuple[float, float]:
        """The same if the field is Gaussian, as exact models are."""
        rate = self.rate(distortion)
        return rate, rate

    def plot(self, eps: float = EPS, tile: int | None = None) -> Chart:
        """A chart of the bounds against the distortion, shown by notebooks and written by `save`."""
        return plot(self, eps, tile, ())

    def __repr__(self) -> str:
        tiled = "" if self.tile is None else f", in tiles of {self.tile}"
        return f"RateDistortion({self.source.describe()}{tiled})"


@dataclass(frozen=True, eq=False, repr=False)
class FieldLimits(RateDistortion):
    """The bounds of the Gaussian model fitted to a field, and tests of this model."""

    source: FieldModel

    @property
    def field(self) -> Field:
        """The field that the model was fitted to."""
        return self.source.field

    def rate(self, distortion: float) -> float:
        """The rate-distortion function of the model; of values on a lattice, never more than exact values need."""
        return super().rate(self._not_below_steps(distortion))

    def pointwise(self, eb: float) -> float:
        """Least mean bits per sample of a code that keeps every value within `eb`; loose, even negative, for large `eb`."""
        return super().pointwise(max(eb, 0.5 * self.source.step))

    def pointwise_converse(self, eb: float, eps: float = EPS) -> float:
        """A lower bound on the bits per sample of any fixed-length code with P[some error > eb] <= eps."""
        return super().pointwise_converse(max(eb, 0.5 * self.source.step), eps)

    def interval(self, distortion: float) -> tuple[float, float]:
        """The 95% confidence interval of `rate`; lower where the field is clearly not Gaussian.

        The lower end then falls by three times the bits that a code would save that knows the distribution and the local
        variance of prediction errors.
        """
        low, high = self.interval_if_gaussian(distortion)
        if self.gaussianity is not None and self.gaussianity.visibly_not:
            low -= MOST_SAVED * self.gaussianity.saved * self._share_of_power(distortion)
        return max(0.0, low), high

    def interval_if_gaussian(self, distortion: float) -> tuple[float, float]:
        """The interval of the rate of Gaussian fields: a codec below it shows that the model does not describe the field.

        Its parts are the power that a field of this size may have by chance; what the measured power would change where it
        differs from the fitted one; `slack`; and, for regions that were found, a part of the cost of borders, because
        ragged borders are longer than true ones.
        """
        distortion, regions = self._not_below_steps(distortion), self._at_level(distortion)
        low, high = sampling_interval(self.spectrum, regions, distortion, CONFIDENCE)
        ragged = RAGGED * self.price_of_borders(distortion) if self.source.found else 0.0
        low -= sum(region.below for region in regions) / self.source.size + ragged + self.slack
        return max(0.0, low), high + sum(region.above for region in regions) / self.source.size

    def _share_of_power(self, distortion: float) -> float:
        """The share of the components above the water level, with those below by what they add to the distortion."""
        return sum(region.total(1.0) for region in self._at_level(distortion)) / self.source.size

    def _at_level(self, distortion: float) -> list[Region]:
        """The regions that vary, at the water level of this distortion."""
        level = min(self.spectrum.level(self._not_below_steps(distortion)), float(self.spectrum.values[-1]))
        fits = zip(self.source.fits, self.source.regions.sizes.tolist(), self._excesses, strict=True)
        return [Region(fit, cells, level, excess) for fit, cells, excess in fits if fit is not None]

    def _not_below_steps(self, distortion: float) -> float:
        """The distortion, or that of values which are rounded to the steps of their lattice."""
        return max(require_distortion(distortion), self.source.step**2 / 12)

    def instance(self, eb: float) -> float:
        """Bits per sample of *this* field within `eb`: -log2 of its density under the model, minus the room of the errors.

        If the model were exactly right, a code would be shorter by g bits in all with probability 2^-g at most. Each value
        is predicted from its neighbours only, which makes the description too long by up to .04 bit for smooth fields in
        2-D and .13 in 3-D.
        """
        return self.source.innovations.description_length(max(eb, 0.5 * self.source.step)) / self.source.size

    def price_of_description(self) -> float:
        """Bits per sample that the map of the regions and the parameters of the model would cost, which no bound counts."""
        return self.source.description_bits / self.source.size

    @cached_property
    def gaussianity(self) -> Gaussianity | None:
        """The test of whether the prediction errors of the field are Gaussian."""
        return gaussianity(np.where(self.source.settled, self.source.innovations.residuals, np.nan))

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Evidence against the model, in sentences."""
        found = [str(fill) for fill in self.source.fills]
        if self.source.lattice is not None:
            found.append(str(self.source.lattice))
        for region, fit in enumerate(self.source.fits):
            if fit is not None and fit.misfit.serious:
                found.append(f"region {region + 1}: the fitted spectrum differs from the measured one by {fit.misfit}")
            if fit is not None and fit.unresolved > TOO_HIGH:
                most = f"{STILL_UNRESOLVED * fit.unresolved:.2g} bits"
                found.append(f"region {region + 1}: peaks of its spectrum are not resolved: rates may be {most} too high")
            if fit is not None and not fit.independent:
                found.append(f"region {region + 1} is too small to estimate the uncertainty of its spectrum")
        found += self._of_prediction_errors()
        if self.spectrum.slack > TOO_HIGH:
            most = f"{self.spectrum.slack:.2g} bits"
            found.append(f"the rate may be up to {most} too high, because of the shape of the regions")
        if self.gaussianity is None:
            found.append("no region is large enough to test whether the field is Gaussian")
        elif self.gaussianity.visibly_not:
            found.append(f"the field is clearly not Gaussian ({self.gaussianity}): a codec may be below the bound")
        return tuple(found)

    def _of_prediction_errors(self) -> list[str]:
        """Regions whose values are predicted much worse, or much better, than their covariance says."""
        return [
            f"no model fits region {region}: squared prediction errors are {ratio:.3g} times those expected, "
            "so its rates mean little"
            for region, ratio in enumerate(self._excesses, 1) if not 1 / UNEXPECTED < ratio < UNEXPECTED
        ]

    @cached_property
    def _excesses(self) -> list[float]:
        """The mean squared prediction error of each region over the expected one; 1 where too few are known."""
        residuals, ratios = self.source.innovations.residuals, []
        for region, fit in enumerate(self.source.fits):
            known = self.source.settled & (self.source.regions.labels == region)
            few = fit is None or np.count_nonzero(known) < FEWEST_ERRORS
            ratios.append(1.0 if few else float(np.mean(residuals[known] ** 2)))
        return ratios

    def compare(
        self,
        codecs: str | Codec | Iterable[str | Codec] | None = None,
        bounds: ErrorBound | Iterable[ErrorBound] | None = None,
        *,
        progress: Progress | None = None,
        cancel: Stoppable | None = None,
    ) -> Comparison:
        """Run codecs on the field, by default several at six bounds, and compare each run with the bound."""
        return comparison.compare(self, self.field, codecs, bounds, progress, cancel)

    def plot(
        self,
        eps: float = EPS,
        tile: int | None = None,
        codecs: Comparison | str | Codec | Iterable[str | Codec] | None = None,
    ) -> Chart:
        """A chart of the bounds and, with `codecs`, their operating points; a `Comparison` is not run again."""
        if codecs is None:
            return super().plot(eps, tile)
        measured = codecs if isinstance(codecs, Comparison) else self.compare(codecs)
        return plot(self, eps, tile, measured.points)

    def _repr_html_(self) -> str:
        rows = []
        for region, (fit, mean) in enumerate(zip(self.source.fits, self.source.means, strict=True)):
            cells = int(np.count_nonzero(self.source.regions.labels == region))
            spread = 0.0 if fit is None else fit.covariance.variance**0.5
            model = "does not vary" if fit is None else f"{fit.family}, standard deviation {spread:.4g}"
            doubt = "" if fit is None else str(fit.misfit)
            rows.append([str(region + 1), f"{100 * cells / self.source.size:.1f}%", f"{mean:.4g}", model, doubt])
        table = html_table(["region", "share", "mean", "Gaussian model", "misfit"], rows, texts=(3, 4))
        warnings = "".join(f"<p>⚠ {html.escape(warning)}</p>" for warning in self.warnings)
        return f"<p>{html.escape(repr(self))}</p>{table}{warnings}"


@overload
def rate_distortion(
    field_or_model: Field | np.ndarray, tile: Tile = None, regions: str | int | np.ndarray = "auto"
) -> FieldLimits: ...


@overload
def rate_distortion(field_or_model: Source, tile: Tile = None) -> RateDistortion: ...


def rate_distortion(
    field_or_model: Field | np.ndarray | Source,
    tile: Tile = None,
    regions: str | int | np.ndarray = "auto",
) -> RateDistortion:
    """Rate-distortion bounds of an exact model (`wb.limits`), or of the Gaussian model that fits a field best.

    `tile` is the side of the tiles that a codec codes independently, or one side per axis. `regions`, for fields only, is
    "auto", the largest number of regions to find, or a map of whole numbers, where -1 is left out.

    >>> import workbench as wb
    >>> field = wb.synthetic.piecewise_field((128, 128), [wb.synthetic.Region(1.0, 0.9)], seed=1)
    >>> limits = wb.rate_distortion(field)
    >>> exact = wb.rate_distortion(wb.limits.separable(0.9, field.shape))
    >>> abs(limits.rate(0.01) - exact.rate(0.01)) < 0.05
    True
    """
    _require_scipy()
    if isinstance(field_or_model, np.ndarray) or is_labelled(field_or_model):
        field_or_model = Field(field_or_model)
    if isinstance(field_or_model, Field):
        field_or_model.require_floats("a rate-distortion bound")
        return FieldLimits(estimate(field_or_model, regions), tile)
    if not isinstance(field_or_model, Source):
        how = "open a file by wb.open(...), and take of particles one array, as in wb.Field(particles.velocities)"
        raise WorkbenchError(f"expected a field, or a model of wb.limits; got {briefly(field_or_model)}: {how}")
    if not (isinstance(regions, str) and regions == "auto"):
        raise WorkbenchError("regions must be 'auto' for an exact model, which has its own regions")
    return RateDistortion(field_or_model, tile)


def _by_regions(source: Source) -> Piecewise | FieldModel | None:
    """The source if it has more than one region that varies, else None."""
    regions = source.varying if isinstance(source, FieldModel) else source
    several = isinstance(regions, Piecewise) and len(regions.covariances) > 1
    return source if several and isinstance(source, Piecewise | FieldModel) else None


def _require_scipy() -> None:
    if importlib.util.find_spec("scipy") is None:
        raise WorkbenchError("limits need SciPy, which is not installed: pip install 'lossbench[limits]'")
