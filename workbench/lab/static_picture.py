"""A picture of a panel as SVG for pages without a kernel: with its axes, marks, colour bar, and its legend in words."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from workbench.charts.description import Axis
from workbench.charts.looks import INK
from workbench.lab import colours
from workbench.lab.description import Marks, Picture

BAR_STEPS = 64             # colours of the colour bar
MARGIN = 64, 46            # beside and below a picture with axes, if it were 500 wide

STYLE = """
.wb-figure { margin: 0; flex: 1 1 280px; min-width: 0; max-width: 560px; }
.wb-figure svg { display: block; width: 100%; height: auto; } .wb-figure figcaption { font-size: 13px; line-height: 1.4; }
.wb-figure .wb-scale { display: flex; align-items: center; gap: 8px; margin-top: 3px; }
.wb-figure .wb-scale svg { flex: 1; height: 10px; width: auto; min-width: 40px; }
.wb-figure .wb-legend { display: flex; flex-wrap: wrap; gap: 2px 14px; margin: 2px 0 0; padding: 0; list-style: none; }
.wb-figure .wb-legend svg { display: inline-block; width: 26px; height: 12px; margin-right: 5px; vertical-align: -1px; }
"""


def figure(shown: Picture) -> str:
    """The picture with its title, colour bar and legend.

    >>> waves = Picture("waves", np.zeros((2, 3), np.uint8), (0, 3, 0, 2), low=0.0, high=5.0, unit="m")
    >>> "waves: from 0 to 5 m" in figure(waves)
    True
    """
    shown = narrowed(shown)
    caption = f'<b>{html.escape(shown.title)}</b>{_scale(shown)}{_legend(shown)}'
    return f'<figure class="wb-figure">{svg(shown)}<figcaption>{caption}</figcaption></figure>'


def svg(shown: Picture, marked: bool = True) -> str:
    """The picture and its marks as self-contained SVG."""
    shown = narrowed(shown)
    height, width = shown.pixels.shape
    left, right, bottom, top = shown.window
    smooth = "auto" if width >= 200 else "pixelated"
    image = (
        f'<image href="{colours.data_url(shown)}" width="{width}" height="{height}" preserveAspectRatio="none" '
        f'style="image-rendering: {smooth}"/>'
    )
    scale = np.array([width / (right - left), height / (top - bottom)])
    origin = np.array([left, top])
    marks = "".join(_marks(each, origin, scale, width / 500) for each in shown.marks) if marked else ""
    beside, below = (width / 500 * margin if shown.axes.across else 0.0 for margin in MARGIN)
    if shown.axes.across:
        marks = f'<svg width="{width}" height="{height}">{marks}</svg>{"".join(_edges(shown, width / 500))}'
    box = f"{-beside:g} 0 {width + beside:g} {height + below:g}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{width}" height="{height}" role="img" '
        f'aria-label="{html.escape(described(shown))}">{image}{marks}</svg>'
    )


def narrowed(shown: Picture) -> Picture:
    """The picture with its suggested limits as the ends of its scale; the page applies them itself.

    >>> levels = np.arange(1, 256, dtype=np.uint8).reshape(5, 51)
    >>> found = narrowed(Picture("waves", levels, (0, 51, 0, 5), low=0.0, high=254.0, limits="1-99", empty=True))
    >>> found.low, found.high, found.pixels.min().item(), found.pixels.max().item()
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


def _edges(shown: Picture, unit: float) -> Iterator[str]:
    """The ticks and names of both axes, outside the picture."""
    height, width = shown.pixels.shape
    named = [f"{name} [{shown.axes.unit}]" if shown.axes.unit else name for name in (shown.axes.across, shown.axes.up)]
    x, y = Axis(named[0], *shown.window[:2]), Axis(named[1], *shown.window[2:])
    yield f'<g font-family="system-ui, sans-serif" font-size="{16 * unit:.3g}" fill="{INK}" text-anchor="middle">'
    for value, text in x.ticks:
        yield f'<text x="{width * x.share(value):.1f}" y="{height + 18 * unit:.1f}">{text}</text>'
    for value, text in y.ticks:
        place = height * (1 - y.share(value)) + 5 * unit
        yield f'<text x="{-5 * unit:.1f}" y="{place:.1f}" text-anchor="end">{text}</text>'
    yield f'<text x="{width / 2:g}" y="{height + 40 * unit:.1f}">{html.escape(x.title)}</text>'
    turned = f"translate({-50 * unit:.1f} {height / 2:g}) rotate(-90)"
    yield f'<text transform="{turned}">{html.escape(y.title)}</text></g>'


def described(shown: Picture) -> str:
    """What the picture shows, in words: its title, its scale and its marks."""
    marks = [f"{len(each):,} {each.label}" for each in shown.marks if each.label and len(each)]
    ends = f": {_ends(shown)}" if _has_scale(shown) else ""
    return ", ".join([f"{shown.title}{ends}", *marks])


def _has_scale(shown: Picture) -> bool:
    """Whether colours mean values: without a range, marks alone do."""
    return shown.low != shown.high


def _ends(shown: Picture) -> str:
    kind = ", logarithmic" if shown.logarithmic else ""
    quantity = f"{shown.quantity} " if shown.quantity else ""
    return f"{quantity}from {shown.low:.4g} to {shown.high:.4g} {shown.unit}".rstrip() + kind


def _scale(shown: Picture) -> str:
    """The colour bar with its ends."""
    if not _has_scale(shown):
        return ""
    table = colours.table(shown.colours)[np.linspace(0, 255, BAR_STEPS).astype(int)]
    steps = "".join(
        f'<rect x="{place}" width="1" height="1" fill="#{red:02x}{green:02x}{blue:02x}"/>'
        for place, (red, green, blue) in enumerate(table.tolist())
    )
    bar = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {BAR_STEPS} 1" preserveAspectRatio="none" '
           f'shape-rendering="crispEdges" role="img" aria-label="colour bar {html.escape(_ends(shown))}">{steps}</svg>')
    kind = " (logarithmic)" if shown.logarithmic else ""
    high = html.escape(f"{shown.high:.4g} {shown.unit}".rstrip() + kind)
    quantity = f"<span>{html.escape(shown.quantity)}</span>" if shown.quantity else ""
    return f'<div class="wb-scale">{quantity}<span>{shown.low:.4g}</span>{bar}<span>{high}</span></div>'


def _legend(shown: Picture) -> str:
    """A sample of each kind of mark, with its name and number."""
    entries = [
        f"<li>{_sample(each)}{html.escape(each.label)} ({len(each):,})</li>" for each in shown.marks
        if each.label and len(each)
    ]
    grey = "#{:02x}{:02x}{:02x}".format(*colours.NOTHING)
    missing = [f"<li>{_patch(grey)}no value</li>"] if _has_gaps(shown) else []
    return f'<ul class="wb-legend">{"".join([*entries, *missing])}</ul>' if entries or missing else ""


def _has_gaps(shown: Picture) -> bool:
    return shown.empty and bool((shown.pixels == 0).any())


def _patch(colour: str) -> str:
    return f'<svg viewBox="0 0 26 12" aria-hidden="true"><rect width="26" height="12" fill="{colour}"/></svg>'


def _sample(marks: Marks) -> str:
    """A mark on a dark ground, as in the picture."""
    dash = f' stroke-dasharray="{marks.dash}"' if marks.dash else ""
    inside = f'<path d="M3 6h20" stroke="{marks.colour}" stroke-width="2.5"{dash}/>'
    if marks.shape == "points":
        inside = f'<circle cx="13" cy="6" r="3.5" fill="{marks.colour}"/>'
    return f'<svg viewBox="0 0 26 12" aria-hidden="true"><rect width="26" height="12" fill="#1c1830"/>{inside}</svg>'


def _marks(marks: Marks, origin: np.ndarray, scale: np.ndarray, unit: float) -> str:
    places = marks.places.astype(float)
    style = f'fill="none" stroke="{marks.colour}" stroke-width="{marks.width * unit:.2f}"'
    dash = " ".join(f"{float(length) * unit:.1f}" for length in marks.dash.split())
    style += f' stroke-dasharray="{dash}"' if dash else ""
    if marks.shape == "circles":
        centres, radii = _placed(places[:, :2], origin, scale), np.maximum(places[:, 2] * scale[0], 3 * unit)
        shapes = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"/>' for (x, y), r in zip(centres, radii, strict=True)]
    elif marks.shape == "points":
        style = f'fill="{marks.colour}"'
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
    return f"<g {style}>{''.join(shapes)}</g>"


def _placed(points: np.ndarray, origin: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return (points - origin) * scale * np.array([1, -1])
