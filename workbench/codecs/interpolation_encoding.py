"""The encoder of interpolated fields: pass after pass, with weights fitted to each.

Each pass reads what those before it decoded, so the encoder decodes as it goes. Weights are fitted to a sample of the
targets of a pass, and kept where they save more than they take.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from workbench import backend
from workbench.codecs.codec import Tolerance
from workbench.codecs.interpolation_fit import SURVEY, UNIT, Sample, Weights
from workbench.codecs.interpolation_grid import Axes, Pass, coarsest, every, four_axes, passes, steps_of
from workbench.codecs.interpolation_model import Model, networks_of
from workbench.codecs.interpolation_stream import Blocks, Header, Rest, blocks_of, blocks_together, kind_of, targets_before
from workbench.codecs.interpolation_time import (
    STEPS,
    Known,
    Multiples,
    coarsest_forecast,
    for_kernel,
    mean_left,
    spacing_before,
)
from workbench.codecs.prequantised import Prequantised
from workbench.codecs.residuals import CONTEXTS, bits_of, counted

SAMPLED = 3000        # targets of a pass to which its weights are fitted, at most; with 0, they are the usual ones
RARE, MORE = 0.5, 2   # where a value takes fewer bits than this, so many times as many: most residuals tell nothing
IN_ROW = 4            # of these, next to each other, where they are so many
LEAST_SAMPLED = 250   # with fewer, nothing is fitted
MOST_DEAD = 0.3       # of a step, by which residuals are drawn to 0 where the mean square error counts
MANY = 20_000         # targets of a pass that is worth the fit of a second location
SAMPLED_IN_TIME, LEAST_IN_TIME = 600, 60   # targets to which multiples of earlier steps are fitted, at most and at least
FEW = 3               # times as many where a value takes few bits
ALIKE = 0.1           # multiples as near to those of the pass before stay as they are
LEAST_SAVED = 50      # bits in a pass: multiples and other weights take about as many
CLEARLY = 0.985       # of the bits may be left with an earlier step: of smaller savings, the sample may be the reason


@dataclass(frozen=True, eq=False)
class Coded:
    """The symbols of a field after all passes of the encoder, and all that is stored beside them and what follows them."""

    header: Header           # but for the lengths of its parts
    coarse: bytes            # the points that are not interpolated
    passes: Sequence[Pass]
    weights: list[Weights]   # of each pass,
    new: list[bool]          # and whether they are not those of an earlier pass
    multiples: Multiples     # of earlier steps, of each pass
    code: np.ndarray         # uint16, of each target: context * SYMBOLS + symbol
    value_bits: int          # of a value that is kept as it is

    @property
    def stored(self) -> list[bytes]:
        """The weights that are stored."""
        each = zip(self.weights, self.passes, self.new, strict=True)
        return [weights.stored(of) for weights, of, is_new in each if is_new]

    @property
    def bits(self) -> float:
        """About how many bits it takes."""
        return bits_of(counted(self.code), self.value_bits) + 8 * (len(self.coarse) + sum(map(len, self.stored)))


@dataclass(frozen=True, eq=False)
class Encoding:
    """A field whose bytes are wanted. Nothing as large as the field is kept but its symbols."""

    coded: Coded
    block_bits: int
    rest: Rest

    @classmethod
    def of(
        cls, values: np.ndarray, frozen: Axes, bits: int, bound: float, step: float, sampled: int = SAMPLED,
        finer: int = 0, model: Model | None = None, drawn: bool = False, known: Known | None = None,
    ) -> Self:
        """All passes over these values; `frozen` is among their own axes. `drawn` says if residuals are drawn to 0."""
        encoder = _Encoder(values, frozen, bound, step, sampled, finer, model, drawn, known)
        parts = [
            Rest.of(begin, some, code, number, encoder.value, encoder.shape)
            for begin, some, code, number in encoder.groups(bits)
        ]
        coded = encoder.coded
        del encoder   # with the values
        return cls(coded, bits, Rest.joined(parts))

    def to_bytes(self) -> bytes:
        """Everything."""
        coded = self.coded
        side, body = Blocks.of(coded.passes, self.block_bits, coded.code, self.rest).to_bytes()
        kept = np.packbits(np.array(coded.new, bool)).tobytes()
        forecast = coded.multiples.stored() if coded.multiples.any else b""
        header = replace(coded.header, in_time=coded.multiples.any)
        tables = zlib.compress(b"".join([forecast, kept, *coded.stored, side]), 9)
        return b"".join([header.to_bytes(len(coded.coarse), len(tables)), coded.coarse, tables, *body])


@dataclass(frozen=True, eq=False)
class Trial:
    """A field whose bytes are not wanted, but their number, and the decoded values."""

    coded: Coded
    shape: np.ndarray        # int64, of four axes
    value: np.ndarray        # as a flat array
    deviation: np.ndarray    # of each value from its location, in steps of its pass

    @classmethod
    def of(
        cls, values: np.ndarray, frozen: Axes, bits: int, bound: float, step: float, sampled: int = SAMPLED,
        finer: int = 0, model: Model | None = None, drawn: bool = False, known: Known | None = None,
    ) -> Self:
        """All passes over these values; `frozen` is among their own axes. `drawn` says if residuals are drawn to 0."""
        encoder = _Encoder(values, frozen, bound, step, sampled, finer, model, drawn, known)
        for _ in encoder.groups(bits):
            pass
        return cls(encoder.coded, encoder.shape, encoder.value, encoder.deviation)

    def mean_square(self, values: np.ndarray) -> float:
        """The mean square error of these values, which were encoded."""
        with np.errstate(all="ignore"):
            error = self.value.astype(np.float64) - values.reshape(-1)
            return float(np.mean(error * error))


class _Encoder:
    """Runs passes; each leaves the decoded values and the sizes of residuals for those after it."""

    def __init__(
        self, values: np.ndarray, frozen: Axes, bound: float, step: float, sampled: int, finer: int, model: Model | None,
        drawn: bool, known: Known | None,
    ) -> None:
        shape = four_axes(values.shape)
        frozen = tuple(axis + len(shape) - values.ndim for axis in frozen)
        original, value = values.reshape(shape), np.zeros(shape, values.dtype)
        places = every(coarsest(shape, frozen), frozen)
        self.order = passes(shape, frozen)
        multiples = Multiples.none(self.order)
        coarse, value[places], multiples.numbers[0] = _coarse_there_and_back(
            original, places, bound / (1 + 2 * MOST_DEAD) if drawn else bound, known
        )
        self.begin = targets_before(self.order)   # of each pass, and the end
        self.steps, self.networks = steps_of(self.order, step, finer), networks_of(model, self.order)
        self.original, self.value, self.shape = original.reshape(-1), value.reshape(-1), np.array(shape, np.int64)
        self.deviation, self.bound, self.mean = np.zeros(value.size, value.dtype), bound, _mean(values)
        self.known, self.multiples = known, np.zeros(STEPS, np.int16)   # those of the pass that runs
        self.left = self.value if known is None else np.empty_like(self.value)   # of decoded values, without the forecast
        self.step = 2 * bound                     # of the pass that runs
        self.dead = _dead_zones() if drawn else np.zeros(CONTEXTS)
        self.sampled, self.rate, self.answers = sampled, math.inf, list[np.ndarray]()
        self.latest: dict[int, Weights] = {}      # of passes with so many odd axes
        header = Header(step, self.mean, frozen, finer, None if model is None else model.checksum)
        code = np.empty(self.begin[-1], np.uint16)
        self.coded = Coded(header, coarse, self.order, [], [], multiples, code, 8 * value.itemsize)

    def groups(self, bits: int) -> Iterator[tuple[np.ndarray, Sequence[Pass], np.ndarray, np.ndarray]]:
        """Run all passes; yields of each group of blocks where these begin, its passes, its codes and its residuals."""
        begin, groups = blocks_of(self.order, 1 << bits)
        numbers = np.empty(max((begin[each.stop] - begin[each.start] for each in groups), default=0), np.int32)
        for group in groups:
            own = begin[group.start : group.stop + 1]
            first, last = (int(place) for place in np.searchsorted(self.begin, own[[0, -1]]))
            code, number = self.coded.code[own[0] : own[-1]], numbers[: own[-1] - own[0]]
            own = own - own[0]
            for which in range(first, last):
                inside = slice(*(self.begin[which : which + 2] - self.begin[first]))
                edges = own[(own > inside.start) & (own < inside.stop)]
                blocks = np.concatenate([[inside.start], edges, [inside.stop]]) - inside.start
                self._run(which, blocks, code[inside], number[inside])
            yield own, self.order[first:last], code, number

    def _run(self, which: int, begin: np.ndarray, code: np.ndarray, number: np.ndarray) -> None:
        """One pass, in blocks that begin at these targets."""
        of, self.step = self.order[which], float(self.steps[which])
        if self.known is not None:
            self._foresee(which, self.known)
        start = self.latest.get(key := kind_of(of)) or Weights.usual(of)
        chosen, new = self._chosen(of, start)
        self.latest[key] = chosen
        self.coded.weights.append(chosen)
        self.coded.new.append(new)
        blocks = len(begin) - 1
        together = blocks_together(blocks)
        backend.kernel("interpolation", "quantise_targets", self.value.dtype)(
            -(-blocks // together), together, blocks, begin, of.description, self._for_kernel(chosen, self.multiples),
            self.networks[which], self.shape, self.bound, self.step, self.dead, self.original, self.value, self.deviation,
            code, number, *self._forecast(self.multiples), self.left,
        )

    def _foresee(self, which: int, known: Known) -> None:
        """Choose the multiples of earlier steps for a pass, and take them away from what is known."""
        of = self.order[which]
        if spacing_before(self.order, which) != of.spacing:
            self.answers = []   # of passes with one odd axis
        if len(of.odd) == 1 or len({bool(each.any()) for each in self.answers}) != 1:   # else others follow
            with np.errstate(all="ignore"):
                self._use(which, self._multiples(which, known), known)
            self.answers.append(self.multiples)
        self.coded.multiples.numbers[1 + which] = self.multiples

    def _use(self, which: int, multiples: np.ndarray, known: Known) -> None:
        """Go on with what is left without these multiples."""
        if multiples.any() and (multiples != self.multiples).any():
            of, spacing = self.order[which], spacing_before(self.order, which)
            known.take_away(of, spacing, self.shape, multiples, self.value, self.left)
        self.multiples = multiples

    def _multiples(self, which: int, known: Known) -> np.ndarray:
        """Those with which the values take fewer bits than without, by a clear margin; else none."""
        of = self.order[which]
        none, latest = np.zeros(STEPS, np.int16), self.multiples
        start = self.latest.get(kind_of(of)) or Weights.usual(of)
        if of.targets < LEAST_IN_TIME:
            return none
        target = _spread_out(of.targets, SAMPLED_IN_TIME * (FEW if self.rate < RARE else 1), IN_ROW)
        alone = self._sample(of, target, none)
        if alone.usable < LEAST_IN_TIME / 2:
            return none
        steps = [self._sample(of, target, none, each) for each in (known.latest, known.before)[: known.steps]]
        left = alone.without(steps, latest)
        found = alone.multiples_of(steps, left.roughly(start) if _fitted(of) else start)
        if not found.any():
            return none
        if latest.any() and abs(found - latest.astype(np.int32)).max() * UNIT < ALIKE:
            found = latest
        before = self._rate(alone, target, start, none)
        self._use(which, found, known)
        after = self._rate(self._sample(of, target, found), target, start, found)
        enough = after < before * CLEARLY and (before - after) * of.targets > LEAST_SAVED
        return found if enough else none

    def _rate(self, sample: Sample, target: np.ndarray, start: Weights, multiples: np.ndarray) -> float:
        """The bits of a value with weights that suit a sample."""
        if not _fitted(sample.of):
            return sample.bits(start)
        rough = sample.roughly(start)
        if not sample.of.layered:   # deviations of other layers tell most
            return sample.bits(rough)
        self._look_back(sample, target, rough, multiples)
        return sample.foreseen(rough)[1]

    def _chosen(self, of: Pass, start: Weights) -> tuple[Weights, bool]:
        """New weights, if they save more than they take."""
        if not _fitted(of) or not self.sampled:
            return start, False
        with np.errstate(all="ignore"):   # weights that are not finite are never better
            most = self.sampled * (MORE if self.rate < RARE else 1)
            target = _spread_out(of.targets, most, IN_ROW if most >= SAMPLED else 1)
            sample = self._sample(of, target, self.multiples)
            if sample.usable < LEAST_SAMPLED:
                return start, False
            rough = sample.roughly(start)
            self._look_back(sample, target, rough, self.multiples)
            tried = [(*sample.foreseen(sample.located(rough)), sample.bits(start))]
            if of.targets >= MANY and self.sampled == SAMPLED:   # a trial is quicker without
                linear = Weights.linear(of, start)
                self._look_back(sample, target, linear, self.multiples)
                tried.append((*sample.foreseen(linear), sample.bits(start)))
            found, self.rate, before = min(tried, key=lambda one: one[1])
            saved = (before - self.rate) * of.targets
        return (found, True) if saved > 8 * len(found.stored(of)) else (start, False)

    def _sample(self, of: Pass, target: np.ndarray, multiples: np.ndarray, step: np.ndarray | None = None) -> Sample:
        """What is seen of these targets without these multiples of earlier steps; or of an earlier step there."""
        seen = np.empty((SURVEY, len(target)))
        original, known = (self.original, self._known_without(multiples)) if step is None else (step, step)
        backend.kernel("interpolation", "survey_targets", self.value.dtype)(
            len(target), target, of.description, self.shape, mean_left(self.mean, multiples), self.step / 2, original,
            known, self.deviation, seen.reshape(-1), *self._forecast(multiples),
        )
        return Sample(of, seen)

    def _look_back(self, sample: Sample, target: np.ndarray, weights: Weights, multiples: np.ndarray) -> None:
        """Add to what is seen of these targets the deviations that earlier ones have from locations with these weights."""
        backend.kernel("interpolation", "survey_earlier", self.value.dtype)(
            len(target), target, sample.of.description, self._for_kernel(weights, multiples), self.shape, self.step,
            self.original, self._known_without(multiples), self.deviation, sample.seen.reshape(-1),
            *self._forecast(multiples),
        )

    def _known_without(self, multiples: np.ndarray) -> np.ndarray:
        return self.left if multiples.any() else self.value

    def _forecast(self, multiples: np.ndarray) -> tuple[bool, np.ndarray, np.ndarray, np.ndarray]:
        """Multiples of earlier steps as kernels take them, and these steps; whether there are any is first."""
        steps = (self.value, self.value) if self.known is None else (self.known.latest, self.known.before)
        return bool(multiples.any()), for_kernel(multiples, self.value.dtype), *steps

    def _for_kernel(self, weights: Weights, multiples: np.ndarray) -> np.ndarray:
        return weights.for_kernel(mean_left(self.mean, multiples), self.step / 2, self.value.dtype)


def _fitted(of: Pass) -> bool:
    """Whether a pass has enough targets for weights of its own."""
    return of.targets >= 4 * LEAST_SAMPLED


def _spread_out(targets: int, most: int, in_row: int = 1) -> np.ndarray:
    """At most so many of the targets, from places in no regular pattern; a few in a row share lines of memory."""
    if targets <= most:
        return np.arange(targets)
    places = np.sort(np.arange(most // in_row, dtype=np.int64) * 2654435761 % (targets // in_row))
    return (places[:, None] * in_row + np.arange(in_row)).reshape(-1)


def _dead_zones() -> np.ndarray:
    """By how many steps residuals of each context are drawn to 0: fewer bits at an equal mean square error.

    For residuals with a Laplace distribution, 1/12 of a step over their scale is what the bits saved are worth, if a bit is
    worth what it is in uniform quantisation. Half of that is best here, where values predict others.
    """
    scales = 2.0 ** ((np.arange(CONTEXTS) + 0.5) / 4 - 5)   # in steps
    return np.minimum(1 / (24 * scales), MOST_DEAD)


def _mean(values: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):   # sums of numbers near the largest
        mean = float(values.mean(dtype=np.float64))
    return float(values.dtype.type(mean)) if math.isfinite(mean) else 0.0


def _coarse_there_and_back(
    original: np.ndarray, places: tuple[slice, ...], bound: float, known: Known | None
) -> tuple[bytes, np.ndarray, np.ndarray]:
    """The points that are not interpolated: encoded, and decoded again; and the multiples of earlier steps in them."""
    codec, none, whole = Prequantised(), np.zeros(STEPS, np.int16), np.array([round(1 / UNIT), 0], np.int16)
    points = np.ascontiguousarray(original[places])
    data = codec._encode_piece(points, Tolerance(absolute=bound))
    if known is not None:
        forecast = coarsest_forecast(known, places, original.shape, whole)
        differences = codec._encode_piece(points - forecast, Tolerance(absolute=bound))
        decoded = codec._decode_piece(differences, points.shape, points.dtype) + forecast
        if len(differences) < len(data) and float(abs(decoded.astype(np.float64) - points).max()) <= bound:
            return differences, decoded, whole
    return data, codec._decode_piece(data, points.shape, points.dtype), none
