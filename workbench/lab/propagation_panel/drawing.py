"""Everything the propagation panel shows, but for the graph, as a fast, pure function of state and results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from workbench.lab.description import Charts, Fact, Severity, Shown, Table
from workbench.lab.glossary import meaning
from workbench.lab.propagation_panel.arrays import arrangement, field_shape, shown_slice
from workbench.lab.propagation_panel.counting import Counted, in_words
from workbench.lab.propagation_panel.dosing import SHARES, Doses, tolerated
from workbench.lab.propagation_panel.error_charts import error_chart, guarantee_chart, has_guarantees
from workbench.lab.propagation_panel.heat_map import heat_map_chart
from workbench.lab.propagation_panel.nodes import error_text
from workbench.lab.propagation_panel.pictures import block_note, pictures
from workbench.lab.propagation_panel.state import IN_BITS, PropagationState, number_format
from workbench.lab.propagation_panel.travel import Baseline, Floor, Traced, Travel, tolerance_of
from workbench.lab.propagation_panel.value_charts import change_chart, value_chart
from workbench.lab.remembered import remembered
from workbench.propagation.charts import dose_chart
from workbench.propagation.protected import Protection
from workbench.propagation.trials import OUTCOMES, Outcome

COMING = "…"
PUT_IN, HERE, END = "error put in", "at the site shown", "at the end"
PROTECTED: Mapping[Protection, str] = {
    "checksums": "checksums of the stages", "twice": "stages are computed twice",
    "range": "values stay within learned ranges", "finite": "values that are not finite become 0",
}
SITES, STRATA = "sites", "campaign"   # tables
VERDICTS: Mapping[Outcome, Severity] = {"masked": "good", "benign": "good", "silent": "bad", "detected": "", "crash": "bad"}


def draw(base: Baseline, state: PropagationState, results: Mapping[str, Any]) -> Shown:
    """The pictures, charts, figures and tables of a travelling error; missing results leave parts empty.

    >>> import numpy as np
    >>> from workbench.propagation import Pipeline
    >>> base = Baseline(Pipeline([("sum", lambda x: x.sum())]).run(np.ones((8, 8))))
    >>> [picture.title for picture in draw(base, PropagationState.for_(base.run), {}).pictures]
    ['original']
    """
    travel, floor, traced = (results.get(name) for name in ("travel", "floor", "trace"))
    counted: Counted | None = results.get("campaign")
    return Shown(
        pictures=pictures(base, travel, state),
        charts=charts(base, state, travel, floor, traced, counted, results.get("doses")),
        facts=facts(base, state, travel, floor, traced),
        tables={SITES: site_table(state, travel, floor, traced), **campaign_table(counted)},
        note=note(base, state, travel, counted, results.get("unprotected"), results.get("doses")),
        settings=settings(base, state),
    )


def charts(
    base: Baseline, state: PropagationState, travel: Travel | None, floor: Floor | None, traced: Traced | None,
    counted: Counted | None, doses: Doses | None,
) -> Charts:
    """All charts by name. Unchanged charts are the same objects as before."""
    makers: dict[str, Callable[[], Any]] = {}
    coming = [] if travel is not None else ["errors"]

    def kept(kind: str, owner: object, parts: tuple[object, ...], more: object, make: Callable[[], Any]) -> Any:
        return remembered(owner, f"propagation: {kind} chart", (*map(id, parts), more), lambda: (make(), parts))[0]

    if arrangement(base, state.look).form == "line":
        line = arrangement_key(state)
        makers["values"] = lambda: kept("values", travel or base, (), line, lambda: value_chart(base, travel, state))
        if travel is not None and state.look in travel.reached:
            makers["change"] = lambda: kept("change", travel, (), line, lambda: change_chart(travel, state))
    if travel is not None:
        makers["errors"] = lambda: kept(
            "errors", travel, (floor, traced), state.look, lambda: error_chart(travel, floor, traced, state.look)
        )
        if traced is None:
            coming.append("guarantees")
        elif has_guarantees(traced):
            makers["guarantees"] = lambda: kept(
                "guarantees", travel, (traced,), None, lambda: guarantee_chart(travel, traced)
            )
    if counted is not None:
        makers["campaign"] = lambda: kept(
            "campaign", counted, (), state.outcome, lambda: heat_map_chart(counted, state.outcome)
        )
    if doses is not None:
        makers["doses"] = lambda: kept(
            "doses", doses, (), state.bound, lambda: dose_chart(doses.doses, state.bound, SHARES)
        )
    return Charts(makers, coming)


def arrangement_key(state: PropagationState) -> tuple[object, ...]:
    """What a chart of values depends on, beside the run."""
    return (state.look,)


# Figures with their names.

def facts(
    base: Baseline, state: PropagationState, travel: Travel | None, floor: Floor | None, traced: Traced | None
) -> tuple[Fact, ...]:
    """All figures, always the same ones for a kind of error; dots stand for missing results."""
    put_in = _of_what_is_put_in(base, state, travel)
    if state.protections:
        found = COMING if travel is None else str(travel.found)
        put_in.append(Fact("faults found", found, "", meaning("faults found"), "", PUT_IN))
    return (*put_in, *_here(state, travel, floor, traced), *_at_the_end(travel, floor))


def _of_what_is_put_in(base: Baseline, state: PropagationState, travel: Travel | None) -> list[Fact]:
    note = next(iter(travel.changed.notes.get(state.site, ())), {}) if travel is not None else {}
    if state.kind in IN_BITS:
        before, after = (_value(note.get(name)) for name in ("before", "after"))
        place = place_text(base, state.site, note["index"]) if "index" in note else COMING
        return [
            Fact("value before", before, "", meaning("value before"), "", PUT_IN),
            Fact("value after", after, "", meaning("value after"), "", PUT_IN),
            Fact("place", place, "", meaning("place"), "", PUT_IN),
        ]
    if state.kind == "noise":
        return [Fact("amplitude", _value(note.get("amplitude")), "", meaning("amplitude"), "", PUT_IN)]
    return [
        Fact("ratio", f"{note['ratio']:.3g}" if "ratio" in note else COMING, "good", meaning("ratio"), "x", PUT_IN),
        Fact("largest error", _value(note.get("largest_error")), "", meaning("largest error"), "", PUT_IN),
    ]


def _here(state: PropagationState, travel: Travel | None, floor: Floor | None, traced: Traced | None) -> list[Fact]:
    error = COMING
    if travel is not None:
        error = error_text(travel.errors[state.look]) if state.look in travel.reached else "none"
    rounding = COMING if floor is None else error_text(floor.of[state.look])
    told = None if traced is None or travel is None or state.look not in travel.reached else traced.trace[state.look]
    none = COMING if traced is None else "none"
    predicted = none if told is None or told.predicted is None else error_text(told.predicted)
    limit = none if told is None or told.guaranteed is None else error_text(told.guaranteed)
    broken: Severity = "bad" if told is not None and told.holds is False else ""
    return [
        Fact("relative error", error, "", meaning("relative error"), "", HERE),
        Fact("predicted error", predicted, "", meaning("predicted error"), "", HERE),
        Fact("round-off floor", rounding, "", meaning("round-off floor"), "", HERE),
        Fact("guaranteed limit", limit, broken, meaning("guaranteed limit"), "", HERE),
    ]


def _at_the_end(travel: Travel | None, floor: Floor | None) -> list[Fact]:
    growth = damage = outcome = error = COMING
    verdict: Severity = ""
    if travel is not None:
        ends = [travel.errors[site] for site in travel.original.pipeline.outputs if site in travel.reached]
        first = next(iter(travel.errors.values()))
        error = error_text(max(ends)) if ends else "not reached"
        growth = "none" if not ends or first == 0 or math.isinf(first) else f"{max(ends) / first:.3g}"
        damage = "none" if math.isnan(travel.damage) else error_text(travel.damage)
        if floor is not None:
            found = travel.outcome(floor)
            outcome, verdict = found, VERDICTS[found]
    tolerated = "" if travel is None else f"of the tolerance: {tolerance_of(travel.original.pipeline).name}"
    return [
        Fact("error at the end", error, "", meaning("error at the end"), "", END),
        Fact("growth", growth, "", meaning("growth"), "x", END),
        Fact("damage", damage, "", meaning("damage"), tolerated, END),
        Fact("outcome", outcome, verdict, meaning("outcome"), "", END),
    ]


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


def _value(value: Any) -> str:
    return COMING if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


# Tables and words.

def site_table(state: PropagationState, travel: Travel | None, floor: Floor | None, traced: Traced | None) -> Table:
    """A row for each site that the error can reach; the site shown is emphasised."""
    columns = (
        "site", "relative error", "floor", "predicted", "growth", "largest change", "guaranteed limit", "changed", "badge",
    )
    if travel is None:
        return Table(columns)
    stages = {} if traced is None else {each.site: each for each in traced.trace.stages}
    rows: list[tuple[str, ...]] = []
    for site, error in travel.errors.items():
        rounding = "" if floor is None else error_text(floor.of[site])
        told = stages.get(site)
        if site in travel.stopped:
            rows.append((site, "", rounding, "", "", "", "", "", travel.stopped[site]))
        elif told is None:
            rows.append((site, error_text(error), rounding, "", "", "", "", "", ""))
        else:
            figures = (told.predicted, told.growth, told.largest, told.guaranteed)
            lost = f", {told.not_finite:,} not finite" if told.not_finite else ""
            rows.append((
                site, error_text(error), rounding, *("" if each is None else f"{each:.3g}" for each in figures),
                f"{told.changed:,} of {told.values:,}", told.badge + lost,
            ))
    sites = list(travel.errors)
    chosen = sites.index(state.look) if state.look in sites else None
    return Table(columns, tuple(rows), chosen, action="look at this site")


def campaign_table(counted: Counted | None) -> dict[str, Table]:
    """A row for each site and bit; none before a campaign."""
    if counted is None:
        return {}
    rows = tuple(
        (row["site"], row["bits"], f"{row['trials']:,}", *(f"{row[name]:,}" for name in OUTCOMES),
         f"{row['silent_low']:.1%} to {row['silent_high']:.1%}" if row["trials"] else "")
        for row in counted.campaign.rows()
    )
    columns = ("site", "bits", "trials", *OUTCOMES, "silent, 95% interval")
    return {STRATA: Table(columns, rows, action="put in the worst of these errors")}


def note(
    base: Baseline, state: PropagationState, travel: Travel | None, counted: Counted | None,
    unprotected: Counted | None = None, doses: Doses | None = None,
) -> str:
    """What the pictures mean, what stopped the error, and what the sweep and the campaign found."""
    parts = [block_note(base, travel, state)]
    shape = field_shape(base, state.look)
    if arrangement(base, state.look).form == "field" and len(shape) >= 3 and state.index is None:
        parts.append(f"slice {shown_slice(base, travel, state)[1]}, which has the largest error")
    if travel is not None:
        parts += [f"the analysis stops: {said}" for said in dict.fromkeys(travel.stopped.values())]
        lost = travel.lost.get(state.look, 0)
        parts += [f"{lost:,} values are not finite"] if lost else []
    if doses is not None:
        parts.append(tolerated(doses))
    if counted is not None:
        parts.append(in_words(counted, state, unprotected))
    return "; ".join(part for part in parts if part)


def settings(base: Baseline, state: PropagationState) -> dict[str, str]:
    """The choices in words, for a report."""
    if state.kind in IN_BITS:
        numbers = number_format(base.run, state.site)
        hit = "one value" if state.count == 1 else f"{state.count:,} values"
        how = f"bit {state.bit} ({numbers.field_of(state.bit)}) of {hit}, {state.kind}"
    else:
        how = f"{state.kind} within {state.bound:.6g} of the range"
    drawn = f"seed {state.seed}, trial {state.trial}"
    return {"error": how, "put in at": state.site, "drawn from": drawn, "site shown": state.look,
            "protection": protection_text(state)}


def protection_text(state: PropagationState) -> str:
    """What protects which sites.

    >>> protection_text(PropagationState("a", "a", twice=True, finite=True, protect=("a",)))
    'stages are computed twice, values that are not finite become 0; at a'
    """
    told = ", ".join(PROTECTED[each] for each in state.protections) or "none"
    return told if state.protect is None or not state.protections else f"{told}; at {', '.join(state.protect)}"
