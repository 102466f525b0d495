"""What is learned of a field before anything is compressed: samples of prediction errors, and entropies of their numbers.

Codecs for fields predict each value from others and code the prediction error, rounded by the bound. Which values they
predict from is imitated at a few thousand places. An interpolating codec refines a grid by a factor of two along one
axis after the other; samples have strides and axes in the shares in which they occur (`targets.py`), so that one histogram
is that of the whole field. What the codec predicts from are decoded values, so their errors are imitated by uniform noise
within the bound: without it, entropies at large bounds are far too small.

Other codecs are imitated by transforms of whole patches (`patches.py`) and blocks (`blocks.py`). Samples are taken once for
each field, whatever its size, and serve all bounds and codecs; all bounds are then evaluated in one pass over them. Where
values are masked or not finite, samples see what codecs see, the last valid value before.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.bounds.prediction.blocks import Blocks, blocks_of
from workbench.bounds.prediction.patches import Coefficients, coefficients
from workbench.bounds.prediction.places import SEED
from workbench.bounds.prediction.residuals import OF_TABLES, Residuals
from workbench.bounds.prediction.sample_places import (
    Stencils,
    Targets,
    both_orders,
    cells_for,
    places_for,
    steps_of,
    windows_for,
)
from workbench.codecs.gaps import filled
from workbench.data import Field

PLACES = 4096          # of each sample: entropies below 8 bits are then accurate to about a percent
FEWEST, SHARE = 768, 192   # but fewer in small fields, of which one value in so many is looked at
BENT = 4.0             # times a sixteenth of how far values in a row are from a line: as telling as residuals around
RESIDUALS = 8192       # with their surroundings, each scale of which needs samples of its own
WINDOWS = 256
FEW = 512              # to choose between orders of axes
LEVELS = 6             # of grid refinement that are told apart,
FIRST_LEVELS = 2       # and to choose between orders of axes
QUANTILES = np.array([0.5, 0.9, 0.99])   # of the size of errors
QUANTILES_OF_WINDOWS = (0.1, 0.5, 0.9)   # of the variance in windows: calm, usual and stormy ones


@dataclass(eq=False)
class Errors:
    """Errors of several predictors at sampled places, a row each, the noise that a bound of 1 adds, and weights of places.

    `pairs` are errors at some of the places, and those of the values that a codec predicts next to them. `counted` are the
    weights of valid values alone. Each kind of weights adds up to one.
    """

    here: np.ndarray
    noise: np.ndarray
    weight: np.ndarray
    counted: np.ndarray
    pairs: np.ndarray
    of_pairs: np.ndarray

    @functools.cached_property
    def sizes(self) -> np.ndarray:
        """The median, the 90th and the 99th percentile of their size, one column for each predictor."""
        found = np.empty((len(QUANTILES), len(self.here)))
        for column, errors in enumerate(self.here):
            size = np.abs(errors)
            order = size.argsort()
            places = self.weight[order].cumsum().searchsorted(QUANTILES)
            found[:, column] = size[order[np.minimum(places, size.size - 1)]]
        return found

    @functools.cached_property
    def exact(self) -> np.ndarray:
        """The share of errors that are zero."""
        found: np.ndarray = (self.here == 0) @ self.weight
        return found


def valid_and_ends(field: Field) -> tuple[np.ndarray | None, np.ndarray]:
    """Where values are finite and not masked, None where all are; and the ends of the range of all.

    >>> valid_and_ends(Field(np.arange(3.0)))[0] is None, valid_and_ends(Field(np.array([1.0, np.inf])))[0].tolist()
    (True, [True, False])
    """
    ends = np.array([field.values.min(), field.values.max()])
    if field.mask is None and np.isfinite(ends).all():
        return None, ends
    found: np.ndarray = field.valid
    return None if found.all() else found, ends


class Survey:
    """Samples of a field, each taken when it is first needed; `valid` is None where all values are.

    >>> survey = Survey(Field(np.sin(np.arange(4096.0)).reshape(64, 64)))
    >>> survey.interpolation.here.shape
    (2, 768)
    """

    def __init__(self, field: Field) -> None:
        values = field.values
        self.shape = tuple(n for n in values.shape if n > 1) or (1,)
        self.size = self.count = values.size
        self.valid, self.ends = valid_and_ends(field)
        if self.valid is not None:
            self.count = int(np.count_nonzero(self.valid))
            values = filled(values, self.valid)
            self.ends = np.array([values.min(), values.max()])   # of valid values, between which the others are
        self._values = values.reshape(self.shape)
        self._valid = None if self.valid is None else self.valid.reshape(self.shape)
        self._flat = self._values.reshape(-1)
        self.places = min(max(self.size // SHARE, FEWEST), PLACES)
        self._starts: np.ndarray | None = None

    @property
    def valid_share(self) -> float:
        """The share of values that are neither masked nor infinite nor NaN."""
        return self.count / self.size

    @functools.cached_property
    def values(self) -> np.ndarray:
        """Valid values at places spread over the field."""
        places = places_for(self.shape, (0,) * len(self.shape), self.places)
        counted = self._valid_at(places)
        return self._at(places if counted is None or not counted.any() else places[counted])

    @functools.cached_property
    def interpolation(self) -> Errors:
        """Of cubic and of linear interpolation, the axes refined in the preferred order."""
        at = Targets.of(self.shape, self._axes, LEVELS, self.places)
        if not at.places.size:
            none, all_of_one = np.zeros((2, 1)), np.ones(1)
            return Errors(none, none.astype(np.float32), all_of_one, all_of_one, np.zeros((2, 2, 1)), all_of_one)
        valid = self._valid_at(at.places)
        counted = at.weight if valid is None or not valid.any() else at.weight * valid / (at.weight @ valid)
        errors = at.stencils.errors(self._flat)
        here, beside = np.ascontiguousarray(errors[:, : len(at.places)]), errors[:, len(at.places) :]
        return Errors(here, at.noise, at.weight, counted, np.stack([here[:, at.chosen], beside]), at.of_chosen)

    def coded_by_scale(self, limits: np.ndarray) -> np.ndarray:
        """Bits of a value for a codec that foresees the scale of residuals, and may leave out the roughest axis."""
        residuals, roughest = self._residuals(self._axes)
        alone = np.log2(1 + 2 * self.deviation / limits)   # bits of a value that is not interpolated
        found = residuals.bits(limits, alone)
        if len(self._axes) > 1:
            residuals, _ = self._residuals(tuple(axis for axis in self._axes if axis != roughest))
            found = np.minimum(found, residuals.bits(limits, alone))
        return found + 8 * OF_TABLES / self.size

    @functools.cached_property
    def _axes(self) -> tuple[int, ...]:
        """The axes in the order of refinement, forwards or backwards, of smaller errors."""
        axes = tuple(range(len(self.shape)))
        return axes if len(axes) == 1 or self._prefers() else axes[::-1]

    @functools.cached_property
    def deviation(self) -> float:
        """The standard deviation of the values."""
        return float(self.values.std())

    @functools.cached_property
    def reach(self) -> float:
        """The range of all values."""
        return float(self.ends[1]) - float(self.ends[0])

    @functools.cached_property
    def corners(self) -> np.ndarray:
        """The values of unit cells, one row for each corner; the first is the one that is predicted."""
        count = self.places if len(self.shape) < 3 else self.places // 2
        return self._at(cells_for(self.shape, count))

    @functools.cached_property
    def variances(self) -> np.ndarray:
        """The variance in windows of up to 7 points along each axis, thinned out; for four axes, of the last three."""
        windows, found = windows_for(self.shape, WINDOWS), np.empty(WINDOWS)
        backend.kernel("samples", "window_variances", self._flat.dtype)(
            *windows.shape, self.size, self._flat, windows, found
        )
        return found

    @functools.cached_property
    def storminess(self) -> np.ndarray:
        """The standard deviation in calm, usual and stormy windows."""
        found: np.ndarray = np.sqrt(np.sort(self.variances)[[int(share * WINDOWS) for share in QUANTILES_OF_WINDOWS]])
        return found

    @functools.cached_property
    def step(self) -> float:
        """The 90th percentile of the change from one value to the next."""
        return float(np.quantile(np.abs(self.corners[0] - self.corners[1]), 0.9))

    @functools.cached_property
    def blocks(self) -> Blocks:
        """Blocks of 4 points along each axis, as ZFP transforms them."""
        return blocks_of(self._values, self._valid)

    @functools.cached_property
    def wavelets(self) -> Coefficients:
        """The wavelet coefficients of patches."""
        return coefficients(self._values, np.random.default_rng(SEED), self._starts)

    def look_at(self, starts: np.ndarray | None) -> None:
        """Take the patches that start at these corners from now on, as in another step of a series; None for one's own."""
        if starts is not self._starts:
            self._starts = starts
            self.__dict__.pop("wavelets", None)

    def _prefers(self) -> bool:
        """Whether errors on the finest levels are smaller forwards than backwards, on the mean of their logarithms."""
        stencils, weight = both_orders(self.shape, FIRST_LEVELS, FEW)
        if not weight.size:
            return True
        size = np.abs(stencils.errors(self._flat)[0])
        return float(np.log2(size + 1e-6 * size.mean() + 1e-300) @ weight) <= 0

    def _residuals(self, axes: tuple[int, ...]) -> tuple[Residuals, int]:
        """Residuals of a grid that is refined along these axes, and the axis along which they are largest."""
        at = Targets.of(self.shape, axes, LEVELS, RESIDUALS)
        if not at.places.size:
            return Residuals(np.zeros((2, 1)), np.zeros((2, 1)), np.zeros(1), np.ones(1), 0.0), axes[0]
        reach = np.where(at.wide, 3, 1) * at.step
        beside = [-2 * at.step, 2 * at.step, *(-2 * at.stride * of_axis for of_axis in steps_of(self.shape))]
        here, *others = (
            Stencils.of(np.clip(at.places + to, reach, self.size - 1 - reach), at.step, at.wide).errors(self._flat)
            for to in (np.zeros_like(at.step), *beside)
        )
        around = np.mean(np.abs(others), axis=0) + BENT * np.abs(here[0] - here[1])
        finest = np.where(at.stride == 1, at.axis, -1)
        means = [np.abs(here[0, finest == axis]).mean() if (finest == axis).any() else 0.0 for axis in axes]
        return Residuals(here, around, at.noise[1], at.weight, at.share), axes[int(np.argmax(means))]

    def _at(self, places: np.ndarray) -> np.ndarray:
        return self._flat[places].astype(np.float64)

    def _valid_at(self, places: np.ndarray) -> np.ndarray | None:
        return None if self._valid is None else self._valid.reshape(-1)[places]
