"""Everything the propagation panel shows, but for the graph, as a fast, pure function of state and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.lab.description import Charts, Shown
from workbench.lab.propagation_panel import budgeting, tabs
from workbench.lab.propagation_panel.arrays import arrangement
from workbench.lab.propagation_panel.counting import Counted
from workbench.lab.propagation_panel.dosing import SHARES
from workbench.lab.propagation_panel.error_charts import error_chart
from workbench.lab.propagation_panel.figures import answer, facts
from workbench.lab.propagation_panel.heat_map import heat_map_chart
from workbench.lab.propagation_panel.outcome_chart import outcome_chart
from workbench.lab.propagation_panel.pictures import pictures, view_note
from workbench.lab.propagation_panel.state import IN_BITS, PropagationState, number_format
from workbench.lab.propagation_panel.tables import SITES, budget_table, campaign_table, site_table
from workbench.lab.propagation_panel.travel import Baseline, Travel, tolerance_of
from workbench.lab.propagation_panel.value_charts import change_chart, value_chart
from workbench.lab.remembered import remembered
from workbench.propagation.charts import dose_chart
from workbench.propagation.protected import Protection

PROTECTED: Mapping[Protection, str] = {
    "checksums": "checksums of the stages", "twice": "stages are computed twice",
    "range": "values stay within learned ranges", "finite": "values that are not finite become 0",
}


def draw(base: Baseline, state: PropagationState, results: Mapping[str, Any]) -> Shown:
    """The pictures, charts, figures and tables of a travelling error; missing results leave parts empty.

    >>> import numpy as np
    >>> from workbench.propagation import Pipeline
    >>> base = Baseline(Pipeline([("sum", lambda x: x.sum())]).run(np.ones((8, 8))))
    >>> [picture.title for picture in draw(base, PropagationState.for_(base.run), {}).pictures]
    ['original']
    """
    travel, floor, traced = (results.get(name) for name in ("travel", "floor", "trace"))
    return Shown(
        answer=answer(state, travel, floor),
        pictures=pictures(base, travel, state),
        charts=charts(base, state, results),
        among=("values", "change"),
        beside=(tabs.CHARTS[state.tab],),
        remark=tabs.sentence(state, results),
        facts=facts(base, state, travel, floor, traced),
        tables={
            SITES: site_table(state, travel, floor, traced), **campaign_table(results.get("campaign")),
            **budget_table(results.get("budget")),
        },
        note=note(base, state, travel),
        settings=settings(base, state),
    )


def charts(base: Baseline, state: PropagationState, results: Mapping[str, Any]) -> Charts:
    """The chart of the tab, and those of a line of values. Unchanged charts are the same objects as before."""
    travel, floor, traced = (results.get(name) for name in ("travel", "floor", "trace"))
    makers: dict[str, Callable[[], Any]] = {}

    def kept(kind: str, owner: object, parts: tuple[object, ...], more: object, make: Callable[[], Any]) -> Any:
        return remembered(owner, f"propagation: {kind} chart", (*map(id, parts), more), lambda: (make(), parts))[0]

    if arrangement(base, state.look).form == "line":
        makers["values"] = lambda: kept("values", travel or base, (), state.look, lambda: value_chart(base, travel, state))
        if travel is not None and state.look in travel.reached:
            makers["change"] = lambda: kept("change", travel, (), state.look, lambda: change_chart(travel, state))
    chart = tabs.CHARTS[state.tab]
    counted, bare, doses, found = (results.get(name) for name in ("campaign", "unprotected", "doses", "budget"))
    if not tabs.suits(state.tab, state.kind):
        return Charts(makers)
    if chart == "errors" and travel is not None:
        makers[chart] = lambda: kept(
            chart, travel, (floor, traced), state.look, lambda: error_chart(travel, floor, traced, state.look)
        )
    elif chart == "doses" and doses is not None:
        makers[chart] = lambda: kept(chart, doses, (), state.bound, lambda: dose_chart(doses.doses, state.bound, SHARES))
    elif chart == "campaign" and counted is not None:
        makers[chart] = lambda: kept(chart, counted, (), state.outcome, lambda: heat_map_chart(counted, state.outcome))
    elif chart == "budget" and found is not None:
        makers[chart] = lambda: kept(chart, found, (), None, lambda: budgeting.budget_chart(found))
    elif chart == "protection" and counted is not None:
        makers[chart] = lambda: kept(chart, counted, (bare,), None, lambda: outcome_chart(*_both(counted, bare)))
    return Charts(makers, ["errors"] if chart == "errors" and travel is None else [])


def _both(counted: Counted, bare: Counted | None) -> tuple[Counted | None, Counted | None]:
    """The campaign without protection, and that with it, as far as they are known."""
    return (bare, counted) if counted.asked.protection[0] else (counted, None)


# Words.

def note(base: Baseline, state: PropagationState, travel: Travel | None) -> str:
    """What the pictures mean, and what stopped the error."""
    parts = [view_note(base, travel, state)]
    if travel is not None:
        parts += [f"the analysis stops: {said}" for said in dict.fromkeys(travel.stopped.values())]
        lost = travel.lost.get(state.look, 0)
        parts += [f"{lost:,} values are not finite"] if lost else []
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
            "protection": protection_text(state), "tolerated": tolerance_of(base.run.pipeline, state.tolerance).name}


def protection_text(state: PropagationState) -> str:
    """What protects which sites.

    >>> protection_text(PropagationState("a", "a", twice=True, finite=True, protect=("a",)))
    'stages are computed twice, values that are not finite become 0; at a'
    """
    told = ", ".join(PROTECTED[each] for each in state.protections) or "none"
    return told if state.protect is None or not state.protections else f"{told}; at {', '.join(state.protect)}"
