"""Charts as SVG, without a library and without scripts.

A page has unknown colours, and a picture may stand alone. So a drawing has no background, all colours have medium
lightness, visible on white and on black, and texts have the colour of the page's own texts where it says it.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from workbench.charts.description import Axis, Band, Cells, Chart, Part, Rule, Series, Span
from workbench.charts.looks import DASHES, GREY, INK, MARKS, Dash

WIDTH, TOP, RIGHT = 640, 8, 14
GLYPH = 26, 14           # of a key, in pixels; as in chart_saving.js
ROW, LETTER = 18, 6.2    # of a row of the key; the mean width of a letter
MOST_LETTERS = 60
STYLE = f"max-width: 100%; fill: var(--jp-ui-font-color1, {INK})"
FONT = f'font-family="system-ui, sans-serif" font-size="11.5" fill="{INK}"'


def drawing(chart: Chart, complete: bool = True) -> str:
    """A chart as SVG; without its title and key, which stand beside it, unless it is `complete`."""
    head, top = _head(chart) if complete else ([], TOP)
    names = [line for _, text in chart.y.ticks for line in text.split("\n")]
    left = (30 if chart.y.title else 20) + LETTER * max(map(len, names), default=0)
    turned = 0.6 * LETTER * max((len(text) for _, text in chart.x.ticks), default=0) if chart.x.turned else 0
    frame = _Frame(chart, left, top, WIDTH - left - RIGHT, chart.height - 40)
    height = frame.bottom + 22 + turned + (16 if chart.x.title else 0) + (16 if chart.note else 0)
    note = _text(WIDTH - 8, height - 5, chart.note, "end") if chart.note else ""
    place = f'x="{left:.1f}" y="{top}" width="{frame.width:.1f}" height="{frame.height}"'
    inside = f'<svg {place}>{"".join(frame.shapes())}</svg>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wb-static" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'role="img" aria-label="{html.escape(chart.words)}" {FONT} style="{STYLE}">'
        f'{"".join(head)}{"".join(frame.axes(turned))}{inside}{note}</svg>'
    )


def entries(chart: Chart) -> list[dict[str, str]]:
    """The key for pages: the name, the drawing and the meaning of each entry."""
    return [
        {
            "name": name, "glyph": "".join(dict.fromkeys(shape for part in parts for shape in _glyph(part))),
            "meaning": getattr(parts[0], "meaning", ""),
        }
        for name, parts in chart.key.items()
    ]


def key(entered: Iterable[Mapping[str, str]]) -> str:
    """A key as a list, for a page without scripts.

    >>> key([{"name": "<zfp>", "glyph": "", "meaning": ""}])
    '<ul class="wb-key"><li><svg width="26" height="14" aria-hidden="true"></svg> &lt;zfp&gt;</li></ul>'
    """
    opening = f'<li><svg width="{GLYPH[0]}" height="{GLYPH[1]}" aria-hidden="true">'
    rows = (f'{opening}{entry["glyph"]}</svg> {html.escape(entry["name"])}</li>' for entry in entered)
    return f'<ul class="wb-key">{"".join(rows)}</ul>'


def _head(chart: Chart) -> tuple[list[str], int]:
    """The title and the key in rows, and where the chart begins below them."""
    shapes, x, y = [f'<text x="6" y="14" font-weight="600">{html.escape(chart.title)}</text>'], 6.0, 20
    for entry in entries(chart):
        name = entry["name"]
        short = name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…"
        needed = GLYPH[0] + 18 + LETTER * len(short)
        if x > 6 and x + needed > WIDTH:
            x, y = 6.0, y + ROW
        full = f"<title>{html.escape(name)}</title>" if short != name else ""
        text = _text(GLYPH[0] + 4, 11, short, "start")
        shapes.append(f'<g transform="translate({x:.1f} {y})">{full}{entry["glyph"]}{text}</g>')
        x += needed
    return shapes, y + (ROW + 6 if len(shapes) > 1 else 6)


class _Frame:
    """The area between the axes."""

    def __init__(self, chart: Chart, left: float, top: int, width: float, height: int) -> None:
        self.chart, self.left, self.top, self.width, self.height = chart, left, top, width, height
        self.bottom = top + height

    def across(self, x: object) -> np.ndarray:
        """Pixels from the left."""
        return self.width * self.chart.x.share(x)

    def down(self, y: object) -> np.ndarray:
        """Pixels from the top."""
        return self.height * (1 - self.chart.y.share(y))

    def axes(self, turned: float) -> Iterator[str]:
        """The grid, ticks and titles."""
        x, y, bottom, middle = self.chart.x, self.chart.y, self.bottom, self.top + self.height / 2
        faint = f'stroke="{GREY}" stroke-opacity="{".25" if self.chart.grid else "0"}"'
        for value, text in _inside(x):
            place = self.left + float(self.across(value))
            yield f'<path d="M{place:.1f} {self.top}v{self.height}" {faint}/>'
            if x.turned:
                yield f'<g transform="translate({place + 4:.1f} {bottom + 14}) rotate(-35)">{_text(0, 0, text, "end")}</g>'
            else:
                yield _text(place, bottom + 15, text, "middle")
        for value, text in _inside(y):
            place, lines = self.top + float(self.down(value)), text.split("\n")
            yield f'<path d="M{self.left:.1f} {place:.1f}h{self.width:.1f}" {faint}/>'
            for number, line in enumerate(lines):
                yield _text(self.left - 6, place + 4 + 13 * (number - (len(lines) - 1) / 2), line, "end")
        yield _text(self.left + self.width / 2, bottom + turned + 32, x.title, "middle")
        yield f'<g transform="translate(13 {middle}) rotate(-90)">{_text(0, 0, y.title, "middle")}</g>'
        yield f'<path d="M{self.left:.1f} {self.top}v{self.height}h{self.width:.1f}" fill="none" stroke="{GREY}"/>'

    def shapes(self) -> Iterator[str]:
        """Everything between the axes, in the order in which live charts draw it."""
        drawn: dict[type, Callable[[Any], Iterator[str]]] = {
            Span: self._span, Band: self._band, Cells: self._cells, Rule: self._rule, Series: self._line,
        }
        for kind, draw in drawn.items():
            for part in self.chart.of(kind):
                yield from draw(part)
        for part in self.chart.of(Series):
            yield from self._marks(part)

    def _span(self, part: Span) -> Iterator[str]:
        a, b = sorted((self.across if part.axis == "x" else self.down)([part.low, part.high]).tolist())
        x, y, width, height = (a, 0.0, b - a, self.height) if part.axis == "x" else (0.0, a, self.width, b - a)
        yield _box(x, y, width, height, part.colour, part.opacity)

    def _band(self, part: Band) -> Iterator[str]:
        x, y = part.outline
        if len(x):
            places = _path(self.across(x), self.down(y))
            yield f'<polygon points="{places}" fill="{part.colour}" fill-opacity="{part.opacity}"/>'

    def _cells(self, part: Cells) -> Iterator[str]:
        for number, (left, low, right, high) in enumerate(part.boxes):
            (a, b), (c, d) = self.across([left, right]), self.down([low, high])
            tooltip = f"<title>{html.escape(part.tooltips[number])}</title>" if part.tooltips else ""
            colour = part.colours[number] if part.colours else part.colour
            text = part.texts[number] if part.texts else ""
            inside = f'<g fill="#000000">{_text((a + b) / 2, (c + d) / 2 + 4, text, "middle")}</g>' if text else ""
            yield f"<g>{tooltip}{_box(a, d, b - a, c - d, colour, part.opacity, part.outlined)}{inside}</g>"

    def _rule(self, part: Rule) -> Iterator[str]:
        if not part.shown:
            return
        place = float((self.across if part.axis == "x" else self.down)(part.place))
        path = f"M{place:.1f} 0v{self.height}" if part.axis == "x" else f"M0 {place:.1f}h{self.width:.1f}"
        yield f'<path d="{path}" {_stroke(part.colour, part.width, part.dash)}/>'

    def _line(self, part: Series) -> Iterator[str]:
        if part.dash is None:
            return
        x, y = self.across(part.x), self.down(part.y)
        there = np.isfinite(x) & np.isfinite(y)
        for run in np.split(np.arange(len(x)), np.flatnonzero(~there)):
            run = run[there[run]]
            if len(run):
                look = _stroke(part.colour, part.width, part.dash, part.opacity)
                yield f'<polyline points="{_path(x[run], y[run])}" {look}/>'

    def _marks(self, part: Series) -> Iterator[str]:
        if part.marker is None:
            return
        for x, y, tooltip in zip(self.across(part.x), self.down(part.y), self.chart.tooltips_of(part), strict=True):
            if math.isfinite(x + y):
                yield f"<g><title>{html.escape(tooltip)}</title>{_mark(part, x, y)}</g>"


def _inside(axis: Axis) -> Iterator[tuple[float, str]]:
    return ((value, text) for value, text in axis.ticks if 0 <= axis.share(value) <= 1)


def _glyph(part: Part) -> Iterator[str]:
    """The sample of a part in the key."""
    wide, high = GLYPH
    if isinstance(part, Band | Span | Cells):
        yield _box(2, 2, wide - 4, high - 4, part.colour, min(2 * part.opacity, max(part.opacity, 0.6)))
        return
    if part.dash is not None:
        yield f'<path d="M0 {high / 2:g}H{wide}" {_stroke(part.colour, part.width, part.dash)}/>'
    if isinstance(part, Series) and part.marker is not None:
        yield _mark(part, wide / 2, high / 2, min(part.size, 10.0))


def _mark(part: Series, x: float, y: float, size: float = 0.0) -> str:
    ring = f'fill="none" stroke="{part.colour}" stroke-width="1.6" vector-effect="non-scaling-stroke"'
    look = ring if part.hollow else f'fill="{part.colour}"'
    place = f"translate({x:.1f} {y:.1f}) scale({(size or part.size) / 8:.3g})"
    return f'<path d="{MARKS[part.marker or "circle"]}" transform="{place}" {look}/>'


def _stroke(colour: str, width: float, dash: Dash, opacity: float = 1.0) -> str:
    dashes = f' stroke-dasharray="{DASHES[dash]}"' if DASHES[dash] else ""
    faint = f' stroke-opacity="{opacity}"' if opacity < 1 else ""
    return f'fill="none" stroke="{colour}" stroke-width="{width}"{dashes}{faint}'


def _box(x: float, y: float, width: float, height: float, colour: str, opacity: float, outlined: bool = False) -> str:
    line = f' stroke="{GREY}" stroke-width="0.5"' if outlined else ""
    place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}"'
    return f'<rect {place} fill="{colour}" fill-opacity="{opacity:.3g}"{line}/>'


def _path(x: np.ndarray, y: np.ndarray) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>' if text else ""
