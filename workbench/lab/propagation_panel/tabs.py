"""What stands beside the pictures: for each tab a sentence and a chart, which belong to the chosen kind of error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.lab.propagation_panel import budgeting, counting, dosing
from workbench.lab.propagation_panel.graph import error_text
from workbench.lab.propagation_panel.state import IN_BITS, Kind, PropagationState, Tab
from workbench.lab.propagation_panel.travel import Floor, Travel
from workbench.propagation import Trace

TITLES: Mapping[str, Tab] = {
    "Trace": "trace", "Sweep": "sweep", "Campaign": "campaign", "Budget": "budget", "Protect": "protect",
}
CHARTS: Mapping[Tab, str] = {
    "trace": "errors", "sweep": "doses", "campaign": "campaign", "budget": "budget", "protect": "protection",
}
DONE: Mapping[Kind, str] = {   # what is done at a site
    "flip": "a bit is flipped", "stuck at 0": "a bit is cleared", "stuck at 1": "a bit is set", "noise": "noise is added",
    "compression": "an array is compressed",
}

NEEDS: Mapping[Tab, str] = {
    "sweep": "A sweep raises the bound of a compression", "campaign": "A campaign tries faults in bits",
    "budget": "A budget shares the tolerance among bounds of compression",
}


def suits(tab: Tab, kind: Kind) -> bool:
    """Whether what a tab computes belongs to this kind of error.

    >>> suits("sweep", "flip"), suits("campaign", "flip"), suits("protect", "noise")
    (False, True, True)
    """
    if tab in ("sweep", "budget"):
        return kind == "compression"
    return kind in IN_BITS if tab == "campaign" else True


def sentence(state: PropagationState, results: Mapping[str, Any]) -> str:
    """What the tab says: the result, or what would be computed, or which kind of error it needs."""
    if not suits(state.tab, state.kind):
        return f"{NEEDS[state.tab]}; now {DONE[state.kind]}."
    names = "travel", "floor", "trace", "campaign", "unprotected", "doses", "budget"
    travel, floor, traced, counted, bare, doses, found = (results.get(name) for name in names)
    if state.tab == "trace":
        return _of_the_trace(state, travel, floor, traced)
    if state.tab == "sweep":
        told = "" if doses is None else dosing.tolerated(doses)
        return told or f"Raises the bound at {state.site} until the result is no longer tolerated."
    if state.tab == "budget":
        told = "" if found is None else budgeting.in_words(found)
        return told or "Finds the largest bounds that the tolerance allows together."
    if state.tab == "protect":
        return _of_protection(state, travel, counted, bare)
    if state.kind in counting.FAULTS and counted is None:
        return f"Tries {counting.FAULTS[state.kind]} at every site."
    return "" if counted is None else counting.in_words(counted, state)


def _of_the_trace(state: PropagationState, travel: Travel | None, floor: Floor | None, traced: Trace | None) -> str:
    """The error at the site that is shown, beside what theory says of it."""
    if travel is None or state.look not in travel.errors:
        return "" if travel is None else f"The error does not reach {state.look}."
    if state.look in travel.stopped:
        return f"{state.look} is not reached."
    parts = [f"{state.look}: {error_text(travel.errors[state.look])}"]
    told = None if traced is None else traced[state.look]
    if told is not None and told.predicted is not None:
        parts.append(f"predicted {error_text(told.predicted)} ({told.badge})")
    if traced is not None and (limit := traced.limits[state.look]) is not None:
        parts.append(f"at most {error_text(limit)}")
    if floor is not None and floor[state.look]:
        parts.append(f"rounding {error_text(floor[state.look])}")
    return ", ".join(parts)


def _of_protection(
    state: PropagationState, travel: Travel | None, counted: counting.Counted | None, bare: counting.Counted | None
) -> str:
    """What the protections have found here, and in a campaign."""
    if not state.protections:
        return "Nothing is protected. Choose checks, or have the worst sites of a campaign protected."
    here = "" if travel is None else f"{travel.found:,} fault{'' if travel.found == 1 else 's'} found here"
    both = "" if counted is None or counted is bare else counting.compared(counted, bare, state.outcome)
    return "; ".join(part for part in (here, both) if part)
