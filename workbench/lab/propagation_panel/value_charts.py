"""The values of a site that is a line of numbers, such as a spectrum: without the error, with it, and the change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.charts.chart import COLOURS, GREY
from workbench.lab.chart_library import hv
from workbench.lab.charts import limits, styled
from workbench.lab.legend import Entry
from workbench.lab.propagation_panel.arrays import changed_field, difference_fields, original_field
from workbench.lab.propagation_panel.error_charts import HEIGHT
from workbench.lab.propagation_panel.pictures import is_wide
from workbench.lab.propagation_panel.state import PropagationState
from workbench.lab.propagation_panel.travel import Baseline, Travel
from workbench.lab.slices import envelope

BEFORE, AFTER = "original", "with the error"
BLUE, ORANGE = COLOURS[:2]
Curve = tuple[np.ndarray, np.ndarray]


def value_chart(base: Baseline, travel: Travel | None, state: PropagationState) -> Any:
    """Both lines of values; logarithmic if they span decades."""
    field, wide = original_field(base, state.look), is_wide(base, state.look)
    before = _drawable(*envelope(field, field.values), wide)
    after = (np.empty(0),) * 2
    if travel is not None and state.look in travel.reached:
        after = _drawable(*envelope(field, changed_field(travel, state.look).values), wide)
    axes = ["index", "value"]
    tools = {"tools": ["hover"], "hover_tooltips": [("index", "$x{0}"), ("value", "$y")]}
    layers = (
        hv.Curve(before, *axes, label=BEFORE).opts(color=GREY, line_width=3.0, **tools)
        * hv.Curve(after, *axes, label=AFTER).opts(color=ORANGE, line_width=1.5, line_dash="dashed")
        * hv.Points(before, axes).opts(color=GREY, marker="square", size=_dot(before))
        * hv.Points(after, axes).opts(color=ORANGE, marker="circle", size=_dot(after))
    )
    key = [Entry(BEFORE, GREY, dash="solid"), *([Entry(AFTER, ORANGE, dash="dashed")] if len(after[0]) else [])]
    x, y = limits(before[0], room=0.02), _shown(before[1], after[1], wide)
    return styled(
        layers, f"Values of {state.look}", key, height=HEIGHT, xlabel="index", ylabel=state.look, xlim=x, ylim=y, logy=wide,
    )


def change_chart(travel: Travel, state: PropagationState) -> Any:
    """The size of the change of each value, on a logarithmic scale."""
    before, after = difference_fields(travel, state.look)
    with np.errstate(all="ignore"):
        size = abs(after.values.astype(np.float64) - before.values)
    curve = _drawable(*envelope(original_field(travel.base, state.look), size), logarithmic=True)
    axes = ["index", "size of the change"]
    tools = {"tools": ["hover"], "hover_tooltips": [("index", "$x{0}"), ("change", "$y")]}
    layers = hv.Curve(curve, *axes).opts(color=BLUE, line_width=1.5, **tools) * hv.Points(curve, axes).opts(
        color=BLUE, marker="circle", size=_dot(curve)
    )
    x = limits(original_span(travel.base, state.look), room=0.02)
    y = limits(curve[1], logarithmic=True, room=0.08)
    return styled(
        layers, f"Change of {state.look}", height=HEIGHT, xlabel="index", ylabel="size of the change", xlim=x, ylim=y,
        logy=True,
    )


def original_span(base: Baseline, site: str) -> tuple[float, float]:
    """The first and the last place of a line of values."""
    count = len(original_field(base, site).values)
    return 0.5, max(count - 0.5, 0.5)


def _drawable(places: np.ndarray, values: np.ndarray, logarithmic: bool) -> Curve:
    """The points that have a place on the axis."""
    with np.errstate(invalid="ignore"):
        kept = np.isfinite(values) & (values > 0 if logarithmic else True)
    return places[kept], values[kept]


def _shown(before: np.ndarray, after: np.ndarray, wide: bool) -> tuple[float, float]:
    """The ends of the axis: an enormous error must not squeeze the original to a line."""
    low, high = limits(np.concatenate([before, after]), logarithmic=wide)
    own = limits(before, logarithmic=wide)
    if wide or not math.isfinite(high - low) or high - low > 20 * (own[1] - own[0]):
        room = (own[1] - own[0]) / 2
        return (own[0] / 10, own[1] * 10) if wide and high / low > 1e4 * own[1] / own[0] else (
            (low, high) if wide else (own[0] - room, own[1] + room)
        )
    return low, high


def _dot(curve: Curve) -> float:
    """The size of points: none where they would touch."""
    return 5.0 if len(curve[0]) <= 80 else 0.0
