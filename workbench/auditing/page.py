"""The page of an audit: one self-contained HTML file in light and dark, with nothing to fetch and no script."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from workbench.archive.provenance import version_of
from workbench.auditing.finding import FAILED, NOTE, WARNING, Finding
from workbench.auditing.picture import ErrorPicture
from workbench.auditing.result import Audit
from workbench.auditing.row import Row, in_place
from workbench.charts.description import Axis, Chart, Rule, Series
from workbench.charts.png import as_data_url, png
from workbench.charts.svg import drawing
from workbench.charts.table import html_table
from workbench.data.summary_html import size
from workbench.metrics.report import MEANINGS

CHARTS = 6           # members whose spectra are drawn, those with the largest errors first
WIDE = 640           # of the picture, in CSS pixels
BELOW, MIDDLE, ABOVE = (33, 102, 172), (247, 247, 247), (178, 24, 43)   # colours of errors: blue, none, red
NOTHING = (160, 160, 160)
TITLES = {FAILED: "What is wrong", WARNING: "What to look at", NOTE: "Notes"}
OWN_MEANINGS = {
    "minimum": "smallest value of the original", "maximum": "largest value of the original",
    "lossy_minimum": "smallest value of the lossy file", "lossy_maximum": "largest value of the lossy file",
    "missing": "values that the original has none of (NaN or masked)",
    "gradient_error": "rms difference of neighbours' errors / that of the original's values, along the worst axis",
}
STYLE = """
:root { color-scheme: light dark; --ink: #1b1b2b; --soft: #55556a; --line: #d9d9e3; --paper: #fbfbfd; --bad: #a5113a;
        --doubt: #7a4a00; --good: #0d6334; --jp-ui-font-color1: #1b1b2b; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececf4; --soft: #b4b4c6; --line: #3a3a52; --paper: #14141f; --bad: #ff8ba0; --doubt: #f2c05c;
          --good: #6fdc9f; --jp-ui-font-color1: #ececf4; }
}
body { margin: 0 auto; max-width: 1180px; padding: 24px; background: var(--paper); color: var(--ink);
       font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 25px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 28px 0 8px; }
p.lead { color: var(--soft); margin: 0 0 12px; overflow-wrap: anywhere; }
.failed { color: var(--bad); } .warning { color: var(--doubt); } .passed { color: var(--good); }
.wide { overflow-x: auto; } .wide:focus-visible { outline: 2px solid var(--soft); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { text-align: left; padding: 3px 10px 3px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 500; } td.number { text-align: right; }
figure { margin: 0 0 16px; max-width: 640px; } figure svg { width: 100%; height: auto; display: block; }
figcaption { color: var(--soft); font-size: 13px; margin-top: 6px; }
details { margin: 6px 0; } summary { cursor: pointer; } .charts { display: grid; gap: 18px;
  grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); }
"""


def page(audit: Audit) -> str:
    """The whole page."""
    outcome = "passed" if audit.passed else "failed"
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Audit of {html.escape(audit.lossy)}</title><style>{STYLE}</style></head><body><main>
<h1>Audit: <span class="{outcome}">{outcome}</span></h1>
{_lead(audit)}{"".join(_findings(audit))}
<h2>Arrays</h2><div class="wide" tabindex="0" role="region" aria-label="All arrays">{_table(audit.rows)}</div>
{_picture(audit.picture, audit)}{_charts(audit.rows)}{_figures(audit.rows)}
</main><footer><p class="lead">Lossbench {version_of("lossbench")}. Promises are checked for every value.</p></footer>
</body></html>
"""


def body(audit: Audit) -> str:
    """What a notebook shows: the outcome, the table and the findings, in the colours of the page."""
    lines = "".join(f"<li>{html.escape(line)}</li>" for line in audit.lines())
    return (
        f"<div><strong>{html.escape(audit.sentence)}</strong><p>{html.escape(audit.lossy)} against "
        f"{html.escape(audit.original)}</p>{_table(audit.rows)}<ul>{lines}</ul></div>"
    )


def _lead(audit: Audit) -> str:
    sizes = [
        f"{html.escape(name)}{'' if nbytes is None else f', {size(nbytes)}'}"
        for name, nbytes in ((audit.lossy, audit.lossy_nbytes), (audit.original, audit.nbytes))
    ]
    ratio = f"; {audit.ratio:.3g} times smaller" if audit.ratio else ""
    limits = f"<br>Tolerances: {html.escape('; '.join(audit.tolerances))}" if audit.tolerances else ""
    return f'<p class="lead">{sizes[0]}<br>against {sizes[1]}{ratio}{limits}</p><p>{html.escape(audit.sentence)}</p>'


def _findings(audit: Audit) -> Iterator[str]:
    """The findings by severity."""
    for severity, title in TITLES.items():
        found = [one for one in audit.findings if one.severity == severity]
        if found:
            lines = "".join(f"<li>{_sentence(one)}</li>" for one in found)
            yield f'<h2 class="{severity}">{title}</h2><ul>{lines}</ul>'


def _sentence(finding: Finding) -> str:
    about = f"<b>{html.escape(finding.member)}</b>: " if finding.member else ""
    return f"{about}{html.escape(finding.sentence)}"


def _table(rows: Sequence[Row]) -> str:
    """One row for each array."""
    words = [{**row.in_words(), "bits a value": _bits(row)} for row in rows]
    return html_table(list(words[0]) if words else [], [list(row.values()) for row in words], texts=())


def _bits(row: Row) -> str:
    return f"{row.bits_per_value:.3g}" if np.isfinite(row.bits_per_value) else "-"


def _picture(picture: ErrorPicture | None, audit: Audit) -> str:
    """The error in the plane of the worst value, which is marked."""
    if picture is None:
        return ""
    row = audit[picture.member]
    high, wide = picture.values.shape
    scale = float(np.nanmax(np.abs(picture.values[np.isfinite(picture.values)]), initial=0.0)) or 1.0
    down, across = picture.marked
    unit = wide / WIDE
    x, y, radius = across + 0.5, down + 0.5, 9 * unit
    circle = f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{radius:.2f}" fill="none"'
    strokes = (("#ffffff", 5), ("#111111", 2))
    circles = "".join(f'{circle} stroke="{colour}" stroke-width="{width * unit:.2f}"/>' for colour, width in strokes)
    label = f"The error of {picture.member}, with the place of the largest error marked"
    url = as_data_url(png(_coloured(picture.values, scale)))
    where = f" at {picture.plane}" if picture.plane else ""
    return (
        f'<h2>The error of {html.escape(picture.member)}</h2><figure><svg viewBox="0 0 {wide} {high}" role="img" '
        f'aria-label="{html.escape(label)}"><image href="{url}" width="{wide}" height="{high}" '
        f'style="image-rendering: pixelated"/>{circles}</svg><figcaption>Lossy less original{html.escape(where)}: '
        f"{html.escape(picture.axes[0])} downwards, {html.escape(picture.axes[1])} to the right. Blue is -{scale:.4g}, red "
        f"+{scale:.4g}, grey no value. Circle: the largest error, {row.largest_error:.6g}, at "
        f"{html.escape(in_place(row.largest_at))}.</figcaption></figure>"
    )


def _coloured(values: np.ndarray, scale: float) -> np.ndarray:
    """Errors as colours, from blue by white to red; grey where there is none."""
    finite = np.isfinite(values)
    share = np.clip(np.where(finite, values, 0.0) / scale, -1, 1)[..., None]
    middle = np.array(MIDDLE)
    ends = np.where(share < 0, np.array(BELOW), np.array(ABOVE))
    pixels = middle + np.abs(share) * (ends - middle)
    return np.where(finite[..., None], pixels, np.array(NOTHING)).round().astype(np.uint8)


def _charts(rows: Sequence[Row]) -> str:
    """The spectra of the members with the largest errors, decoded over original."""
    having = [row for row in rows if len(row.curves.get("spectrum_ratio", ())) > 1]
    having.sort(key=lambda row: -row.figures.get("spectrum_worst", 0.0))
    drawn = "".join(f"<figure>{drawing(_spectrum(row))}</figure>" for row in having[:CHARTS])
    return f'<h2>Power spectra</h2><div class="charts">{drawn}</div>' if drawn else ""


def _spectrum(row: Row) -> Chart:
    k, ratio = row.curves["spectrum_k"], np.asarray(row.curves["spectrum_ratio"], float)
    shown = ratio[np.isfinite(ratio)]
    x = Axis.around("wave number", list(k), None)
    y = Axis.around("lossy / original power", [*shown, 1.0], False)
    return Chart(row.name, x, y, (Rule("", "y", 1.0), Series("power", k, ratio, "#2f7fc1")))


def _figures(rows: Sequence[Row]) -> str:
    """All figures of each array that differs, each in a part that opens."""
    parts = []
    for row in rows:
        if row.figures and row.outcome != "identical":
            notes = "".join(f"<p>{html.escape(note)}</p>" for note in row.notes)
            parts.append(f"<details><summary>{html.escape(row.name)}</summary>{_figure_table(row.figures)}{notes}</details>")
    return f"<h2>Figures</h2>{''.join(parts)}" if parts else ""


def _figure_table(figures: Mapping[str, float]) -> str:
    meanings = {**MEANINGS, **OWN_MEANINGS}
    lines = (
        f'<tr><th scope="row">{html.escape(name)}</th><td class="number">{value:,.6g}</td>'
        f"<td>{html.escape(meanings.get(name, ''))}</td></tr>" for name, value in figures.items()
    )
    return f"<table><tbody>{''.join(lines)}</tbody></table>"
