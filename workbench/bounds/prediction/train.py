"""`wb.bounds.train`: an expert on a codec from fields that are compressed at several bounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.bounds.prediction.expert import COVERAGE, FIGURES, Expert, Learned
from workbench.bounds.prediction.features import LEAST_LOSS, LEAST_NOISE, Counts, Features, features_of
from workbench.bounds.prediction.survey import Survey
from workbench.bounds.prediction.trees import Trees
from workbench.bounds.sweep import questions_of
from workbench.codecs import Codec, Tolerance
from workbench.codecs.gaps import filled
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound
from workbench.metrics import pointwise, ssim
from workbench.metrics.similarity import WINDOW

LEAST_ROWS = 40          # below which nothing can be learned
FOLDS = 6                # of kinds of data, each left out once
MOST_KNOWN = 600         # rows by which data are recognised
WIDTH_TREES = 60
LEAST_MISTAKE = 0.02     # of a logarithm: below it, mistakes are chance
UNUSUAL = 0.99           # quantile of distances within the training beyond which data are unlike it


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

    As in an archive, values that are masked or not finite are replaced by the last valid one before them.
    """
    field.require_floats("training")
    valid = field.valid
    if not valid.any():
        raise WorkbenchError(f"training takes fields with values; all of {field!r} are masked or not finite")
    whole = bool(valid.all())
    values = field.values if whole else filled(field.values, valid)
    compared = field if whole else Field(field.values, mask=~valid)
    found = []
    for bound in bounds:
        limit = bound.limit(field.values, None if whole else valid)
        if limit.relative:
            raise WorkbenchError(f"bounds must be absolute or relative to the range; got {bound!r}")
        if not limit.value > 0:
            continue
        data = codec.encode(values, Tolerance(absolute=limit.value))
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


def fitted(lessons: Sequence[Lesson], codec: Codec) -> Expert:
    """The expert that these lessons teach."""
    used = [lesson for lesson in lessons if len(lesson.features)]
    count, kinds = sum(len(lesson.features) for lesson in used), len({lesson.kind for lesson in used})
    if count < LEAST_ROWS or kinds < 2:
        raise WorkbenchError(
            f"training needs at least {LEAST_ROWS} pairs of a field and a bound, from at least 2 kinds of data; got "
            f"{count} from {kinds}"
        )
    vectors = np.concatenate([lesson.features.vectors for lesson in used])
    groups = [lesson.kind for lesson in used for _ in lesson.outcomes]
    learned = {}
    for name in FIGURES:
        true = [getattr(each, name) for lesson in used for each in lesson.outcomes]
        there = np.array([value is not None for value in true])
        some = [group for group, held in zip(groups, there, strict=True) if held]
        if len(some) >= LEAST_ROWS and len(set(some)) >= 2:
            base = np.concatenate([getattr(lesson.features, name) for lesson in used])[there]
            wanted = np.log(np.array([value for value in true if value is not None]) / base)
            learned[name] = _learned(vectors[there], wanted, some)
    centre, scale = vectors.mean(axis=0), vectors.std(axis=0) + 1e-3
    rng = np.random.default_rng(0)
    known = ((vectors - centre) / scale)[rng.permutation(len(vectors))[:MOST_KNOWN]]
    apart = np.sqrt(((known[:, None, :] - known[None, :, :]) ** 2).sum(axis=2))
    np.fill_diagonal(apart, np.inf)
    return Expert(codec.to_dict(), learned, centre, scale, known, float(np.quantile(apart.min(axis=1), UNUSUAL)))


def _learned(vectors: np.ndarray, wanted: np.ndarray, groups: Sequence[Hashable]) -> Learned:
    fold = _folds(groups)
    mistakes = wanted - _left_out(vectors, wanted, fold)
    sizes = np.log(np.abs(mistakes) + LEAST_MISTAKE)
    widths = _left_out(vectors, sizes, fold, WIDTH_TREES)
    reach = _quantile(np.abs(mistakes) / np.exp(widths), groups)
    return Learned(Trees.fitted(vectors, wanted), Trees.fitted(vectors, sizes, WIDTH_TREES), reach)


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


def _quantile(scores: np.ndarray, groups: Sequence[Hashable]) -> float:
    """The number of widths that contains this share of the mistakes on kinds of data that were left out.

    Each kind counts alike, however many rows it has, as new data are of a new kind. Set by all kinds but one, such
    intervals cover 89 to 90% of that one, for each of the package's experts.
    """
    kinds = Counter(groups)
    order = np.argsort(scores)
    held = np.cumsum(np.array([1 / kinds[group] for group in groups])[order]) / len(kinds)
    return float(scores[order[min(int(np.searchsorted(held, COVERAGE)), len(scores) - 1)]])
