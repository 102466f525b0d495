"""Line charts as SVG without a plotting library, so that they need only NumPy.

Notebooks show a chart inside a page with unknown colours, or as a separate image. So it has no background, all colours
have medium lightness, visible on white and on black, and texts have the colour of the page's own texts where it says it.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from workbench.charts.looks import Dash, Look, Marker, looks_of
from workbench.errors import WorkbenchError

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 68, 190, 16, 52   # margins; the legend is on the right
GREY = "#7a7a7a"      # of lines
INK = "#767676"       # of texts, where the page does not say its own
COLOURS = ("#2f7fc1", "#d0600f", "#1a9070", "#c2609a", "#8a6fd1", "#93800f", "#0f8fa4", "#a9714b")
MARKS: Mapping[Marker, str] = {
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "square": "M-4 -4h8v8h-8z", "diamond": "M0 -5l5 5l-5 5l-5 -5z",
    "triangle": "M0 -5l5 9h-10z", "inverted_triangle": "M0 5l5 -9h-10z", "hex": "M-4.5 0l2.25 -4h4.5l2.25 4l-2.25 4h-4.5z",
    "star": "M0 -5.5l1.6 3.6l3.9 .4l-2.9 2.6l.8 3.9l-3.4 -2l-3.4 2l.8 -3.9l-2.9 -2.6l3.9 -.4z",
}
DASHES: Mapping[Dash, str] = {"solid": "", "dashed": "7 4", "dotted": "2 3", "dotdash": "2 3 7 3", "dashdot": "7 3 2 3"}
LONG_AXIS = 30     # ratio of the largest to the smallest value above which an axis is logarithmic
LEGEND_LETTERS = 24
TITLES = {"psnr": "PSNR [dB]", "ssim": "SSIM", "nbytes": "bytes", "nrmse": "rms error / peak"}


@dataclass(frozen=True)
class Point:
    """A point of a curve and its name."""

    x: float
    y: float
    name: str

    @property
    def finite(self) -> bool:
        """Whether both coordinates are finite."""
        return math.isfinite(self.x) and math.isfinite(self.y)


@dataclass(frozen=True)
class Curve:
    """A theoretical line, without measured points. With `to`, the band between two lines."""

    name: str
    points: Sequence[tuple[float, float]]
    to: Sequence[tuple[float, float]] = ()
    dashes: str = ""

    @property
    def places(self) -> list[tuple[float, float]]:
        """All finite points."""
        return [(x, y) for x, y in (*self.points, *self.to) if math.isfinite(x) and math.isfinite(y)]


@dataclass(frozen=True, repr=False)
class Chart:
    """A chart, shown by notebooks and written by `save`."""

    title: str
    svg: str

    def save(self, path: str | Path) -> Path:
        """Write the drawing as an SVG file."""
        target = Path(path)
        if target.suffix != ".svg":
            raise WorkbenchError(f"a chart is written as .svg; got {path}")
        try:
            target.write_text(self.svg, encoding="utf-8")
        except OSError as error:
            raise WorkbenchError(f"the chart must be written into a folder that exists; {error}") from None
        return target

    def __repr__(self) -> str:
        return f"Chart({self.title})"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return f"<div>{self.svg}</div>"


@dataclass(frozen=True)
class Axis:
    """An axis that maps values to [0, 1] and has ticks. The ends of a logarithmic axis are exponents."""

    low: float
    high: float
    logarithmic: bool

    @classmethod
    def around(cls, values: Sequence[float]) -> Axis:
        """An axis that shows these values with a small margin; logarithmic if they span more than about a decade.

        >>> Axis.around([1.0, 1000.0]).logarithmic, Axis.around([60.0, 80.0]).logarithmic
        (True, False)
        """
        low, high = min(values), max(values)
        logarithmic = low > 0 and high >= LONG_AXIS * low
        if logarithmic:
            low, high = math.log10(low), math.log10(high)
        room = 0.05 * (high - low) or 0.5 * abs(high) or 1.0
        return cls(low - room, high + room, logarithmic)

    def __call__(self, value: float) -> float:
        """The place of a value."""
        return ((math.log10(value) if self.logarithmic else value) - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """A few round values between the ends.

        >>> Axis(-1.0, 11.0, False).ticks(), Axis(-0.5, 3.2, True).ticks()
        ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [1.0, 10.0, 100.0, 1000.0])
        """
        if self.logarithmic:
            decades = range(math.floor(self.low), math.ceil(self.high) + 1)
            factors = (1, 2, 5) if len(decades) <= 3 else (1,)
            every = -(-len(decades) // 7)
            marks = [float(f"{factor}e{decade}") for decade in decades[::every] for factor in factors]
        else:
            step = _round_step((self.high - self.low) / 6)
            marks = [number * step for number in range(math.floor(self.low / step), math.ceil(self.high / step) + 1)]
        return [mark for mark in marks if 0 <= self(mark) <= 1]


def chart(
    lines: Mapping[str, Sequence[Point]],
    x: str,
    y: str,
    asked: int,
    curves: Sequence[Curve] = (),
    known: Mapping[str, Look] = MappingProxyType({}),
) -> Chart:
    """A chart of named lines. `x` and `y` name the figures; `asked` is the number of points including missing ones.

    `known` are the looks of lines that stand for codecs.
    """
    title = f"{y} against {x}"
    finite = {name: sorted((p for p in points if p.finite), key=lambda p: p.x) for name, points in lines.items()}
    drawn = {name: line for name, line in finite.items() if line}
    points = [point for line in drawn.values() for point in line]
    drawable = [curve for curve in curves if curve.places]
    if not points and not drawable:
        nothing = _text(WIDTH / 2, HEIGHT / 2, f"nothing to draw: no run has a finite {x} and {y}", "middle")
        return Chart(title, _drawing(title, [nothing]))
    places = [*((p.x, p.y) for p in points), *(place for curve in drawable for place in curve.places)]
    across, down = Axis.around([place[0] for place in places]), Axis.around([place[1] for place in places])
    theory = [shape for number, curve in enumerate(drawable) for shape in _theory(number, curve, across, down)]
    looks = looks_of(drawn, known)
    shapes = [*_frame(across, down, x, y), *theory, *_curves(drawn, looks, across, down), *_legend(looks, len(drawable))]
    if missing := asked - len(points):
        shapes.append(_text(WIDTH - 8, HEIGHT - 8, f"not drawn: {missing:,} without finite figures", "end"))
    return Chart(title, _drawing(title, shapes))


def _frame(across: Axis, down: Axis, x: str, y: str) -> Iterable[str]:
    """Grid, ticks and titles."""
    for tick in across.ticks():
        place = _left(across, tick)
        yield f'<path d="M{place:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{GREY}" stroke-opacity=".3"/>'
        yield _text(place, HEIGHT - BOTTOM + 18, f"{tick:.6g}", "middle")
    for tick in down.ticks():
        place = _top(down, tick)
        yield f'<path d="M{LEFT} {place:.1f}H{WIDTH - RIGHT}" stroke="{GREY}" stroke-opacity=".3"/>'
        yield _text(LEFT - 8, place + 4, f"{tick:.6g}", "end")
    middle = (TOP + HEIGHT - BOTTOM) / 2
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, _title(x), "middle")
    yield f'<g transform="translate(16 {middle}) rotate(-90)">{_text(0, 0, _title(y), "middle")}</g>'


def _curves(
    lines: Mapping[str, Sequence[Point]], looks: Mapping[str, Look], across: Axis, down: Axis
) -> Iterable[str]:
    for name, line in lines.items():
        look = looks[name]
        places = [(_left(across, point.x), _top(down, point.y)) for point in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield f'<polyline points="{path}" fill="none" stroke="{look.colour}" stroke-width="1.8"{_dashed(look)}/>'
        for point, (x, y) in zip(line, places, strict=True):
            told = html.escape(f"{point.name}: {point.x:.6g}, {point.y:.6g}")
            yield f"<g><title>{told}</title>{_mark(look, x, y)}</g>"


def _theory(number: int, curve: Curve, across: Axis, down: Axis) -> Iterable[str]:
    """A curve and its legend entry."""
    there, back = (
        [f"{_left(across, x):.1f},{_top(down, y):.1f}" for x, y in line if math.isfinite(x) and math.isfinite(y)]
        for line in (curve.points, curve.to)
    )
    left, y = WIDTH - RIGHT + 14, TOP + 8 + 20 * number
    yield f"<g><title>{html.escape(curve.name)}</title>{_text(left + 22, y + 4, _short(curve.name), 'start')}</g>"
    if back:
        yield f'<polygon points="{" ".join([*there, *reversed(back)])}" fill="{GREY}" fill-opacity=".35" stroke="none"/>'
        yield f'<rect x="{left}" y="{y - 5}" width="18" height="9" fill="{GREY}" fill-opacity=".35"/>'
    else:
        style = f'fill="none" stroke="{GREY}" stroke-width="2" stroke-dasharray="{curve.dashes}"'
        yield f'<polyline points="{" ".join(there)}" {style}/><path d="M{left} {y}h18" {style}/>'


def _short(name: str) -> str:
    return name if len(name) <= LEGEND_LETTERS else f"{name[: LEGEND_LETTERS - 1]}…"


def _legend(looks: Mapping[str, Look], above: int = 0) -> Iterable[str]:
    """The names of the lines, below `above` other entries."""
    left, step = WIDTH - RIGHT + 24, min(20.0, (HEIGHT - TOP - BOTTOM - 20 * above) / max(len(looks), 1))
    for number, (name, look) in enumerate(looks.items()):
        y = TOP + 8 + 20 * above + number * step
        text = _text(left + 12, y + 4, _short(name), "start")
        yield f"<g><title>{html.escape(name)}</title>{_mark(look, left, y)}{text}</g>"


def _mark(look: Look, x: float, y: float) -> str:
    return f'<path d="{MARKS[look.marker]}" transform="translate({x:.1f} {y:.1f})" fill="{look.colour}"/>'


def _dashed(look: Look) -> str:
    return f' stroke-dasharray="{DASHES[look.dash]}"' if DASHES[look.dash] else ""


def _left(axis: Axis, value: float) -> float:
    return LEFT + axis(value) * (WIDTH - LEFT - RIGHT)


def _top(axis: Axis, value: float) -> float:
    return HEIGHT - BOTTOM - axis(value) * (HEIGHT - TOP - BOTTOM)


def _title(figure: str) -> str:
    return TITLES.get(figure, figure.replace("_mb_per_s", " [MB/s]").replace("_", " "))


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _drawing(title: str, shapes: Iterable[str]) -> str:
    head = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img"'
    font = f'font-family="system-ui, sans-serif" font-size="12" fill="{INK}"'
    style = f"max-width: 100%; fill: var(--jp-ui-font-color1, {INK})"
    return f'<svg {head} aria-label="{html.escape(title)}" {font} style="{style}">{"".join(shapes)}</svg>'


def _round_step(least: float) -> float:
    """The smallest of ..., 0.1, 0.2, 0.5, 1, 2, 5, 10, ... that is at least `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
