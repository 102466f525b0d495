"""Facts, tables and pictures as HTML: the same pieces on the page and in a saved report."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping

import numpy as np

from workbench.lab import colours
from workbench.lab.description import Fact, Marks, Picture, Table

SIGNS = {"good": "✓ ", "bad": "✗ ", "": ""}   # since some readers cannot see the colours

STYLE = """
.wb-facts { display: flex; flex-wrap: wrap; gap: 6px 22px; margin: 4px 0; color: var(--jp-ui-font-color1, inherit); }
.wb-fact { display: flex; flex-direction: column; line-height: 1.25; }
.wb-fact span { font-size: 11px; opacity: .75; }
.wb-fact b { font-size: 15px; font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }
.wb-fact.good b { color: #0b7460; } .wb-fact.bad b { color: #b34d06; }
[data-jp-theme-light="false"] .wb-fact.good b { color: #2cb795; }
[data-jp-theme-light="false"] :is(.wb-fact.bad b, .wb-error) { color: #f0843c; }
.wb-panel :is(.jp-Collapse-header, .jupyter-widget-Collapse-header) { color: var(--jp-ui-font-color1, inherit); }
.wb-table { border-collapse: collapse; font-size: 12px; font-variant-numeric: tabular-nums; margin: 4px 0;
  color: var(--jp-ui-font-color1, inherit); }
.wb-table th, .wb-table td { padding: 2px 10px 2px 0; text-align: right; white-space: nowrap; }
.wb-table th:first-child, .wb-table td:first-child { text-align: left; }
.wb-table th { border-bottom: 1px solid rgba(128, 128, 128, .5); font-weight: 600; }
.wb-table tr.chosen td { font-weight: 700; background: rgba(47, 127, 193, .18); }
.wb-tables { max-height: 260px; overflow: auto; }
.wb-note { font-size: 12px; line-height: 1.35; opacity: .8; margin: 2px 0; }
.wb-error { color: #b34d06; font-weight: 600; }
"""


def facts(given: Iterable[Fact]) -> str:
    """Figures with their names.

    >>> facts([Fact("ratio", "8.1")])
    '<div class="wb-facts"><div class="wb-fact" title=""><span>ratio</span><b>8.1</b></div></div>'
    """
    entries = [
        f'<div class="{" ".join(filter(None, ("wb-fact", fact.verdict)))}" title="{html.escape(fact.meaning)}">'
        f"<span>{html.escape(fact.name)}</span><b>{SIGNS[fact.verdict]}{html.escape(fact.value)}</b></div>"
        for fact in given
    ]
    return f'<div class="wb-facts">{"".join(entries)}</div>'


def table(given: Table) -> str:
    """A table.

    >>> table(Table(("codec", "ratio"), (("sz3", "8.1"),), chosen=0)).count("<td>")
    2
    """
    head = "".join(f"<th>{html.escape(name)}</th>" for name in given.columns)
    rows = [
        f"<tr{' class=chosen' if number == given.chosen else ''}>"
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for number, row in enumerate(given.rows)
    ]
    return f'<table class="wb-table"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def tables(given: Mapping[str, Table]) -> str:
    """Tables, each below its name; those without rows are left out."""
    return "".join(f"<h3>{html.escape(name)}</h3>{table(content)}" for name, content in given.items() if content.rows)


def note(text: str) -> str:
    """A sentence in small letters."""
    return f'<div class="wb-note">{html.escape(text)}</div>' if text else ""


def picture(shown: Picture) -> str:
    """A picture with its marks as a self-contained SVG."""
    height, width = shown.pixels.shape
    left, right, bottom, top = shown.window
    smooth = "auto" if width >= 200 else "pixelated"
    image = (
        f'<image href="{colours.data_url(shown)}" width="{width}" height="{height}" preserveAspectRatio="none" '
        f'style="image-rendering: {smooth}"/>'
    )
    scale = np.array([width / (right - left), height / (top - bottom)])
    origin = np.array([left, top])
    marks = "".join(_marks(marks, origin, scale, width / 500) for marks in shown.marks)
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">{image}{marks}</svg>'
    ends = f"{shown.low:.4g} … {shown.high:.4g} {shown.unit}{' (logarithmic)' if shown.logarithmic else ''}"
    ends = "" if shown.low == shown.high else ends
    caption = f"<figcaption><b>{html.escape(shown.title)}</b> {html.escape(ends)}</figcaption>"
    return f"<figure>{svg}{caption}</figure>"


def _marks(marks: Marks, origin: np.ndarray, scale: np.ndarray, unit: float) -> str:
    places = marks.places.astype(float)
    style = f'fill="none" stroke="{marks.colour}" stroke-width="{marks.width * unit:.2f}"'
    dash = " ".join(f"{float(gap) * unit:.1f}" for gap in marks.dash.split())
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
