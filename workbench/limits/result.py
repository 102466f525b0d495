"""`wb.rate_distortion`: what theory allows for a Gaussian source, or for a field as far as it is one."""

from __future__ import annotations

import html
import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

import numpy as np

from workbench.bounds.chart import Chart
from workbench.bounds.sweep import Progress, Stoppable
from workbench.codecs import Codec
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound
from workbench.limits import achievability, approximation, comparison, converse, pointwise
from workbench.limits.blocks import Tile
from workbench.limits.comparison import Comparison
from workbench.limits.field_model import FieldModel, estimate
from workbench.limits.gaussianity import Gaussianity, gaussianity
from workbench.limits.plot import plot
from workbench.limits.sources import Piecewise, Source
from workbench.limits.spectrum import Spectrum

CONFIDENCE = 0.95
EPS = 0.01


@dataclass(frozen=True, eq=False, repr=False)
class RateDistortion:
    """Bounds in bits per sample, against the mean square error, for one source and one way to tile it.

    All are bounds of the Gaussian model. `converse` and `achievable` are for codes of fixed length that exceed the
    distortion with probability at most `eps`: no code does better than the one, and some code does as well as the other.
    Codes of variable length, which keep their bound always, need `rate` on average.

    >>> import workbench as wb
    >>> limits = wb.rate_distortion(wb.limits.memoryless(1.0, n=100))
    >>> limits.rate(0.25), round(limits.converse(0.25, eps=0.01), 6), round(limits.normal_approximation(0.25, eps=0.01), 6)
    (1.0, 1.220777, 1.23732)
    """

    source: Source
    tile: Tile = None

    @cached_property
    def spectrum(self) -> Spectrum:
        """The variances of the independent components that the samples consist of."""
        return self.source.spectrum(self.tile)

    @cached_property
    def _pooled(self) -> Spectrum:
        """For a coder that believes in one variance everywhere."""
        several = _by_regions(self.source)
        return self.spectrum if several is None else several.pooled_variance_spectrum(self.tile)

    @cached_property
    def _borderless(self) -> Spectrum:
        """If regions had no borders."""
        several = _by_regions(self.source)
        return self.spectrum if several is None else several.borderless_spectrum(self.tile)

    @cached_property
    def _tilings(self) -> dict[int | tuple[int, ...] | None, RateDistortion]:
        """The same source cut otherwise, by tile, as far as it was asked for."""
        return {}

    @property
    def variance(self) -> float:
        """The mean variance: a distortion as large costs nothing."""
        return self.spectrum.variance

    def rate(self, distortion: float) -> float:
        """Bits per sample without which no code has this mean square error on average."""
        return self.spectrum.rate(distortion)

    def dispersion(self, distortion: float) -> float:
        """The variance of the information in a sample, in bits squared."""
        return self.spectrum.dispersion(distortion)

    def converse(self, distortion: float, eps: float = EPS) -> float:
        """No code of fixed length with fewer bits per sample exceeds the distortion so rarely."""
        return converse.converse(self.spectrum, distortion, eps)

    def achievable(self, distortion: float, eps: float = EPS) -> float:
        """Some code of fixed length with so many bits per sample exceeds the distortion no more often."""
        return achievability.achievable(self.spectrum, distortion, eps)

    def normal_approximation(self, distortion: float, eps: float = EPS) -> float:
        """What a code of fixed length needs, nearly: the rate, and what the chance of an unlikely field adds."""
        return approximation.normal(self.spectrum, distortion, eps)

    def pointwise(self, eb: float) -> float:
        """Bits per sample without which no code keeps every value within `eb`. Not tight, or even negative, when large."""
        return pointwise.pointwise_rate(self.spectrum, eb)

    def tiled(self, tile: Tile) -> RateDistortion:
        """The bounds for codes that know nothing of other tiles; None for codes that see all."""
        key = tile if tile is None or isinstance(tile, int) else tuple(tile)
        if key not in self._tilings:
            self._tilings[key] = replace(self, tile=tile)
        return self._tilings[key]

    def price_of_tiles(self, tile: Tile, distortion: float) -> float:
        """Bits per sample that coding tiles apart from each other costs."""
        whole = self if self.tile is None else self.tiled(None)
        return max(0.0, self.tiled(tile).rate(distortion) - whole.rate(distortion))

    def price_of_one_model(self, distortion: float) -> float:
        """Bits per sample that believing in one variance for all regions costs; 0 for a source without regions."""
        return 0.0 if self._pooled is self.spectrum else max(0.0, self._pooled.rate(distortion) - self.rate(distortion))

    def price_of_borders(self, distortion: float) -> float:
        """Bits per sample that the borders of regions cost, across which nothing is known: their geometry's share."""
        return max(0.0, self.rate(distortion) - self._borderless.rate(distortion))

    def interval(self, distortion: float) -> tuple[float, float]:
        """Between which rates the true one is, with 95% confidence; of an exact model, the rate twice."""
        rate = self.rate(distortion)
        return rate, rate

    def plot(self, eps: float = EPS, tile: int | None = None) -> Chart:
        """The bounds against the distortion, as a drawing that a notebook shows and `save` writes."""
        return plot(self, eps, tile, ())

    def __repr__(self) -> str:
        tiled = "" if self.tile is None else f", in tiles of {self.tile}"
        return f"RateDistortion({self.source.describe()}{tiled})"


@dataclass(frozen=True, eq=False, repr=False)
class FieldLimits(RateDistortion):
    """The bounds of the Gaussian model that was fitted to a field, and what speaks for and against the model."""

    source: FieldModel

    @property
    def field(self) -> Field:
        """What the model was fitted to."""
        return self.source.field

    def interval(self, distortion: float) -> tuple[float, float]:
        """Between which rates that of the field's kind is, with 95% confidence, given this one field."""
        rate, (fitted, *others) = self.rate(distortion), self.source.plausible
        if not others:
            return 0.0, float("inf")
        base = fitted.rate(distortion)
        misses = [each.rate(distortion) - base for each in others]
        low, high = np.quantile(misses, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        return max(0.0, rate + min(float(low), 0.0)), rate + max(float(high), 0.0)

    def instance(self, eb: float) -> float:
        """Bits per sample without which no code keeps *this* field within `eb`, but by luck: twice as lucky, a bit less."""
        return self.source.innovations.description_length(eb) / self.source.size

    @cached_property
    def gaussianity(self) -> Gaussianity | None:
        """Whether the field is Gaussian at all, once what can be predicted is taken away."""
        return gaussianity(np.where(self.source.settled, self.source.innovations.residuals, np.nan))

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against the model, in sentences."""
        found = []
        for region, fit in enumerate(self.source.fits):
            if fit is not None and fit.misfit.serious:
                found.append(f"region {region + 1}: the fitted spectrum misses the field's by {fit.misfit}")
            if fit is not None and not fit.draws:
                found.append(f"region {region + 1} is too small to say how certain its spectrum is")
        if self.gaussianity is None:
            found.append("no region is large enough to test whether the field is Gaussian")
        elif self.gaussianity.visibly_not:
            found.append(f"the field is visibly not Gaussian ({self.gaussianity}): a codec may well be below the bound")
        return tuple(found)

    def compare(
        self,
        codecs: str | Codec | Iterable[str | Codec] | None = None,
        bounds: Bound | Iterable[Bound] | None = None,
        *,
        progress: Progress | None = None,
        cancel: Stoppable | None = None,
    ) -> Comparison:
        """Run codecs on the field, by default several at six bounds, and put each run beside the bound."""
        return comparison.compare(self, self.field, codecs, bounds, progress, cancel)

    def plot(
        self,
        eps: float = EPS,
        tile: int | None = None,
        codecs: Comparison | str | Codec | Iterable[str | Codec] | None = None,
    ) -> Chart:
        """The bounds and, with `codecs`, their operating points, as a drawing; a `Comparison` is not run again."""
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
        head = "".join(f"<th>{name}</th>" for name in ("region", "share", "mean", "Gaussian model", "misfit"))
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        told = "".join(f"<p>⚠ {html.escape(warning)}</p>" for warning in self.warnings)
        return f"<p>{html.escape(repr(self))}</p><table><tr>{head}</tr>{body}</table>{told}"


@overload
def rate_distortion(
    field_or_model: Field | np.ndarray, tile: Tile = None, regions: str | int | np.ndarray = "auto", *, seed: int = 0
) -> FieldLimits: ...


@overload
def rate_distortion(field_or_model: Source, tile: Tile = None) -> RateDistortion: ...


def rate_distortion(
    field_or_model: Field | np.ndarray | Source,
    tile: Tile = None,
    regions: str | int | np.ndarray = "auto",
    *,
    seed: int = 0,
) -> RateDistortion:
    """What theory allows for an exact model (`wb.limits`), or for a field by the Gaussian model that fits it best.

    `tile` is the side of the tiles that a codec codes apart from each other, or one side per axis. `regions`, for fields,
    are found ("auto"), at most so many, or given as a map of whole numbers; -1 is left out.

    >>> import workbench as wb
    >>> field = wb.synthetic.piecewise_field((128, 128), [wb.synthetic.Region(1.0, 0.9)], seed=1)
    >>> limits = wb.rate_distortion(field)
    >>> exact = wb.rate_distortion(wb.limits.separable(0.9, field.shape))
    >>> abs(limits.rate(0.01) - exact.rate(0.01)) < 0.05
    True
    """
    _require_scipy()
    if isinstance(field_or_model, np.ndarray):
        field_or_model = Field(field_or_model)
    if isinstance(field_or_model, Field):
        field_or_model.require_floats("a rate-distortion bound")
        return FieldLimits(estimate(field_or_model, regions, seed), tile)
    if not isinstance(field_or_model, Source):
        raise WorkbenchError(f"expected a field, or a model of wb.limits; got {type(field_or_model).__name__}")
    if not (isinstance(regions, str) and regions == "auto"):
        raise WorkbenchError("regions are for fields; a model has its own")
    return RateDistortion(field_or_model, tile)


def _by_regions(source: Source) -> Piecewise | FieldModel | None:
    """The source, if it has more than one region that varies."""
    regions = source.varying if isinstance(source, FieldModel) else source
    several = isinstance(regions, Piecewise) and len(regions.covariances) > 1
    return source if several and isinstance(source, Piecewise | FieldModel) else None


def _require_scipy() -> None:
    if importlib.util.find_spec("scipy") is None:
        raise WorkbenchError("limits need SciPy, which is not installed: pip install 'lossbench[limits]'")
