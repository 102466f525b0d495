from __future__ import annotations

import asyncio
import gc
import html.parser
import threading
import time
import weakref
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.toy import ToyPanel, ToyState
from workbench.errors import WorkbenchError
from workbench.lab.description import checked_window
from workbench.lab.engine import Status
from workbench.lab.turns import TURN
from workbench.lab.view import View

SOON = 20.0


@pytest.fixture
def panel() -> Any:
    made = ToyPanel(np.random.default_rng(0).uniform(-1, 1, (1000, 2)))
    yield made
    made.close()


def inside(panel: ToyPanel) -> int:
    return int((np.hypot(*panel.points.T) <= panel.state.radius).sum())


def test_a_panel_works_without_being_shown(panel: ToyPanel) -> None:
    assert panel.result["counted"].inside == inside(panel)
    assert panel.change(radius=0.25)
    assert panel.result["counted"].inside == inside(panel)
    assert panel.shown.facts[0].value == str(inside(panel))


def test_the_code_gives_what_is_shown(panel: ToyPanel) -> None:
    panel.change(radius=0.3)
    names = {"points": panel.points, "np": np}
    exec(panel.code(), names)
    assert names["inside"] == panel.result["counted"].inside


def test_dragging_the_slider_changes_state_picture_and_figures(panel: ToyPanel) -> None:
    view = panel.widget and panel._view
    assert view is not None
    panel.wait(SOON)
    before = view.figures.content["html"], view.canvas.content["marks_0"], view.drawers.content["tables"][0]["rows"]
    view.controls[0].moved(30)
    panel.wait(SOON)
    assert panel.state == ToyState(radius=0.316)
    assert f"<b>✓ {inside(panel)}</b>" in view.figures.content["html"]
    after = view.figures.content["html"], view.canvas.content["marks_0"], view.drawers.content["tables"][0]["rows"]
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert "radius = 0.316" in view.copy.content["text"].replace("<=", "radius =")


def test_a_change_from_code_moves_the_control(panel: ToyPanel) -> None:
    view = panel.widget and panel._view
    panel.change(radius=0.02)
    assert view.controls[0].content["shown"]["text"] == "0.02"


def test_what_is_refused_is_told_in_the_panel_and_stays_in_the_field_until_another_change(panel: ToyPanel) -> None:
    view = panel.widget and panel._view
    view.controls[0].typed("-3")
    assert "radius must be positive; got -3.0" in view.frame.content["text"]
    assert panel.state.radius == 0.5
    assert view.controls[0].content["shown"]["refused"] == "-3"
    panel.change(window=(0.0, 0.5, 0.0, 0.5))   # looking elsewhere corrects nothing
    panel.wait(SOON)
    assert "radius must be positive" in view.frame.content["text"]
    assert view.controls[0].content["shown"]["refused"] == "-3"
    panel.change(colours="values")
    panel.wait(SOON)
    assert "radius" not in view.frame.content["text"]
    assert view.controls[0].content["shown"]["refused"] is None


def test_code_is_told_by_an_error_and_changes_nothing(panel: ToyPanel) -> None:
    view = panel.widget and panel._view
    panel.wait(SOON)
    for nonsense, sentence in (({"radius": -3.0}, "radius must be positive; got -3.0"), ({"size": 1}, "no choice 'size'")):
        with pytest.raises(WorkbenchError, match=sentence):
            panel.change(**nonsense)
    assert (panel.state, panel.status, view.frame.content["text"]) == (ToyState(), Status(), "")


def test_a_value_is_computed_once_and_shown_as_it_is(panel: ToyPanel) -> None:
    view = panel.widget and panel._view
    panel.wait(SOON)
    for radius in (0.5, 0.3, 0.07, 0.0123, 0.003):
        panel.change(radius=radius)
        panel.wait(SOON)
        assert view.controls[0].content["shown"]["text"] == f"{radius}"
    assert panel.calls.counted == [0.5, 0.3, 0.07, 0.0123, 0.003]
    assert panel._engine.runs["counted"] == 5


def test_what_is_unusual_is_said_when_there_is_nothing_else_to_say(
    panel: ToyPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(panel, "remark", lambda state: "a large circle" if state.radius > 10 else "")
    view = panel.widget and panel._view
    panel.change(radius=11.0)
    panel.wait(SOON)
    assert "a large circle" in view.frame.content["text"]
    panel.change(radius=0.5)
    panel.wait(SOON)
    assert "a large circle" not in view.frame.content["text"]


def ends(view: View | None) -> tuple[bool, bool]:
    """Whether there is a step back, and one forth."""
    assert view is not None
    return view.frame.content["back"], view.frame.content["forth"]


def test_changes_are_undone_and_redone(panel: ToyPanel) -> None:
    view = panel.widget and panel._view
    assert ends(view) == (False, False)
    panel.change(colours="values")
    for gesture in (1, 2):
        for position in (10, 20, 30):
            view.controls[0].heard({"number": position, "gesture": gesture, "position": gesture + position})
    radius = panel.state.radius
    assert ends(view) == (True, False)
    assert panel.undo()
    assert 0.3 < panel.state.radius < radius   # a movement is one step
    assert panel.undo()
    assert panel.state == ToyState(colours="values")
    view.frame.heard({"does": "undo"})
    assert panel.state == ToyState()
    assert ends(view) == (False, True)
    assert not panel.undo()
    assert panel.redo()
    assert panel.state == ToyState(colours="values")
    panel.wait(SOON)
    assert view.controls[0].content["shown"]["text"] == "0.5"
    assert panel.result["counted"].inside == inside(panel)


def test_clicks_on_marks_arrive(panel: ToyPanel) -> None:
    view = panel.widget and panel._view
    view.canvas.heard({"does": "pick", "label": "circle", "id": 7})
    assert panel.clicks == [("circle", 7)]


def test_zooming_is_part_of_the_state(panel: ToyPanel) -> None:
    panel.wait(SOON)
    view = panel.widget and panel._view
    view.canvas.heard({"does": "zoom", "window": [-0.5, 0.5, -0.5, 0.5]})
    assert panel.state.window == (-0.5, 0.5, -0.5, 0.5)
    view.canvas.heard({"does": "zoom", "window": []})
    assert panel.state.window is None
    panel.change(window=(0.0, 0.1, 0.0, 0.1))
    assert view.canvas.content["window"] == [0.0, 0.1, 0.0, 0.1]
    assert view.canvas.content["home"] == [-1.0, 1.0, -1.0, 1.0]


def test_the_same_state_is_not_drawn_twice(panel: ToyPanel, monkeypatch: pytest.MonkeyPatch) -> None:
    panel.widget   # noqa: B018
    panel.wait(SOON)
    monkeypatch.setattr(panel, "draw", lambda state, results: pytest.fail("drawn again"))
    panel._show()


def test_a_drawing_that_fails_says_so_in_the_panel(
    panel: ToyPanel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    view = panel.widget and panel._view
    panel.wait(SOON)
    monkeypatch.setattr(panel, "draw", lambda state, results: 1 / 0)
    panel.change(colours="values")
    assert "ZeroDivisionError: division by zero" in view.frame.content["text"]
    assert "division by zero" in caplog.text


def test_other_cells_run_while_a_panel_works() -> None:
    async def cells() -> None:
        hold = threading.Event()

        def work(state: ToyState, job: Any) -> None:
            for _ in range(1000):   # and is over before another cell runs if that has to wait for it
                if hold.wait(0.01):
                    return
                job(0.5, "working")

        panel = ToyPanel(np.zeros((10, 2)), work)
        view = panel.widget and panel._view
        while "working" not in view.frame.content["text"]:
            await asyncio.sleep(0.01)   # another cell
        assert view.frame.content["busy"]
        hold.set()
        while panel.status.busy:
            await asyncio.sleep(0.01)
        assert "<b>✓ 10</b>" in view.figures.content["html"]
        panel.close()

    asyncio.run(asyncio.wait_for(cells(), SOON))


def test_the_button_cancels() -> None:
    def work(state: ToyState, job: Any) -> None:
        while state.radius < 0.5:
            job(0.5, "working")
            time.sleep(0.001)

    panel = ToyPanel(np.zeros((10, 2)), work)
    view = panel.widget and panel._view
    panel.wait(SOON)
    panel.change(radius=0.1)
    view.frame.heard({"does": "cancel"})
    panel.wait(SOON)
    assert panel.status == Status(error="cancelled: change something to go on")
    assert panel.change(radius=0.7)
    assert panel.result["counted"].inside == 10
    panel.close()


class Page(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]


def test_a_report_is_one_file_that_needs_nothing_else(panel: ToyPanel, tmp_path: Path) -> None:
    panel.wait(SOON)
    written = panel.save_report(tmp_path / "report.html")
    page = Page()
    page.feed(written.read_text())
    assert page.sources
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    assert str(inside(panel)) in written.read_text()
    assert "&lt;= 0.5).sum()" in written.read_text()


@pytest.mark.parametrize(
    ("draws", "place"),
    [
        (lambda panel: panel.shown, "lab.toy.ToyPanel.draw"),
        (lambda panel: panel.report(), "workbench.lab.report.page"),
        (lambda panel: panel._body(), "workbench.lab.report.body"),
        (lambda panel: panel._static(), "workbench.lab.panel.static_bundle"),
    ],
)
def test_charts_are_drawn_by_one_thread_at_a_time(
    panel: ToyPanel, draws: Callable[[ToyPanel], object], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []
    monkeypatch.setattr(place, lambda *given: held.append(TURN._is_owned()))   # type: ignore[attr-defined]
    draws(panel)
    assert held == [True]


def test_who_assigns_to_a_choice_is_told_how_to_change_it(panel: ToyPanel) -> None:
    with pytest.raises(WorkbenchError, match=r"changed by panel\.change\(radius=0\.1\)"):
        panel.state.radius = 0.1   # type: ignore[misc]


def test_a_report_without_a_name_says_when_it_was_made(
    panel: ToyPanel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert panel.save_report().name.startswith("lossbench-toy-20")


@pytest.mark.parametrize(("path", "message"), [
    ("report.pdf", "written as .html"), ("no/such/report.html", "that exists"), ("a\0.html", "that exists"),
    (f"{'x' * 400}.html", "that exists"), ("~nosuchuser/report.html", "path of a file"),
])
def test_a_report_goes_where_it_can(panel: ToyPanel, tmp_path: Path, path: str, message: str) -> None:
    with pytest.raises(WorkbenchError, match=message):
        panel.save_report(path if path.startswith("~") else tmp_path / path)


def test_documentation_gets_a_picture_instead_of_widgets(panel: ToyPanel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOSSBENCH_STATIC", "1")
    shown = panel._repr_mimebundle_()
    assert set(shown) == {"text/html", "text/plain"}
    assert "data:image/png" in shown["text/html"]


def test_closing_lets_go_of_every_widget() -> None:
    from ipywidgets.widgets import widget as registry

    def alive() -> set[str]:
        return set(registry._instances)

    first = ToyPanel(np.zeros((10, 2)))
    first.widget   # noqa: B018
    first.close()
    before = alive()
    panel = ToyPanel(np.zeros((10, 2)))
    panel.widget   # noqa: B018
    panel.wait(SOON)
    assert alive() > before
    panel.close()
    assert alive() == before


def test_closed_panels_are_not_kept_alive() -> None:
    panel = ToyPanel(np.zeros((10, 2)))
    panel.widget   # noqa: B018
    panel.wait(SOON)
    held = [weakref.ref(panel), weakref.ref(panel._view), weakref.ref(panel._view.canvas), weakref.ref(panel._view.copy)]
    panel.close()
    del panel
    gc.collect()
    assert [reference() for reference in held] == [None] * len(held)


def test_a_closed_panel_says_so_and_does_not_come_back_to_life() -> None:
    panel = ToyPanel(np.zeros((10, 2)))
    panel.close()
    for use in (lambda: panel.widget, lambda: panel.change(radius=0.2), lambda: panel.ask("slow"), lambda: panel.result):
        with pytest.raises(WorkbenchError, match="it was closed: make another one"):
            use()
    assert panel.request(radius=0.2) is False
    assert not panel.status.busy
    assert panel._view is None


def test_values_that_cannot_be_compared_are_refused_like_others() -> None:
    with ToyPanel(np.zeros((10, 2))) as panel:
        for nonsense in ("wide", Decimal("sNaN"), np.array("x" * 100_000)):
            with pytest.raises(WorkbenchError, match="expected values of other types; got radius=") as refused:
                panel.change(radius=nonsense)
            assert len(str(refused.value)) < 1000
    for window in ((10**400, 0, 1, 2), "x" * 100_000):
        with pytest.raises(WorkbenchError, match="window must be left, right, bottom and top") as refused:
            checked_window(window)
        assert len(str(refused.value)) < 1000


def test_a_panel_is_closed_at_the_end_of_its_block() -> None:
    with ToyPanel(np.zeros((10, 2))) as panel:
        panel.widget   # noqa: B018
    assert panel._view is None
