"""The figures of an error: the sentence of what becomes of the result, and all figures with their names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.lab.description import Fact, Severity
from workbench.lab.figures import figure, group
from workbench.lab.propagation_panel.graph import brief_text, error_text
from workbench.lab.propagation_panel.state import IN_BITS, PropagationState
from workbench.lab.propagation_panel.travel import Baseline, Floor, Travel, tolerance_of
from workbench.propagation import Trace
from workbench.propagation.trials import Outcome

MANY = 1e5   # times the tolerance, from which on a power of ten says it
VERDICTS: Mapping[Outcome, Severity] = {"masked": "good", "benign": "good", "silent": "bad", "detected": "", "crash": "bad"}


def answer(state: PropagationState, travel: Travel | None, floor: Floor | None) -> tuple[str | Fact, ...]:
    """How much the result changes, in units of what is tolerated, and what a campaign would count that as."""
    error, damage, outcome = _end(state, travel, floor)
    stops = "" if travel is None else next((travel.stopped[site] for site in _ends(travel) if site in travel.stopped), "")
    if stops:
        return f"The result is not reached, as {stops.partition(':')[0]}:", outcome
    nothing = [Fact("error bound", "not below the range: any values pass", "bad")] if any_values_pass(state) else []
    changes = f"The result changes by {error.value} ="
    return changes, Fact("damage", damage.value, "", damage.meaning, "times the tolerance"), outcome, *nothing


def any_values_pass(state: PropagationState) -> bool:
    """Whether a bound is so large that it binds nothing."""
    return state.kind == "compression" and state.bound >= 1


def facts(
    base: Baseline, state: PropagationState, travel: Travel | None, floor: Floor | None, traced: Trace | None
) -> tuple[Fact, ...]:
    """All figures, always the same ones for a kind of error; dots stand for missing results."""
    error, damage, outcome = _end(state, travel, floor)
    return (
        *group("error put in", _of_what_is_put_in(base, state, travel)),
        *group("at the site shown", _here(state, travel, floor, traced)),
        *group("at the end", [error, figure("growth", None if travel is None else _growth(travel), "x"), damage, outcome]),
    )


def _of_what_is_put_in(base: Baseline, state: PropagationState, travel: Travel | None) -> list[Fact]:
    note = next(iter(travel.changed.notes.get(state.site, ())), {}) if travel is not None else {}
    if state.kind in IN_BITS:
        place = place_text(base, state.site, note["index"]) if "index" in note else None
        values = [figure(f"value {name}", _value(note.get(name))) for name in ("before", "after")]
        put_in = [*values, figure("place", place)]
    elif state.kind == "noise":
        put_in = [figure("amplitude", _value(note.get("amplitude")))]
    else:
        put_in = [figure("ratio", note.get("ratio"), "x", verdict="good"),
                  figure("largest error", _value(note.get("largest_error")))]
    found = [figure("faults found", None if travel is None else str(travel.found))] if state.protections else []
    return [*put_in, *found]


def _here(state: PropagationState, travel: Travel | None, floor: Floor | None, traced: Trace | None) -> list[Fact]:
    reached = travel is not None and state.look in travel.reached
    told = traced[state.look] if traced is not None and reached else None
    none = None if traced is None else "none"
    error = None if travel is None else error_text(travel.errors[state.look]) if reached else "none"
    predicted = none if told is None or told.predicted is None else error_text(told.predicted)
    limit = none if told is None or told.guaranteed is None else error_text(told.guaranteed)
    broken: Severity = "bad" if told is not None and told.holds is False else ""
    return [
        figure("relative error", error), figure("predicted error", predicted),
        figure("round-off floor", None if floor is None else error_text(floor[state.look])),
        figure("guaranteed limit", limit, verdict=broken),
    ]


def _growth(travel: Travel) -> float | str:
    """The error at the end in units of that where it was put in."""
    ends, first = _reached(travel), next(iter(travel.errors.values()))
    return "none" if not ends or first == 0 or math.isinf(first) else max(ends) / first


def _end(state: PropagationState, travel: Travel | None, floor: Floor | None) -> tuple[Fact, Fact, Fact]:
    """The error of the result, its damage by what is tolerated, and the outcome."""
    if travel is None:
        return figure("error at the end", None), figure("damage", None), figure("outcome", None)
    ends, harm = _reached(travel), travel.damage(state.tolerance)
    unit = f"of the tolerance: {tolerance_of(travel.original.pipeline, state.tolerance).name}"
    outcome = None if floor is None else travel.outcome(floor, state.tolerance)
    return (
        figure("error at the end", error_text(max(ends, default=0.0)) if ends or not _ends(travel) else "not reached"),
        figure("damage", "none" if math.isnan(harm) else damage_text(harm), unit),
        figure("outcome", outcome, verdict="" if outcome is None else VERDICTS[outcome]),
    )


def damage_text(damage: float) -> str:
    """A damage in a few letters, which show on which side of the limit it is.

    >>> damage_text(0.0401), damage_text(1.0002), damage_text(0.999), damage_text(2034.0), damage_text(3.2e7)
    ('0.04', '1.0002', '0.999', '2,034', '3e7')
    """
    if 100 <= damage < math.inf:
        return f"{damage:,.0f}" if damage < MANY else brief_text(damage)
    short = error_text(damage)
    return short if short != "1" else f"{damage:.5g}"


def _ends(travel: Travel) -> list[str]:
    """The results that the error can reach."""
    return [site for site in travel.original.pipeline.outputs if site in travel.errors]


def _reached(travel: Travel) -> list[float]:
    """The errors of the results that it has reached."""
    return [travel.errors[site] for site in _ends(travel) if site in travel.reached]


def place_text(base: Baseline, site: str, index: int) -> str:
    """The index of a number in the array at a site; complex values are two numbers each.

    >>> import numpy as np
    >>> from workbench.propagation import Pipeline
    >>> base = Baseline(Pipeline([("waves", np.fft.fft)]).run(np.ones((2, 3))))
    >>> place_text(base, "input", 4), place_text(base, "waves", 3)
    ('[1, 1]', '[0, 1] imaginary')
    """
    array, part = base.run[site], ""
    if array.dtype.kind == "c":
        index, part = index // 2, " imaginary" if index % 2 else " real"
    return f"[{', '.join(str(int(each)) for each in np.unravel_index(index, array.shape))}]{part}"


def _value(value: Any) -> str | None:
    return None if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
