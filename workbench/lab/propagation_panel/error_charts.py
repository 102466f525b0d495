"""The charts of an error by site: measured and predicted, against the floor; and the largest change with its guarantee."""

from __future__ import annotations

import math

from workbench.charts.description import Chart
from workbench.charts.looks import COLOURS
from workbench.lab.propagation_panel.arrays import typical_size
from workbench.lab.propagation_panel.travel import Floor, Traced, Travel
from workbench.propagation import charts

GUARANTEED = "guaranteed limit"
GREEN = COLOURS[2]


def error_chart(travel: Travel, floor: Floor | None, traced: Traced | None, look: str) -> Chart:
    """The relative error at each site that the perturbation can reach, in their order."""
    predicted = {} if traced is None else {each.site: each.predicted for each in traced.trace.stages}
    measured, foreseen = ({site: of.get(site) for site in travel.reached} for of in (travel.errors, predicted))
    return charts.error_chart([*travel.errors], measured, foreseen, {} if floor is None else floor.of, look)


def guarantee_chart(travel: Travel, traced: Traced) -> Chart:
    """The largest change of a value beside what it is guaranteed not to exceed, both in units of the typical value."""
    sites = list(travel.errors)
    stages = [each for each in traced.trace.stages if each.site in travel.reached and has_size(travel, each.site)]
    units = {each.site: typical_size(travel.base, each.site) for each in stages}
    limit = {each.site: each.guaranteed / units[each.site] for each in stages if each.guaranteed is not None}
    largest = {each.site: each.largest / units[each.site] for each in stages}
    lines = (
        charts.by_site(GUARANTEED, sites, limit, GREEN, "dashdot", "inverted_triangle", 9),
        charts.by_site(charts.MEASURED, sites, largest, charts.BLUE, "solid", "circle", 7),
    )
    axes = charts.axes(sites, "largest change / rms of the values", lines)
    return Chart("Largest change, and its guarantee", *axes, lines, height=charts.HEIGHT)


def has_size(travel: Travel, site: str) -> bool:
    """Whether changes at a site have a size; those of labels have none."""
    return not travel.original.pipeline.categorical(site)


def has_guarantees(traced: Traced | None) -> bool:
    """Whether a limit is known for any site behind the perturbed one."""
    return traced is not None and any(
        each.guaranteed is not None and math.isfinite(each.guaranteed) for each in traced.trace.stages[1:]
    )
