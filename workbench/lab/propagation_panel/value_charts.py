"""The values of a site that is a line of numbers, such as a spectrum: without the error, with it, and the change."""

from __future__ import annotations

import numpy as np

from workbench.charts.description import Axis, Chart, Series, limits
from workbench.charts.looks import COLOURS, Marker
from workbench.lab.propagation_panel.arrays import changed_field, difference_fields, original_field
from workbench.lab.propagation_panel.pictures import is_wide
from workbench.lab.propagation_panel.state import PropagationState
from workbench.lab.propagation_panel.travel import Baseline, Travel
from workbench.lab.slices import envelope
from workbench.propagation.charts import HEIGHT

BLUE, ORANGE = COLOURS[:2]
Curve = tuple[np.ndarray, np.ndarray]


def value_chart(base: Baseline, travel: Travel | None, state: PropagationState) -> Chart:
    """Both lines of values; logarithmic if they span decades."""
    field, wide = original_field(base, state.look), is_wide(base, state.look)
    before = _drawable(*envelope(field, field.values), wide)
    after = (np.empty(0),) * 2
    if travel is not None and state.look in travel.reached:
        after = _drawable(*envelope(field, changed_field(travel, state.look).values), wide)
    return Chart(
        f"Values of {state.look}", Axis.around("index", before[0], room=0.02),
        Axis(state.look, *_shown(before[1], after[1], wide), wide),
        (
            Series("original", *before, width=3.0, marker=_mark(before, "square"), size=5),
            Series("with the error", *after, ORANGE, "dashed", _mark(after, "circle"), width=1.5, size=5),
        ),
        height=HEIGHT,
    )


def change_chart(travel: Travel, state: PropagationState) -> Chart:
    """The size of the change of each value, on a logarithmic scale."""
    before, after = difference_fields(travel, state.look)
    with np.errstate(all="ignore"):
        size = abs(after.values.astype(np.float64) - before.values)
    curve = _drawable(*envelope(original_field(travel.base, state.look), size), logarithmic=True)
    return Chart(
        f"Change of {state.look}", Axis.around("index", original_span(travel.base, state.look), room=0.02),
        Axis.around("size of the change", curve[1], True, 0.08),
        (Series("", *curve, BLUE, marker=_mark(curve, "circle"), width=1.5, size=5),), height=HEIGHT,
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
    least, most = limits(before, logarithmic=wide)
    if wide:
        return (least / 10, most * 10) if high / low > 1e4 * most / least else (low, high)
    room = (most - least) / 2
    return (low, high) if high - low <= 20 * (most - least) else (least - room, most + room)


def _mark(curve: Curve, marker: Marker) -> Marker | None:
    """The mark of each point: none where they would touch."""
    return marker if len(curve[0]) <= 80 else None
