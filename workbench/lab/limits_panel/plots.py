"""The charts of the limits panel. Each always has the same elements, so that a view only changes data.

A chart without data does not exist; codecs are compared on request only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workbench.charts.chart import COLOURS, GREY
from workbench.data import Field
from workbench.lab.chart_library import hv
from workbench.lab.charts import limits, styled
from workbench.lab.description import Charts
from workbench.lab.limits_panel.gap_chart import gap_chart
from workbench.lab.limits_panel.measuring import nearest
from workbench.lab.limits_panel.rate_chart import HEIGHT, Theory, rate_chart
from workbench.lab.limits_panel.spectra_chart import spectra_chart
from workbench.lab.limits_panel.state import LimitsState
from workbench.lab.limits_panel.theory import Model, News
from workbench.lab.remembered import remembered
from workbench.lab.slices import envelope
from workbench.limits.operating_point import OperatingPoint


def charts(
    field: Field,
    state: LimitsState,
    model: Model | None,
    known: Theory,
    news: News | None,
    points: Sequence[OperatingPoint],
) -> Charts:
    """All charts by name; a line of values has two more. Unchanged charts are the same objects as before."""
    level = math.inf if known.figures is None else known.figures.level
    spectra = () if model is None else model.spectra
    theory = known.tiled, known.band, known.figures
    close = tuple(nearest(points, state.distortion))
    makers: dict[str, Callable[[], Any]] = {}   # in the order in which they come
    if len(field.shape) == 1:
        makers["values"] = lambda: _kept(field, "values", (), state.window, lambda: values_chart(field, state))
    if model is not None and spectra:
        makers["spectra"] = lambda: _kept(model, "spectra", (), level, lambda: spectra_chart(spectra, level))
    if known.curves is not None:
        makers["rate-distortion"] = lambda: _kept(
            known.curves, "rates", (*theory, *points), state.above, lambda: rate_chart(known, points, state.above)
        )
    if len(field.shape) == 1 and news is not None:
        makers["new information"] = lambda: _kept(
            news, "news", (), (state.window, state.eb), lambda: news_chart(field, state, news)
        )
    if close:
        makers["gap"] = lambda: _kept(field, "gap", close, None, lambda: gap_chart(close))
    sources = {"spectra": model, "rate-distortion": known.curves, "new information": news}
    return Charts(makers, [name for name, source in sources.items() if source is None])


def _kept(owner: object, kind: str, parts: tuple[object, ...], more: object, make: Callable[[], Any]) -> Any:
    """The cached chart of these parts of an owner; they are kept with it, so that their ids stay valid.

    No part may refer to the owner. Models and limits refer to the field, so it owns only charts of its values and of runs.
    """
    return remembered(owner, f"limits: {kind} chart", (*map(id, parts), more), lambda: (make(), parts))[0]


def values_chart(field: Field, state: LimitsState) -> Any:
    """The values along a line."""
    return _along("Values", "position", field.name or "value", envelope(field, field.values, state.window), GREY)


def news_chart(field: Field, state: LimitsState, news: News) -> Any:
    """The new information in each value at the error bound."""
    where = envelope(field, news.bits - math.log2(2 * state.eb), state.window)
    return _along("New information in each value", "position", "bits per value", where, COLOURS[0])


def _along(name: str, across: str, up: str, drawn: tuple[np.ndarray, np.ndarray], shade: str) -> Any:
    curve = hv.Curve(drawn, across, up).opts(color=shade, line_width=1.2, tools=["hover"])
    x, y = limits(drawn[0], room=0.01), limits(drawn[1])
    return styled(curve, name, height=HEIGHT, xlabel=across, ylabel=up, xlim=x, ylim=y)
