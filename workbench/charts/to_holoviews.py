"""Charts as HoloViews elements, for live pages: the marks, ticks, colours and words of the SVG.

Each kind of part is one element, whose colours, dashes and marks vary. So the number of parts may change, and a view still
sends only data. The background of a page is not known here, so there is none, and texts take the colour of the page's theme
(`chart.css`). Words and key travel with the plot, as its tags.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workbench.charts.description import Axis, Band, Cells, Chart, Rule, Series, Span
from workbench.charts.looks import DASHES, GREY, INK, Dash
from workbench.charts.svg import entries
from workbench.charts.ticks import TEXTS_IN_BROWSER, TICKS_IN_BROWSER

FAINT = {"grid_line_color": GREY, "grid_line_alpha": 0.25, "minor_grid_line_color": None}
LINES = ("axis_line_color", "major_tick_line_color", "minor_tick_line_color")
TEXTS = ("axis_label_text_color", "major_label_text_color")
FRAME = {
    "plot.output_backend": "canvas",   # WebGL leaves lines out on machines without a graphics card
    "plot.background_fill_alpha": 0.0,
    "plot.border_fill_alpha": 0.0,
    "plot.outline_line_color": None,
    "toolbar.active_scroll": None,     # scrolling moves the page
    **{f"{axis}axis.{what}": GREY for axis in "xy" for what in LINES},
    **{f"{axis}axis.{what}": INK for axis in "xy" for what in TEXTS},
    **{f"{axis}axis.axis_label_text_font_style": "normal" for axis in "xy"},
}
ZOOMING = {"default_tools": ["box_zoom", "wheel_zoom", "reset"], "active_tools": ["box_zoom"], "toolbar": None}
HOVER = {"tools": ["hover"], "hover_tooltips": [("", "@tooltip")]}
# HoloViews draws a look that all parts share as one value instead of a column, and sends the changed data before it: for a
# moment, a browser would miss the column. Two parts that nobody sees keep all looks apart.
UNSEEN: tuple[dict[str, Any], ...] = tuple(
    {"colour": f"#00000{number}", "dash": f"1 {number}", "mark": mark, "tooltip": "",
     **dict.fromkeys(("width", "opacity", "size", "filled", "edge"), number / 1000)}
    for number, mark in ((1, "x"), (2, "cross"))
)
ON_CELLS = {"text_color": "#000000", "text_font_size": "11.5px", "text_align": "center", "text_baseline": "middle"}


@functools.cache
def load() -> Any:
    """HoloViews, with Bokeh as the library that draws; without `hv.extension`, which would write into the notebook."""
    import holoviews
    import holoviews.plotting.bokeh

    holoviews.Store.set_current_backend("bokeh")
    return holoviews


def to_holoviews(chart: Chart) -> Any:
    """The chart as an overlay.

    >>> chart = Chart("", Axis("x", 0, 9), Axis("y", 0, 9), (Series("a", [1], [2]),))
    >>> [type(part).__name__ for part in to_holoviews(chart)]
    ['Contours', 'Points']
    """
    hv = load()
    layers = [layer for kind, make in LAYERS.items() if chart.of(kind) for layer in make(hv, chart, chart.of(kind))]
    for layer in layers:
        layer.opts(framewise=True, axiswise=True)   # otherwise the axes would keep the ranges of the first frame
    words = {"name": chart.title, "key": entries(chart), "about": chart.words}
    return hv.Overlay(layers).opts(
        **_axis("x", chart.x), **_axis("y", chart.y), **ZOOMING, responsive=True, height=chart.height, min_width=240,
        show_grid=chart.grid, gridstyle=FAINT, title="", fontsize={"labels": "12px", "ticks": "11.5px"}, show_legend=False,
        hooks=[_same_ticks], backend_opts={**FRAME, "plot.tags": [words]},
    )


def _axis(name: str, axis: Axis) -> dict[str, Any]:
    ticks = {f"{name}ticks": list(axis.names)} if axis.names else {}
    return {
        f"{name}label": axis.title, f"{name}lim": (axis.low, axis.high), f"log{name}": axis.logarithmic,
        f"{name}rotation": 35 if axis.turned else 0, **ticks,
    }


def _same_ticks(plot: Any, element: Any) -> None:
    """HoloViews calls this after each drawing and change."""
    from bokeh.models import CustomJSTicker, CustomJSTickFormatter, FixedTicker, LogScale

    figure = plot.state
    for (axis,), (grid,), scale in (
        (figure.xaxis, figure.xgrid, figure.x_scale), (figure.yaxis, figure.ygrid, figure.y_scale)
    ):
        if not isinstance(axis.ticker, CustomJSTicker | FixedTicker):
            code = TICKS_IN_BROWSER.replace("LOGARITHMIC", "true" if isinstance(scale, LogScale) else "false")
            axis.ticker, axis.formatter = CustomJSTicker(major_code=code), CustomJSTickFormatter(code=TEXTS_IN_BROWSER)
        grid.ticker = axis.ticker


def dashes(dash: Dash) -> str:
    """A dash pattern for Bokeh, whose own patterns of these names are others."""
    return DASHES[dash] or "solid"


def _kept_apart(rows: Sequence[tuple[Any, ...]], places: int, looks: Sequence[str]) -> list[tuple[Any, ...]]:
    return [*rows, *((*(np.nan,) * places, *(unseen[look] for look in looks)) for unseen in UNSEEN)]


def _spans(hv: Any, chart: Chart, spans: Sequence[Span]) -> list[Any]:
    kinds = {"x": hv.VSpans, "y": hv.HSpans}
    looks, rows = ["colour", "opacity"], [(each.axis, each.low, each.high, each.colour, each.opacity) for each in spans]
    return [
        kinds[axis](_kept_apart([row[1:] for row in rows if row[0] == axis], 2, looks), vdims=looks).opts(
            color="colour", alpha="opacity", line_alpha=0.0
        )
        for axis in sorted({each.axis for each in spans})
    ]


def _bands(hv: Any, chart: Chart, bands: Sequence[Band]) -> list[Any]:
    corner = [chart.x.low] * 3, [chart.y.low] * 3
    outlines: list[tuple[Any, ...]] = [(*each.outline, each.colour, each.opacity) for each in bands if each.shown]
    outlines += [(*corner, unseen["colour"], unseen["opacity"]) for unseen in UNSEEN]
    rows = [dict(zip(["x", "y", "colour", "opacity"], row, strict=True)) for row in outlines]
    areas = hv.Polygons(rows, ["x", "y"], ["colour", "opacity"])
    return [areas.opts(color="colour", fill_alpha="opacity", line_alpha=0.0, tools=[])]


def _cells(hv: Any, chart: Chart, cells: Sequence[Cells]) -> list[Any]:
    rows, texts = [], []
    for each in cells:
        for number, box in enumerate(each.boxes):
            look = each.colours[number] if each.colours else each.colour, each.opacity, 0.5 if each.outlined else 0.0
            rows.append((*box, each.tooltips[number] if each.tooltips else "", *look))
            if each.texts and each.texts[number]:
                texts.append(((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, each.texts[number]))
    looks = ["tooltip", "colour", "opacity", "edge"]
    boxes = hv.Rectangles(_kept_apart(rows, 4, looks), ["x", "y", "to x", "to y"], looks)
    return [
        boxes.opts(color="colour", fill_alpha="opacity", line_color=GREY, line_width="edge", **HOVER),
        hv.Labels(texts, ["x", "y"], "text").opts(**ON_CELLS),
    ]


def _rules(hv: Any, chart: Chart, rules: Sequence[Rule]) -> list[Any]:
    kinds = {"x": hv.VLines, "y": hv.HLines}
    rows = [(each.axis, each.place, each.colour, dashes(each.dash), each.width) for each in rules if each.shown]
    looks = ["colour", "dash", "width"]
    return [
        kinds[axis](_kept_apart([row[1:] for row in rows if row[0] == axis], 1, looks), vdims=looks).opts(
            color="colour", line_dash="dash", line_width="width"
        )
        for axis in sorted({each.axis for each in rules})
    ]


def _series(hv: Any, chart: Chart, series: Sequence[Series]) -> list[Any]:
    """Lines, and points for all places: those without a mark are invisible, and have the words under the pointer."""
    looks = ["colour", "dash", "width", "opacity"]
    lines: list[dict[str, Any]] = [
        {"x": each.x, "y": each.y, "colour": each.colour, "dash": dashes(each.dash), "width": each.width,
         "opacity": each.opacity}
        for each in series if each.dash is not None and each.shown
    ]
    corner = {"x": [chart.x.low] * 2, "y": [chart.y.low] * 2}
    lines += [{**corner, **{look: unseen[look] for look in looks}} for unseen in UNSEEN]
    rows = []
    for each in series:
        filled, edge = float(each.marker is not None and not each.hollow), float(each.marker is not None)
        look = each.colour, each.marker or "circle", each.size, filled, edge
        drawn = np.isfinite(each.x) & np.isfinite(each.y)
        places = zip(each.x, each.y, chart.tooltips_of(each), drawn, strict=True)
        rows += [(x, y, tooltip, *look) for x, y, tooltip, kept in places if kept]
    marks = ["tooltip", "colour", "mark", "size", "filled", "edge"]
    points = hv.Points(_kept_apart(rows, 2, marks), ["x", "y"], marks)
    return [
        hv.Contours(lines, ["x", "y"], looks).opts(
            color="colour", line_dash="dash", line_width="width", line_alpha="opacity", tools=[]
        ),
        points.opts(
            color="colour", marker="mark", size="size", fill_alpha="filled", line_alpha="edge", line_width=1.6, **HOVER
        ),
    ]


LAYERS: dict[type, Callable[[Any, Chart, Sequence[Any]], list[Any]]] = {
    Span: _spans, Band: _bands, Cells: _cells, Rule: _rules, Series: _series,
}
