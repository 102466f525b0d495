"""The charts of an error by site: measured and predicted, against the floor; and the largest change with its guarantee.

Each always has the same elements, so that a view only changes data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.charts.chart import COLOURS, GREY
from workbench.lab.chart_library import hv
from workbench.lab.charts import limits, styled
from workbench.lab.legend import Entry
from workbench.lab.propagation_panel.arrays import typical_size
from workbench.lab.propagation_panel.travel import Floor, Traced, Travel

HEIGHT = 260
AXES = ["site", "relative error"]
MEASURED, PREDICTED, ROUNDING, GUARANTEED = "measured", "predicted (first order)", "round-off floor", "guaranteed limit"
BLUE, ORANGE, GREEN = COLOURS[:3]
MANY = 5      # sites, from which on their names are turned
Line = list[tuple[int, float]]


def error_chart(travel: Travel, floor: Floor | None, traced: Traced | None, look: str) -> Any:
    """The relative error at each site that the perturbation can reach, in their order."""
    sites = list(travel.errors)
    predicted = {} if traced is None else {each.site: each.predicted for each in traced.trace.stages}
    lines: dict[str, Line] = {
        MEASURED: _line(sites, {site: travel.errors[site] for site in travel.reached}),
        PREDICTED: _line(sites, {site: predicted.get(site) for site in travel.reached}),
        ROUNDING: [] if floor is None else _line(sites, floor.of),
    }
    y = limits([value for line in lines.values() for _, value in line], logarithmic=True, room=0.08)
    told = [("site", "@name"), ("relative error", "@{relative error}")]
    points = hv.Points([(*point, sites[point[0] - 1]) for point in lines[MEASURED]], AXES, ["name"])
    foreseen = hv.Points([(*point, sites[point[0] - 1]) for point in lines[PREDICTED]], AXES, ["name"])
    layers = (
        hv.VLines([sites.index(look) + 1] if look in sites else []).opts(color=GREY, line_width=1.0, line_dash="dashed")
        * hv.Curve(lines[ROUNDING], *AXES, label=ROUNDING).opts(color=GREY, line_dash="dotted", line_width=1.8)
        * hv.Curve(lines[PREDICTED], *AXES, label=PREDICTED).opts(color=ORANGE, line_dash="dashed", line_width=1.8)
        * hv.Curve(lines[MEASURED], *AXES, label=MEASURED).opts(color=BLUE, line_width=1.8)
        * foreseen.opts(
            color=ORANGE, fill_alpha=0.0, line_width=1.8, marker="diamond", size=15, tools=["hover"],
            hover_tooltips=told,
        )
        * points.opts(color=BLUE, marker="circle", size=7, tools=["hover"], hover_tooltips=told)
    )
    looks = {
        MEASURED: Entry(MEASURED, BLUE, "circle", "solid"), PREDICTED: Entry(PREDICTED, ORANGE, "diamond", "dashed"),
        ROUNDING: Entry(ROUNDING, GREY, dash="dotted"),
    }
    key = [entry for name, entry in looks.items() if lines[name]]
    return styled(layers, "Error by site", key, **_axes(sites, y, "relative error"))


def guarantee_chart(travel: Travel, traced: Traced) -> Any:
    """The largest change of a value beside what it is guaranteed not to exceed, both in units of the typical value."""
    sites = list(travel.errors)
    units = {site: typical_size(travel.base, site) for site in sites}
    stages = [each for each in traced.trace.stages if each.site in travel.reached and has_size(travel, each.site)]
    lines = {
        MEASURED: _line(sites, {each.site: each.largest / units[each.site] for each in stages}),
        GUARANTEED: _line(
            sites, {each.site: None if each.guaranteed is None else each.guaranteed / units[each.site] for each in stages}
        ),
    }
    y = limits([value for line in lines.values() for _, value in line], logarithmic=True, room=0.08)
    axes = ["site", "largest change"]
    layers = (
        hv.Curve(lines[GUARANTEED], *axes, label=GUARANTEED).opts(color=GREEN, line_dash="dashdot", line_width=1.8)
        * hv.Curve(lines[MEASURED], *axes, label=MEASURED).opts(color=BLUE, line_width=1.8)
        * hv.Points(lines[GUARANTEED], axes).opts(color=GREEN, marker="inverted_triangle", size=9)
        * hv.Points(lines[MEASURED], axes).opts(color=BLUE, marker="circle", size=7)
    )
    key = [Entry(MEASURED, BLUE, "circle", "solid"), Entry(GUARANTEED, GREEN, "inverted_triangle", "dashdot")]
    return styled(layers, "Largest change, and its guarantee", key, **_axes(sites, y, "largest change / rms of the values"))


def has_size(travel: Travel, site: str) -> bool:
    """Whether changes at a site have a size; those of labels have none."""
    return not travel.original.pipeline.categorical(site)


def has_guarantees(traced: Traced | None) -> bool:
    """Whether a limit is known for any site behind the perturbed one."""
    return traced is not None and any(
        each.guaranteed is not None and math.isfinite(each.guaranteed) for each in traced.trace.stages[1:]
    )


def _line(sites: Sequence[str], values: Mapping[str, float | None]) -> Line:
    """The values that have a place on a logarithmic axis, with the number of their site from 1."""
    found = []
    for number, site in enumerate(sites, 1):
        value = values.get(site)
        if value is not None and 0 < value < math.inf:
            found.append((number, float(value)))
    return found


def _axes(sites: Sequence[str], y: tuple[float, float], label: str) -> dict[str, Any]:
    many = len(sites) > MANY
    return {
        "logy": True, "ylim": y, "xlim": (0.5, len(sites) + 0.5), "xlabel": "", "ylabel": label, "height": HEIGHT,
        "xticks": [(number, site) for number, site in enumerate(sites, 1)], "xrotation": 35 if many else 0,
    }
