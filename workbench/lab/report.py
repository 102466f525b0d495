"""A report: the content of a panel as one HTML file that needs no kernel, server or network.

Charts stay interactive (the file contains BokehJS), pictures are PNG, and the equivalent Python is at the end.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import holoviews as hv
from bokeh.embed import components
from bokeh.resources import Resources

from workbench.errors import WorkbenchError
from workbench.lab import legend, markup
from workbench.lab.description import Shown

PAGE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1200px; margin: 2em auto; padding: 0 1em;
  color: #222; background: #fff; }
"""
STYLE = """
.wb-report figure { margin: 0; flex: 1 1 300px; max-width: 640px; } .wb-report svg { width: 100%; height: auto; }
.wb-row { display: flex; flex-wrap: wrap; gap: 14px; } .wb-chart { flex: 1 1 320px; min-width: 300px; }
.wb-key { display: flex; flex-wrap: wrap; gap: 0 14px; margin: 0; padding: 0; list-style: none; font-size: 12px; }
.wb-report pre { background: #f4f4f4; padding: 1em; overflow: auto; color: #222; }
"""


def body(title: str, subject: str, shown: Shown, code: str) -> str:
    """The report as a part of a page, with the script of its charts."""
    script, charts = _charts(shown.charts)
    pictures = [*shown.pictures, *([shown.detail] if shown.detail else [])]
    parts = [
        f"<style>{markup.STYLE}{STYLE}</style>",
        f"<h1>{html.escape(title)}</h1><p>{html.escape(subject)}</p>",
        markup.facts(shown.facts),
        f'<div class="wb-row">{"".join(map(markup.picture, pictures))}</div>{markup.note(shown.note)}',
        f'<div class="wb-row">{"".join(charts)}</div>',
        markup.tables(shown.tables),
        f"<h2>The same in Python</h2><pre>{html.escape(code)}</pre>",
        script,
    ]
    return f'<div class="wb-report">{"".join(parts)}</div>'


def page(title: str, subject: str, shown: Shown, code: str) -> str:
    """The report as a complete page."""
    from workbench import __version__

    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    head = f'<head><meta charset="utf-8"><title>{html.escape(title)}</title><style>{PAGE}</style>{library()}</head>'
    foot = f"<footer><small>Lossbench {__version__}, {made}</small></footer>"
    return f'<!doctype html><html lang="en">{head}<body>{body(title, subject, shown, code)}{foot}</body></html>'


def library() -> str:
    """BokehJS as part of a page; `render_js` would also load scripts registered by other packages from the network."""
    return "".join(f"<script>{code}</script>" for code in Resources(mode="inline", components=["bokeh"]).js_raw)


def chart(model: Any) -> str:
    """A Bokeh model as a self-contained part of a page."""
    script, place = components(model)
    return f"{library()}{place}{script}"


def save(path: str | Path, content: str) -> Path:
    """Write a page."""
    target = Path(path).expanduser()
    if target.suffix not in (".html", ".htm"):
        raise WorkbenchError(f"a report is written as .html; got {path}")
    try:
        target.write_text(content, encoding="utf-8")
    except OSError as error:
        raise WorkbenchError(f"the report must be written into a folder that exists; {error}") from None
    return target.resolve()


def _charts(charts: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The script of all charts, and a place for each."""
    if not charts:
        return "", []
    renderer = hv.renderer("bokeh")
    plots = {name: renderer.get_plot(element).state for name, element in charts.items()}
    script, places = components(plots)
    heads = {name: (plot.tags or [{"name": name, "key": ()}])[0] for name, plot in plots.items()}
    return script, [
        f'<div class="wb-chart"><b>{html.escape(head["name"] or name)}</b>{legend.in_html(head["key"])}{places[name]}</div>'
        for name, head in heads.items()
    ]
