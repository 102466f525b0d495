"""The weights of a pass of the built-in codec for fields: how to interpolate, and how far off that may be.

Both are linear in what is seen of a target's neighbours, so a few numbers describe them; they are fitted to a sample of
the pass and stored. The location is fitted by least squares with the weights 1 / scale², because the values that cost
most bits are those that are predicted best. The scale is a sum with weights that are not negative, fitted by maximum
likelihood for residuals with a Laplace distribution: the updates of the Itakura-Saito factorisation, which keep the sign.
The sums are in `kernels/interpolation_fit.cu`.

Only the encoder fits. The decoder gets whole numbers, so that both compute with the same weights.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.codecs.codec import CodecFailed
from workbench.codecs.interpolation_grid import AXES, PAIRS, Pass

WEIGHTS = backend.constant("interpolation.cuh", "WEIGHTS")
SURVEY = backend.constant("interpolation.cuh", "SURVEY")
OF_SCALE = backend.constant("interpolation.cuh", "OF_SCALE")
UNIT = 2.0**-12              # of the weights of a location, and of multiples of earlier steps
SCALE_UNIT = 2.0**-6         # of the root of the weights of a scale, except of the first
TERMS = backend.constant("interpolation_fit.cu", "TERMS")   # of a scale: 1, three kinds of differences, four of deviations
LEAST_SCALE = 0.02           # in units of the bound
MOST_SHRINK = 0.97           # nearer to 1, nothing is tried
PLAINER = 1.005              # a plainer location may take so much more, on the sample

# What the first weight of a scale can be, in eighths of octaves: it alone is the scale where a field is equally rough.
_CONSTANTS = np.ldexp(8.0 + np.arange(256) % 8, np.arange(256) // 8 - 14)
_BETWEEN = (_CONSTANTS[1:] + _CONSTANTS[:-1]) / 2
_ACROSS, _BEND, _BESIDE, _EARLIER = 1, AXES, 2 * AXES, 2 * AXES + PAIRS   # where these begin among a location's numbers


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of a pass as whole numbers: of the location (`shrink` first), and of the scale.

    With a shrink of less than 1, the location moves from what was interpolated towards the mean of the field.
    """

    location: np.ndarray   # int16: shrink, across, bend, beside, earlier
    scale: np.ndarray      # uint8

    @classmethod
    def usual(cls, of: Pass) -> Weights:
        """Cubic interpolation, averaged over the odd axes, and the scale of an average field."""
        odd = len(of.odd)
        location = np.zeros(_EARLIER + AXES)
        location[0] = 1
        location[_ACROSS : _ACROSS + odd - 1] = 1 / odd
        location[_BEND : _BEND + odd] = -1 / (16 * odd)
        scale = np.array([0.2, 0.03 / odd, 0.06 / odd, 0.1 / max(odd - 1 + len(of.pairs), 1), 0.15 / odd, 0, 0.1, 0.2])
        return cls.rounded(location, scale)

    @classmethod
    def linear(cls, of: Pass, like: Weights) -> Weights:
        """Linear interpolation, averaged over the odd axes, with the scale of other weights.

        It predicts less than other locations, but where a field is rough, deviations from it are alike in neighbouring
        lines.
        """
        location = np.zeros(_EARLIER + AXES)
        location[0] = 1
        location[_ACROSS : _ACROSS + len(of.odd) - 1] = 1 / len(of.odd)
        return cls(cls.rounded(location, np.zeros(TERMS)).location, like.scale)

    @classmethod
    def rounded(cls, location: np.ndarray, scale: np.ndarray) -> Weights:
        """The nearest whole numbers."""
        scale = np.where(np.isfinite(scale), scale, 0)
        whole = np.rint(np.sqrt(scale) / SCALE_UNIT)
        whole[0] = np.searchsorted(_BETWEEN, scale[0])
        nearest = np.minimum(np.maximum(np.rint(location / UNIT), -(2**15)), 2**15 - 1)
        return cls(nearest.astype(np.int16), np.minimum(whole, 255).astype(np.uint8))

    @property
    def of_scale(self) -> np.ndarray:
        """The weights of the scale as numbers."""
        found = (self.scale * SCALE_UNIT) ** 2
        found[0] = _CONSTANTS[self.scale[0]]
        return found

    def stored(self, of: Pass) -> bytes:
        """The numbers that this pass uses."""
        return self.location[_used(of)].astype("<i2").tobytes() + self.scale.tobytes()

    @classmethod
    def read(cls, data: bytes, at: int, of: Pass) -> tuple[Weights, int]:
        """What `stored` wrote, from this place in the bytes on, and the place behind it."""
        columns = _used(of)
        behind = at + 2 * len(columns) + TERMS
        if len(data) < behind:
            raise CodecFailed("the weights of an interpolated field are truncated")
        location = np.zeros(_EARLIER + AXES, np.int16)
        location[columns] = np.frombuffer(data, "<i2", len(columns), at)
        return cls(location, np.frombuffer(data, np.uint8, TERMS, behind - TERMS)), behind

    def for_kernel(self, mean: float, bound: float, dtype: np.dtype) -> np.ndarray:
        """The weights as kernels take them; `mean` is that of the field."""
        location, scale = self.location * UNIT, self.of_scale
        with np.errstate(over="ignore"):   # a scale that is infinite has the last context
            scale[1:4] /= bound
        found = np.zeros(WEIGHTS)
        found[:2] = location[0], mean
        found[2 : 1 + AXES] = location[_ACROSS:_BEND]
        found[1 + AXES : 1 + 2 * AXES] = location[_BEND:_BESIDE]
        found[9 : 9 + PAIRS] = location[_BESIDE:_EARLIER]
        found[12 : 12 + AXES] = location[_EARLIER:] * 2 * bound
        found[16 : 16 + TERMS] = scale
        with np.errstate(over="ignore"):
            return found.astype(dtype)


@functools.lru_cache(maxsize=1024)
def _columns(of: Pass) -> np.ndarray:
    """The places of the numbers of a location that a pass uses for points of other passes."""
    odd = len(of.odd)
    across, bend = range(_ACROSS, _ACROSS + odd - 1), range(_BEND, _BEND + odd)
    return np.array([*across, *bend, *range(_BESIDE, _BESIDE + len(of.pairs))])


@functools.lru_cache(maxsize=1024)
def _lines(of: Pass) -> np.ndarray:
    """The places of those for earlier points of the same pass."""
    return _EARLIER + np.array(of.lined, np.int64)


def _used(of: Pass) -> np.ndarray:
    """The places of all numbers of a location that a pass uses."""
    return np.concatenate([[0], _columns(of), _lines(of)])


@dataclass(frozen=True, eq=False)
class Sample:
    """What was seen of some targets of a pass, in units of the bound, as `survey_targets` writes it: column by column."""

    of: Pass
    seen: np.ndarray

    @property
    def offset(self) -> np.ndarray:
        """How far each value is from the middle between its neighbours."""
        return self.seen[0]

    @property
    def middle(self) -> np.ndarray:
        """How far that middle is from the mean of the field."""
        return self.seen[1]

    @property
    def terms(self) -> np.ndarray:
        """What a location is made of: a column for each number that is used."""
        return self.seen[2 : 2 + len(_columns(self.of))]

    @property
    def scale(self) -> np.ndarray:
        """What a scale is made of."""
        return self.seen[OF_SCALE : OF_SCALE + TERMS]

    @property
    def earlier(self) -> np.ndarray:
        """The deviations of earlier targets: a column for each axis with several."""
        begin = 2 + len(_columns(self.of))
        return self.seen[begin : begin + len(self.of.lined)]

    @functools.cached_property
    def usable(self) -> int:
        """How many targets have neighbours on both sides, and finite numbers; the others have zeros."""
        return int(np.count_nonzero(self.scale[0]))

    def deviation(self, weights: Weights) -> np.ndarray:
        """How far each value is from its location."""
        numbers = weights.location * UNIT
        moved = _combined(self.terms, numbers[_columns(self.of)])
        return self.offset + self.middle - numbers[0] * (self.middle + moved)

    def bits(self, weights: Weights) -> float:
        """The bits of a value on average, if residuals have a Laplace distribution with these scales."""
        found, numbers = np.empty(1), weights.location * UNIT
        shrink, used = numbers[0], numbers[_used(self.of)]
        used[0] = shrink - 1                              # of the middle
        used[1 : 1 + len(_columns(self.of))] *= shrink
        backend.kernel("interpolation_fit", "fit_bits")(
            1, len(self.offset), len(used), self.seen[1 : 1 + len(used)].reshape(-1), self.offset, self.scale.reshape(-1),
            used, weights.of_scale, found,
        )
        return float(found[0]) * len(self.offset) / self.usable

    def without(self, steps: Sequence[Sample], multiples: np.ndarray) -> Sample:
        """What is seen where multiples of earlier steps are taken away, but for the terms of the scale."""
        seen = self.seen.copy()
        for step, multiple in zip(steps, (multiples * UNIT).tolist(), strict=False):
            seen[:OF_SCALE] -= multiple * step.seen[:OF_SCALE]
        return Sample(self.of, seen)

    def multiples_of(self, steps: Sequence[Sample], weights: Weights) -> np.ndarray:
        """The multiples of earlier steps that say most of what these weights miss, as whole numbers."""
        missed = np.array([step.deviation(weights) for step in steps])
        found, _ = self._fitted(missed, self.deviation(weights), weights.of_scale)
        whole = np.zeros(2, np.int16)
        whole[: len(found)] = np.minimum(np.maximum(np.rint(found / UNIT), -(2**15)), 2**15 - 1)
        return whole

    def roughly(self, start: Weights) -> Weights:
        """Weights of a location for which deviations are small, found from this start, and the scale of what is left."""
        location = start.location * UNIT
        location[0], location[_lines(self.of)] = 1, 0
        _, scale = self._fitted(self.terms[:0], self.deviation(start), start.of_scale)
        location[_columns(self.of)], scale = self._fitted(self.terms, self.offset, scale)
        return Weights.rounded(location, scale)

    def located(self, start: Weights) -> Weights:
        """The same if they are better than those at the start, and nearer to the mean where that saves bits."""
        return self._shrunk(*self._better(self.roughly(start), start, self.bits(start)))

    def foreseen(self, start: Weights) -> tuple[Weights, float]:
        """The same weights of other passes, with those of earlier targets and of the scale that suit them; and the bits."""
        location = start.location * UNIT
        location[_lines(self.of)], scale = self._fitted(self.earlier, self.deviation(start), start.of_scale)
        return self._better(Weights.rounded(location, scale), start, self.bits(start))

    def _better(self, found: Weights, best: Weights, fewest: float) -> tuple[Weights, float]:
        """The weights that take fewer bits."""
        return (found, bits) if (bits := self.bits(found)) < fewest else (best, fewest)

    def _fitted(self, columns: np.ndarray, wanted: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights of columns with which their sum is near what is wanted, and those of a scale that suits what is left."""
        found, scale = np.zeros(len(columns)), scale.copy()
        backend.kernel("interpolation_fit", "fit_weights")(
            1, len(wanted), len(columns), columns.reshape(-1), wanted, self.scale.reshape(-1), found, scale
        )
        return found, scale

    def _shrunk(self, best: Weights, fewest: float) -> Weights:
        """With a location nearer to the mean, where that saves a part of the bits."""
        numbers = best.location * UNIT
        interpolated = self.middle + _combined(self.terms, numbers[_columns(self.of)])
        weight = 1 / np.maximum(_combined(self.scale, best.of_scale), LEAST_SCALE) ** 2
        norm = float((weight * interpolated**2).sum())
        shrink = float((weight * interpolated * (self.offset + self.middle)).sum()) / norm if norm > 0 else 1.0
        if shrink > MOST_SHRINK:
            return best
        found = self._towards_mean(best, interpolated, max(shrink, 0.0))
        none = self._towards_mean(best, interpolated, 0.0)
        if self.bits(none) < PLAINER * self.bits(found):   # white noise, whose correlations are those of the sample
            found = none
        return found if PLAINER * self.bits(found) < fewest else best

    def _towards_mean(self, best: Weights, interpolated: np.ndarray, shrink: float) -> Weights:
        numbers = best.location * UNIT
        numbers[0] = shrink
        residual = self.offset + self.middle - shrink * interpolated
        return Weights.rounded(numbers, self._fitted(self.terms[:0], residual, best.of_scale)[1])


def _combined(terms: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The columns, weighted and added up; not by `@`, as the order in which BLAS adds up depends on its threads."""
    found = np.zeros(terms.shape[1])
    for column, weight in zip(terms, weights.tolist(), strict=True):
        found += weight * column
    return found
