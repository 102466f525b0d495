"""A Gaussian model of one given field: its regions, their covariances, and the uncertainty of the estimate.

The field is split into homogeneous regions (`regions.py`), each region gets the covariance that fits it best (`fit.py`),
and cells at borders that were found are assigned again with these covariances (`borders.py`), in turns. Regions are
assumed to be independent of each other. All bounds are bounds for this model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from workbench.data import Field
from workbench.data.taking import as_array
from workbench.errors import WorkbenchError
from workbench.limits.blocks import Tile
from workbench.limits.borders import reassigned
from workbench.limits.correlation import Correlation
from workbench.limits.discrete import Lattice, conditional_entropy, lattice, price_of_parameters
from workbench.limits.fit import Fit, fit
from workbench.limits.innovations import Innovations, innovations
from workbench.limits.misfit import misfit
from workbench.limits.missing_values import Fill, without_fills
from workbench.limits.neighbour_fit import REFINED, Predicted, all_families, fit_neighbours
from workbench.limits.one_texture import OneTexture, alike, mean_of_texture, standardised, strengths
from workbench.limits.periodogram import periodogram
from workbench.limits.regions import Regions, largest_first, segment
from workbench.limits.sources import Piecewise, piecewise
from workbench.limits.spectrum import Spectrum

BORDER = {1: 4, 2: 3, 3: 2, 4: 1}   # cells next to another region whose label is uncertain, if regions were found
LEAST_SURE = 64
ROUNDS = 3     # of fits and borders
MOVED = 0.01   # share of the cells that change their region, up to which fits are kept
LEAST_SPAN, MOST_SPAN = 1e-100, 1e100   # of the values: squares of small residuals and of large sums must be finite numbers
DOUBTED = 1 / 9   # what a value is worth where prediction errors contradict the periodogram
CUT = 0.3     # share of the blocks of a periodogram that are cut by borders, above which its parameters are refined


@dataclass(frozen=True, eq=False)
class FieldModel:
    """A piecewise homogeneous Gaussian model, fitted to a field."""

    field: Field
    regions: Regions
    means: tuple[float, ...]
    fits: tuple[Fit | None, ...]   # None for a constant region
    settled: np.ndarray            # where the region of a value is certain
    fills: tuple[Fill, ...] = ()   # what is missing although the field does not mask it
    found: bool = False            # whether the map was found rather than given, and has several regions
    texture: OneTexture | None = None   # what the regions share, if they are parts of one texture

    @property
    def one_texture(self) -> bool:
        """Whether the regions are parts of one texture, which goes on across their borders."""
        return self.texture is not None

    @cached_property
    def lattice(self) -> Lattice | None:
        """What is known about rounded or few values."""
        return lattice(np.asarray(self.field.values), self.regions.labels >= 0)

    @property
    def step(self) -> float:
        """The step of the lattice of the values; 0 for continuous values."""
        return 0.0 if self.lattice is None else self.lattice.step

    def geometry(self) -> tuple[np.ndarray, list[Correlation | None]]:
        """The map of the regions, and the covariance of each; None for a constant region."""
        return self.regions.labels, [None if each is None else each.covariance for each in self.fits]

    @cached_property
    def description_bits(self) -> float:
        """Bits of the map of the regions, of the parameters and of the choice of families."""
        labels = self.regions.labels
        bits = conditional_entropy(labels, labels >= 0) * self.size if len(self.fits) > 1 else 0.0
        for cells, each in zip(self.regions.sizes.tolist(), self.fits, strict=True):
            parameters, families = (0, 1) if each is None else (each.parameters, len(each.deviances))
            bits += price_of_parameters(1 + parameters, cells, families)   # with the mean
        if self.texture is not None:
            bits += price_of_parameters(self.texture.fit.parameters, self.size, len(self.texture.fit.deviances))
        return bits

    @cached_property
    def varying(self) -> Piecewise | None:
        """The regions that vary, as an exact source; None if there are none."""
        fits = [each for each in self.fits if each is not None]
        covariances = [each.covariance for each in fits]
        return piecewise(self._varying_labels, covariances, one_texture=self.one_texture) if fits else None

    @cached_property
    def _varying_labels(self) -> np.ndarray:
        numbers = np.cumsum([each is not None for each in self.fits]) - 1
        renamed = np.where([each is not None for each in self.fits], numbers, -1)
        return np.append(renamed, -1)[self.regions.labels]   # a label of -1 indexes the last

    @cached_property
    def size(self) -> int:
        """How many valid values lie in a region."""
        return int(np.count_nonzero(self.regions.labels >= 0))

    def needs_division(self, divided: FieldModel) -> bool:
        """Whether a model of more regions predicts values so much better that it is worth its parameters (BIC).

        Long waves that run at an angle to the axes differ from place to place, as textures do, but one texture predicts
        them all. Borders that were found are ragged, so what is saved away from them is enough. A region that its own
        fit, made with values of others inside ragged borders, predicts worse than this model takes nothing from the others.
        """
        saved = self.innovations.bits - divided.innovations.bits
        more = len(divided.fits) - len(self.fits)
        price = more * 0.5 * (3 + saved.ndim) * np.log2(max(self.size, 2))
        known = np.isfinite(saved)
        places = (known, known & divided.settled)
        gains = (np.bincount(divided.regions.labels[each], saved[each]).clip(0).sum() for each in places if each.any())
        return bool(max(gains, default=0.0) > price)

    def spectrum(self, tile: Tile = None) -> Spectrum:
        """The variances of the model's components; with tiles, of independently coded tiles."""
        return self._with_constants(None if self.varying is None else self.varying.spectrum(tile))

    def pooled_variance_spectrum(self, tile: Tile = None) -> Spectrum:
        """The same for a coder that assumes one variance for all regions that vary."""
        return self._with_constants(None if self.varying is None else self.varying.pooled_variance_spectrum(tile))

    def borderless_spectrum(self, tile: Tile = None) -> Spectrum:
        """The same if borders between regions cost nothing."""
        return self._with_constants(None if self.varying is None else self.varying.borderless_spectrum(tile))

    def _with_constants(self, varying: Spectrum | None) -> Spectrum:
        """Values of constant regions are components of variance zero."""
        constant = self.size - (0 if self.varying is None else self.varying.size)
        parts = [] if varying is None else [varying]
        return Spectrum.joined([*parts, *([Spectrum.of(0.0, constant)] if constant else [])])

    def describe(self) -> str:
        """One line."""
        regions = "1 region" if len(self.fits) == 1 else f"{len(self.fits)} regions"
        return f"Gaussian model of {self.field!r} in {regions}{' of one texture' if self.one_texture else ''}"

    @cached_property
    def innovations(self) -> Innovations:
        """The prediction error of each value given the values before it, in the regions that vary."""
        if self.texture is not None:
            return self.texture.innovations(np.asarray(self.field.values, np.float64), self.regions.labels)
        means = [mean for mean, each in zip(self.means, self.fits, strict=True) if each is not None]
        covariances = [each.covariance for each in self.fits if each is not None]
        return innovations(self.field.values, self._varying_labels, covariances, means)


def estimate(field: Field, regions: str | int | np.ndarray = "auto") -> FieldModel:
    """Fit the model: `regions` are found ("auto"), found up to a largest number, or given as a map of whole numbers."""
    field, fills = without_fills(field)
    require_squares(field)
    found = _regions(field, regions)
    given = not isinstance(regions, str | int)
    if (np.asarray(field.valid) & (found.labels < 0)).any():   # what a map leaves out is not coded, either
        field = Field(field.values, field.spacing, field.name, found.labels < 0, field.metadata)
    values = np.asarray(field.values, np.float64)
    settled = found.labels >= 0 if given or found.count == 1 else _away_from_borders(found.labels)
    means, fits = _of_regions(found, settled, values)
    if not given and sum(each is not None for each in fits) > 1:
        whole = _undivided(field, found, fits, values, fills)
        if not whole.needs_division(FieldModel(field, found, tuple(means), tuple(fits), settled, fills, True)):
            return whole
    for _ in range(ROUNDS if not given and found.count > 1 else 0):
        before, found = found, _with_better_borders(found, values, fits, means)
        settled = _away_from_borders(found.labels)
        if np.count_nonzero(found.labels != before.labels) <= MOVED * values.size:
            break
        means, fits = _of_regions(found, settled, values)
    model = FieldModel(field, found, tuple(means), tuple(fits), settled, fills, not given and found.count > 1)
    # Borders that were found are too ragged to tell: one cell on the wrong side spoils the prediction of many.
    return _of_one_texture(model, values) if given and alike(fits) else model


def _undivided(
    field: Field, found: Regions, fits: Sequence[Fit | None], values: np.ndarray, fills: tuple[Fill, ...]
) -> FieldModel:
    """The model whose regions that vary are one, and whose constant ones are as they were found."""
    varying = [region for region, each in enumerate(fits) if each is not None]
    together = largest_first(np.where(np.isin(found.labels, varying), varying[0], found.labels), field)
    settled = _away_from_borders(together.labels) if together.count > 1 else together.labels >= 0
    means, joined = _of_regions(together, settled, values)
    return FieldModel(field, together, tuple(means), tuple(joined), settled, fills, together.count > 1)


def _of_regions(found: Regions, settled: np.ndarray, values: np.ndarray) -> tuple[list[float], list[Fit | None]]:
    """The mean and the fit of each region; None for one that does not vary."""
    means: list[float] = []
    fits: list[Fit | None] = []
    for region in range(found.count):
        inside = found.labels == region
        cells = values[inside]
        means.append(float(cells.mean()))
        sure = inside & settled
        known = sure if np.count_nonzero(sure) >= max(LEAST_SURE, cells.size / 4) else inside
        fits.append(_fitted(values, inside, known, means[-1]) if float(np.ptp(cells)) > 0 else None)
    return means, fits


def require_squares(field: Field) -> None:
    """Check that squares of differences of values are neither infinite nor 0 by rounding.

    >>> require_squares(Field(np.array([0.0, 1e200])))
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: values must span between 1e-100 and 1e+100, ...; got 1e+200: multiply ...
    """
    known = np.asarray(field.values)[np.asarray(field.valid)]
    half = 0.5 * float(known.max()) - 0.5 * float(known.min()) if known.size else 0.0   # the whole may be infinite
    if half and not LEAST_SPAN < 2 * half < MOST_SPAN:
        raise WorkbenchError(
            f"values must span between {LEAST_SPAN:g} and {MOST_SPAN:g}, so that variances can be computed; "
            f"got {2 * half:g}: multiply the field by a constant"
        )


def _of_one_texture(model: FieldModel, values: np.ndarray) -> FieldModel:
    """The model whose regions are parts of one texture, if it describes the field in fewer bits."""
    labels, alone = model.regions.labels, [each for each in model.fits if each is not None]
    deviations = strengths(values, np.where(model.settled, labels, -1), len(alone))
    if deviations is None:
        return model
    mean, inside = mean_of_texture(values, labels, deviations), labels >= 0
    whole = _fitted(standardised(values, labels, mean, deviations), inside, inside & model.settled, 0.0)
    shared = OneTexture(whole, mean, deviations)
    fits = tuple(shared.of_region(region, each) for region, each in enumerate(alone))
    other = replace(model, fits=fits, means=(mean,) * len(fits), texture=shared)
    both = (model, other)
    return min(both, key=lambda each: each.innovations.total_bits + each.description_bits)


def _fitted(values: np.ndarray, inside: np.ndarray, known: np.ndarray, mean: float) -> Fit:
    """The covariance that fits the periodogram, if prediction errors confirm it; refined by them, or fitted to them."""
    cells = int(np.count_nonzero(inside))
    seen = periodogram(values, known, mean)
    found = fit(seen, cells)
    sample = Predicted.of(values, known, mean)
    if not found.independent:
        return found
    believed, members = sample.believes(found.covariance), list(found.members)
    if believed and not (seen.cut > CUT and members):
        return found
    if not believed:
        members.append(fit_neighbours(seen, sample, all_families(seen, float(np.var(values[known])))).member)
    sample = Predicted.of(values, known, mean, REFINED)   # leakage may have chosen the family
    best = min(members, key=lambda each: sample.deviance(each[0].covariance(each[1])))
    other = fit_neighbours(seen, sample, [best])
    if sample.deviance(other.covariance) >= sample.deviance(found.covariance):
        return found
    expected = found.seen.expected(other.covariance)
    judged = misfit(found.seen, expected, 0)
    parameters = 2 + values.ndim
    independent = (1.0 if believed else DOUBTED) * sample.values.size
    return Fit(other.covariance, other.family, other.deviances, judged, found.seen, expected, parameters, independent)


def _with_better_borders(
    found: Regions, values: np.ndarray, fits: Sequence[Fit | None], means: Sequence[float]
) -> Regions:
    """The map after each cell at a border was given to the region whose model predicts it best."""
    labels = reassigned(values, found.labels, [None if each is None else each.covariance for each in fits], means)
    if np.unique(labels[labels >= 0]).size < found.count:   # a region so thin that all of it is border
        return found
    labels.flags.writeable = False
    return Regions(labels, found.count)


def _away_from_borders(labels: np.ndarray) -> np.ndarray:
    """Where no other region is near: a few cells on the wrong side of a border would be fitted as noise."""
    from scipy.ndimage import maximum_filter, minimum_filter

    size = 2 * BORDER[labels.ndim] + 1
    highest = maximum_filter(labels, size)
    return np.asarray(minimum_filter(np.where(labels < 0, highest, labels), size) == highest)


def _regions(field: Field, regions: str | int | np.ndarray) -> Regions:
    if isinstance(regions, str):
        if regions != "auto":
            raise WorkbenchError(f"regions must be 'auto', a number, or a map of whole numbers; got {regions!r}")
        return segment(field)
    if isinstance(regions, int | np.integer):
        if regions < 1:
            raise WorkbenchError(f"regions must be at least 1; got {regions}")
        return segment(field, most=int(regions))
    return Regions.given(as_array("regions", regions), field)

