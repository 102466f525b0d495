"""The style of all charts: readable on white and on dark pages and with colour blindness.

The background of a page is not known here, so charts have none. Lines are medium grey, and texts take the colour of the
page's theme (`chart.css`). Codecs and curves differ in the shape of their marks or the dashes of their lines as well as in
colour. The name of a chart, its key and a description in words travel with the plot, as its tags.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from workbench.charts.chart import COLOURS, GREY, INK
from workbench.charts.looks import Marker
from workbench.lab.chart_library import hv
from workbench.lab.legend import Entry

HEIGHT = 220
MARKERS: tuple[Marker, ...] = ("circle", "square", "diamond", "triangle", "inverted_triangle", "hex", "star")

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
}
ZOOMING = {"default_tools": ["box_zoom", "wheel_zoom", "reset"], "active_tools": ["box_zoom"], "toolbar": None}
SMALL = {"labels": "12px", "ticks": "11.5px"}
# Ticks of logarithmic axes: Bokeh's own run together in narrow charts, or are a single one.
FEW_TICKS = """
const { start, end } = cb_data.range;
const [low, high] = [start, end].map(Math.log10);
let found = [];
if (high - low < 0.6) {
  const least = (end - start) / 5;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= least) * power;
  for (let tick = Math.ceil(start / step) * step; tick <= end; tick += step) found.push(Number(tick.toPrecision(12)));
  return found;
}
for (const factors of [[1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
  found = [];
  for (let decade = Math.floor(low); decade <= high; decade++) {
    for (const factor of factors) found.push(Number(`${factor}e${decade}`));
  }
  found = found.filter((tick) => low - 1e-9 <= Math.log10(tick) && Math.log10(tick) <= high + 1e-9);
  if (found.length <= 5) break;
}
const every = Math.ceil(found.length / 5);
return found.filter((tick, place) => (found.length - 1 - place) % every === 0);
"""
PLAIN_LABELS = """
const power = Math.floor(Math.log10(tick) + 1e-9);
if (ticks.every((one) => Math.abs(Math.log10(one)) < 4.5)) return String(Number(tick.toPrecision(3)));
const factor = Number((tick / 10 ** power).toPrecision(3));
const raised = [...String(power)].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("");
return (factor === 1 ? "" : `${factor} · `) + `10${raised}`;
"""


def styled(element: Any, name: str = "", key: Sequence[Entry] = (), about: str = "", **more: Any) -> Any:
    """An element or an overlay in the common style; `more` are further options of its plot.

    `name` is the heading of the chart, `key` explains its lines and marks, and `about` says in words what it shows;
    without it, the description lists the axes and the last values of all lines.

    >>> curve = styled(hv.Curve([(1, 1), (10, 3)], label="found"), "growth", logx=True, xlabel="k", ylabel="power")
    >>> hv.Store.lookup_options("bokeh", curve, "plot").kwargs["backend_opts"]["plot.tags"][0]["about"]
    'growth: power by k. found: 3 at 10.'
    """
    axes = more.get("ylabel"), more.get("xlabel")
    told = {"name": name, "key": [entry.told() for entry in key], "about": about or description(element, name, axes)}
    options = {
        "responsive": True, "height": HEIGHT, "min_width": 240, "show_grid": True, "gridstyle": FAINT, "title": "",
        "fontsize": SMALL, "hooks": [_tick_logarithmic_axes], **ZOOMING, "show_legend": False,
        "backend_opts": {**FRAME, "plot.tags": [told]}, **more,
    }
    parts = list(element) if isinstance(element, hv.Overlay) else [element]
    for part in parts:
        part.opts(framewise=True, axiswise=True)   # otherwise the axes would keep the ranges of the first frame
    if len(parts) == 1:
        options.pop("show_legend")
    return element.opts(**options)


def _tick_logarithmic_axes(plot: Any, element: Any) -> None:
    """HoloViews calls this after each drawing and change."""
    from bokeh.models import CustomJSTicker, CustomJSTickFormatter, LogScale

    for axis, scale in ((plot.state.xaxis[0], plot.state.x_scale), (plot.state.yaxis[0], plot.state.y_scale)):
        if isinstance(scale, LogScale) and not isinstance(axis.ticker, CustomJSTicker):
            axis.ticker = CustomJSTicker(major_code=FEW_TICKS)
            axis.formatter = CustomJSTickFormatter(code=PLAIN_LABELS)


def description(element: Any, name: str, axes: tuple[str | None, str | None] = (None, None)) -> str:
    """What a chart shows, in words: its axes, and the last value of each line."""
    parts = list(element) if isinstance(element, hv.Overlay) else [element]
    first = parts[0].dimensions()
    up, across = axes[0] or str(first[1]), axes[1] or str(first[0])
    lasts = dict(last for part in parts for last in _lasts(part))
    series = "; ".join(f"{line}: {y:.4g} at {x:.4g}" for line, (x, y) in lasts.items())
    return f"{name + ': ' if name else ''}{up} by {across}. {series + '.' if series else ''}".strip()


def _lasts(part: Any) -> Iterator[tuple[str, tuple[float, float]]]:
    """The last point of a line, or of each codec or region among points."""
    if isinstance(part, hv.Points | hv.Scatter | hv.Curve | hv.Area) and len(part):
        x, y = (np.asarray(part.dimension_values(axis), np.float64) for axis in (0, 1))
        groups = next((str(each) for each in part.vdims if str(each) in ("codec", "region")), None)
        names = np.full(len(x), part.label) if groups is None else part.dimension_values(groups).astype(str)
        drawn = np.isfinite(x) & np.isfinite(y)
        for line in dict.fromkeys(names[drawn].tolist()):
            if line or (groups is None and isinstance(part, hv.Curve)):
                here = np.flatnonzero(drawn & (names == line))
                last = here[np.argmax(x[here])]
                yield line or str(part.vdims[0]), (float(x[last]), float(y[last]))


def limits(values: Sequence[float] | np.ndarray, logarithmic: bool = False, room: float = 0.05) -> tuple[float, float]:
    """The ends of an axis for these values, with some room; values without a place on the axis are ignored.

    >>> limits([1.0, 100.0, float("nan")], logarithmic=True, room=0.5)
    (0.1, 1000.0)
    >>> limits([]), limits([3.0])
    ((0.0, 1.0), (1.5, 4.5))
    """
    places = np.asarray(values, np.float64).ravel()
    places = places[np.isfinite(places) & (places > 0 if logarithmic else True)]
    if not places.size:
        return (1.0, 10.0) if logarithmic else (0.0, 1.0)
    if logarithmic:
        places = np.log10(places)
    low, high = float(places.min()), float(places.max())
    beside = (high - low) * room or (0.5 if logarithmic else abs(low) / 2 or 0.5)
    low, high = low - beside, high + beside
    return (10.0**low, 10.0**high) if logarithmic else (low, high)


def colour(number: int) -> str:
    """The colour of the curve or region of this number; colours repeat after eight.

    >>> colour(0), colour(8) == colour(0)
    ('#2f7fc1', True)
    """
    return COLOURS[number % len(COLOURS)]


def marker(number: int) -> Marker:
    """The mark of the curve or region of this number."""
    return MARKERS[number % len(MARKERS)]
