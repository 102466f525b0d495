"""The charts of the clusters panel: the mass function of halos, and the decrease of violations.

HoloViews elements are too slow to make at every slider step, so a chart is made only when its numbers change. Both axes of
the mass function are logarithmic, so curves end before bins without halos.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.charts.chart import GREY
from workbench.charts.looks import Dash
from workbench.clusters.keep.repair import Step
from workbench.lab.chart_library import hv
from workbench.lab.charts import colour, limits, marker, styled
from workbench.lab.glossary import meaning
from workbench.lab.legend import Entry

DASHES: tuple[Dash, ...] = ("solid", "dashed", "dotted")
UP = "place"   # on the axis of the descent
CURVES = ("original", "decoded", "kept")


def mass_function_chart(min_members: int, sizes: Sequence[np.ndarray | None]) -> Any:
    """The number of halos by their members, in bins that double.

    `sizes` are the group sizes of the original, the decoded and the kept particles, the largest first; None if not yet
    computed.
    """
    edges = mass_edges(min_members, max((int(found[0]) for found in sizes if found is not None and len(found)), default=1))
    counts = tuple(() if found is None else tuple(counted(found, edges).tolist()) for found in sizes)
    return _mass_function(tuple(edges.tolist()), counts)


def mass_edges(min_members: int, largest: int) -> np.ndarray:
    """The bin edges, from the smallest halo to beyond the largest, each twice the previous one.

    >>> mass_edges(20, 100).tolist()
    [20, 40, 80, 160]
    """
    return min_members * 2 ** np.arange(max(largest // min_members, 1).bit_length() + 1)


def counted(sizes: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """How many sizes, the largest first, are in each bin.

    >>> counted(np.array([90, 30, 20, 3]), np.array([20, 40, 80, 160])).tolist()
    [2, 0, 1]
    """
    return np.diff(np.searchsorted(sizes[::-1], edges))


@functools.lru_cache(maxsize=16)
def _mass_function(edges: tuple[int, ...], counts: tuple[tuple[int, ...], ...]) -> Any:
    middles = np.sqrt(np.array(edges[:-1], float) * edges[1:])
    layers, key = [], []
    for number, (name, found) in enumerate(zip(CURVES, counts, strict=True)):
        heights = np.full(len(middles), np.nan)
        if found:
            heights = np.where(np.array(found) > 0, found, np.nan)
            key.append(Entry(name, colour(number), marker(number), DASHES[number]))
        layers += _curve(name, number, middles, heights)
    return styled(
        hv.Overlay(layers), "Mass function of halos", key, logx=True, logy=True, xlim=limits(middles, logarithmic=True),
        ylim=limits([count for found in counts for count in found], logarithmic=True), xlabel="members", ylabel="halos",
    )


@functools.lru_cache(maxsize=4)
def descent_chart(steps: tuple[Step, ...], share: float = 1.0) -> Any:
    """Violations and loss (half the sum of their squares, in squared bounds) by step.

    The steps are those of one trial, within this share of the error bound.

    The axis is linear from 0 to 1 and logarithmic above, so that it shows the end at zero. Rounds of moves are shaded: they
    follow other constraints than descent does, so the curves jump where a phase begins.
    """
    number = np.arange(1, len(steps) + 1)
    violations = np.array([step.violations for step in steps], float)
    loss = np.array([share**2 * step.loss for step in steps], float)
    layers: list[Any] = [hv.VSpans(_phases(steps, "moves")).opts(color=GREY, alpha=0.16, line_alpha=0.0)]
    for place, (name, values) in enumerate({"violations": violations, "loss": loss}.items()):
        told = [f"{value:,.4g}" for value in values]
        points = hv.Scatter((number, from_zero(values), told), "step", [UP, "told"], label=name)
        curve = hv.Curve((number, from_zero(values)), "step", UP, label=name)
        layers += [
            curve.opts(color=colour(place), line_dash=DASHES[place], line_width=1.5),
            points.opts(color=colour(place), marker=marker(place), size=5, tools=["hover"],
                        hover_tooltips=[("step", "@step"), (name, "@told")]),
        ]
    named = enumerate({"violations": meaning("violation"), "loss in ξ²": meaning("loss")}.items())
    key = [Entry(name, colour(place), marker(place), DASHES[place], meaning=told) for place, (name, told) in named]
    if "moves" in {step.phase for step in steps}:
        key.append(Entry("rounds of moves (else descent)", GREY, opacity=0.3, meaning=meaning("round of moves")))
    highest = max([1.0, *violations.tolist(), *loss.tolist()])
    within = f" within {share:.3g} ξ" if share < 1 else ""
    last = f"After {len(steps)} steps: {violations[-1]:,.0f} violations, loss {loss[-1]:.3g} ξ²." if steps else ""
    return styled(
        hv.Overlay(layers), f"Violations left, step by step{within}", key, f"Violations and loss by step{within}. {last}",
        xlim=(0.5, max(len(steps), 2) + 0.5), ylim=(-0.08, 1.08 * float(from_zero(highest))),
        yticks=zero_ticks(highest), xlabel="step", ylabel="violations; loss in ξ²",
    )


def from_zero(values: np.ndarray | float) -> np.ndarray:
    """Places on an axis that is linear from 0 to 1, and logarithmic above: 1 plus the decimal logarithm.

    >>> from_zero(np.array([0.0, 0.5, 1.0, 100.0])).tolist()
    [0.0, 0.5, 1.0, 3.0]
    """
    given = np.asarray(values, float)
    return np.where(given <= 1, given, 1 + np.log10(np.maximum(given, 1)))


def zero_ticks(highest: float) -> list[tuple[float, str]]:
    """The ticks of such an axis: 0, and up to four powers of ten.

    >>> [text for _, text in zero_ticks(2e5)]
    ['0', '1', '100', '10,000']
    """
    decades = range(math.floor(math.log10(max(highest, 1.0))) + 1)
    return [(0.0, "0"), *((float(from_zero(10.0**power)), f"{10**power:,}") for power in decades[::-(-len(decades) // 4)])]


def _phases(steps: Sequence[Step], phase: str) -> list[tuple[float, float]]:
    """The spans of successive steps of a phase."""
    found = []
    for kind, several in itertools.groupby(enumerate(steps, start=1), key=lambda pair: pair[1].phase):
        places = [place for place, _ in several]
        if kind == phase:
            found.append((places[0] - 0.5, places[-1] + 0.5))
    return found


def _curve(name: str, number: int, x: np.ndarray, y: np.ndarray) -> list[Any]:
    """A line with its marks."""
    told = [("members", "$x{0,0}"), (f"halos, {name}", "$y{0,0}")]
    line = hv.Curve((x, y), "members", "halos", label=name)
    marks = hv.Scatter((x, y), "members", "halos", label=name)
    return [
        line.opts(color=colour(number), line_dash=DASHES[number], line_width=1.5),
        marks.opts(color=colour(number), marker=marker(number), size=9 - 2 * number, tools=["hover"], hover_tooltips=told),
    ]
