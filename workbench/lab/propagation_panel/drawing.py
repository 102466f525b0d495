"""Everything the propagation panel shows, but for the graph, as a fast, pure function of state and results."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from workbench.charts.description import Chart
from workbench.lab.description import Charts, Shown
from workbench.lab.propagation_panel import budgeting, tabs
from workbench.lab.propagation_panel.arrays import arrangement
from workbench.lab.propagation_panel.campaign_charts import heat_map_chart, outcome_chart
from workbench.lab.propagation_panel.dosing import SHARES
from workbench.lab.propagation_panel.figures import answer, facts
from workbench.lab.propagation_panel.pictures import pictures, view_note
from workbench.lab.propagation_panel.state import IN_BITS, PropagationState, number_format
from workbench.lab.propagation_panel.tables import SITES, budget_table, campaign_table, site_table
from workbench.lab.propagation_panel.travel import Baseline, Floor, Travel, tolerance_of
from workbench.lab.propagation_panel.value_charts import change_chart, value_chart
from workbench.lab.remembered import remembered_with
from workbench.propagation import Trace
from workbench.propagation import charts as propagation_charts
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
    names = "travel", "floor", "trace", "campaign", "unprotected", "doses", "budget"
    travel, floor, traced, counted, bare, doses, found = (results.get(name) for name in names)
    makers: dict[str, Callable[[], Chart]] = {}

    def add(name: str, owner: object, parts: tuple[object, ...], key: Hashable, make: Callable[[], Chart]) -> None:
        makers[name] = lambda: remembered_with(owner, f"propagation: {name} chart", parts, key, make)

    if arrangement(base, state.look).form == "line":
        add("values", travel or base, (), state.look, lambda: value_chart(base, travel, state))
        if travel is not None and state.look in travel.reached:
            add("change", travel, (), state.look, lambda: change_chart(travel, state))
    chart = tabs.CHARTS[state.tab]
    if not tabs.suits(state.tab, state.kind):
        return Charts(makers)
    if chart == "errors" and travel is not None:
        add(chart, travel, (floor, traced), state.look, lambda: error_chart(travel, floor, traced, state.look))
    elif chart == "doses" and doses is not None:
        add(chart, doses, (), state.bound, lambda: dose_chart(doses.doses, state.bound, SHARES))
    elif chart == "campaign" and counted is not None:
        add(chart, counted, (), state.outcome, lambda: heat_map_chart(counted, state.outcome))
    elif chart == "budget" and found is not None:
        add(chart, found, (), None, lambda: budgeting.budget_chart(found))
    elif chart == "protection" and counted is not None:
        protected = None if counted is bare else counted
        add(chart, counted, (bare,), None, lambda: outcome_chart(bare, protected))
    return Charts(makers, ["errors"] if chart == "errors" else [])


def error_chart(travel: Travel, floor: Floor | None, traced: Trace | None, look: str) -> Chart:
    """The relative error at each site that the error can reach, measured and predicted, with the floor and the limits."""
    predicted = {} if traced is None else {each.site: each.predicted for each in traced.stages}
    limits = {} if traced is None else traced.limits
    measured, foreseen, limit = (
        {site: of.get(site) for site in travel.reached} for of in (travel.errors, predicted, limits)
    )
    return propagation_charts.error_chart(
        [*travel.errors], measured, foreseen, {} if floor is None else floor, limit, look
    )


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
    how, sites = state.protection
    words = ", ".join(PROTECTED[each] for each in how) or "none"
    return words if sites is None else f"{words}; at {', '.join(sites)}"
