"""A picture of a panel as SVG for pages without a kernel: with its axes, marks, colour bar, and its legend in words."""

from __future__ import annotations

import html
import urllib.parse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from workbench.charts.description import Axis
from workbench.charts.looks import INK
from workbench.lab import colours
from workbench.lab.description import Marks, Picture

WIDE, NARROW = 500, 340    # pixels that a picture is about as wide as, where it is shown: alone, and beside others
# In such pixels:
MARGIN = 64, 46, 16        # at the left, below and at the right of a picture with axes
TEXT, LETTER = 16, 8.2     # the height of a text, and the mean width of a letter
HEAD, BAR, ROW = 28, 46, 24   # the heights of the title, of the colour bar with its texts, and of a row of the legend
FONT = f'font-family="system-ui, sans-serif" fill="{INK}"'

UNQUOTED = "=:/,;+()'!*@$?&.-_~ "   # characters of SVG in a data URL

STYLE = """
.wb-figure { margin: 0; flex: 1 1 280px; min-width: 0; max-width: 560px; }
.wb-figure svg { display: block; width: 100%; height: auto; }
"""


def figure(shown: Picture) -> str:
    """The picture with all that belongs to it, as a part of a page.

    >>> waves = Picture("waves", np.zeros((2, 3), np.uint8), (0, 3, 0, 2), low=0.0, high=5.0, unit="m")
    >>> "waves: from 0 to 5 m" in figure(waves)
    True
    """
    return f'<figure class="wb-figure">{complete(shown, NARROW)}</figure>'


def svg(shown: Picture) -> str:
    """The picture and its marks, with its axes, as self-contained SVG."""
    shown = narrowed(shown)
    unit, (beside, below, right) = shown.pixels.shape[1] / WIDE, _margins(shown)
    return _document(shown, (beside, 0, below, right), _inside(shown, unit), unit)


def complete(shown: Picture, wide: float = WIDE) -> str:
    """The same with its title, colour bar and legend; texts suit a picture that is shown about as `wide` as this."""
    shown = narrowed(shown)
    height, width = shown.pixels.shape
    unit, (beside, below, right) = width / wide, _margins(shown)
    low = height + below * unit
    bar, high = _bar(shown, low + 8 * unit, unit, wide)
    legend, lines = _key(shown, low + high * unit, unit, wide)
    title = f'<text y="{-10 * unit:.2f}" font-weight="600">{html.escape(shown.title)}</text>'
    words = f'<g {FONT} font-size="{TEXT * unit:.3g}">{"".join([title, *bar, *legend])}</g>'
    return _document(shown, (beside, HEAD, below + high + ROW * lines, right), _inside(shown, unit) + words, unit)


def image(drawn: str, words: str, style: str) -> str:
    """A drawing as an image of a page; `words` are its text for readers who do not see it."""
    address = html.escape("data:image/svg+xml," + urllib.parse.quote(drawn, safe=UNQUOTED))
    return f'<img src="{address}" alt="{html.escape(words)}" style="{style}">'


def narrowed(shown: Picture) -> Picture:
    """The picture with its suggested limits as the ends of its scale; the page applies them itself.

    >>> levels = np.arange(1, 256, dtype=np.uint8).reshape(5, 51)
    >>> shown = narrowed(Picture("waves", levels, (0, 51, 0, 5), low=0.0, high=254.0, limits="1-99", empty=True))
    >>> shown.low, shown.high, shown.pixels.min().item(), shown.pixels.max().item()
    (3.0, 251.0, 1, 255)
    """
    there = shown.pixels[shown.pixels > 0]
    if shown.limits == "full" or shown.palette or shown.colours == "difference" or not there.size:
        return shown
    top, share = int(np.iinfo(shown.pixels.dtype).max), float(shown.limits.split("-")[0]) / 100
    low, high = np.rint(np.quantile(there, (share, 1 - share)))
    high = max(high, low + 1)
    scaled = np.clip((shown.pixels - low) / (high - low) * (top - 1) + 1, 1, top)
    pixels = np.where(shown.pixels > 0, np.rint(scaled), 0).astype(shown.pixels.dtype)
    ends = [_value(shown, (level - 1) / (top - 1)) for level in (low, high)]
    return replace(shown, pixels=pixels, low=ends[0], high=ends[1], limits="full")


def _value(shown: Picture, share: float) -> float:
    if shown.logarithmic:
        return float(shown.low * (shown.high / shown.low) ** share)
    return float(shown.low + share * (shown.high - shown.low))


def _document(shown: Picture, edges: tuple[float, float, float, float], content: str, unit: float) -> str:
    """SVG with room at the left, above, below and at the right of the picture."""
    height, width = shown.pixels.shape
    left, above, below, right = (unit * each for each in edges)
    wide, high = left + width + right, above + height + below
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-left:g} {-above:g} {wide:g} {high:g}" width="{wide:g}" '
        f'height="{high:g}" role="img" '
        f'aria-label="{html.escape(described(shown))}">{content}</svg>'
    )


def _margins(shown: Picture) -> tuple[float, float, float]:
    return MARGIN if shown.axes.across else (0, 0, 0)


def _inside(shown: Picture, unit: float) -> str:
    """The picture with its marks and axes."""
    height, width = shown.pixels.shape
    left, right, bottom, top = shown.window
    smooth = "auto" if width >= 200 else "pixelated"
    image = (
        f'<image href="{colours.data_url(shown)}" width="{width}" height="{height}" preserveAspectRatio="none" '
        f'style="image-rendering: {smooth}"/>'
    )
    scale = np.array([width / (right - left), height / (top - bottom)])
    origin = np.array([left, top])
    marks = "".join(_marks(each, origin, scale, unit) for each in shown.marks if not each.near)
    if shown.axes.across:
        marks = f'<svg width="{width}" height="{height}">{marks}</svg>{"".join(_edges(shown, unit))}'
    return image + marks


def _edges(shown: Picture, unit: float) -> Iterator[str]:
    """The ticks and names of both axes, outside the picture."""
    height, width = shown.pixels.shape
    named = [f"{name} [{shown.axes.unit}]" if shown.axes.unit else name for name in (shown.axes.across, shown.axes.up)]
    x, y = Axis(named[0], *shown.window[:2]), Axis(named[1], *shown.window[2:])
    yield f'<g {FONT} font-size="{TEXT * unit:.3g}" text-anchor="middle">'
    across, up = shown.axes.ticks
    for value, text in across or x.ticks:
        yield f'<text x="{width * x.share(value):.1f}" y="{height + 18 * unit:.1f}">{html.escape(text)}</text>'
    for value, text in up or y.ticks:
        place = height * (1 - y.share(value)) + 5 * unit
        yield f'<text x="{-5 * unit:.1f}" y="{place:.1f}" text-anchor="end">{html.escape(text)}</text>'
    yield f'<text x="{width / 2:g}" y="{height + 40 * unit:.1f}">{html.escape(x.title)}</text>'
    turned = f"translate({-50 * unit:.1f} {height / 2:g}) rotate(-90)"
    yield f'<text transform="{turned}">{html.escape(y.title)}</text></g>'


def described(shown: Picture) -> str:
    """What the picture shows, in words: its title, its scale and its marks."""
    marks = [f"{len(each):,} {each.label}" for each in _named(shown)]
    ends = f": {_ends(shown)}" if _has_scale(shown) else ""
    return ", ".join([f"{shown.title}{ends}", *marks])


def _has_scale(shown: Picture) -> bool:
    """Whether colours mean values: without a range, marks alone do."""
    return shown.low != shown.high


def _ends(shown: Picture) -> str:
    kind = ", logarithmic" if shown.logarithmic else ""
    quantity = f"{shown.quantity} " if shown.quantity else ""
    return f"{quantity}from {shown.low:.4g} to {shown.high:.4g} {shown.unit}".rstrip() + kind


def _colours(shown: Picture, top: float, width: float, height: float) -> str:
    """All colours of a picture, from low to high: one image, since shapes beside each other have seams."""
    levels = replace(shown, pixels=np.arange(1 if shown.empty else 0, 256, dtype=np.uint8)[None])
    place = f'y="{top:.2f}" width="{width:g}" height="{height:.2f}"'
    return f'<image href="{colours.data_url(levels)}" {place} preserveAspectRatio="none"/>'


def _bar(shown: Picture, top: float, unit: float, most: float) -> tuple[list[str], float]:
    """The colour bar over the width of the picture, with what it means below, and their height."""
    if not _has_scale(shown):
        return [], 0
    named = f"{shown.quantity} [{shown.unit}]" if shown.quantity and shown.unit else shown.quantity or shown.unit
    middle = ", ".join(filter(None, [named, "log scale" if shown.logarithmic else ""]))
    ends = f"{shown.low:.4g}", f"{shown.high:.4g}"
    crowded = LETTER * (2 * max(map(len, ends)) + len(middle)) + 24 > most
    lower = ROW - 4 if crowded else 0
    width, line = shown.pixels.shape[1], top + 28 * unit
    texts = ("start", 0.0, 0, ends[0]), ("middle", width / 2, lower, middle), ("end", width, 0, ends[1])
    return [_colours(shown, top, width, 11 * unit), *(
        f'<text x="{place:g}" y="{line + down * unit:.2f}" text-anchor="{anchor}">{html.escape(text)}</text>'
        for anchor, place, down, text in texts if text
    )], BAR + lower


def _key(shown: Picture, top: float, unit: float, most: float) -> tuple[list[str], int]:
    """The legend in rows, as many as it needs, and their number."""
    samples = [(f"{each.label} ({len(each):,})", _sample(each)) for each in _named(shown)]
    if _has_gaps(shown):
        samples.append(("no value", _patch("#{:02x}{:02x}{:02x}".format(*colours.NOTHING))))
    entries, across, row = [], 0.0, 0
    for name, sample in samples:
        wide = 36 + LETTER * len(name) + 16
        if across and across + wide > most:
            across, row = 0.0, row + 1
        place = f"translate({across * unit:.2f} {top + (ROW * row + 2) * unit:.2f}) scale({unit:.4g})"
        text = f'<text x="34" y="12" font-size="{TEXT}">{html.escape(name)}</text>'
        entries.append(f'<g transform="{place}">{sample}{text}</g>')
        across += wide
    return entries, row + 1 if entries else 0


def _named(shown: Picture) -> list[Marks]:
    return [each for each in shown.marks if each.label and len(each) and not each.near]


def _has_gaps(shown: Picture) -> bool:
    return shown.empty and bool((shown.pixels == 0).any())


def _patch(colour: str) -> str:
    return f'<rect width="26" height="12" fill="{colour}"/>'


def _sample(marks: Marks) -> str:
    """A mark on a dark ground, as in the picture."""
    dash = f' stroke-dasharray="{marks.dash}"' if marks.dash else ""
    inside = f'<path d="M3 6h20" stroke="{marks.colour}" stroke-width="2.5"{dash}/>'
    if marks.shape == "points":
        inside = f'<circle cx="13" cy="6" r="3.5" {_look_of_points(marks, 1.8)}/>'
    return _patch("#1c1830") + inside


def _marks(marks: Marks, origin: np.ndarray, scale: np.ndarray, unit: float) -> str:
    places = marks.places.astype(float)
    style = f'fill="none" stroke="{marks.colour}" stroke-width="{marks.width * unit:.2f}"'
    faint = f' opacity="{marks.opacity:g}"' if marks.opacity < 1 else ""
    dash = " ".join(f"{float(length) * unit:.1f}" for length in marks.dash.split())
    style += f' stroke-dasharray="{dash}"' if dash else ""
    if marks.shape == "circles":
        centres, radii = _placed(places[:, :2], origin, scale), np.maximum(places[:, 2] * scale[0], 3 * unit)
        shapes = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"/>' for (x, y), r in zip(centres, radii, strict=True)]
    elif marks.shape == "points":
        style = _look_of_points(marks, 1.8 * unit)
        centres = _placed(places, origin, scale)
        shapes = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{marks.width * unit:.2f}"/>' for x, y in centres]
    else:
        ends = places if marks.shape == "lines" else places[:, [0, 2, 1, 3]]
        starts, stops = _placed(ends[:, :2], origin, scale), _placed(ends[:, 2:], origin, scale)
        pairs = zip(starts, stops, strict=True)
        if marks.shape == "lines":
            shapes = [f'<path d="M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}"/>' for (x, y), (u, v) in pairs]
        else:
            shapes = [f'<path d="M{x:.1f} {y:.1f}H{u:.1f}V{v:.1f}H{x:.1f}z"/>' for (x, y), (u, v) in pairs]
    return f"<g {style}{faint}>{''.join(shapes)}</g>"


def _look_of_points(marks: Marks, width: float) -> str:
    """Points with a dash are rings."""
    ring = f'fill="none" stroke="{marks.colour}" stroke-width="{width:.2f}"'
    return ring if marks.dashed else f'fill="{marks.colour}"'


def _placed(points: np.ndarray, origin: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return (points - origin) * scale * np.array([1, -1])
