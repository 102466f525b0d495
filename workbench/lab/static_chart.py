"""A chart as SVG without a browser, for pages whose scripts do not run.

It is drawn from the Bokeh figure, which has what the live chart shows: ranges, labels, legend, colours and marks. Bokeh
itself can export only through a browser.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from workbench.lab.chart_library import hv

WIDTH, HEIGHT = 480, 260
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 8, 40   # margins
TEXT, LINE, LETTERS = "#444444", "#8a8a8a", 11.5
ROW, ENTRY = 17, 150                       # of the legend: the height of a row, the width of an entry
MOST_TICKS = 7
DASHES = {"solid": (), "dashed": (6,), "dotted": (2, 4), "dotdash": (2, 4, 6, 4), "dashdot": (6, 4, 2, 4)}
Glyph = Callable[["_Plot", Any, Any], Iterator[str]]


def svg(element: Any, name: str) -> str:
    """A HoloViews element in the style of the panels as SVG; `name` becomes its label.

    >>> from workbench.lab.charts import styled
    >>> drawn = svg(styled(hv.Curve([(1, 1), (10, 3)], "k", "power")), "spectrum")
    >>> "spectrum: power by k" in drawn, drawn.count("<polyline")
    (True, 1)
    """
    return of_figure(hv.renderer("bokeh").get_plot(element).state, name)


def of_figure(figure: Any, name: str) -> str:
    """A Bokeh figure as SVG."""
    from bokeh.models.renderers import GlyphRenderer
    from bokeh.models.sources import ColumnDataSource

    plot = _Plot.of(figure)
    inside, missing = [], []
    for renderer in figure.renderers:
        if not isinstance(renderer, GlyphRenderer) or not renderer.visible:
            continue
        kind, source = type(renderer.glyph).__name__, renderer.data_source
        if kind in GLYPHS and isinstance(source, ColumnDataSource):
            inside += list(GLYPHS[kind](plot, _specified(renderer.glyph), source.data))
        else:
            missing.append(kind)
    entries = _legend(figure)
    rows = math.ceil(len(entries) / max((WIDTH - LEFT) // ENTRY, 1))
    height = HEIGHT + ROW * rows
    said = html.escape(_described(figure, name, entries))
    lacking = f"<desc>not drawn here: {', '.join(sorted(set(missing)))}</desc>" if missing else ""
    frame = f'<svg x="{LEFT}" y="{TOP}" width="{plot.width:g}" height="{plot.height:g}">{"".join(inside)}</svg>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wb-static" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{said}" font-family="system-ui, sans-serif" font-size="{LETTERS}" fill="{TEXT}">'
        f"{lacking}{_axes(figure, plot)}{frame}{_legend_svg(entries)}</svg>"
    )


@dataclass(frozen=True)
class _Axis:
    """One axis: its ends, and whether it is logarithmic."""

    low: float
    high: float
    logarithmic: bool
    length: float
    flipped: bool = False

    def place(self, value: Any) -> np.ndarray:
        """Where values are, in pixels from the left or the top; those without a place become NaN."""
        numbers = np.asarray(value, np.float64)
        low, high = self.low, self.high
        if self.logarithmic:
            with np.errstate(divide="ignore", invalid="ignore"):
                numbers, low, high = np.log10(numbers), math.log10(low), math.log10(high)
        share = (numbers - low) / ((high - low) or 1.0)
        found: np.ndarray = np.clip(np.where(np.isfinite(share), share, np.nan), -50, 50) * self.length
        return self.length - found if self.flipped else found

    def ticks(self) -> list[tuple[float, str]]:
        """Values and their texts."""
        if self.logarithmic:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            if last > first:
                step = -(-(last - first + 1) // MOST_TICKS)
                return [(10.0**power, f"{10.0**power:g}") for power in range(first, last + 1, step)]
        return [(value, f"{value:.6g}") for value in _round_values(self.low, self.high)]


@dataclass(frozen=True)
class _Plot:
    """The area between the axes."""

    x: _Axis
    y: _Axis

    @classmethod
    def of(cls, figure: Any) -> _Plot:
        from bokeh.models import LogScale

        wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        x, y = figure.x_range, figure.y_range
        return cls(
            _Axis(float(x.start), float(x.end), isinstance(figure.x_scale, LogScale), wide),
            _Axis(float(y.start), float(y.end), isinstance(figure.y_scale, LogScale), high, flipped=True),
        )

    @property
    def width(self) -> float:
        return self.x.length

    @property
    def height(self) -> float:
        return self.y.length


def _round_values(low: float, high: float) -> list[float]:
    """Round numbers between the ends, a few."""
    if not high > low:
        return [low]
    rough = (high - low) / (MOST_TICKS - 2)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first = math.ceil(low / step - 1e-9)
    return [0.0 if number == 0 else number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _axes(figure: Any, plot: _Plot) -> str:
    bottom, parts = TOP + plot.height, []
    (across, *_), (up, *_) = figure.below, figure.left
    if across.visible:
        for value, text in _ticks(across, plot.x):
            x = LEFT + float(plot.x.place(value))
            parts.append(f'<path d="M{x:.1f} {TOP}V{bottom:g}" stroke="{LINE}" stroke-opacity=".25"/>')
            parts.append(f'<text x="{x:.1f}" y="{bottom + 15:g}" text-anchor="middle">{html.escape(text)}</text>')
        middle = LEFT + plot.width / 2
        parts.append(f'<text x="{middle:g}" y="{bottom + 32:g}" text-anchor="middle">{_label(across)}</text>')
    if up.visible:
        for value, text in _ticks(up, plot.y):
            y = TOP + float(plot.y.place(value))
            parts.append(f'<path d="M{LEFT} {y:.1f}h{plot.width:g}" stroke="{LINE}" stroke-opacity=".25"/>')
            parts.append(f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{html.escape(text)}</text>')
        middle = TOP + plot.height / 2
        parts.append(f'<text transform="translate(13 {middle:g}) rotate(-90)" text-anchor="middle">{_label(up)}</text>')
    parts.append(f'<path d="M{LEFT} {TOP}V{bottom:g}h{plot.width:g}" fill="none" stroke="{LINE}"/>')
    return "".join(parts)


def _ticks(axis: Any, scale: _Axis) -> list[tuple[float, str]]:
    """The ticks that the axis prescribes, or round numbers."""
    from bokeh.models import FixedTicker

    if not isinstance(axis.ticker, FixedTicker):
        return scale.ticks()
    told = {float(value): str(text) for value, text in axis.major_label_overrides.items()}
    return [(float(value), told.get(float(value), f"{value:g}")) for value in axis.ticker.ticks]


def _label(axis: Any) -> str:
    return html.escape(str(axis.axis_label or ""))


# Glyphs.

def _specified(glyph: Any) -> SimpleNamespace:
    """The properties of a glyph; those that refer to a column have a `field`, which the glyph's own attributes may lack."""
    return SimpleNamespace(**glyph.properties_with_values())


def _values(data: Any, given: Any, count: int) -> Sequence[Any]:
    """What a property of a glyph is for each of its shapes: a column of the data, or one value for all."""
    column = getattr(given, "field", None)
    if column is not None:
        return list(data[column])
    value = getattr(given, "value", given)
    return [value] * count


def _column(data: Any, given: Any) -> np.ndarray:
    """A column of places."""
    column = getattr(given, "field", None)
    return np.asarray(data[column] if column is not None else [getattr(given, "value", given)], np.float64)


def _stroke(glyph: Any, data: Any, count: int) -> list[str]:
    """The line of each shape."""
    colours, widths, alphas, dashes = (
        _values(data, getattr(glyph, f"line_{what}"), count) for what in ("color", "width", "alpha", "dash")
    )
    found = []
    for colour, width, alpha, dash in zip(colours, widths, alphas, dashes, strict=True):
        pattern = DASHES[dash] if isinstance(dash, str) else tuple(dash or ())
        dashed = f' stroke-dasharray="{" ".join(map(str, pattern))}"' if pattern else ""
        found.append(f'stroke="{colour or "none"}" stroke-width="{width}" stroke-opacity="{alpha}"{dashed}')
    return found


def _fill(glyph: Any, data: Any, count: int) -> list[str]:
    colours, alphas = (_values(data, getattr(glyph, f"fill_{what}"), count) for what in ("color", "alpha"))
    return [
        f'fill="{colour or "none"}" fill-opacity="{alpha}"' for colour, alpha in zip(colours, alphas, strict=True)
    ]


def _line(plot: _Plot, glyph: Any, data: Any) -> Iterator[str]:
    x, y = plot.x.place(_column(data, glyph.x)), plot.y.place(_column(data, glyph.y))
    stroke = _stroke(glyph, data, 1)[0]
    there = np.isfinite(x) & np.isfinite(y)
    for run in np.split(np.arange(len(x)), np.flatnonzero(~there)):
        run = run[there[run]]
        if len(run):
            places = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[run], y[run], strict=True))
            yield f'<polyline points="{places}" fill="none" {stroke}/>'


def _patch(plot: _Plot, glyph: Any, data: Any) -> Iterator[str]:
    x, y = plot.x.place(_column(data, glyph.x)), plot.y.place(_column(data, glyph.y))
    places = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True) if math.isfinite(a + b))
    if places:
        yield f'<polygon points="{places}" {_fill(glyph, data, 1)[0]}/>'


def _quad(plot: _Plot, glyph: Any, data: Any) -> Iterator[str]:
    left, right, bottom, top = (_column(data, getattr(glyph, side)) for side in ("left", "right", "bottom", "top"))
    left, right, bottom, top = np.broadcast_arrays(
        plot.x.place(left), plot.x.place(right), plot.y.place(bottom), plot.y.place(top)
    )
    yield from _boxes(left, right, bottom, top, _fill(glyph, data, len(left)), _stroke(glyph, data, len(left)))


def _boxes(left: Any, right: Any, bottom: Any, top: Any, fills: list[str], strokes: list[str]) -> Iterator[str]:
    for a, b, c, d, fill, stroke in zip(left, right, bottom, top, fills, strokes, strict=True):
        if math.isfinite(a + b + c + d) and c > d:
            yield f'<rect x="{a:.1f}" y="{d:.1f}" width="{b - a:.1f}" height="{c - d:.1f}" {fill} {stroke}/>'


def _segment(plot: _Plot, glyph: Any, data: Any) -> Iterator[str]:
    x0, x1 = (plot.x.place(_column(data, given)) for given in (glyph.x0, glyph.x1))
    y0, y1 = (plot.y.place(_column(data, given)) for given in (glyph.y0, glyph.y1))
    for a, b, c, d, stroke in zip(x0, y0, x1, y1, _stroke(glyph, data, len(x0)), strict=True):
        if math.isfinite(a + b + c + d):
            yield f'<path d="M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" {stroke}/>'


def _across(plot: _Plot, glyph: Any, data: Any) -> Iterator[str]:
    y = plot.y.place(_column(data, glyph.y))
    for place, stroke in zip(y, _stroke(glyph, data, len(y)), strict=True):
        yield f'<path d="M0 {place:.1f}h{plot.width:g}" {stroke}/>'


def _upright(plot: _Plot, glyph: Any, data: Any) -> Iterator[str]:
    x = plot.x.place(_column(data, glyph.x))
    for place, stroke in zip(x, _stroke(glyph, data, len(x)), strict=True):
        yield f'<path d="M{place:.1f} 0v{plot.height:g}" {stroke}/>'


def _band(plot: _Plot, glyph: Any, data: Any) -> Iterator[str]:
    low, high = (plot.y.place(_column(data, given)) for given in (glyph.y0, glyph.y1))
    sides = np.zeros(len(low)), np.full(len(low), plot.width)
    yield from _boxes(*sides, low, high, _fill(glyph, data, len(low)), _stroke(glyph, data, len(low)))


def _column_band(plot: _Plot, glyph: Any, data: Any) -> Iterator[str]:
    left, right = (plot.x.place(_column(data, given)) for given in (glyph.x0, glyph.x1))
    ends = np.full(len(left), plot.height), np.zeros(len(left))
    yield from _boxes(left, right, *ends, _fill(glyph, data, len(left)), _stroke(glyph, data, len(left)))


def _scatter(plot: _Plot, glyph: Any, data: Any) -> Iterator[str]:
    x, y = plot.x.place(_column(data, glyph.x)), plot.y.place(_column(data, glyph.y))
    count = len(x)
    marks, sizes = _values(data, glyph.marker, count), _values(data, glyph.size, count)
    looks = zip(_fill(glyph, data, count), _stroke(glyph, data, count), strict=True)
    for a, b, mark, size, (fill, stroke) in zip(x, y, marks, sizes, looks, strict=True):
        if math.isfinite(a + b):
            yield f'<g transform="translate({a:.1f} {b:.1f}) scale({size / 2:.2f})">{_mark(str(mark), fill, stroke)}</g>'


def _mark(name: str, fill: str, stroke: str) -> str:
    """A mark of radius 1 around the origin."""
    steady = f'{fill} {stroke} vector-effect="non-scaling-stroke"'
    if name == "dash":
        return f'<path d="M-1 0h2" {steady}/>'
    corners = {
        "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        "diamond": [(0, -1.1), (0.8, 0), (0, 1.1), (-0.8, 0)],
        "triangle": [(0, -1), (0.95, 0.75), (-0.95, 0.75)],
        "inverted_triangle": [(0, 1), (0.95, -0.75), (-0.95, -0.75)],
        "hex": _star(6, 1.0, 1.0),
        "star": _star(5, 1.1, 0.5),
    }.get(name)
    if corners is None:
        return f'<circle r="1" {steady}/>'
    return f'<polygon points="{" ".join(f"{a:.2f},{b:.2f}" for a, b in corners)}" {steady}/>'


def _star(points: int, outer: float, inner: float) -> list[tuple[float, float]]:
    turns = [(math.pi * step / points, outer if step % 2 == 0 else inner) for step in range(2 * points)]
    return [(radius * math.sin(turn), -radius * math.cos(turn)) for turn, radius in turns]


ANCHORS = {"left": "start", "center": "middle", "right": "end"}


def _text(plot: _Plot, glyph: Any, data: Any) -> Iterator[str]:
    x, y = plot.x.place(_column(data, glyph.x)), plot.y.place(_column(data, glyph.y))
    count = len(x)
    texts, colours, sides = (_values(data, given, count) for given in (glyph.text, glyph.text_color, glyph.text_align))
    for a, b, text, colour, side in zip(x, y, texts, colours, sides, strict=True):
        if math.isfinite(a + b) and str(text):
            yield (f'<text x="{a:.1f}" y="{b + 4:.1f}" fill="{colour}" text-anchor="{ANCHORS.get(str(side), "start")}" '
                   f'xml:space="preserve">{html.escape(str(text))}</text>')


GLYPHS: dict[str, Glyph] = {
    "Line": _line, "Patch": _patch, "VArea": _patch, "Quad": _quad, "Segment": _segment, "HSpan": _across,
    "VSpan": _upright, "HStrip": _band, "VStrip": _column_band, "Scatter": _scatter, "Text": _text,
}


# Legends and words.

def _legend(figure: Any) -> list[tuple[str, str]]:
    """The names in the legend, each with its sample as SVG, 24 pixels wide around (12, 0)."""
    found = []
    for legend in figure.legend:
        if legend.visible:
            for item in legend.items:
                name = str(getattr(item.label, "value", item.label))
                found.append((name, "".join(_sample(renderer) for renderer in item.renderers)))
    return found


def _sample(renderer: Any) -> str:
    glyph, data = _specified(renderer.glyph), renderer.data_source.data
    kind = type(renderer.glyph).__name__
    if kind in ("Patch", "VArea", "Quad", "HStrip", "VStrip"):
        return f'<rect x="2" y="-5" width="20" height="10" {_fill(glyph, data, 1)[0]}/>'
    if kind == "Scatter":
        look = (_values(data, given, 1)[:1] for given in (glyph.marker, glyph.size))
        (mark,), (size,) = (values or ["circle"] for values in look)
        fill, stroke = _fill(glyph, data, 1)[:1], _stroke(glyph, data, 1)[:1]
        if not fill or not stroke or not isinstance(size, int | float):
            return ""
        return f'<g transform="translate(12 0) scale({size / 2:.2f})">{_mark(str(mark), fill[0], stroke[0])}</g>'
    stroke = _stroke(glyph, data, 1)[:1] if hasattr(glyph, "line_color") else []
    return f'<path d="M1 0h22" fill="none" {stroke[0]}/>' if stroke else ""


def _legend_svg(entries: Sequence[tuple[str, str]]) -> str:
    columns = max((WIDTH - LEFT) // ENTRY, 1)
    return "".join(
        f'<g transform="translate({LEFT + ENTRY * (number % columns)} {HEIGHT + ROW * (number // columns) + 6})">'
        f'{sample}<text x="28" y="4">{html.escape(name)}</text></g>'
        for number, (name, sample) in enumerate(entries)
    )


def _described(figure: Any, name: str, entries: Sequence[tuple[str, str]]) -> str:
    """What the chart shows, in words."""
    (across, *_), (up, *_) = figure.below, figure.left
    axes = f"{up.axis_label} by {across.axis_label}" if up.visible and up.axis_label else f"{across.axis_label}"
    told = f" ({', '.join(name for name, _ in entries)})" if entries else ""
    return f"{name}: {axes}{told}"
