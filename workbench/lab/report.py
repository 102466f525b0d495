"""A report: the content of a panel as one HTML file that needs no kernel, server, network or script.

Pictures and charts are SVG, so that a viewer that runs no scripts, such as JupyterLab's for files that are not trusted,
shows everything. Where scripts run, the interactive charts replace the drawn ones (the file contains BokehJS).
"""

from __future__ import annotations

import html
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from workbench.charts.description import Chart
from workbench.charts.svg import drawing, entries, key
from workbench.charts.to_holoviews import load, to_holoviews
from workbench.lab import markup, static_picture
from workbench.lab.description import Fact, Shown

SCRIPTED = "wb-scripted"   # a class of the page, if its scripts run

PAGE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1200px; margin: 2em auto; padding: 0 1em;
  color: #222; background: #fff; }
"""
STYLE = f"""
.wb-report {{ min-width: 0; overflow-wrap: anywhere; }}
.wb-row {{ display: flex; flex-wrap: wrap; gap: 14px; margin: 8px 0; }} .wb-wide {{ max-width: 100%; overflow-x: auto; }}
.wb-chart {{ flex: 1 1 420px; min-width: 0; max-width: 640px; }} .wb-chart .wb-static {{ width: 100%; height: auto; }}
.wb-live {{ display: none; }}
.{SCRIPTED} .wb-live {{ display: block; }} .{SCRIPTED} .wb-chart .wb-static {{ display: none; }}
.wb-key {{ display: flex; flex-wrap: wrap; gap: 0 14px; margin: 0; padding: 0; list-style: none; font-size: 12px; }}
.wb-report pre {{ background: #f4f4f4; padding: 1em; overflow: auto; color: #222; }}
.wb-words {{ display: grid; grid-template-columns: max-content 1fr; gap: 0 1em; margin: 6px 0; }}
.wb-words dt {{ color: var(--wb-quiet); }} .wb-words dd {{ margin: 0; }}
"""


def body(title: str, subject: str, shown: Shown, code: str) -> str:
    """The report as a part of a page, with the script of its charts."""
    script, charts = _charts(shown.charts)
    pictures = [*shown.pictures, *([shown.detail] if shown.detail else [])]
    parts = [
        f"<style>{markup.STYLE}{static_picture.STYLE}{STYLE}</style>",
        f"<h1>{html.escape(heading(title, shown))}</h1><p>{html.escape(subject)}</p>",
        markup.answer(shown.answer),
        _words(shown.settings.items()),
        markup.facts(shown.facts),
        markup.note(shown.remark),
        f'<div class="wb-row">{"".join(map(static_picture.figure, pictures))}</div>{markup.note(shown.note)}',
        f'<div class="wb-row">{"".join(charts)}</div>',
        markup.tables(shown.tables),
        _meanings(shown.facts),
        f"<h2>The same in Python</h2><pre>{html.escape(code)}</pre>",
        script,
    ]
    return f'<div class="wb-report">{"".join(parts)}</div>'


def heading(title: str, shown: Shown) -> str:
    """The title with the first two settings, usually the codec and the bound.

    >>> heading("Bounds", Shown(settings={"codec": "sz3", "error bound": "absolute 0.02", "slice": "3"}))
    'Bounds: sz3, absolute 0.02'
    """
    first = [*shown.settings.values()][:2]
    return f"{title}: {', '.join(first)}" if first else title


def page(title: str, subject: str, shown: Shown, code: str) -> str:
    """The report as a complete page."""
    from workbench import __version__

    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    named = html.escape(heading(title, shown))
    head = f'<head><meta charset="utf-8"><title>{named}</title><style>{PAGE}</style>{library()}</head>'
    versions = f"Lossbench {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    foot = f"<footer><small>{made}; {versions}</small></footer>"
    return f'<!doctype html><html lang="en">{head}<body>{body(title, subject, shown, code)}{foot}</body></html>'


def library() -> str:
    """BokehJS as part of a page; `render_js` would also load scripts registered by other packages from the network."""
    from bokeh.resources import Resources

    scripts = "".join(f"<script>{code}</script>" for code in Resources(mode="inline", components=["bokeh"]).js_raw)
    return f'{scripts}<script>window.Bokeh && document.documentElement.classList.add("{SCRIPTED}")</script>'


def chart(model: Any) -> str:
    """A Bokeh model as a self-contained part of a page."""
    from bokeh.embed import components

    script, place = components(model)
    return f"{library()}{place}{script}"


def _words(pairs: Iterable[tuple[str, str]]) -> str:
    entries = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>" for name, value in pairs)
    return f'<dl class="wb-words">{entries}</dl>' if entries else ""


def _meanings(facts: Iterable[Fact]) -> str:
    """What the figures mean, since a printed page has no tooltips."""
    meanings = _words((fact.name, fact.meaning) for fact in facts if fact.meaning)
    return f"<h2>What the figures mean</h2>{meanings}" if meanings else ""


def _charts(charts: Mapping[str, Chart]) -> tuple[str, list[str]]:
    """The script of all interactive charts; and for each chart its drawing, and the place of the interactive one."""
    if not charts:
        return "", []
    from bokeh.embed import components

    renderer = load().renderer("bokeh")
    script, places = components({name: renderer.get_plot(to_holoviews(chart)).state for name, chart in charts.items()})
    return script, [
        f'<div class="wb-chart"><b>{html.escape(chart.title)}</b>{key(entries(chart))}{drawing(chart, complete=False)}'
        f'<div class="wb-live">{places[name]}</div></div>'
        for name, chart in charts.items()
    ]
