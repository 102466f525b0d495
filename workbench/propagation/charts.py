"""The charts of errors, for `plot()` of results and for the panel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from workbench.charts.description import Axis, Chart, Rule, Series
from workbench.charts.looks import COLOURS, GREY, Dash, Marker

if TYPE_CHECKING:
    from workbench.propagation.dose import Dose

HEIGHT = 260   # pixels
MEASURED, PREDICTED, ROUNDING, GUARANTEED = "measured", "predicted (first order)", "round-off floor", "guaranteed limit"
BLUE, ORANGE, GREEN = COLOURS[:3]
ROOM = 40      # letters beside each other below a chart, at the least: names that need more are turned
MOST = 12      # names on an axis
LONG = 14      # letters of a name
Values = Mapping[str, float | None]   # by site


def error_chart(
    sites: Sequence[str], measured: Values, predicted: Values, floor: Values, limit: Values, look: str = ""
) -> Chart:
    """The relative error at each site, in their order; `look` is a site to point out.

    A guaranteed limit of the largest change, in units of the root mean square of the values, is one of the relative error.
    """
    lines = (
        by_site(GUARANTEED, sites, limit, GREEN, "dashdot", "inverted_triangle", 9),
        by_site(ROUNDING, sites, floor, GREY, "dotted"),
        by_site(PREDICTED, sites, predicted, ORANGE, "dashed", "diamond", 15, hollow=True),
        by_site(MEASURED, sites, measured, BLUE, "solid", "circle", 7),
    )
    here = [Rule("", "x", sites.index(look) + 1)] if look in sites else []
    return Chart("Error by site", *axes(sites, "relative error", lines), (*here, *lines), height=HEIGHT)


def by_site(
    name: str, sites: Sequence[str], values: Values, colour: str, dash: Dash, marker: Marker | None = None, size: float = 8,
    hollow: bool = False,
) -> Series:
    """The values that have a place on a logarithmic axis, at the number of their site from 1."""
    placed = {
        number: value for number, site in enumerate(sites, 1)
        if (value := values.get(site)) is not None and 0 < value < math.inf
    }
    tooltips = [f"{name} at {sites[number - 1]}: {value:.4g}" for number, value in placed.items()]
    return Series(name, [*placed], [*placed.values()], colour, dash, marker, size=size, hollow=hollow, tooltips=tooltips)


def axes(sites: Sequence[str], label: str, lines: Sequence[Series]) -> tuple[Axis, Axis]:
    """An axis of sites with their names, and one for these values."""
    every = -(-len(sites) // MOST)
    numbered = [(float(number), short(site)) for number, site in enumerate(sites, 1)]
    names = tuple(reversed(numbered[::-1][::every]))
    needed = max(((len(one) + len(other)) / 2 + 1 for (_, one), (_, other) in pairwise(names)), default=0)
    across = Axis("", 0.5, len(sites) + 0.5, names=names, turned=needed * len(sites) > ROOM * every)
    return across, Axis.around(label, [value for line in lines for value in line.y], True, 0.08)


def short(site: str) -> str:
    """A name that leaves room for what is drawn.

    >>> short("spectrum"), short("layers.2.feed_forward")
    ('spectrum', 'layers.2.feed…')
    """
    return site if len(site) <= LONG else f"{site[: LONG - 1]}…"


def dose_chart(doses: Sequence[Dose], chosen: float = math.nan, coming: Sequence[float] = ()) -> Chart:
    """The damage at each bound, with the limit of what is tolerated and, if there is one, the chosen bound.

    `coming` are bounds that will be measured, for which there is room.
    """
    drawn = [each for each in doses if each.damage > 0]
    tooltips = [
        f"{each.bound!r}: damage {each.damage:.4g}, {'tolerated' if each.damage <= 1 else 'too much'}, "
        f"ratio {each.ratio:.1f} x" for each in drawn
    ]
    measured = [each.bound.eb for each in drawn], [each.damage for each in drawn]
    damage = Series("damage", *measured, BLUE, marker="circle", tooltips=tooltips)
    rules = Rule("tolerated", "y", 1.0), Rule("chosen", "x", chosen, dash="dotted")
    site = doses[0].site if doses else ""
    relative = bool(doses) and doses[0].bound.kind == "relative"
    name = f"error bound{', as a share of the range' if relative else ''}"
    bounds = [*(each.bound.eb for each in doses), *coming]
    return Chart(
        f"Bound at {site} and damage of the result", Axis.around(name, [*bounds, chosen], True),
        Axis.around("damage", [*damage.y, 0.1, 10.0], True, 0.08), (*rules, damage), height=HEIGHT,
    )
