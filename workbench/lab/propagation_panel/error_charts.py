"""The chart of an error by site: measured and predicted, against the floor and what is guaranteed."""

from __future__ import annotations

from workbench.charts.description import Chart
from workbench.lab.propagation_panel.travel import Floor, Traced, Travel
from workbench.propagation import charts


def error_chart(travel: Travel, floor: Floor | None, traced: Traced | None, look: str) -> Chart:
    """The relative error at each site that the perturbation can reach, in their order."""
    predicted = {} if traced is None else {each.site: each.predicted for each in traced.trace.stages}
    limits = {} if traced is None else traced.trace.limits
    measured, foreseen, limit = (
        {site: of.get(site) for site in travel.reached} for of in (travel.errors, predicted, limits)
    )
    return charts.error_chart([*travel.errors], measured, foreseen, {} if floor is None else floor.of, limit, look)
