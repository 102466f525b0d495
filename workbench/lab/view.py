"""The parts of a panel on its page: they show its content, and forward the user's requests. No decision is made here.

Controls, the answer and pictures are shown at once; charts and tables take longer, and are drawn when the slider rests.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.errors import WorkbenchError
from workbench.lab import chart_library, markup
from workbench.lab.buttons import CopyButton, DownloadButton
from workbench.lab.canvas import Canvas
from workbench.lab.chart_part import ChartPart
from workbench.lab.controls import Control, Row
from workbench.lab.description import Shown, Window
from workbench.lab.drawers import Drawers
from workbench.lab.engine import Status
from workbench.lab.page import Page
from workbench.lab.part import Part
from workbench.lab.saving import SaveArchive
from workbench.lab.turns import Rest

if TYPE_CHECKING:
    from workbench.lab.panel import Panel

Rows = Sequence[Row | Sequence[Part]]
RESTED = 0.25   # seconds without changes before charts are drawn, one after the other


class Frame(Part):
    """What holds a panel together: its title, the state of its work, its steps back and forth, and where its parts are.

    `areas` has rows of keys for each place, and the keys of charts that stand among the pictures, beside and below them.
    """

    kind = "frame"

    def __init__(self, panel: Panel[Any], title: str, live: str) -> None:
        super().__init__(
            title=title, live=live, text="", failed=False, share=0.0, busy=False, back=False, forth=False, stale=False,
            mark="", awaited=False, areas={},
        )
        self._does = {"undo": panel.undo, "redo": panel.redo, "cancel": panel.cancel}

    def heard(self, content: Mapping[str, Any]) -> None:
        """A button of the frame was pressed."""
        if content.get("does") in self._does:
            self._does[content["does"]]()


class ReportPart(Part):
    """The button that saves a report where the kernel runs, and what became of saved reports."""

    kind = "report"

    def __init__(self, save: Any) -> None:
        super().__init__(message="", failed=False)
        self._save = save

    def heard(self, content: Mapping[str, Any]) -> None:
        """The button was pressed."""
        self._save()


class View:
    """The parts of one panel, and its widget. `live` is a class name of the element that shows it."""

    def __init__(self, panel: Panel[Any], title: str, rows: Rows, state: Any, live: str = "") -> None:
        self.panel, self._state = panel, state
        self.charts: dict[str, ChartPart] = {}
        self.controls: list[Control] = []
        self._rest = Rest(RESTED, lambda error: self.show_status(Status(error=f"{type(error).__name__}: {error}")))
        self.frame = Frame(panel, title, live)
        self._make_parts()
        fixed = {
            "frame": self.frame, "answer": self.answer, "figures": self.figures, "note": self.note, "remark": self.remark,
            "canvas": self.canvas, "detail": self.detail, "drawers": self.drawers, "overview": self.overview,
            "copy": self.copy, "report": self.report, "download-report": self.download_report,
        }
        self.widget = Page(fixed)
        self.show_rows(rows)

    def _make_parts(self) -> None:
        panel = self.panel
        self.answer, self.figures, self.note, self.remark = (Part(html="") for _ in range(4))
        self.canvas, self.detail = Canvas(), Canvas()
        self.canvas.reader = panel.reading
        self.canvas.pick = panel.picked
        self.canvas.turn_to = lambda picture: panel.picture_chosen(self.canvas.content[f"pane_{picture}"]["title"])
        self.detail.reader = lambda picture, x, y: panel.reading_of_detail(x, y)
        if hasattr(self._state, "window"):
            self.canvas.zoom = lambda window: panel.request(window=window)
        if hasattr(self._state, "pixels"):
            self.canvas.fit = lambda pixels: panel.request(pixels=pixels)
        self.drawers, self.overview = Drawers(panel.row_chosen), Drawers(panel.row_chosen, bare=True)
        self.copy, self.report = CopyButton(), ReportPart(self._save_report)
        self.download_report = DownloadButton("download report", self._report, self._refuse)
        self._saved_of = ""

    # From the panel.

    def show_rows(self, rows: Rows) -> None:
        """Show these controls; earlier ones stay on the page until the end, for the time when they are wanted again."""
        made = [row if isinstance(row, Row) else Row(*row) for row in rows]
        parts = [part for row in made for part in row.parts]
        self.controls = [part for part in parts if isinstance(part, Control)]
        self.savers = [part for part in parts if isinstance(part, SaveArchive)]
        for control in self.controls:
            control.connect(self.panel.request)
        places: dict[str, list[list[str]]] = {}
        with self.widget.at_once():
            for row in made:
                places.setdefault(row.place, []).append([self.widget.add(part) for part in row.parts])
            self._arrange(places)

    def _arrange(self, places: Mapping[str, Any]) -> None:
        self.frame.set(areas={**self.frame.content["areas"], **places})

    def show_state(self, state: Any) -> None:
        """Show the state in the controls."""
        with self.widget.at_once():
            for control in self.controls:
                control.show(state)

    def forgive(self) -> None:
        """Forget entries that were refused."""
        for control in self.controls:
            control.forgive()

    def show_steps(self, back: bool, forth: bool) -> None:
        """Show whether there is something to undo and to redo."""
        self.frame.set(back=back, forth=forth)

    def show_status(self, status: Status) -> None:
        """Show the running work, or the error."""
        failed = bool(status.error)
        self.frame.set(text=status.error or status.text, failed=failed, share=status.share, busy=status.busy)

    def show_freshness(self, stale: bool, busy: bool) -> None:
        """Dim the content if it belongs to an earlier state; what was said about it is withdrawn."""
        self.frame.set(stale=stale, mark=("computing …" if busy else "of the settings before") if stale else "")
        if stale:
            self._withdraw("")

    def show(self, shown: Shown, window: Window | None, home: Window | None) -> None:
        """Show the answer and the pictures now, and everything else after a moment without changes."""
        with self.widget.at_once():
            self.canvas.show(shown.pictures, home, window, shown.front)
            if shown.detail is None:
                self.detail.show([])
            else:
                self.detail.show([shown.detail], shown.detail.window)
            self.copy.set(text=self.panel.code())
            self.overview.show({name: table for name, table in shown.tables.items() if table.above})
            self.answer.set(html=markup.answer(shown.answer, f"wb-answer-{self.widget.own_id}"))
            self.figures.set(html=markup.facts(shown.facts, f"wb-tip-{self.widget.own_id}"), folded=bool(shown.answer))
            self.note.set(html=markup.note(shown.note))
            self.remark.set(html=markup.note(shown.remark))
            self._withdraw(self.copy.content["text"])
            self._await(bool(self.charts))   # until the new ones are drawn
            self._reserve(shown)
        charts = [functools.partial(self._show_chart, name, shown) for name in shown.charts]
        steps = [functools.partial(self._arrange_charts, shown), *charts, functools.partial(self._show_drawers, shown)]
        if shown.charts:
            chart_library.begin_loading()
        if not self._rest.begin(*steps, ready=lambda: not chart_library.loading()):
            for step in steps:
                step()

    def _reserve(self, shown: Shown) -> None:
        """Keep room for the first charts, so that pictures need not shrink when these come."""
        names = {*shown.charts, *shown.charts.coming} if not self.charts else set()
        places = {"beside": names & set(shown.beside), "below": names - {*shown.among, *shown.beside}}
        self._arrange({"reserved": [place for place, coming in places.items() if coming]})

    def _await(self, awaited: bool) -> None:
        self.frame.set(awaited=awaited)

    def _withdraw(self, code: str) -> None:
        """Remove messages about saved files that differ from what is shown, as told by its code."""
        for saver in self.savers:
            saver.shows(code)
        if self._saved_of != code:
            self.report.set(message="", failed=False)

    def _arrange_charts(self, shown: Shown) -> None:
        """Make the charts that are new, and remove those that are gone; the others stay as they are."""
        coming = shown.charts.coming
        with self.widget.at_once():
            for name in [name for name in self.charts if name not in shown.charts and name not in coming]:
                self._remove_chart(name)
            for name, chart in self.charts.items():
                chart.wait(name in coming)
            for name, element in shown.charts.items():
                if name not in self.charts:
                    self.charts[name] = ChartPart(element)
                    self.widget.add(self.charts[name])
            self._place_charts(shown)

    def _place_charts(self, shown: Shown) -> None:
        """The charts in the order of the panel; one that is coming stays where it is among them."""
        ordered = [*shown.charts, *(name for name in self.charts if name not in shown.charts)]
        places = {place: [name for name in getattr(shown, place) if name in self.charts] for place in ("among", "beside")}
        places["below"] = [name for name in ordered if name not in (*shown.among, *shown.beside)]
        self._arrange({place: [self.charts[name].key for name in names] for place, names in places.items()})

    def _remove_chart(self, name: str) -> None:
        chart = self.charts.pop(name)
        self.widget.remove(chart)
        chart.close()

    def _show_chart(self, name: str, shown: Shown) -> None:
        self.charts[name].show(shown.charts[name])

    def _show_drawers(self, shown: Shown) -> None:
        """Show tables and code, last of all."""
        with self.widget.at_once():
            tables = {name: table for name, table in shown.tables.items() if table.rows and not table.above}
            self.drawers.show(tables, self.copy.content["text"])
            self._await(False)

    # From the user.

    def _report(self) -> tuple[str, bytes]:
        name, text = self.panel.report()
        return name, text.encode()

    def _save_report(self) -> None:
        try:
            self._say(f"saved as {self.panel.save_report()}")
        except WorkbenchError as error:
            self._refuse(str(error))

    def _refuse(self, reason: str) -> None:
        self._say(reason, failed=True)

    def _say(self, text: str, failed: bool = False) -> None:
        self.report.set(message=text, failed=failed)
        self._saved_of = self.copy.content["text"]

    def close(self) -> None:
        """Close the widget, and release all content."""
        self._rest.cancel()
        self.widget.close()
        for chart in self.charts.values():
            chart.close()
        self.charts.clear()
