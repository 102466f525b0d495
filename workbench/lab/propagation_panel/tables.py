"""The tables of the propagation panel: sites, the strata of a campaign, and the bounds of a budget."""

from __future__ import annotations

from workbench.lab.description import Table
from workbench.lab.propagation_panel.budgeting import Budgeted
from workbench.lab.propagation_panel.counting import Counted
from workbench.lab.propagation_panel.graph import error_text
from workbench.lab.propagation_panel.state import PropagationState
from workbench.lab.propagation_panel.travel import Floor, Travel
from workbench.propagation import Trace
from workbench.propagation.trials import OUTCOMES

SITES, STRATA, BOUNDS = "sites", "campaign", "budget"


def site_table(state: PropagationState, travel: Travel | None, floor: Floor | None, traced: Trace | None) -> Table:
    """A row for each site that the error can reach; the site shown is emphasised."""
    columns = (
        "site", "relative error", "floor", "predicted", "growth", "largest change", "guaranteed limit", "changed", "badge",
    )
    if travel is None:
        return Table(columns)
    stages = {} if traced is None else {each.site: each for each in traced.stages}
    rows: list[tuple[str, ...]] = []
    for site, error in travel.errors.items():
        told, stopped = stages.get(site), travel.stopped.get(site)
        figures, changed, badge = [""] * 4, "", stopped or ""
        if told is not None and stopped is None:
            values = told.predicted, told.growth, told.largest, told.guaranteed
            figures = ["" if each is None else f"{each:.3g}" for each in values]
            changed = f"{told.changed:,} of {told.values:,}"
            badge = told.badge + (f", {told.not_finite:,} not finite" if told.not_finite else "")
        rounding = "" if floor is None else error_text(floor[site])
        rows.append((site, "" if stopped else error_text(error), rounding, *figures, changed, badge))
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


def budget_table(found: Budgeted | None) -> dict[str, Table]:
    """The bound of each site; none before a budget."""
    if found is None:
        return {}
    budget = found.budget
    rows = tuple(
        (site, f"{bound.eb:.4g}", f"{found.shares[site]:.3g}", f"{budget.ratios[site]:.3g}", f"{budget.single[site]:.3g}")
        for site, bound in budget.bounds.items()
    )
    columns = ("site", "error bound", "of the range", "ratio", "damage alone")
    foot = ("together", "", "", f"{budget.ratio:.3g}", f"{budget.damage:.3g}")
    return {BOUNDS: Table(columns, rows, action="compress this site within its bound", foot=foot)}
