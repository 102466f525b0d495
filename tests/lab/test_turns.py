"""Cells, messages of widgets and results arrive in different threads; what they change must fit together."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lab.toy import ToyPanel
from workbench.lab import chart_library, view
from workbench.lab.turns import Patience, Rest, in_turn
from workbench.lab.view import View

SOON = 20.0


def in_subshell(request: Callable[[], object], seconds: float) -> threading.Thread:
    """A thread with an event loop of its own, as in which JupyterLab delivers messages; it handles this one."""

    async def shell() -> None:
        request()
        await asyncio.sleep(seconds)

    thread = threading.Thread(target=lambda: asyncio.run(shell()))
    thread.start()
    return thread


def test_a_panel_is_not_closed_while_its_charts_are_made_in_another_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(view, "RESTED", 0.01)
    chart_library.load()
    begun, closing = threading.Event(), threading.Event()
    panel = ToyPanel(np.zeros((10, 2)))
    panel.wait(SOON)

    def slowly(view: View, *where: Any) -> None:
        begun.set()
        assert closing.wait(SOON)
        threading.Event().wait(0.1)   # so that closing would be done by now
        put(view, *where)

    put = View._place_charts
    monkeypatch.setattr(View, "_place_charts", slowly)
    thread = in_subshell(lambda: panel.widget, 0.5)
    assert begun.wait(SOON)
    closing.set()
    panel.close()
    thread.join(SOON)
    assert panel._view is None
    assert not caplog.text


def test_newer_steps_replace_older_ones_of_another_thread() -> None:
    done: list[str] = []
    rest = Rest(0.2)
    begun = threading.Event()
    older = in_subshell(lambda: [rest.begin(lambda: done.append("old")), begun.set()], 0.6)
    assert begun.wait(SOON)
    newer = in_subshell(lambda: rest.begin(lambda: done.append("new"), lambda: done.append("then")), 0.6)
    for thread in (older, newer):
        thread.join(SOON)
    assert done == ["new", "then"]


def test_steps_go_on_after_one_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    done: list[object] = []
    rest = Rest(0.0, done.append)
    in_subshell(lambda: rest.begin(lambda: 1 / 0, lambda: done.append("next")), 0.2).join(SOON)
    assert [str(each) for each in done] == ["division by zero", "next"]
    assert "division by zero" in caplog.text


def test_steps_wait_for_what_they_need() -> None:
    there = [False]
    done: list[bool] = []
    rest = Rest(0.0)
    thread = in_subshell(lambda: rest.begin(lambda: done.append(there[0]), ready=lambda: there[0]), 0.5)
    threading.Event().wait(0.1)
    assert done == []
    there[0] = True
    thread.join(SOON)
    assert done == [True]


def test_patience_ends_once_however_often_it_is_asked_for() -> None:
    done: list[str] = []
    patience = Patience(0.1)

    def ask() -> None:
        patience.begin(lambda: done.append("first"))
        patience.begin(lambda: done.append("second"))

    in_subshell(ask, 0.3).join(SOON)
    assert done == ["first"]
    in_subshell(lambda: [patience.begin(lambda: done.append("third")), patience.cancel()], 0.2).join(SOON)
    assert done == ["first"]
    in_subshell(lambda: patience.begin(lambda: done.append("fourth")), 0.2).join(SOON)
    assert done == ["first", "fourth"]


def test_two_threads_take_turns() -> None:
    inside, most = [0], [0]

    @in_turn
    def together() -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        threading.Event().wait(0.01)
        inside[0] -= 1

    threads = [threading.Thread(target=lambda: [together() for _ in range(5)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert most == [1]
