"""`wb.bounds.train`: an expert on a codec from fields that are compressed at several bounds."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.archive import choice
from workbench.bounds.prediction.expert import COVERAGE, FIGURES, Expert, Known, Learned, with_distances
from workbench.bounds.prediction.features import LEAST_LOSS, LEAST_NOISE, Counts, Features, features_of
from workbench.bounds.prediction.survey import Survey
from workbench.bounds.prediction.trees import Trees
from workbench.bounds.sweep import questions_of
from workbench.codecs import Codec, Tolerance
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound
from workbench.metrics import pointwise, ssim
from workbench.metrics.similarity import WINDOW

LEAST_ROWS = 40          # below which nothing can be learned
FOLDS = 10               # of kinds of data, each left out once
WIDTH_TREES = 60
MOST_KNOWN = 600         # rows by which data are recognised
USUAL = 0.9              # quantile of distances between kinds, beyond which data are unlike the training
LEAST_JUDGED = {"loss": 1e-6}   # of a figure: smaller losses of similarity are alike for all purposes
LEAST_MISTAKE = 0.004    # of a logarithm: below it, mistakes are chance


@dataclass(frozen=True, eq=False)
class Lesson:
    """One field of a kind at several bounds: its features, and what the codec did."""

    kind: Hashable
    features: Features
    outcomes: Sequence[Outcome]


def train(
    fields: Iterable[Any],
    codec: str | Codec,
    bounds: Sequence[Bound],
    groups: Sequence[Hashable] | None = None,
    *,
    progress: Callable[[float | None, str], object] | None = None,
) -> Expert:
    """An expert on this codec for data like these fields, which are compressed at each of the bounds.

    `groups` names what kind of data each field is, by default each its own. Kinds are left out in turn to measure how wrong
    the expert is about kinds that it has not seen, which sets its intervals; so there must be at least two.

    >>> import workbench as wb
    >>> fields = [wb.synthetic.gaussian_field((32, 32), 1 + seed % 4, seed) for seed in range(8)]
    >>> expert = train(fields, "prequantised", [wb.Relative(10**-k) for k in (1.0, 1.5, 2.0, 2.5, 3.0)])
    >>> prediction = wb.predict(fields[0], "prequantised", [wb.Relative(0.005)], expert=expert)
    >>> prediction.rows[0].ratio_low < prediction.rows[0].ratio < prediction.rows[0].ratio_high
    True
    """
    chosen = questions_of([codec], Absolute(1.0))[0].codec
    chosen.require()
    checked = [Field.of(field) for field in fields]
    kinds = list(range(len(checked))) if groups is None else list(groups)
    if len(kinds) != len(checked):
        raise WorkbenchError(f"groups must name the kind of each field; got {len(kinds)} for {len(checked)} fields")
    limited = [bound for bound in bounds if isinstance(bound, Bound)]
    if len(limited) != len(bounds) or not limited:
        raise WorkbenchError(f"bounds must be wb.Absolute(...) or wb.Relative(...), at least one; got {bounds!r}")
    lessons: list[Lesson] = []
    for number, (field, kind) in enumerate(zip(checked, kinds, strict=True)):
        if progress is not None:
            progress(number / len(checked), f"field {number + 1} of {len(checked)}")
        lessons.append(lesson_of(Survey(field), chosen, outcomes(field, chosen, limited), kind))
    return fitted(lessons, chosen)


@dataclass(frozen=True)
class Outcome:
    """What a codec did with a field within a limit; `loss` is None where it was not measured."""

    limit: float
    bits: float
    noise: float
    loss: float | None


def lesson_of(survey: Survey, codec: Codec, measured: Sequence[Outcome], kind: Hashable) -> Lesson:
    """Outcomes beside the features of the field."""
    return Lesson(kind, features_of(Counts(survey, np.array([each.limit for each in measured])), codec), measured)


def outcomes(field: Field, codec: Codec, bounds: Sequence[Bound]) -> list[Outcome]:
    """What the codec does with a field at each bound that is not zero for it.

    As in an archive, the codec is tuned, and gets values in place of those that are masked or not finite.
    """
    field.require_floats("training")
    valid = field.valid
    if not valid.any():
        raise WorkbenchError(f"training takes fields with values; all of {field!r} are masked or not finite")
    whole = bool(valid.all())
    compared, middle = Field(field.values, mask=None if whole else ~valid), choice.middle(field.shape)
    found = []
    for bound in bounds:
        limit = bound.limit(field.values, None if whole else valid)
        if limit.relative:
            raise WorkbenchError(f"bounds must be absolute or relative to the range; got {bound!r}")
        if not limit.value > 0:
            continue
        tolerance = Tolerance(absolute=limit.value)
        tuned = choice.tuned(codec, field.values[middle], None if whole else ~valid[middle], limit)
        data = tuned.encode(field.values, tolerance) if whole else tuned.encode_with_gaps(field.values, valid, tolerance)
        decoded = Field(codec.decode(data, field.shape, field.values.dtype), mask=compared.mask)
        errors = pointwise(compared, decoded)
        noise = max(errors.rms_error**2 / (limit.value**2 / 3), LEAST_NOISE)
        loss = None
        sides = [n for n in field.shape if n > 1]
        if len(sides) > 1 and min(sides[-3:]) >= WINDOW:
            similarity = ssim(compared, decoded, errors=errors)
            loss = None if similarity is None or math.isnan(similarity) else max(1 - similarity, LEAST_LOSS)
        found.append(Outcome(limit.value, 8 * len(data) / field.values.size, noise, loss))
    return found


def fitted(lessons: Sequence[Lesson], codec: Codec, calibrating: Collection[Hashable] | None = None) -> Expert:
    """The expert that these lessons teach; kinds in `calibrating` set its intervals, by default all."""
    used = [lesson for lesson in lessons if len(lesson.features)]
    count, kinds = sum(len(lesson.features) for lesson in used), {lesson.kind for lesson in used}
    if count < LEAST_ROWS or len(kinds) < 2:
        raise WorkbenchError(
            f"training needs at least {LEAST_ROWS} pairs of a field and a bound, from at least 2 kinds of data; got "
            f"{count} from {len(kinds)}"
        )
    vectors = np.concatenate([lesson.features.vectors for lesson in used])
    groups = [lesson.kind for lesson in used for _ in lesson.outcomes]
    judging = kinds if calibrating is None else set(calibrating)
    known, away = _known(vectors, groups)
    learned = {}
    for name in FIGURES:
        true = [getattr(each, name) for lesson in used for each in lesson.outcomes]
        there = np.array([value is not None and value > LEAST_JUDGED.get(name, 0) for value in true])
        some = [group for group, held in zip(groups, there, strict=True) if held]
        if len(some) >= LEAST_ROWS and len(judging & set(some)) >= 2:
            base = np.concatenate([getattr(lesson.features, name) for lesson in used])[there]
            wanted = np.log(np.array(true, float)[there] / base)
            learned[name] = _learned(vectors[there], away[there], wanted, some, judging)
    return Expert(codec.to_dict(), learned, known)


def _known(vectors: np.ndarray, groups: Sequence[Hashable]) -> tuple[Known, np.ndarray]:
    """The training by which data are recognised, and how far each row is from those of other kinds."""
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    kind = np.array([numbers[group] for group in groups])
    centre, scale = vectors.mean(axis=0), vectors.std(axis=0) + 1e-3
    chosen = np.random.default_rng(0).permutation(len(vectors))[:MOST_KNOWN]
    known = Known((vectors[chosen] - centre) / scale, centre, scale, 1.0)
    away = known.distances(vectors, kind[:, None] != kind[chosen])
    usual = float(np.quantile(away, USUAL))
    return dataclasses.replace(known, usual=usual), away / usual


def _learned(
    vectors: np.ndarray, away: np.ndarray, wanted: np.ndarray, groups: Sequence[Hashable], judging: Collection[Hashable]
) -> Learned:
    fold, widely = _folds(groups), with_distances(vectors, away)
    mistakes = np.abs(wanted - _left_out(vectors, wanted, fold))
    sizes = np.log(mistakes + LEAST_MISTAKE)
    scores = mistakes / np.exp(_left_out(widely, sizes, fold, WIDTH_TREES))
    chosen = [place for place, group in enumerate(groups) if group in judging]
    reach = conformal_quantile(scores[chosen], [groups[place] for place in chosen])
    return Learned(Trees.fitted(vectors, wanted), Trees.fitted(widely, sizes, WIDTH_TREES), reach)


def _folds(groups: Sequence[Hashable]) -> np.ndarray:
    """The number of the fold of each row: kinds of data stay together."""
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    return np.array([numbers[group] % min(FOLDS, len(numbers)) for group in groups])


def _left_out(vectors: np.ndarray, wanted: np.ndarray, fold: np.ndarray, trees: int | None = None) -> np.ndarray:
    """Predictions for each fold by trees that have not seen it."""
    found = np.zeros(len(wanted))
    for number in range(int(fold.max()) + 1):
        out = fold == number
        more = {} if trees is None else {"trees": trees}
        found[out] = Trees.fitted(vectors[~out], wanted[~out], **more)(vectors[out])
    return found


def conformal_quantile(scores: np.ndarray, groups: Sequence[Hashable]) -> float:
    """The number of widths that contains this share of the mistakes on a kind of data that is new.

    Kinds are exchangeable, fields and bounds of one kind are not: each kind counts alike, however many rows it has, and the
    new one counts as one of which nothing is known (hierarchical conformal prediction, Lee, Barber and Willett).

    >>> conformal_quantile(np.arange(100.0), range(100))
    90.0
    """
    kinds = Counter(groups)
    order = np.argsort(scores)
    held = np.cumsum(np.array([1 / kinds[group] for group in groups])[order]) / (len(kinds) + 1)
    return float(scores[order[min(int(np.searchsorted(held, COVERAGE - 1e-9)), len(scores) - 1)]])
