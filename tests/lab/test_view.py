"""What the widgets of a panel show at a time belongs together."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest

from lab.toy import ToyPanel, ToyState
from workbench.lab import markup
from workbench.lab.controls import Row, Words
from workbench.lab.description import Fact, Shown, Table
from workbench.lab.drawers import Drawers

SOON = 20.0


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


@pytest.fixture
def panel(gate: threading.Event) -> Any:
    """A panel whose work for radii below 0.5 waits at a gate."""

    def work(state: ToyState, job: Any) -> None:
        while state.radius < 0.5 and not gate.wait(0.01):
            job(0.5, "working")

    made = ToyPanel(np.zeros((10, 2)), work)
    made.widget   # noqa: B018
    made.wait(SOON)
    yield made
    gate.set()
    made.close()


def test_what_is_being_computed_dims_what_it_replaces(panel: ToyPanel, gate: threading.Event) -> None:
    frame = panel._view.frame
    assert not frame.content["stale"]
    panel.change(radius=0.25)
    assert frame.content["stale"]
    assert frame.content["mark"] == "computing …"
    assert "<= 0.5" in panel._view.copy.content["text"]   # the code belongs to the picture beside it
    assert "0.5).sum()" in panel.report()[1]
    gate.set()
    panel.wait(SOON)
    assert not frame.content["stale"]
    assert "<= 0.25" in panel._view.copy.content["text"]


def test_a_change_dims_before_its_cell_goes_on_though_the_work_is_quick(panel: ToyPanel, gate: threading.Event) -> None:
    async def cell() -> None:   # which keeps the event loop; nothing that waits there is done before its end
        panel.change(radius=0.25)
        assert panel._view.frame.content["stale"]

    panel._engine._following.pause = 0.0
    assert panel._engine.quick
    asyncio.run(cell())


def test_what_was_cancelled_stays_dimmed_but_is_not_called_computing(panel: ToyPanel) -> None:
    panel.change(radius=0.25)
    panel.cancel()
    panel.wait(SOON)
    assert panel._view.frame.content["stale"]
    assert panel._view.frame.content["mark"] == "of the settings before"


def test_content_that_calls_itself_stale_is_dimmed(panel: ToyPanel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "draw", lambda state, results: Shown(stale=True))
    panel.change(colours="values")
    assert panel._view.frame.content["stale"]


def test_a_message_about_a_report_goes_when_something_else_is_shown(
    panel: ToyPanel, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    panel._view.report.heard({})
    assert panel._view.report.content["message"].startswith("saved as")
    panel.change(window=(0.0, 0.5, 0.0, 0.5))
    assert panel._view.report.content["message"].startswith("saved as")   # the code is the same
    panel.change(radius=0.7)
    assert panel._view.report.content["message"] == ""


def test_a_chosen_row_reaches_the_panel() -> None:
    chosen = []
    drawers = Drawers(lambda table, row: chosen.append((table, row)))
    drawers.show({"runs": Table(("codec",), (("sz3",), ("zfp",)), action="show")}, "")
    drawers.heard({"table": "runs", "row": 1})
    assert chosen == [("runs", 1)]
    assert drawers.content["tables"][0]["action"] == "show"


def test_rows_are_where_the_panel_puts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {place: Words(place) for place in ("folded", "strip", "side", "foot")}
    rows = ToyPanel.rows
    monkeypatch.setattr(ToyPanel, "rows", lambda self: [*rows(self), *(Row(each, place=at) for at, each in words.items())])
    with ToyPanel(np.zeros((10, 2))) as panel:
        assert panel.widget
        areas = panel._view.frame.content["areas"]
        assert {place: areas[place] for place in words} == {place: [[each.key]] for place, each in words.items()}
        assert areas["above"] == [[control.key for control in panel._view.controls]]


def test_an_answer_is_a_sentence_and_folds_the_figures(panel: ToyPanel, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not panel._view.figures.content["folded"]
    answer = ("It has", Fact("inside", "<9>", "good", "points within the radius", "points"), "inside.")
    monkeypatch.setattr(panel, "draw", lambda state, results: Shown(answer=answer, remark="a remark"))
    panel.change(colours="values")
    assert panel._view.figures.content["folded"]
    said = panel._view.answer.content["html"]
    assert "It has <span" in said
    assert "<b>✓ &lt;9&gt;</b> <small>points</small>" in said
    assert "points within the radius" in said
    assert "a remark" in panel._view.remark.content["html"]


def test_a_table_above_the_controls_has_a_foot_and_rows_that_cannot_be_chosen(panel: ToyPanel) -> None:
    columns, rows = ("variable", "bytes", "remarks"), (("T", "1,024", ""), ("station", "", "text"))
    above = Table(columns, rows, 0, action="show", foot=("all", "2,048", ""), fixed=frozenset({1}), above=True)
    panel._view.show(Shown(tables={"variables": above, "tried": Table(("radius",), (("1",),))}), None, None)
    (shown,) = panel._view.overview.content["tables"]
    assert (shown["foot"], shown["fixed"], shown["numeric"]) == (["all", "2,048", ""], [1], [False, True, False])
    assert [table["name"] for table in panel._view.drawers.content["tables"]] == ["tried"]
    assert "<tfoot><tr><td>all</td><td class=\"number\">2,048</td>" in markup.table(above)
