"""The widgets of a panel: they show its content, and forward the user's requests. No decision is made here.

Pictures are drawn at once; charts and tables take longer and are drawn when the slider rests.
"""

from __future__ import annotations

import asyncio
import functools
import html
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import anywidget
import ipywidgets as widgets
import traitlets

from workbench.errors import WorkbenchError
from workbench.lab import markup
from workbench.lab.canvas import Canvas
from workbench.lab.chart_view import ChartView
from workbench.lab.controls import Control
from workbench.lab.description import Picture, Shown, Window
from workbench.lab.engine import Status
from workbench.lab.front_end import widget_script

log = logging.getLogger(__name__)
Rows = Sequence[Sequence[Control | widgets.Widget]]
BLINK = "alternate the first two pictures in one place, which shows their differences; or press b on a picture"
RESTED = 0.25   # seconds without changes before charts are drawn, one after the other
MOST_CHARTS = 8
BREATH = 0.01   # seconds between two charts, for the events of the user


class CopyButton(anywidget.AnyWidget):
    """A button that copies a text to the clipboard of the browser's machine."""

    _esm = widget_script("copy.js")
    text = traitlets.Unicode("").tag(sync=True)
    label = traitlets.Unicode("copy code").tag(sync=True)
    copied = traitlets.Int(0).tag(sync=True)


class Requests(Protocol):
    """The requests of a view to its panel."""

    def change(self, **fields: Any) -> object:
        """Change fields of the state."""

    def picked(self, label: str, chosen: int) -> object:
        """A mark was clicked."""

    def cancel(self) -> object:
        """Stop the running work."""

    def save_report(self) -> Path:
        """Write the report."""

    def code(self) -> str:
        """The Python that reproduces what is shown."""


class View:
    """The widgets of one panel."""

    def __init__(self, panel: Requests, title: str, rows: Rows, state: Any) -> None:
        self.panel = panel
        self.controls = [control for row in rows for control in row if isinstance(control, Control)]
        for control in self.controls:
            control.connect(panel.change)
        self.canvas, self.detail = Canvas(tall=480), Canvas(tall=400)
        for name, value in {"display": "none", "flex": "1 1 300px", "min_width": "260px", "max_width": "460px"}.items():
            setattr(self.detail.layout, name, value)
        self.canvas.observe(self._picked, "picked")
        if hasattr(state, "window"):
            self.canvas.observe(self._looked, "window")
        if hasattr(state, "pixels"):
            self.canvas.observe(lambda change: self.panel.change(pixels=int(self.canvas.pixels)), "pixels")
        self.charts: dict[str, ChartView] = {}
        self._resting: asyncio.TimerHandle | None = None
        self._make_parts(title, rows)

    def _make_parts(self, title: str, rows: Rows) -> None:
        wrap = widgets.Layout(flex_flow="row wrap", align_items="center", grid_gap="2px 12px", overflow="visible")
        control_rows = [
            widgets.HBox([part.widget if isinstance(part, Control) else part for part in row], layout=wrap) for row in rows
        ]
        self.status = widgets.HTML(layout=widgets.Layout(flex="1 1 200px"))
        self.bar = widgets.FloatProgress(min=0.0, max=1.0, layout=widgets.Layout(width="120px", visibility="hidden"))
        self.stop = widgets.Button(description="cancel", layout=widgets.Layout(width="auto", visibility="hidden"))
        self.stop.on_click(lambda button: self.panel.cancel())
        head = [widgets.HTML(f"<b style='font-size: 15px'>{html.escape(title)}</b>"), self.status, self.bar, self.stop]
        self.facts, self.note = widgets.HTML(), widgets.HTML()
        self.blink = widgets.ToggleButton(description="blink", tooltip=BLINK, layout=widgets.Layout(width="auto"))
        self._blinking = traitlets.link((self.blink, "value"), (self.canvas, "blink"))
        row = widgets.Layout(flex_flow="row wrap", grid_gap="8px", overflow="visible")
        beside = widgets.Layout(flex="2 1 320px", flex_flow="row wrap", grid_gap="8px", overflow="visible")
        self.chart_box = widgets.HBox([_place_of_chart() for _ in range(MOST_CHARTS)], layout=beside)
        self.chart_places: dict[str, widgets.Box] = {}
        self.chart_row = widgets.HBox([self.detail, self.chart_box], layout=row)
        self.drawers = widgets.Accordion(children=[widgets.HTML()], titles=("code",))
        self.tables: dict[str, widgets.HTML] = {}
        self.copy = CopyButton()
        self.report = widgets.Button(description="save report", layout=widgets.Layout(width="auto"))
        self.report.on_click(lambda button: self._save_report())
        self.saved = widgets.HTML()
        below = widgets.HBox([self.blink, self.note], layout=wrap)
        foot = widgets.HBox([self.copy, self.report, self.saved], layout=wrap)
        style = widgets.HTML(f"<style>{markup.STYLE}</style>", layout=widgets.Layout(display="none"))
        self.widget = widgets.VBox(
            [style, widgets.HBox(head, layout=wrap), *control_rows, self.canvas, below, self.facts,
             self.chart_row, foot, self.drawers],
            layout=widgets.Layout(width="100%", overflow="visible"),
        )
        self.widget.add_class("wb-panel")

    # From the panel.

    def show_state(self, state: Any) -> None:
        """Show the state in the controls."""
        for control in self.controls:
            control.show(state)

    def show_status(self, status: Status) -> None:
        """Show the running work, or the error."""
        text = html.escape(status.error or status.text)
        kind = 'class="wb-error" role="alert"' if status.error else 'role="status"'
        self.status.value = f"<span {kind}>{text}</span>"
        self.bar.value = status.share
        self.bar.layout.visibility = self.stop.layout.visibility = "visible" if status.busy else "hidden"

    def show(self, shown: Shown, window: Window | None, home: Window | None) -> None:
        """Show pictures now, and everything else after a moment without changes."""
        self.canvas.show(shown.pictures, home)
        self.blink.layout.display = "" if len(shown.pictures) > 1 else "none"
        wanted = [] if window is None else list(map(float, window))
        if wanted != self.canvas.window:
            self.canvas.window = wanted
        self._show_detail(shown.detail)
        self.copy.text = self.panel.code()
        self.facts.value, self.note.value = markup.facts(shown.facts), markup.note(shown.note)
        charts = [functools.partial(self._show_chart, name, shown) for name in shown.charts]
        arrange = functools.partial(self._arrange_charts, shown)
        self._when_rested([arrange, *charts, functools.partial(self._show_drawers, shown)])

    def _show_detail(self, detail: Picture | None) -> None:
        self.detail.layout.display = "none" if detail is None else ""
        if detail is not None:
            self.detail.show([detail], detail.window)

    def _arrange_charts(self, shown: Shown) -> None:
        """Make the charts that are new, and remove those that are gone; the others stay where they are on the page.

        Charts live in boxes that are added to the page once: children added one by one may be drawn twice.
        """
        coming: frozenset[str] = getattr(shown.charts, "coming", frozenset())
        for name in [name for name in self.charts if name not in shown.charts and name not in coming]:
            self.charts.pop(name).close()
            self._put(name, ())
        for name, chart in self.charts.items():
            chart.wait(name in coming)
        for name, element in shown.charts.items():
            if name not in self.charts:
                self.charts[name] = ChartView(element)
                self._put(name, (self.charts[name].widget,))

    def _put(self, name: str, children: tuple[widgets.Widget, ...]) -> None:
        """Put a chart into a free place, or take it out of its own."""
        place = self.chart_places.pop(name, None) or next(each for each in self.chart_box.children if not each.children)
        place.children, place.layout.display = children, "" if children else "none"
        if children:
            self.chart_places[name] = place

    def _show_chart(self, name: str, shown: Shown) -> None:
        self.charts[name].show(shown.charts[name])

    def _show_drawers(self, shown: Shown) -> None:
        """Show the drawers; each stays open or closed while its content changes."""
        *_, code = self.drawers.children
        if self.tables.keys() != shown.tables.keys():
            self.tables = {name: widgets.HTML() for name in shown.tables}
            self.drawers.children = (*self.tables.values(), code)
        for name, table in shown.tables.items():
            self.tables[name].value = f'<div class="wb-tables">{markup.table(table)}</div>'
        self.drawers.titles = (*(f"{name} ({len(table.rows)})" for name, table in shown.tables.items()), "code")
        code.value = f"<pre>{html.escape(self.copy.text)}</pre>"

    def _when_rested(self, steps: Sequence[Callable[[], object]]) -> None:
        """Run these steps after a moment without changes; without an event loop, now."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            for step in steps:
                step()
            return

        def take(number: int) -> None:
            try:
                steps[number]()
            except Exception as error:   # no cell would show it, since none is running
                log.exception("drawing a chart failed")
                self.show_status(Status(error=f"{type(error).__name__}: {error}"))
            if number + 1 < len(steps):
                self._resting = loop.call_later(BREATH, take, number + 1)

        if self._resting is not None:
            self._resting.cancel()
        self._resting = loop.call_later(RESTED, take, 0)

    # From the user.

    def _looked(self, change: Any) -> None:
        window = tuple(self.canvas.window) if self.canvas.window else None
        self.panel.change(window=window)

    def _picked(self, change: Any) -> None:
        if "id" in self.canvas.picked:
            self.panel.picked(str(self.canvas.picked["label"]), int(self.canvas.picked["id"]))

    def _save_report(self) -> None:
        try:
            self.saved.value = f"saved as {html.escape(str(self.panel.save_report()))}"
        except WorkbenchError as error:
            self.saved.value = f'<span class="wb-error">{html.escape(str(error))}</span>'

    def close(self) -> None:
        """Close all widgets, and release their content: widgets refer to each other, so they are freed only later."""
        if self._resting is not None:
            self._resting.cancel()
        self._resting = None
        self._blinking.unlink()
        for chart in self.charts.values():
            chart.close()
        self.charts.clear()
        _close(self.widget)
        for canvas in (self.canvas, self.detail):
            canvas.show(())


def _place_of_chart() -> widgets.Box:
    return widgets.Box(layout=widgets.Layout(flex="1 1 280px", min_width="260px", display="none", overflow="visible"))


def _close(widget: widgets.Widget) -> None:
    """Close a widget and all its children, with their layouts and styles, which would otherwise stay alive."""
    for child in getattr(widget, "children", ()):
        _close(child)
    for name in ("layout", "style"):
        part = getattr(widget, name, None)
        if isinstance(part, widgets.Widget):
            part.close()
    widget.close()
