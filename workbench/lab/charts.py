"""The style of all charts: readable on white and on dark pages and with colour blindness.

The background of a page is not known here, so charts have none, and everything except data is medium grey. Codecs and
curves differ in the shape of their marks or the dashes of their lines as well as in colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holoviews as hv
import holoviews.plotting.bokeh
import numpy as np

from workbench.bounds.chart import COLOURS, GREY

HEIGHT = 220
MARKERS = ("circle", "square", "diamond", "triangle", "inverted_triangle", "hex", "star")   # 7, beside 8 colours
DASHES = ("solid", "dashed", "dotted", "dotdash")

FAINT = {"grid_line_color": GREY, "grid_line_alpha": 0.25, "minor_grid_line_color": None}
TEXTS = ("axis_label_text_color", "major_label_text_color", "axis_line_color", "major_tick_line_color")
FRAME = {
    "plot.output_backend": "canvas",   # WebGL leaves lines out on machines without a graphics card
    "plot.background_fill_alpha": 0.0,
    "plot.border_fill_alpha": 0.0,
    "plot.outline_line_color": None,
    **{f"{axis}axis.{what}": GREY for axis in "xy" for what in (*TEXTS, "minor_tick_line_color")},
}
QUIET_LEGEND = {
    "background_fill_alpha": 0.0, "border_line_alpha": 0.0, "label_text_color": GREY, "label_text_font_size": "11px",
    "padding": 2, "spacing": 0, "margin": 4,
}

hv.Store.set_current_backend("bokeh")   # without `hv.extension`, which would write into the notebook


def styled(element: Any, **more: Any) -> Any:
    """An element or an overlay in the common style; `more` are further options of its plot.

    >>> curve = styled(hv.Curve([(1, 1), (10, 3)]), logx=True, xlabel="k")
    >>> hv.Store.lookup_options("bokeh", curve, "plot").kwargs["height"]
    220
    """
    options = {
        "responsive": True, "height": HEIGHT, "min_width": 240, "toolbar": None, "show_grid": True, "gridstyle": FAINT,
        "title": "", "fontsize": {"labels": "12px", "ticks": "11px", "legend": "11px"}, "backend_opts": FRAME, **more,
    }
    parts = list(element) if isinstance(element, hv.Overlay) else [element]
    for part in parts:
        part.opts(framewise=True, axiswise=True)   # otherwise the axes would keep the ranges of the first frame
    if len(parts) > 1:
        options.setdefault("legend_opts", QUIET_LEGEND)
    return element.opts(**options)


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
    """The colour of the codec or curve of this number; colours repeat after eight.

    >>> colour(0), colour(8) == colour(0)
    ('#2f7fc1', True)
    """
    return COLOURS[number % len(COLOURS)]


def marker(number: int) -> str:
    """The mark of the codec or curve of this number."""
    return MARKERS[number % len(MARKERS)]
