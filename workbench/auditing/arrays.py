"""The audit of one array: the promise value by value, figures by `wb.compare`, and causes where something is wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench import backend
from workbench.auditing.aligned import aligned, of_shapes
from workbench.auditing.call import Call
from workbench.auditing.diagnosis.bits import narrowed
from workbench.auditing.diagnosis.diagnose import causes
from workbench.auditing.finding import FAILED, Finding
from workbench.auditing.kinds import unlike
from workbench.auditing.numbers import MOST_AXES, as_field, missing_in
from workbench.auditing.places import axes_of, place_of
from workbench.auditing.promised import Promise
from workbench.auditing.row import BROKEN, HOLDS, IDENTICAL, UNPROMISED, Row, in_place
from workbench.auditing.tally import Pass, Tally
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit
from workbench.guarantees.per_slice import SliceLimits
from workbench.metrics.compare import compare
from workbench.metrics.field_sums import FieldPair
from workbench.run.chunked_field import ChunkedField, map_parts


@dataclass(frozen=True, eq=False)
class Pair:
    """Two members by their names, what is promised of them, and whether figures of `wb.compare` make sense for them."""

    name: str
    original: Any
    lossy: Any
    promise: Promise | None
    has_figures: bool = True
    period: tuple[float, ...] | None = None


Audited = tuple[Row, list[Finding]]


def audited(call: Call, pair: Pair) -> Audited:
    """The row and the findings of a pair of arrays."""
    if (why := unlike(pair.original, pair.lossy)) is not None:
        return _row(pair, *_outlines(pair), BROKEN), [Finding(FAILED, pair.name, "another type", why)]
    x, y = as_field(pair.original, pair.lossy), as_field(pair.lossy, pair.original)
    if x is None or y is None:
        return _of_text(pair)
    in_one_form = _other_shape(pair) or aligned(pair.name, x, y, (pair.original, pair.lossy))
    if isinstance(in_one_form, Finding):
        return _row(pair, x, y, BROKEN), [in_one_form]
    x, y, findings = in_one_form
    with FieldPair.opened((x, _without_spacing(y)), call.client, call.scratch, call.progress) as opened:
        limits = _along(_limits(pair.promise, opened), axes_of(pair.original, x.shape), axes_of(pair.lossy, x.shape))
        step = Pass(x.shape, opened.part_shape, limits, pair.period)
        tally = sum(map_parts(opened.executor, "audit-chunks", step, opened.part_shape, opened.fields), Tally())
    axes = axes_of(pair.original, x.shape)
    whole = not any(finding.severity == FAILED for finding in findings)
    of_values = _outcome(tally, limits)   # those that both have
    outcome = of_values if whole else BROKEN
    findings += _verdicts(call, pair, tally, limits, of_values, axes)
    if tally.over or tally.lost or tally.gained or (of_values == UNPROMISED):
        allowed = _allowed(limits)
        findings += causes(pair.name, x, y, tally, allowed, axes)
    findings += narrowed(pair.name, x.dtype, y.dtype, outcome in (HOLDS, IDENTICAL))
    row = _measured(call, pair, x, y, outcome, tally, limits, axes)
    if pair.has_figures and not tally.identical:
        compared = figures_of(call, x, _without_spacing(y), call.quick or x.dtype.kind != "f")
        row = replace(row, **{**compared, "figures": {**row.figures, **compared.get("figures", {}), **row.figures}})
    return row, findings


def _outlines(pair: Pair) -> tuple[Any, Any]:
    """What has the shape and the type of either side."""
    first, second = (one if hasattr(one, "dtype") else one.values for one in (pair.original, pair.lossy))
    return first, second


def _other_shape(pair: Pair) -> Finding | None:
    """Another shape of arrays on more axes than fields have, which are compared as one row of values."""
    own, other = (tuple(one.shape) for one in _outlines(pair))
    if own == other or max(len(own), len(other)) <= MOST_AXES:
        return None
    return of_shapes(pair.name, own, other, axes_of(pair.original, own))


def _outcome(tally: Tally, limits: Any) -> str:
    if tally.identical and not tally.over:   # signs of zeros are no difference unless the same bits were promised
        return IDENTICAL
    if limits is None:
        return UNPROMISED
    return BROKEN if tally.over or tally.lost or tally.gained else HOLDS


def _verdicts(call: Call, pair: Pair, tally: Tally, limits: Any, outcome: str, axes: Sequence[str]) -> list[Finding]:
    """What is said of the promise itself."""
    if tally.over and pair.promise is not None:
        at = place_of(tally.worst.at, pair.name, axes, call.original)
        limit = _shown_limit(limits)
        words = (
            f"{tally.over:,} of {tally.values:,} values break {limit}, promised by {pair.promise.source} "
            f"({pair.promise.words}); the worst is {tally.worst.value:.4g} times the limit, at {in_place(at)}"
        )
        evidence = {"over": tally.over, "values": tally.values, "share_of_limit": tally.worst.value, "at": at}
        return [Finding(FAILED, pair.name, "bound broken", words, evidence)]
    if outcome != UNPROMISED:
        return []
    states = f" ({pair.promise.words})" if pair.promise else ""
    largest, enough = tally.largest.value, f"{_rounded_up(tally.largest.value):g}"
    words = (
        f"it differs by up to {largest:.4g}, and nothing was promised{states}: state the error that you accept, such as "
        f"{{{pair.name!r}: wb.Absolute({enough})}} or --abs {pair.name}={enough}"
    )
    return [Finding(FAILED, pair.name, "no promise", words, {"largest_error": largest})]


def _rounded_up(size: float) -> float:
    """The next number of one digit."""
    if not 0 < size < math.inf:
        return size
    power = 10.0 ** math.floor(math.log10(size))
    return math.ceil(size / power) * power


def _limits(promise: Promise | None, opened: FieldPair) -> Any:
    """The limit of a promise for these values; None if there is none."""
    if promise is None or (promise.bound is None and promise.limits is None):
        return None
    low, high = 0.0, 0.0
    if promise.needs_range:
        ends = map_parts(opened.executor, "find-ranges", _ends, opened.part_shape, opened.fields)
        lows, highs = zip(*filter(None, ends), strict=True) if any(ends) else ((0.0,), (0.0,))
        low, high = min(lows), max(highs)
    narrow = min(opened.original.dtype, opened.decoded.dtype, key=lambda one: (one.kind != "f", one.itemsize))
    return promise.limit(low, high, narrow)


def _along(limits: Any, own: Sequence[str], other: Sequence[str]) -> Any:
    """The limits of slices along the axis that has the name of theirs in the lossy array."""
    if not isinstance(limits, SliceLimits) or sorted(own) != sorted(other) or len(set(own)) < len(own):
        return limits
    return SliceLimits(own.index(other[limits.axis]), limits.limits)


def _ends(number: int, original: Field, lossy: Field) -> tuple[Any, Any] | None:
    """The smallest and the largest finite value of a part of the original."""
    values = backend.to_host(original.values)
    finite = values[~missing_in(original) & np.isfinite(values)]
    return (finite.min().item(), finite.max().item()) if finite.size else None


def _allowed(limits: Any) -> float:
    """An absolute error that is no defect; infinite where the limit is none."""
    if isinstance(limits, Limit) and not limits.relative:
        return limits.value
    return math.inf


def _shown_limit(limits: Any) -> str:
    if not isinstance(limits, Limit):
        return "the limits of slices"
    if limits.value == 0:
        return "the promise of equal values"
    return f"the limit {limits.value:.6g}{' of each value' if limits.relative else ''}"


def _without_spacing(field: ChunkedField) -> ChunkedField:
    """The field without a spacing of its own: that of the original counts for both."""
    if field.in_memory is not None:
        return ChunkedField.of(Field(field.values, name=field.name, mask=field.mask)) if field.knows_spacing else field
    return ChunkedField(field.values, None, field.name, field.mask) if field.knows_spacing else field


def figures_of(call: Call, original: Any, lossy: Any, quick: bool) -> dict[str, Any]:
    """The figures, curves and notes of `wb.compare`, as a row has them; where it has none, a note says why."""
    client = None if isinstance(original, Particles) else call.client   # particles are compared here
    try:
        report = compare(
            original, lossy, linking_length=call.linking_length, quick=quick, client=client, scratch=call.scratch,
            progress=call.progress,
        )
    except WorkbenchError as error:
        return {"notes": (str(error),)}
    figures = {name: float(figure) for name, figure in report.figures.items()}
    return {"figures": figures, "curves": dict(report.curves), "notes": report.notes}


def _measured(
    call: Call, pair: Pair, x: ChunkedField, y: ChunkedField, outcome: str, tally: Tally, limits: Any,
    axes: Sequence[str],
) -> Row:
    (low, high), (lossy_low, lossy_high) = tally.ends
    figures: dict[str, float] = {
        "values": tally.values, "missing": tally.missing, "differing": tally.differing,
        "minimum": low, "maximum": high, "lossy_minimum": lossy_low, "lossy_maximum": lossy_high,
    }
    if tally.slopes and not tally.identical:
        figures["gradient_error"] = max(slope.ratio for slope in tally.slopes)
    largest_at, worst_at = (place_of(peak.at, pair.name, axes, call.original) for peak in (tally.largest, tally.worst))
    return _row(
        pair, x, y, outcome, limit=limits.value if isinstance(limits, Limit) else math.nan, over=tally.over,
        lost=tally.lost, gained=tally.gained, largest_error=max(tally.largest.value, 0.0),
        largest_at=largest_at if tally.differing else {}, worst_at=worst_at,
        share_of_limit=tally.worst.value if tally.over else math.nan, figures=figures,
    )


def _row(pair: Pair, x: Any, y: Any, outcome: str, **measured: Any) -> Row:
    promise = pair.promise
    return Row(
        pair.name, outcome, tuple(x.shape), str(x.dtype), str(y.dtype),
        promise="" if promise is None or promise.bound is None else promise.words,
        promised_by="" if promise is None else promise.source, **measured,
    )


def _of_text(pair: Pair) -> Audited:
    """Text, and arrays without values: equal or not."""
    x, y = (np.asarray(getattr(member, "values", member)).astype(object) for member in (pair.original, pair.lossy))
    types = [str(getattr(getattr(member, "values", member), "dtype", "text")) for member in (pair.original, pair.lossy)]
    same = x.shape == y.shape and bool(np.array_equal(x, y))
    row = Row(pair.name, IDENTICAL if same else BROKEN, x.shape, types[0], types[1], promise="exact")
    if same:
        return row, []
    if x.shape != y.shape:
        return row, [of_shapes(pair.name, x.shape, y.shape, axes_of(pair.original, x.shape))]
    count = int((x != y).sum())
    words = f"{count:,} of {x.size:,} entries differ, of text that must be equal"
    return row, [Finding(FAILED, pair.name, "text differs", words, {"differing": count})]
