"""The widgets of a panel: they show its content, and forward the user's requests. No decision is made here.

Controls, figures and pictures fit on one screen, one below the other; charts, tables and code follow below. Pictures are
drawn at once; charts and tables take longer and are drawn when the slider rests.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import ipywidgets as widgets
import traitlets

from workbench.errors import WorkbenchError
from workbench.lab import chart_library, markup
from workbench.lab.buttons import CopyButton, Disclosure, DownloadButton
from workbench.lab.canvas import Canvas
from workbench.lab.chart_view import ChartView
from workbench.lab.controls import Control
from workbench.lab.description import Picture, Reading, Shown, Window
from workbench.lab.drawers import Drawers
from workbench.lab.engine import Status
from workbench.lab.frame import Frame
from workbench.lab.history_view import HistoryView
from workbench.lab.saving import SaveArchive
from workbench.lab.turns import Rest

Rows = Sequence[Sequence[Control | SaveArchive | widgets.Widget]]
UNFOLDED = 2    # rows of controls that are always visible
GAP = 10        # pixels between pictures
ALONE = "50%"   # of the width, for one picture
BLINK = "alternate the first two pictures in one place, which shows their differences; or press b on a picture"
RESTED = 0.25   # seconds without changes before charts are drawn, one after the other
MOST_CHARTS = 8


class Requests(Protocol):
    """The requests of a view to its panel."""

    def change(self, **fields: Any) -> object:
        """Change fields of the state."""

    def undo(self) -> object:
        """Go one step back."""

    def redo(self) -> object:
        """Go one step forth."""

    def picked(self, label: str, chosen: int) -> object:
        """A mark was clicked."""

    def reading(self, picture: int, x: float, y: float) -> Reading | None:
        """The exact content of a place."""

    def reading_of_detail(self, x: float, y: float) -> Reading | None:
        """The exact content of a place in the detail."""

    def cancel(self) -> object:
        """Stop the running work."""

    def row_chosen(self, table: str, row: int) -> object:
        """A row of a table was chosen."""

    def save_report(self) -> Path:
        """Write the report."""

    def report(self) -> tuple[str, str]:
        """The name and the text of the report."""

    def code(self) -> str:
        """The Python that reproduces what is shown."""


class View:
    """The widgets of one panel."""

    def __init__(self, panel: Requests, title: str, rows: Rows, state: Any) -> None:
        self.panel = panel
        self.controls: list[Control] = []
        self._boxes: dict[tuple[int, ...], widgets.HBox] = {}   # rows of controls so far, by the identities of their parts
        self.savers = [part for row in rows for part in row if isinstance(part, SaveArchive)]
        self.canvas, self.detail = Canvas(), Canvas()
        self.canvas.observe(self._picked, "picked")
        self.canvas.reader = panel.reading
        self.detail.reader = lambda picture, x, y: panel.reading_of_detail(x, y)
        if hasattr(state, "window"):
            self.canvas.observe(self._looked, "window")
        if hasattr(state, "pixels"):
            self.canvas.observe(lambda change: self.panel.change(pixels=int(self.canvas.pixels)), "pixels")
        self.charts: dict[str, ChartView] = {}
        self._rest = Rest(RESTED, lambda error: self.show_status(Status(error=f"{type(error).__name__}: {error}")))
        self._make_parts(title)
        self.frame = Frame([self.canvas, self.detail])
        style = widgets.HTML(f"<style>{markup.STYLE}</style>", layout=widgets.Layout(display="none"))
        above = self._above(title)
        self.show_rows(rows)
        self.content = _column([self.facts, self.pictures, self.below, self.chart_box, self.drawers], "wb-content")
        self.widget = _column([style, self.frame, above, self.content, self._foot()], "wb-panel")

    def _make_parts(self, title: str) -> None:
        """The parts that show something."""
        self.status = widgets.HTML(layout=widgets.Layout(flex="1 1 0", min_width="0"))
        self.bar = widgets.FloatProgress(min=0.0, max=1.0, layout=widgets.Layout(width="100px", visibility="hidden"))
        self.stop = widgets.Button(description="cancel", layout=widgets.Layout(width="auto", visibility="hidden"))
        self.stop.on_click(lambda button: self.panel.cancel())
        self.steps = HistoryView(self.panel.undo, self.panel.redo)
        self.facts, self.note = widgets.HTML(), widgets.HTML(layout=widgets.Layout(flex="1 1 300px"))
        self.facts.add_class("wb-figures")
        self.blink = widgets.ToggleButton(description="blink", tooltip=BLINK, layout=widgets.Layout(width="auto"))
        self._blinking = traitlets.link((self.blink, "value"), (self.canvas, "blink"))
        self.pictures = _row([self.canvas, self.detail], gap=f"{GAP}px", wrap="nowrap", align="flex-start")
        self.pictures.add_class("wb-pictures")
        self._share_width(1, False)
        self.below = _row([self.blink, self.note])
        self.chart_box = _row([_place_of_chart() for _ in range(MOST_CHARTS)], gap="8px", align="stretch")
        self.chart_places: dict[str, widgets.Box] = {}
        self.drawers = Drawers(self.panel.row_chosen)
        self.overview = Drawers(self.panel.row_chosen, bare=True)

    def _above(self, title: str) -> widgets.Widget:
        """The title with the state of the work, tables of what there is, and places for the controls."""
        name = widgets.HTML(f"<b style='font-size: 15px'>{html.escape(title)}</b>")
        self.more = more = Disclosure(title, "more controls")   # the browser remembers whether it is pressed
        self.unfolded, self.folded = _column([], "wb-unfolded"), _column([], "wb-folded")
        self.folded.layout.display = "none"
        more.observe(lambda change: setattr(self.folded.layout, "display", "" if more.unfolded else "none"), "unfolded")
        self.head = _row([name, self.status, self.bar, self.stop, self.steps], wrap="nowrap")
        return _column([self.head, self.overview, self.unfolded, self.folded], "wb-above")

    def _foot(self) -> widgets.Widget:
        """The buttons to take something along."""
        self.copy = CopyButton()
        self.save_report = widgets.Button(
            description="save report", tooltip="write the report where the kernel runs", layout=widgets.Layout(width="auto")
        )
        self.save_report.on_click(lambda button: self._save_report())
        self.download_report = DownloadButton("download report", self._report, self._refuse)
        self.saved = widgets.HTML()
        self._saved_of = ""
        reports = [self.copy, self.save_report, self.download_report, self.saved]
        foot = _row([*(saver.widget for saver in self.savers), *reports])
        foot.add_class("wb-saving")
        return foot

    # From the panel.

    def show_rows(self, rows: Rows) -> None:
        """Show these controls; rows after the first ones are behind a button. Earlier ones stay alive until the end."""
        self.controls = [control for row in rows for control in row if isinstance(control, Control)]
        for control in self.controls:
            control.connect(self.panel.change)
        made = [self._box([_widget(part) for part in row if not isinstance(part, SaveArchive)]) for row in rows]
        made = [row for row in made if row.children]
        self.unfolded.children, self.folded.children = made[:UNFOLDED], made[UNFOLDED:]
        head = [part for part in self.head.children if part is not self.more]
        self.head.children = [*head[:-1], self.more, head[-1]] if made[UNFOLDED:] else head

    def show_state(self, state: Any) -> None:
        """Show the state in the controls."""
        for control in self.controls:
            control.show(state)

    def forgive(self) -> None:
        """Forget entries that were refused."""
        for control in self.controls:
            control.forgive()

    def show_steps(self, back: bool, forth: bool) -> None:
        """Show whether there is something to undo and to redo."""
        self.steps.ends = [back, forth]

    def show_status(self, status: Status) -> None:
        """Show the running work, or the error."""
        text = html.escape(status.error or status.text)
        kind = 'class="wb-error" role="alert"' if status.error else 'role="status"'
        self.status.value = f"<span {kind}>{text}</span>"
        self.bar.value = status.share
        self.bar.layout.visibility = self.stop.layout.visibility = "visible" if status.busy else "hidden"

    def show_freshness(self, stale: bool, busy: bool) -> None:
        """Dim the content if it belongs to an earlier state; what was said about it is withdrawn."""
        self.frame.dim(stale, "computing …" if busy else "of the settings before")
        if stale:
            self._withdraw("")

    def show(self, shown: Shown, window: Window | None, home: Window | None) -> None:
        """Show pictures now, and everything else after a moment without changes."""
        self._share_width(len(shown.pictures), shown.detail is not None)
        self.canvas.show(shown.pictures, home)
        self.blink.layout.display = "" if len(shown.pictures) > 1 else "none"
        wanted = [] if window is None else list(map(float, window))
        if wanted != self.canvas.window:
            self.canvas.window = wanted
        self._show_detail(shown.detail)
        self.copy.text = self.panel.code()
        self.overview.show({name: table for name, table in shown.tables.items() if table.above})
        self.facts.value = markup.facts(shown.facts, f"wb-tip-{self.facts.model_id}")
        self.note.value = markup.note(shown.note)
        self._withdraw(self.copy.text)
        if self.charts:
            self.chart_box.add_class("wb-awaited")   # until the new ones are drawn
        charts = [functools.partial(self._show_chart, name, shown) for name in shown.charts]
        arrange = functools.partial(self._arrange_charts, shown)
        steps = [arrange, *charts, functools.partial(self._show_drawers, shown)]
        if shown.charts:
            chart_library.begin_loading()
        if not self._rest.begin(*steps, ready=lambda: not chart_library.loading()):
            for step in steps:
                step()

    def put_below_pictures(self, part: widgets.Widget) -> None:
        """Add a part of the panel's own below the pictures, once."""
        if part not in self.content.children:
            place = self.content.children.index(self.below) + 1
            self.content.children = (*self.content.children[:place], part, *self.content.children[place:])

    def _box(self, parts: list[widgets.Widget]) -> widgets.HBox:
        """A row of these parts, the one that has held them before if there is one."""
        key = tuple(map(id, parts))
        if key not in self._boxes:
            self._boxes[key] = _row(parts)
        return self._boxes[key]

    def _share_width(self, pictures: int, detail: bool) -> None:
        """The detail is as wide as each of the pictures; a picture alone stays small, since others often follow."""
        shares = max(pictures, 1)
        self.canvas.layout.max_width = ALONE if shares == 1 and not detail else "100%"
        self.canvas.layout.flex, self.canvas.layout.min_width = f"{shares} 1 {GAP * (shares - 1)}px", "0"
        self.detail.layout.flex, self.detail.layout.min_width = "1 1 0px", "0"
        self.detail.layout.display = "" if detail else "none"
        self.pictures.layout.display = "" if pictures or detail else "none"

    def _show_detail(self, detail: Picture | None) -> None:
        if detail is not None:
            self.detail.show([detail], detail.window)

    def _withdraw(self, code: str) -> None:
        """Remove messages about saved files that differ from what is shown, as told by its code."""
        for saver in self.savers:
            saver.shows(code)
        if self._saved_of != code:
            self.saved.value = ""

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
        """Show tables and code, last of all."""
        self.drawers.show({name: table for name, table in shown.tables.items() if not table.above}, self.copy.text)
        self.chart_box.remove_class("wb-awaited")

    # From the user.

    def _looked(self, change: Any) -> None:
        window = tuple(self.canvas.window) if self.canvas.window else None
        self.panel.change(window=window)

    def _picked(self, change: Any) -> None:
        if "id" in self.canvas.picked:
            self.panel.picked(str(self.canvas.picked["label"]), int(self.canvas.picked["id"]))

    def _report(self) -> tuple[str, bytes]:
        name, text = self.panel.report()
        return name, text.encode()

    def _save_report(self) -> None:
        try:
            self.saved.value = f"saved as {html.escape(str(self.panel.save_report()))}"
            self._saved_of = self.copy.text
        except WorkbenchError as error:
            self._refuse(str(error))

    def _refuse(self, reason: str) -> None:
        self.saved.value = f'<span class="wb-error" role="alert">{html.escape(reason)}</span>'
        self._saved_of = self.copy.text

    def close(self) -> None:
        """Close all widgets, and release their content: widgets refer to each other, so they are freed only later."""
        self._rest.cancel()
        self._blinking.unlink()
        for chart in self.charts.values():
            chart.close()
        self.charts.clear()
        for part in (*self._boxes.values(), self.more, self.widget):
            _close(part)
        self.canvas.reader = self.detail.reader = None
        for canvas in (self.canvas, self.detail):
            canvas.show(())


def _row(
    children: Sequence[widgets.Widget], gap: str = "2px 12px", wrap: str = "wrap", align: str = "center"
) -> widgets.HBox:
    layout = widgets.Layout(flex_flow=f"row {wrap}", align_items=align, grid_gap=gap, overflow="visible")
    return widgets.HBox(children, layout=layout)


def _column(children: Sequence[widgets.Widget], name: str) -> widgets.VBox:
    made = widgets.VBox(children, layout=widgets.Layout(width="100%", overflow="visible"))
    made.add_class(name)
    return made


def _widget(part: Control | SaveArchive | widgets.Widget) -> widgets.Widget:
    return part if isinstance(part, widgets.Widget) else part.widget


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
