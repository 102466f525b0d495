"""Training of models for the built-in codec for fields: `wb.codecs.train`.

What is minimised is the size of the code: the bits of each residual, if it has a logistic distribution with the location
and the scale that the networks answer. The networks learn from decoded neighbours, as they will see them. But what is
decoded depends on the networks: where most residuals are 0, decoded values are what was expected. So there are several
rounds. In the first, the fields are encoded without a model, in each other one with that of the round before; what was
learned from before is learned again beside the new.

A network has some hundred weights, so NumPy is fast enough: Adam with batches, on all targets or a sample of them, until
targets that were set aside take no fewer bits.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from workbench import backend
from workbench.arguments import whole_number
from workbench.codecs.interpolation import Interpolation, _part, cut_to
from workbench.codecs.interpolation_encoding import Trial
from workbench.codecs.interpolation_grid import Axes
from workbench.codecs.interpolation_model import (
    CONSTANTS,
    INPUTS,
    UNIT,
    Model,
    Network,
    constants_of,
    inputs_of,
    shapes,
)
from workbench.codecs.prequantised import lattice_step
from workbench.codecs.rounding import largest_magnitude
from workbench.data import Field
from workbench.errors import WorkbenchError, briefly
from workbench.progress import Progress

LESSON = backend.constant("interpolation.cu", "LESSON")
MOST_VALUES = 2**21      # of a field that are used: its middle
MOST_LESSONS = 2**18     # for a network
LEAST_LESSONS = 2000     # with fewer, a network stays zero
SET_ASIDE = 8            # every so many-th lesson is for deciding when to stop
BATCH = 2048
ROUNDS = 3
STEPS = 2500             # of the network with the most lessons, in each round, unless told otherwise
LEAST_STEPS = 800
RATE = 6e-3              # in the first round, a half of it in the second ...
BETWEEN = 250            # steps from one look at the lessons set aside to the next
PATIENCE = 6             # looks without fewer bits before a round ends
LEAST_RATE = 1e-2        # at the end of a round, as a share
NARROW = 0.72            # a logistic distribution with this scale deviates as far on average as a Laplace one with 1


@dataclass(frozen=True, eq=False)
class Lessons:
    """Targets of passes with one number of odd axes: what is seen of them, and what should have been expected."""

    seen: np.ndarray      # float32: a column for each row of the first layer
    offset: np.ndarray    # of the value from where it is expected, in units of the scale
    bound: np.ndarray     # in units of the scale

    def __len__(self) -> int:
        return len(self.offset)

    def part(self, which: np.ndarray) -> Lessons:
        """Those at these places."""
        return Lessons(self.seen[which], self.offset[which], self.bound[which])

    def some(self, most: int, rng: np.random.Generator) -> Lessons:
        """At most so many of them."""
        return self if len(self) <= most else self.part(rng.permutation(len(self))[:most])


@runtime_checkable
class Bound(Protocol):
    """What is used here of `wb.Absolute` and `wb.Relative`, which belong to a layer above."""

    def limit(self, values: np.ndarray) -> Any:
        """The limit for these values, with its `tolerance`."""


def train(
    fields: Any,
    bounds: float | Bound | Sequence[float | Bound] = (1e-3,),
    *,
    relative: bool = True,
    steps: int = STEPS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Model:
    """A model for fields like these, at bounds like these: `wb.codecs.get("interpolation", model=model)`.

    `fields` is a field, an array, or several of them with as many axes, such as earlier steps of a series. `bounds` are
    `wb.Absolute` or `wb.Relative`, or numbers: absolute, or `relative` to the range of each field. Each of three
    rounds takes so many `steps` for the network with the most to learn, and fewer where they help no more; 2,500 take some
    20 seconds on two cores. The same seed gives the same model on the same machine, however busy it is. From
    fewer than some 2,000 values, a network learns nothing, and changes nothing: see `model.learned`. If no network has
    learned anything, there is a warning.

    >>> rough = np.cumsum(np.random.default_rng(0).laplace(size=(96, 96)), axis=1)
    >>> model = train(rough, bounds=0.01, steps=100)
    >>> model.dimensions, Interpolation(model=model).model == model.text
    (2, True)
    """
    arrays, sizes = _arrays(fields), _bounds(bounds)
    steps = whole_number("steps", steps, least=1)
    rng = np.random.default_rng(whole_number("seed", seed, least=0))
    report = progress or (lambda _share, _what: None)
    jobs = _jobs(arrays, sizes, relative)
    dimensions, frozen = arrays[0].ndim, jobs[0].frozen
    learners = {odd: _Learner(odd, rng) for odd in range(1, dimensions - len(frozen) + 1)}
    model = None
    for turn in range(ROUNDS):
        said = f"round {turn + 1} of {ROUNDS}"
        encoded = []
        for number, job in enumerate(jobs):
            report(number / len(jobs), f"{said}: encoding")
            encoded.append((job, job.encoded(model)))
        for odd, learner in learners.items():
            learner.see(_joined([_lessons(*each, odd, rng) for each in encoded]))
        work = _work(learners, steps)
        for odd, learner in learners.items():
            what = f"{said}: training network {odd} of {len(learners)}"
            learner.learn(work[odd], RATE / (turn + 1), functools.partial(_told, report, what))
        model = Model(dimensions, frozen, {odd: learner.network() for odd, learner in learners.items()})
    assert model is not None
    if not model.learned:
        warnings.warn(_why_nothing(max(len(each.known) for each in learners.values()), steps), stacklevel=2)
    return model


def _why_nothing(lessons: int, steps: int) -> str:
    """Why no network has learned anything, and what may help."""
    if lessons < LEAST_LESSONS:
        why = f"a network needs {LEAST_LESSONS:,} values to learn from, and there are {lessons:,}: give larger fields"
    else:
        why = f"{steps:,} steps made no code smaller: take more steps, or keep the codec as it is"
    return f"the model has learned nothing, and changes nothing: {why}"


def _work(learners: Mapping[int, _Learner], steps: int) -> dict[int, int]:
    """The steps of each in a round."""
    most = max(len(each.known) for each in learners.values())
    least = min(LEAST_STEPS, steps)
    return {odd: max(round(steps * len(each.known) / max(most, 1)), least) for odd, each in learners.items()}


def _told(report: Progress, what: str, share: float) -> None:
    report(share, what)


def _arrays(fields: Any) -> list[np.ndarray]:
    """The fields as arrays of finite values; the middle of each, if it is large."""
    single = isinstance(fields, Field) or (isinstance(fields, np.ndarray) and fields.dtype != object)
    found = []
    if not (single or isinstance(fields, Iterable)):
        raise WorkbenchError(f"models are trained on a field, an array or several of them; got {briefly(fields)}")
    for each in [fields] if single else fields:
        field = Field.of(each)
        if field.values.dtype.name not in Interpolation.dtypes:
            raise WorkbenchError(f"models are trained on fields of floats; got {field!r}: convert with .astype('float32')")
        values, valid = backend.to_host(field.values), backend.to_host(field.valid)
        if not valid.any():
            raise WorkbenchError(f"models are trained on finite values; got none in {field!r}")
        found.append(_middle(np.where(valid, values, np.median(values[valid])).astype(values.dtype)))
    if not found or len({values.ndim for values in found}) > 1:
        axes = sorted({values.ndim for values in found})
        raise WorkbenchError(f"a model is trained on one or more fields with as many axes; got fields with {axes} axes")
    return found


def _bounds(bounds: float | Bound | Sequence[float | Bound]) -> list[float | Bound]:
    given = list(bounds) if isinstance(bounds, Iterable) and not isinstance(bounds, str) else [bounds]
    if not given or not all(isinstance(each, Bound) or _is_positive(each) for each in given):
        raise WorkbenchError(f"bounds must be wb.Absolute, wb.Relative or positive numbers, one or several; got {bounds!r}")
    return given


def _is_positive(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 < given < math.inf


def _absolute(bound: float | Bound, values: np.ndarray, relative: bool) -> float:
    """The largest error of any of these values."""
    if not isinstance(bound, Bound):
        return bound * float(np.ptp(values)) if relative else bound
    found: float | None = bound.limit(values).tolerance.absolute
    if found is None:
        raise WorkbenchError(f"models are trained for wb.Absolute or wb.Relative bounds; got {bound!r}")
    if not found and np.ptp(values):
        raise WorkbenchError(f"models are trained for bounds above 0; got {bound!r}")
    return found


# What is learned from.

@dataclass(frozen=True, eq=False)
class _Job:
    """A field and a bound, to be encoded again and again."""

    values: np.ndarray
    bound: float
    frozen: Axes   # among its own axes
    bits: int      # of the number of targets in a block

    def encoded(self, model: Model | None) -> Trial:
        """Its encoding with this model."""
        step = lattice_step(self.bound, largest_magnitude(self.values), self.values.dtype)
        return Trial.of(self.values, self.frozen, self.bits, self.bound, step, model=model)


def _middle(values: np.ndarray) -> np.ndarray:
    """The middle of a field, with about `MOST_VALUES` values."""
    sizes = cut_to(values.shape, MOST_VALUES)
    starts = ((whole - size) // 2 for whole, size in zip(values.shape, sizes, strict=True))
    inside = tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))
    return np.ascontiguousarray(values[inside])


def _jobs(arrays: list[np.ndarray], bounds: Sequence[float | Bound], relative: bool) -> list[_Job]:
    """Every field at every bound; the axes that are frozen for the first are frozen for all."""
    codec, found = Interpolation(finer=0), []
    for values in arrays:
        for given in bounds:
            bound = _absolute(given, values, relative)
            if not 0 < bound < math.inf:
                raise WorkbenchError(f"a model is trained on fields that are not constant; got a range of {np.ptp(values)}")
            plan = codec._plan(_part(values, bound), bound)
            codec = replace(codec, frozen=plan.frozen)
            found.append(_Job(values, bound, plan.frozen, plan.block_bits))
    return found


def _lessons(job: _Job, trial: Trial, odd: int, rng: np.random.Generator) -> Lessons:
    """Lessons from the passes with so many odd axes."""
    coded = trial.coded
    chosen = [(of, own) for of, own in zip(coded.passes, coded.weights, strict=True) if len(of.odd) == odd]
    total = sum(of.targets for of, _ in chosen)
    found = [_nothing(odd)]
    for of, own in chosen:
        count = min(of.targets, math.ceil(of.targets * MOST_LESSONS / total))
        target = np.sort(rng.choice(of.targets, count, replace=False)).astype(np.int64)
        lesson, head = np.empty((count, LESSON), np.float32), coded.header
        backend.kernel("interpolation", "survey_lessons", trial.value.dtype)(
            count, target, of.description, own.for_kernel(head.mean, head.step / 2, trial.value.dtype),
            trial.shape, head.step, job.values.reshape(-1), trial.value, trial.deviation, lesson.reshape(-1),
        )
        lesson = lesson[(lesson[:, -1] == 1) & np.isfinite(lesson).all(axis=1)]
        seen = np.zeros((len(lesson), found[0].seen.shape[1]), np.float32)
        seen[:, :CONSTANTS] = constants_of(of)
        given = inputs_of(odd, len(of.pairs))
        seen[:, CONSTANTS : CONSTANTS + given] = lesson[:, :given]
        found.append(Lessons(seen, lesson[:, INPUTS], lesson[:, INPUTS + 1]))
    return _joined(found)


def _nothing(odd: int) -> Lessons:
    empty = np.zeros(0, np.float32)
    return Lessons(np.zeros((0, shapes(odd)[0][0]), np.float32), empty, empty)


def _joined(parts: list[Lessons]) -> Lessons:
    seen, offset, bound = (np.concatenate([getattr(each, name) for each in parts]) for name in ("seen", "offset", "bound"))
    return Lessons(seen, offset, bound)


# Learning.

class _Learner:
    """A network in training: Adam, a falling rate, and the best weights so far."""

    def __init__(self, odd: int, rng: np.random.Generator) -> None:
        self.rng, self.known, self.aside = rng, _nothing(odd), _nothing(odd)
        self.layers = [
            (rng.normal(size=shape) * math.sqrt(2 / shape[0]) * gain).astype(np.float32)
            for shape, gain in zip(shapes(odd), (1.0, 1.0, 0.1), strict=True)
        ]
        self.best = [np.zeros_like(layer) for layer in self.layers]
        self.scale = np.zeros((0, 1), np.float32)

    def see(self, lessons: Lessons) -> None:
        """Add lessons to those of the round before."""
        aside = self.rng.permutation(len(lessons)) < len(lessons) // SET_ASIDE
        first = not len(self.known)
        self.known = _joined([self.known.some(MOST_LESSONS // 2, self.rng), lessons.part(~aside)])
        self.aside = lessons.part(aside)   # of the newest alone: they are what the model will meet
        if first and len(lessons):
            spread = lessons.seen.std(axis=0)
            self.scale = np.where(spread > 0, 1 / np.maximum(spread, 0.1), 0).astype(np.float32)[:, None]
            self.scale[0] = 1   # the constant
            self.layers[0] *= self.scale > 0

    def learn(self, steps: int, rate: float, report: Callable[[float], object]) -> None:
        """Take so many steps, fewer if they help no more. How long they take decides nothing."""
        if len(self.known) < LEAST_LESSONS:
            return
        looks = 0
        self.best = min([np.zeros_like(layer) for layer in self.layers], self.best, key=self._bits)
        fewest = self._bits(self.best)
        means, squares = ([np.zeros_like(layer) for layer in self.layers] for _ in range(2))
        for step in range(1, steps + 1):
            if looks > PATIENCE:
                break
            falling = rate * (LEAST_RATE + (1 - LEAST_RATE) * 0.5 * (1 + math.cos(math.pi * step / steps)))
            gradients = self._gradients(self.known.part(self.rng.integers(0, len(self.known), BATCH)))
            for layer, gradient, mean, square in zip(self.layers, gradients, means, squares, strict=True):
                mean += 0.1 * (gradient - mean)
                square += 0.01 * (gradient * gradient - square)
                layer -= falling * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
            if step % BETWEEN == 0 or step == steps:
                report(step / steps)
                rounded = self._rounded()
                looks += 1
                if (bits := self._bits(rounded)) < fewest:
                    self.best, fewest, looks = rounded, bits, 0

    def network(self) -> Network:
        """The best so far; zeros if there was too little to learn from."""
        return Network(*(np.rint(each / UNIT).astype(np.int16) for each in self.best))

    def _rounded(self) -> list[np.ndarray]:
        """The layers as they will be stored."""
        limits = np.iinfo(np.int16)
        whole = [self.layers[0] * self.scale, *self.layers[1:]]
        return [(np.clip(np.rint(each / UNIT), limits.min, limits.max) * UNIT).astype(np.float32) for each in whole]

    def _bits(self, layers: list[np.ndarray]) -> float:
        """The bits of a lesson that was set aside, on average."""
        answers = _forward(self.aside.seen, layers)[-1]
        return float(_logistic(answers, self.aside)[0].mean())

    def _gradients(self, lessons: Lessons) -> list[np.ndarray]:
        seen = lessons.seen * self.scale[:, 0]
        one, two, answers = _forward(seen, self.layers)
        outer = _logistic(answers, lessons)[1] / np.float32(len(lessons))
        found = [_with_one(two).T @ outer]
        inner = (outer @ self.layers[2][:-1].T) * np.where(two > 0, 1, 0.125).astype(np.float32)
        found.insert(0, _with_one(one).T @ inner)
        inner = (inner @ self.layers[1][:-1].T) * np.where(one > 0, 1, 0.125).astype(np.float32)
        found.insert(0, (seen.T @ inner) * (self.scale > 0))
        return found


def _forward(seen: np.ndarray, layers: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The units of both hidden layers, and the answers."""
    one = _rectified(seen @ layers[0])
    two = _rectified(one @ layers[1][:-1] + layers[1][-1])
    return one, two, two @ layers[2][:-1] + layers[2][-1]


def _rectified(values: np.ndarray) -> np.ndarray:
    return np.maximum(values, values * np.float32(0.125))


def _with_one(values: np.ndarray) -> np.ndarray:
    return np.concatenate([values, np.ones((len(values), 1), values.dtype)], axis=1)


def _logistic(answers: np.ndarray, lessons: Lessons) -> tuple[np.ndarray, np.ndarray]:
    """The bits of each lesson, and their derivatives by both answers."""
    shift, octaves = answers[:, 0], np.clip(answers[:, 1], -12, 12)
    scale = NARROW * np.exp2(octaves)
    residual = lessons.offset - shift
    size, width = np.abs(residual), np.minimum(2 * lessons.bound / scale, 60)
    upper, lower = (size + lessons.bound) / scale, (size - lessons.bound) / scale
    above, below = _logistic_of(-upper), _logistic_of(lower)
    bits = -(np.log(-np.expm1(-width)) - np.logaddexp(0, -upper) - np.logaddexp(0, lower)) / math.log(2)
    by_shift = np.sign(residual) * (above - below) / scale / math.log(2)
    by_octaves = width / np.expm1(width) + upper * above - lower * below
    derivatives = np.stack([np.clip(by_shift, -30, 30), np.clip(by_octaves, -30, 30)], axis=1)
    return bits, derivatives.astype(np.float32)


def _logistic_of(values: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * values))
