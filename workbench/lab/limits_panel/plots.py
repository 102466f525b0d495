"""The charts of the limits panel.

A chart without data does not exist; codecs are compared on request only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench.charts.description import Axis, Chart, Series
from workbench.charts.looks import COLOURS, GREY
from workbench.data import Field
from workbench.lab.description import Charts
from workbench.lab.limits_panel.gap_chart import gap_chart
from workbench.lab.limits_panel.measuring import best, nearest
from workbench.lab.limits_panel.rate_chart import lines
from workbench.lab.limits_panel.spectra_chart import HEIGHT, spectra_chart
from workbench.lab.limits_panel.state import LimitsState
from workbench.lab.limits_panel.waterfall import of_theory, to_codec, waterfall_chart
from workbench.lab.remembered import remembered_with
from workbench.lab.slices import envelope
from workbench.limits.operating_point import OperatingPoint
from workbench.limits.plot import rate_chart


def charts(
    field: Field,
    state: LimitsState,
    results: Mapping[str, Any],
    points: Sequence[OperatingPoint],
) -> Charts:
    """All charts by name; a line of values has two more. Unchanged charts are the same objects as before."""
    names = "model", "curves", "tiled", "band", "figures", "news"
    model, curves, tiled, band, found, news = (results.get(name) for name in names)
    close, chosen = tuple(nearest(points, state.distortion)), best(points, state.eb)
    level, here = (math.inf, math.nan) if found is None else (found.level, found.distortion)
    makers: dict[str, Callable[[], Chart]] = {}   # in the order in which they come

    def add(name: str, owner: object, parts: tuple[object, ...], key: Hashable, make: Callable[[], Chart]) -> None:
        """Models and limits refer to the field, so it owns only charts of its values and of runs."""
        makers[name] = lambda: remembered_with(owner, f"limits: {name} chart", parts, key, make)

    if model is not None and model.spectra:
        add("spectra", model, (), level, lambda: spectra_chart(model.spectra, level))
    if curves is not None:
        add(
            "rate-distortion", curves, (tiled, band, found, *points), state.above,
            lambda: rate_chart(lines(curves, tiled, band, found, state.above), points, state.above, here),
        )
    if model is not None and chosen is not None:
        add("waterfall", model, (chosen,), None, lambda: waterfall_chart(to_codec(model.limits, chosen)))
    elif model is not None and found is not None:
        add("waterfall", model, (found,), None, lambda: waterfall_chart(of_theory(found)))
    if close:
        add("gap", field, close, None, lambda: gap_chart(close))
    if len(field.shape) == 1:
        name = field.name or "value"
        add("values", field, (), state.window, lambda: _along("Values", name, field, field.values, state, GREY))
        if news is not None:
            title, shift = "New information in each value", math.log2(2 * state.eb)
            add(
                "new information", news, (), (state.window, state.eb),
                lambda: _along(title, "bits per value", field, news.bits - shift, state, COLOURS[0]),
            )
    sources = {"spectra": model, "rate-distortion": curves, "new information": news, "waterfall": found}
    return Charts(makers, [name for name, source in sources.items() if source is None])


def _along(title: str, up: str, field: Field, values: np.ndarray, state: LimitsState, colour: str) -> Chart:
    """Values along a line."""
    where, drawn = envelope(field, values, state.window)
    axes = Axis.around("position", where, room=0.01), Axis.around(up, drawn)
    return Chart(title, *axes, (Series("", where, drawn, colour, width=1.2),), height=HEIGHT)
