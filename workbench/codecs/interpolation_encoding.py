"""The encoder of interpolated fields: pass after pass, with weights fitted to each.

Each pass reads what those before it decoded, so the encoder decodes as it goes. Weights are fitted to a sample of the
targets of a pass, and kept where they save more than they take.
"""

from __future__ import annotations

import itertools
import math
import zlib
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.codecs.codec import Tolerance
from workbench.codecs.interpolation_fit import SURVEY, Sample, Weights
from workbench.codecs.interpolation_grid import Axes, Pass, coarsest, every, four_axes, passes, steps_of
from workbench.codecs.interpolation_model import Model, networks_of
from workbench.codecs.interpolation_stream import Blocks, Coded, Header, blocks_of, blocks_together, kind_of, targets_before
from workbench.codecs.prequantised import Prequantised
from workbench.codecs.residuals import bits_of, counted

SAMPLED = 3000        # targets of a pass to which its weights are fitted, at most; with 0, they are the usual ones
RARE, MORE = 0.5, 2   # where a value takes fewer bits than this, so many times as many: most residuals tell nothing
IN_ROW = 4            # of these, next to each other, where they are so many
LEAST_SAMPLED = 250   # with fewer, nothing is fitted
MANY = 20_000         # targets of a pass that is worth the fit of a second location


@dataclass(frozen=True, eq=False)
class Encoding:
    """A field after all passes of the encoder."""

    header: Header           # but for the lengths of its parts
    coarse: bytes            # the points that are not interpolated
    weights: list[Weights]   # of each pass,
    new: list[bool]          # and whether they are not those of an earlier pass
    coded: Coded
    deviation: np.ndarray    # of each value from its location, in steps of its pass

    @classmethod
    def of(
        cls, values: np.ndarray, frozen: Axes, bits: int, bound: float, step: float, sampled: int = SAMPLED,
        finer: int = 0, model: Model | None = None,
    ) -> Encoding:
        """All passes over these values; `frozen` is among their own axes."""
        shape = four_axes(values.shape)
        frozen = tuple(axis + len(shape) - values.ndim for axis in frozen)
        value, original = np.zeros(shape, values.dtype), values.reshape(shape)
        places = every(coarsest(shape, frozen), frozen)
        coarse, value[places] = _coarse_there_and_back(np.ascontiguousarray(original[places]), bound)
        order = passes(shape, frozen)
        encoder = _Encoder(original.reshape(-1), value.reshape(-1), shape, bound, _mean(values), sampled)
        before, begin = targets_before(order), blocks_of(order, 1 << bits)[0]
        code, number = np.empty(before[-1], np.uint16), np.empty(before[-1], np.int32)
        network, steps = networks_of(model, order), steps_of(order, step, finer)
        weights, new = [], []
        for each, step_there, (a, b), own in zip(order, steps.tolist(), itertools.pairwise(before), network, strict=True):
            inside = begin[(begin > a) & (begin < b)] - a
            blocks = np.concatenate([[0], inside, [b - a]])
            chosen, is_new = encoder.run(each, step_there, blocks, own, code[a:b], number[a:b])
            weights.append(chosen)
            new.append(is_new)
        coded = Coded(order, bits, code, number, value.reshape(-1), np.array(shape, np.int64))
        header = Header(step, encoder.mean, frozen, finer, None if model is None else model.checksum)
        return cls(header, coarse, weights, new, coded, encoder.deviation)

    @property
    def bits(self) -> float:
        """About how many bits it takes."""
        each = zip(self.weights, self.coded.passes, self.new, strict=True)
        side = len(self.coarse) + sum(len(weights.stored(of)) for weights, of, is_new in each if is_new)
        return bits_of(counted(self.coded.code), self.coded.value_bits) + 8 * side

    def mean_square(self, values: np.ndarray) -> float:
        """The mean square error of these values, which were encoded."""
        with np.errstate(all="ignore"):
            error = self.coded.value.astype(np.float64) - values.reshape(-1)
            return float(np.mean(error * error))

    def to_bytes(self) -> bytes:
        """Everything."""
        side, body = Blocks.of(self.coded).to_bytes()
        each = zip(self.weights, self.coded.passes, self.new, strict=True)
        stored = [weights.stored(of) for weights, of, is_new in each if is_new]
        kept = np.packbits(np.array(self.new, bool)).tobytes()
        tables = zlib.compress(b"".join([kept, *stored, side]), 9)
        return b"".join([self.header.to_bytes(len(self.coarse), len(tables)), self.coarse, tables, body])


class _Encoder:
    """Runs passes; each leaves the decoded values and the sizes of residuals for those after it."""

    def __init__(
        self, original: np.ndarray, value: np.ndarray, shape: Axes, bound: float, mean: float, sampled: int
    ) -> None:
        self.original, self.value, self.bound, self.mean = original, value, bound, mean
        self.step = 2 * bound   # of the pass that runs
        self.sampled, self.rate = sampled, math.inf
        self.deviation = np.zeros(value.size, value.dtype)
        self.shape = np.array(shape, np.int64)
        self.latest: dict[int, Weights] = {}   # of passes with so many odd axes

    def run(
        self, of: Pass, step: float, begin: np.ndarray, network: np.ndarray, code: np.ndarray, number: np.ndarray
    ) -> tuple[Weights, bool]:
        """One pass, in blocks that begin at these targets; returns its weights, and whether they are new."""
        self.step = step
        start = self.latest.get(key := kind_of(of)) or Weights.usual(of)
        chosen, new = self._chosen(of, start)
        self.latest[key] = chosen
        blocks = len(begin) - 1
        together = blocks_together(blocks)
        backend.kernel("interpolation", "quantise_targets", self.value.dtype)(
            -(-blocks // together), together, blocks, begin, of.description, self._for_kernel(chosen), network,
            self.shape, self.bound, self.step, self.original, self.value, self.deviation, code, number,
        )
        return chosen, new

    def _chosen(self, of: Pass, start: Weights) -> tuple[Weights, bool]:
        """New weights, if they save more than they take."""
        if of.targets < 4 * LEAST_SAMPLED or not self.sampled:
            return start, False
        sample = self._sample(of, start)
        if len(sample.offset) < LEAST_SAMPLED:
            return start, False
        with np.errstate(all="ignore"):   # weights that are not finite are never better
            located = [sample.located(start)]
            if of.targets >= MANY and self.sampled == SAMPLED:   # a trial is quicker without
                located.append(Weights.linear(of, start))
            samples = [self._sample(of, each) for each in located]   # with the deviations from each
            tried = [sample.foreseen(each) for sample, each in zip(samples, located, strict=True)]
            best = min(range(len(tried)), key=lambda number: tried[number][1])
            found, self.rate = tried[best]
            saved = (samples[best].bits(start) - self.rate) * of.targets
        return (found, True) if saved > 8 * len(found.stored(of)) else (start, False)

    def _sample(self, of: Pass, weights: Weights) -> Sample:
        """What is seen of some targets."""
        target = _spread_out(of.targets, self.sampled * (MORE if self.rate < RARE else 1))
        seen = np.empty((SURVEY, len(target)))
        backend.kernel("interpolation", "survey_targets", self.value.dtype)(
            len(target), target, of.description, self._for_kernel(weights), self.shape, self.step, self.original,
            self.value, self.deviation, seen.reshape(-1),
        )
        return Sample.of_survey(of, seen, self.mean, self.step / 2)

    def _for_kernel(self, weights: Weights) -> np.ndarray:
        return weights.for_kernel(self.mean, self.step / 2, self.value.dtype)


def _spread_out(targets: int, most: int) -> np.ndarray:
    """At most so many of the targets, from places in no regular pattern; of many, a few in a row share lines of memory."""
    if targets <= most:
        return np.arange(targets)
    in_row = IN_ROW if most >= SAMPLED else 1
    places = np.sort(np.arange(most // in_row, dtype=np.int64) * 2654435761 % (targets // in_row))
    return (places[:, None] * in_row + np.arange(in_row)).reshape(-1)


def _mean(values: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):   # sums of numbers near the largest
        mean = float(values.mean(dtype=np.float64))
    return float(values.dtype.type(mean)) if math.isfinite(mean) else 0.0


def _coarse_there_and_back(points: np.ndarray, bound: float) -> tuple[bytes, np.ndarray]:
    """The points that are not interpolated: encoded, and decoded again."""
    codec = Prequantised()
    data = codec._encode_piece(points, Tolerance(absolute=bound))
    return data, codec._decode_piece(data, points.shape, points.dtype)
