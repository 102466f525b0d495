"""The base of every panel: a frozen state, pure functions from it to the content, and a common view.

A panel defines its computation (stages), its controls, its content (`draw`) and the equivalent Python (`code`). This module
does the rest: background work, progress, cancelling, error messages, caching, copying, reports, closing. See
`docs/new-panel.md` for a complete example.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import logging
import os
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from workbench.arguments import flag
from workbench.errors import WorkbenchError
from workbench.lab import report
from workbench.lab.cells import forget, replace_in_cell
from workbench.lab.controls import Row
from workbench.lab.description import STATIC, Reading, Shown, Window
from workbench.lab.engine import Engine, Fields, Results, Stage, Status
from workbench.lab.history import History
from workbench.lab.jobs import Job, deliver_to_this_loop
from workbench.lab.last_picture import LastPicture, static_bundle
from workbench.lab.live.examples import ABOUT, TITLE
from workbench.lab.live.page import page as live_page
from workbench.lab.page import Page
from workbench.lab.part import Part
from workbench.lab.turns import Patience, in_turn
from workbench.lab.view import View
from workbench.memory import release_memory
from workbench.text_files import write_text

PATIENCE = 600.0
PROMPT = 0.12   # seconds: work that is usually quick is announced when it takes longer than this

State = TypeVar("State")
log = logging.getLogger(__name__)


class Panel(ABC, Generic[State]):
    """The common part of all panels. The last line of a cell displays a panel."""

    title: ClassVar[str]
    looking: ClassVar[frozenset[str]] = frozenset({"window", "pixels"})   # fields of the visible part of the data
    on_screen: ClassVar[frozenset[str]] = frozenset({"pixels"})   # what the screen has, which no step back changes
    in_passing: ClassVar[frozenset[str]] = frozenset({"window"})   # fields whose changes in a row are one step back

    def __init__(self, subject: str, state: State, stages: Sequence[Stage]) -> None:
        self.subject = subject
        self.check(state)
        self._engine: Engine[State] = Engine(state, stages, deliver_to_this_loop(), self.check, self.implied, self.looking)
        self._engine.changed = self._show
        self._view: View | None = None
        self._shown: Shown | None = None
        self._shown_code = ""
        self._last_picture = LastPicture()
        self._patience = Patience(PROMPT)
        self._drawn_from: tuple[Any, ...] = ()
        self._displayed: tuple[State, Results] | None = None
        self._homes: dict[Hashable, Window] = {}        # of the pictures of each part
        self._histories: defaultdict[Hashable, History[Any]] = defaultdict(
            lambda: History(self.on_screen, self.in_passing)
        )
        self._travelling = False   # to a state of the history
        replace_in_cell(self)
        self._engine.refresh()

    # Defined by each panel.

    @abstractmethod
    def rows(self) -> Sequence[Row | Sequence[Part]]:
        """The controls, in rows; a plain sequence stands above everything."""

    @abstractmethod
    def draw(self, state: State, results: Results) -> Shown:
        """The content, from the available results: a pure and fast function."""

    @abstractmethod
    def code_for(self, state: State) -> str:
        """The Python that reproduces what is shown."""

    def check(self, state: State) -> None:
        """Raise for a state that these data do not have; the state itself knows no data."""

    def implied(self, fields: Fields) -> Fields:
        """Changes of the state with those that follow from them; raises for values that these cannot follow from."""
        return fields

    def part(self, state: State) -> Hashable:
        """The part of the data that is looked at, where there are several: each has its controls and its own history."""
        return ""

    def parts(self, state: State) -> Mapping[Hashable, Any]:
        """The choices for each part, with fields of the state: they are undone by themselves."""
        return {"": state}

    def fit_controls(self) -> None:
        """Give controls the ends that suit the present state."""

    def remark(self, state: State) -> str:
        """What is unusual about a state, in a sentence; empty if nothing is."""
        return ""

    def ready(self, results: Results) -> bool:
        """Whether the results suffice to draw again; until then the previous content stays."""
        return bool(results)

    def movement(self) -> Hashable:
        """What is being carried out: changes of one movement are one step back. By default, that of a control."""
        controls = [] if self._view is None else self._view.controls
        return next(((control.field, control.gesture) for control in controls if control.asking), None)

    def show_parts(self) -> None:
        """Bring parts of one's own up to date with the state and the results: called after every change of these."""

    def picked(self, label: str, chosen: int) -> None:
        """A mark with an id was clicked."""

    def picture_chosen(self, title: str) -> None:
        """Another of the pictures in one place was chosen to be in front."""

    def reading(self, picture: int, x: float, y: float) -> Reading | None:
        """The exact content of a place in a picture, shown while the pointer rests there; None where there is nothing."""
        return None

    def reading_of_detail(self, x: float, y: float) -> Reading | None:
        """The exact content of a place in the detail; None where there is nothing."""
        return None

    @property
    def displayed(self) -> tuple[State, Results]:
        """The state and the results of the pictures on the page, which may be older than the present ones."""
        return self._displayed or (self.state, {**self._engine.results(), **self._engine.partial})

    def row_chosen(self, table: str, row: int) -> None:
        """A row of a table with an `action` was clicked; rows count from 0 in the table's own order."""

    # For users.

    @property
    def state(self) -> State:
        """The present choices."""
        return self._engine.state

    @property
    def result(self) -> dict[str, Any]:
        """The results for the present state, by name; waits for them, and raises if they failed."""
        return self._engine.settled(PATIENCE)

    @property
    def status(self) -> Status:
        """What the panel is doing."""
        return self._engine.status

    @property
    @in_turn
    def shown(self) -> Shown:
        """What the panel shows now."""
        return self.draw(self.state, {**self._engine.results(), **self._engine.partial})

    def code(self) -> str:
        """The Python that reproduces what is shown."""
        return self.code_for(self.state)

    def change(self, **fields: Any) -> bool:
        """Change fields of the state, or raise for what is refused; then nothing changes."""
        self._engine.after(fields)
        return self.request(**fields)

    @in_turn
    def request(self, **fields: Any) -> bool:
        """Change fields of the state as the controls do: what is refused is said in the panel, and False returned."""
        before = self.state
        with contextlib.nullcontext() if self._view is None else self._view.widget.at_once():
            changed = self._engine.change(**fields)
            if changed and not self._travelling:
                self._note(before)
            if self._view is not None:
                if self.part(before) != self.part(self.state):
                    self._view.show_rows(self.rows())
                if changed and not fields.keys() <= self.looking:
                    self._view.forgive()
                    self.fit_controls()
                self._view.show_state(self.state)
                self._view.show_steps(*self._history.ends)
        return changed

    @property
    def _history(self) -> History[Any]:
        """That of the part that is looked at."""
        return self._histories[self.part(self.state)]

    @property
    def _own(self) -> Any:
        """The choices for that part."""
        return self.parts(self.state)[self.part(self.state)]

    def _note(self, before: State) -> None:
        """Remember what has changed in each part."""
        earlier, present = self.parts(before), self.parts(self.state)
        for part in earlier.keys() & present.keys():
            self._histories[part].note(earlier[part], present[part], self.movement())

    @in_turn
    def undo(self) -> bool:
        """Return to the state before the last change, or before the last movement of a control; False if there is none."""
        return self.travel_to(_fields_of(self._history.back(self._own)))

    @in_turn
    def redo(self) -> bool:
        """Take back `undo`; False if there is nothing to take back."""
        return self.travel_to(_fields_of(self._history.forth(self._own)))

    def travel_to(self, fields: Fields | None) -> bool:
        """Take choices again that were left before, which is no step of its own; False if there are none."""
        if fields is None:
            return False
        self._travelling = True
        try:
            return self.request(**fields)
        finally:
            self._travelling = False

    def do(self, work: Callable[[Job], Any], text: str, then: Callable[[Any, str], object]) -> None:
        """Do some work that is no stage in the background; `then` is called with its value, or with the reason for none."""
        self._engine.do(work, text, then)

    def ask(
        self, stage: str, then: Callable[[], object] = lambda: None, failed: Callable[[str], object] = lambda reason: None
    ) -> None:
        """Start a stage on demand, as the panel's button does; `then` is called when it is done, or `failed`."""
        self._engine.ask(stage, then, failed)

    def when_settled(self, then: Callable[[str], object]) -> None:
        """Call `then` when the results for the present state are there, with the reason if there will be none."""
        self._engine.when_settled(then)

    def wait(self, timeout: float = PATIENCE) -> None:
        """Wait until all work is done."""
        if not self._engine.wait(timeout):
            raise WorkbenchError(f"the panel must be done within {timeout:g} s; it is still at: {self.status.text}")

    def cancel(self) -> None:
        """Stop the running work."""
        self._engine.cancel()

    def save_report(self, path: str | Path | None = None, live: bool = False) -> Path:
        """Write the content as one self-contained HTML file; returns its path.

        With `live`, it is a page that computes in the browser: its reader drags the bound, with nothing installed. The
        panels of fields, of particles and of clusters have one.
        """
        named, text = self.report(live)
        return write_text(named if path is None else path, text, "a report", ".html", ".htm")

    def live_example(self) -> dict[str, Any]:
        """The data as a live page takes them (`workbench/lab/live/examples.py`)."""
        raise WorkbenchError(f"the {self.title.lower()} panel has no live page: save its report without live=True")

    @in_turn   # drawing charts as texts changes what all plots share
    def report(self, live: bool = False) -> tuple[str, str]:
        """A name and the text of the report of what the view shows, or, without a view, of the present results."""
        named = f"lossbench-{self.title.lower()}-{datetime.now():%Y%m%d-%H%M%S}.html"
        if flag("live", live):
            return named, live_page([self.live_example()], TITLE, ABOUT)
        shown, code = (self.shown, self.code()) if self._shown is None else (self._shown, self._shown_code)
        return named, report.page(self.title, self.subject, shown, code)

    @in_turn
    def close(self) -> None:
        """Stop, and release everything."""
        self._engine.close()
        self._last_picture.close()
        self._patience.cancel()
        if self._view is not None:
            self._view.close()
            self._view = None
        self._shown, self._drawn_from, self._displayed = None, (), None
        forget(self)
        gc.collect()   # widgets, and charts even more, are full of cycles
        release_memory()

    # Display.

    @property
    @in_turn
    def widget(self) -> Page:
        """The panel as a widget, to combine with others."""
        self._engine.require_open()
        if self._view is None:
            self._view = View(self, self.title, self.rows(), self.state, self._last_picture.live)
            self._show()
            self._view.show_steps(*self._history.ends)
        return self._view.widget


    def _said(self) -> Status:
        """The status, with what is unusual when nothing else is to be told."""
        if self.status.busy or self.status.error:
            return self.status
        return dataclasses.replace(self.status, text=self.remark(self.state) or self.status.text)

    @in_turn
    def _show(self) -> None:
        if self._view is None:
            return
        try:
            with self._view.widget.at_once():   # what is shown together belongs together
                self._show_in(self._view)
                self.show_parts()
        except Exception as error:   # no cell would show it, since none is running
            log.exception("drawing a panel failed")
            self._view.show_status(Status(error=f"{type(error).__name__}: {error}"))

    def _show_status(self) -> None:
        if self._view is not None:
            self._view.show_status(self._said())

    def _show_in(self, view: View) -> None:
        view.show_state(self.state)
        results = {**self._engine.results(), **self._engine.partial}
        waits = self._shown is not None and not self.ready(results)
        stale = waits or (self._shown is not None and self._shown.stale)
        view.show_freshness(stale, self.status.busy)   # at once, since a cell may keep the event loop from now on
        if not (self.status.busy and self._engine.quick and self._patience.begin(self._show_status)):
            self._patience.cancel()
            self._show_status()
        drawn_from = self.state, *((name, id(result)) for name, result in results.items())
        if waits or drawn_from == self._drawn_from:
            return
        self._shown, self._drawn_from = self.draw(self.state, results), drawn_from
        self._displayed = self.state, results
        self._shown_code = self.code()
        window = getattr(self.state, "window", None)
        part = self.part(self.state)
        if window is None and self._shown.pictures:
            self._homes[part] = self._shown.pictures[0].window
        view.show(self._shown, window, self._homes.get(part))
        view.show_freshness(self._shown.stale, self.status.busy)
        self._last_picture.follow(self._static)

    @in_turn
    def _static(self) -> dict[str, str]:
        shown = Shown() if self._shown is None else self._shown
        return static_bundle(self.title, self.subject, shown, self._last_picture.key)

    @in_turn
    def _body(self) -> str:
        """The content as HTML, for documentation."""
        return report.body(self.title, self.subject, self.shown, self.code())

    def _ipython_display_(self) -> None:
        """Display the panel and, as a second output, its picture for the time when there is no kernel."""
        self._last_picture.display_beside(self.widget.bundle() | {"text/plain": repr(self)}, self._static)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if os.environ.get(STATIC):
            self.wait()
            body = self._body()
            return {"text/html": report.library() + body, "text/plain": repr(self)}
        return {**self._static(), **self.widget.bundle(), "text/plain": repr(self)}

    def __enter__(self) -> Panel[State]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{self.title}({self.subject})"


def _fields_of(state: Any) -> Fields | None:
    return None if state is None else {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}
