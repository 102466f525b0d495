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
from workbench.lab.limits_panel.theory import News
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
        add("values", field, (), state.window, lambda: values_chart(field, state))
        if news is not None:
            add("new information", news, (), (state.window, state.eb), lambda: news_chart(field, state, news))
    sources = {"spectra": model, "rate-distortion": curves, "new information": news, "waterfall": found}
    return Charts(makers, [name for name, source in sources.items() if source is None])


def values_chart(field: Field, state: LimitsState) -> Chart:
    """The values along a line."""
    return _along("Values", field.name or "value", envelope(field, field.values, state.window), GREY)


def news_chart(field: Field, state: LimitsState, news: News) -> Chart:
    """The new information in each value at the error bound."""
    where = envelope(field, news.bits - math.log2(2 * state.eb), state.window)
    return _along("New information in each value", "bits per value", where, COLOURS[0])


def _along(name: str, up: str, drawn: tuple[np.ndarray, np.ndarray], shade: str) -> Chart:
    axes = Axis.around("position", drawn[0], room=0.01), Axis.around(up, drawn[1])
    return Chart(name, *axes, (Series("", *drawn, shade, width=1.2),), height=HEIGHT)
