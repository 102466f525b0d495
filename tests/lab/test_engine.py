from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from workbench.errors import WorkbenchError
from workbench.lab import engine as engine_module
from workbench.lab.engine import Engine, Stage, Status
from workbench.lab.jobs import PAUSE, Job

SOON = 10.0


@dataclass(frozen=True)
class State:
    bound: float = 1.0
    axis: int = 0

    def __post_init__(self) -> None:
        if self.bound <= 0:
            raise WorkbenchError(f"bound must be positive; got {self.bound}")


class Bench:
    """Three stages, two of them automatic, that note what they were called for."""

    def __init__(self) -> None:
        self.called: list[tuple[str, float]] = []
        self.news: list[Status] = []
        self.hold = threading.Event()
        self.hold.set()
        stages = [
            Stage("coarse", lambda state: state.bound, self._coarse),
            Stage("fine", lambda state: state.bound, self._fine),
            Stage("asked", lambda state: (state.bound, state.axis), self._asked, on_demand=True),
        ]
        self.engine: Engine[State] = Engine(State(), stages, lambda callback: callback())
        self.engine.changed = lambda: self.news.append(self.engine.status)

    def _coarse(self, state: State, results: Any, job: Job) -> str:
        self.called.append(("coarse", state.bound))
        job(0.5, "coarse")
        if state.bound == 13:
            raise WorkbenchError("13 is not possible")
        return f"coarse {state.bound}"

    def _fine(self, state: State, results: Any, job: Job) -> str:
        while not self.hold.wait(0.01):
            job(0.7, "held")
        self.called.append(("fine", state.bound))
        return results["coarse"].replace("coarse", "fine")

    def _asked(self, state: State, results: Any, job: Job) -> str:
        self.called.append(("asked", state.bound))
        job.show({"asked so far": 1})
        while not self.hold.wait(0.01):
            job(0.9, "held")
        return results["fine"].replace("fine", "asked")


def eventually(true: Callable[[], bool]) -> None:
    """Wait until this is true; fails where it never is."""
    end = time.monotonic() + SOON
    while not true():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.fixture
def bench() -> Any:
    bench = Bench()
    yield bench
    bench.hold.set()
    bench.engine.close()


def test_stages_run_in_order_with_the_results_before_them(bench: Bench) -> None:
    assert bench.engine.settled(SOON) == {"coarse": "coarse 1.0", "fine": "fine 1.0"}


def test_what_was_computed_is_not_computed_again(bench: Bench) -> None:
    for bound in (1.0, 2.0, 1.0, 2.0):
        bench.engine.change(bound=bound)
        bench.engine.settled(SOON)
    assert bench.called == [("coarse", 1.0), ("fine", 1.0), ("coarse", 2.0), ("fine", 2.0)]


def test_a_field_that_results_do_not_depend_on_costs_nothing(bench: Bench) -> None:
    bench.engine.settled(SOON)
    before = len(bench.called)
    bench.engine.change(axis=2)
    assert bench.engine.results() == {"coarse": "coarse 1.0", "fine": "fine 1.0"}
    assert len(bench.called) == before


def test_a_stage_is_shown_before_those_after_it_are_done(bench: Bench) -> None:
    bench.hold.clear()
    seen = threading.Event()
    bench.engine.changed = lambda: seen.set() if "coarse" in bench.engine.results() else None
    bench.engine.refresh()
    assert seen.wait(SOON)
    assert "fine" not in bench.engine.results()


def test_what_comes_later_is_dropped_by_a_newer_change_and_quick_work_begins_at_once() -> None:
    called: list[tuple[str, float]] = []
    shown = threading.Event()

    def noted(name: str) -> Any:
        return lambda state, results, job: called.append((name, state.bound)) or f"{name} {state.bound}"

    stages = [
        Stage("picture", lambda state: state.bound, noted("picture")),
        Stage("theory", lambda state: state.bound, noted("theory"), later=True),
    ]
    engine: Engine[State] = Engine(State(), stages, lambda callback: threading.Timer(0.002, callback).start())
    engine.settled(SOON)
    assert engine._following.pause == 0.0
    engine.changed = lambda: shown.set() if "picture" in engine.results() else None
    for bound in (2.0, 3.0, 4.0):
        shown.clear()
        engine.change(bound=bound)
        assert shown.wait(SOON)
    assert engine.settled(SOON) == {"picture": "picture 4.0", "theory": "theory 4.0"}
    assert [bound for name, bound in called if name == "picture"] == [1.0, 2.0, 3.0, 4.0]
    theory = [bound for name, bound in called if name == "theory"]
    assert theory[0] == 1.0
    assert theory[-1] == 4.0
    engine.close()


def test_slow_work_is_begun_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "QUICK", -1.0)
    bench = Bench()
    bench.engine.settled(SOON)
    assert bench.engine._following.pause == PAUSE
    bench.engine.close()


def test_what_the_state_refuses_leaves_it_and_becomes_the_status(bench: Bench) -> None:
    assert bench.engine.change(bound=-1.0) is False
    assert bench.engine.state == State()
    assert bench.engine.status.error == "bound must be positive; got -1.0"


def test_an_error_is_told_once_and_raised_when_the_result_is_wanted(bench: Bench) -> None:
    bench.engine.change(bound=13.0)
    assert bench.engine.wait(SOON)
    assert bench.engine.status.error == "13 is not possible"
    with pytest.raises(WorkbenchError, match="13 is not possible"):
        bench.engine.settled(SOON)
    bench.engine.change(bound=1.0)
    assert bench.engine.settled(SOON)["fine"] == "fine 1.0"
    assert bench.engine.status == Status()


def test_on_demand_runs_when_asked_for_with_all_it_needs(bench: Bench) -> None:
    bench.engine.ask("asked")
    assert bench.engine.wait(SOON)
    assert bench.engine.results()["asked"] == "asked 1.0"
    bench.engine.change(axis=1)
    assert "asked" not in bench.engine.results()


def test_what_there_is_so_far_is_shown_and_goes_when_it_ends(bench: Bench) -> None:
    bench.engine.settled(SOON)
    bench.hold.clear()
    seen: list[dict[str, Any]] = []
    bench.engine.changed = lambda: seen.append(dict(bench.engine.partial))
    bench.engine.ask("asked")
    eventually(lambda: {"asked so far": 1} in seen)
    bench.hold.set()
    assert bench.engine.wait(SOON)
    assert bench.engine.partial == {}


def test_cancelling_stops_and_says_so(bench: Bench) -> None:
    bench.engine.settled(SOON)
    bench.hold.clear()
    bench.engine.ask("asked")
    eventually(lambda: bool(bench.engine.partial))
    bench.engine.cancel()
    assert bench.engine.wait(SOON)
    assert "asked" not in bench.engine.results()
    assert bench.engine.status == Status(text="cancelled")


def test_changing_while_something_is_under_way_ends_with_the_newest(bench: Bench) -> None:
    for bound in range(1, 30):
        bench.engine.change(bound=float(bound))
    assert bench.engine.settled(SOON)["fine"] == "fine 29.0"
    assert len(bench.called) < 58


def test_a_change_that_no_result_depends_on_lets_the_work_go_on(bench: Bench) -> None:
    bench.hold.clear()
    bench.engine.change(bound=2.0)
    eventually(lambda: ("coarse", 2.0) in bench.called)
    bench.engine.change(axis=2)
    bench.hold.set()
    assert bench.engine.settled(SOON)["fine"] == "fine 2.0"
    assert bench.engine.runs == {"coarse": 1, "fine": 1}


def test_a_stage_on_demand_says_what_it_does() -> None:
    go_on = threading.Event()
    stages = [Stage("points", lambda state: None, lambda *given: go_on.wait(SOON), on_demand=True, text="comparing codecs")]
    engine = Engine(State(), stages, lambda callback: callback())
    engine.ask("points")
    assert engine.status == Status(True, 0.0, "comparing codecs")
    go_on.set()
    assert engine.wait(SOON)


def test_an_error_stays_while_one_looks_elsewhere() -> None:
    @dataclass(frozen=True)
    class Seen(State):
        window: Any = None

    engine = Engine(Seen(), [], lambda callback: callback(), looking={"window"})
    assert not engine.change(bound=-1.0)
    engine.change(window=(0, 1, 0, 1))
    assert engine.status.error == "bound must be positive; got -1.0"
    engine.change(axis=1)
    assert engine.status.error == ""


def test_a_refused_place_is_forgiven_when_another_is_chosen() -> None:
    engine = Engine(State(), [], lambda callback: callback(), looking={"axis", "bound"})
    assert not engine.change(bound=-1.0)
    engine.change(axis=1)
    assert engine.status.error == "bound must be positive; got -1.0"
    engine.change(bound=2.0)
    assert engine.status.error == ""


def test_what_the_data_do_not_have_is_refused_like_what_cannot_be() -> None:
    def check(state: State) -> None:
        if state.axis > 2:
            raise WorkbenchError(f"there are three axes; got {state.axis}")

    engine = Engine(State(), [], lambda callback: callback(), check)
    assert not engine.change(axis=3)
    assert (engine.state, engine.status.error) == (State(), "there are three axes; got 3")


def test_a_closed_engine_is_silent_and_keeps_nothing_of_what_was_under_way() -> None:
    started, go_on = threading.Event(), threading.Event()

    def work(state: State, results: Any, job: Job) -> str:
        started.set()
        assert go_on.wait(SOON)   # without a report, so that it cannot be cancelled
        return "late"

    news: list[Status] = []
    engine = Engine(State(), [Stage("only", lambda state: state.bound, work)], lambda callback: callback())
    engine.changed = lambda: news.append(engine.status)
    engine.refresh()
    assert started.wait(SOON)
    count = len(news)
    engine.close()
    go_on.set()
    assert engine.wait(SOON)
    assert len(news) == count
    assert engine.results() == {}
    with pytest.raises(WorkbenchError, match="it was closed"):
        engine.settled()


@dataclass(frozen=True)
class Large:
    nbytes: int = 2**40


def test_results_larger_than_the_memory_reach_later_stages_and_stay_while_they_are_shown() -> None:
    def later(state: State, results: Any, job: Job) -> Large:
        assert "first" in results
        return Large()

    stages = [
        Stage("first", lambda state: state.bound, lambda state, results, job: Large()),
        Stage("second", lambda state: (state.bound, state.axis), later),
        Stage("asked", lambda state: state.bound, later, on_demand=True),
    ]
    engine = Engine(State(), stages, lambda callback: callback())
    engine.settled(SOON)
    engine.ask("asked")
    assert engine.wait(SOON)
    assert engine.settled(SOON).keys() == {"first", "second", "asked"}
    assert engine.runs == {"first": 1, "second": 1, "asked": 1}
    engine.change(bound=2.0)
    engine.settled(SOON)
    assert engine.results(State()).keys() == set()   # dropped: no longer shown
    engine.close()


def test_waiting_ends_at_its_deadline() -> None:
    slow = Stage("slow", lambda state: 0, lambda *ignored: time.sleep(1) or "done")
    engine = Engine(State(), [slow], lambda callback: callback())
    start = time.monotonic()
    with pytest.raises(WorkbenchError, match=r"within 0\.1 s"):
        engine.settled(0.1)
    assert time.monotonic() - start < SOON / 2
    engine.close()


def test_what_failed_is_tried_again_after_a_change(bench: Bench) -> None:
    bench.engine.change(bound=13.0)
    with pytest.raises(WorkbenchError):
        bench.engine.settled(SOON)
    before = bench.called.count(("coarse", 13.0))
    bench.engine.change(bound=1.0)
    bench.engine.change(bound=13.0)
    with pytest.raises(WorkbenchError, match="13 is not possible"):
        bench.engine.settled(SOON)
    assert bench.called.count(("coarse", 13.0)) == before + 1


def test_a_refusal_is_said_while_work_goes_on_until_a_valid_change(bench: Bench) -> None:
    bench.hold.clear()
    bench.engine.refresh()
    assert not bench.engine.change(bound=-1.0)
    bench.news.clear()
    eventually(lambda: any(status.text == "held" for status in bench.news))
    assert {(status.busy, status.error) for status in bench.news} == {(True, "bound must be positive; got -1.0")}
    bench.engine.change(axis=1)
    assert bench.engine.status.error == ""


def test_what_follows_from_results_waits_for_them_and_hears_when_there_are_none(bench: Bench) -> None:
    heard: list[str] = []
    bench.hold.clear()
    bench.engine.when_settled(heard.append)
    assert heard == []
    bench.hold.set()
    assert bench.engine.wait(SOON)
    bench.engine.when_settled(heard.append)
    assert heard == ["", ""]
    bench.engine.change(bound=13.0)
    bench.engine.when_settled(heard.append)
    assert bench.engine.wait(SOON)
    assert heard[2] == "13 is not possible"
    bench.hold.clear()
    bench.engine.change(bound=2.0)
    bench.engine.when_settled(heard.append)
    bench.engine.cancel()
    assert heard[3] == "cancelled"


def test_a_mistake_on_demand_is_told_until_another_change_whatever_else_ends(bench: Bench) -> None:
    bench.engine.settled(SOON)
    bench.hold.clear()
    bench.engine.change(bound=2.0)
    eventually(lambda: ("coarse", 2.0) in bench.called)
    job = Job(lambda job: None, lambda job: None)
    job.error = "nothing to ask"
    heard: list[str] = []
    bench.engine.when_settled(heard.append)
    bench.engine._under_way.append(job)
    bench.engine._ended(job, lambda: None)
    assert heard == []
    bench.hold.set()
    assert bench.engine.wait(SOON)
    assert heard == [""]
    assert bench.engine.status.error == "nothing to ask"
    bench.engine.change(axis=1)
    assert bench.engine.status.error == ""


def test_a_mistake_in_what_follows_becomes_the_status(bench: Bench) -> None:
    bench.engine.ask("asked", then=lambda: {}["missing"])
    assert bench.engine.wait(SOON)
    assert bench.engine.status.error == "KeyError: 'missing'"


def test_waiting_for_a_stage_with_a_mistake_ends() -> None:
    def wrong(state: object, results: object, job: object) -> None:
        raise ZeroDivisionError("one over none")

    engine = Engine(0, [Stage("wrong", lambda state: state, wrong)], lambda callback: callback())
    with pytest.raises(WorkbenchError, match="ZeroDivisionError: one over none"):
        engine.settled(10)
    engine.close()


def test_work_that_is_no_stage_calls_back_once_with_its_value_or_the_reason(bench: Any) -> None:
    ends: list[tuple[Any, str]] = []

    def failing(job: Job) -> None:
        raise WorkbenchError("the disk is full")

    def held(job: Job) -> None:
        while True:
            job(0.5, "writing")
            time.sleep(0.001)

    def then(value: Any, reason: str) -> None:
        ends.append((value, reason))

    bench.engine.do(lambda job: 7, "writing", then)
    bench.engine.wait(SOON)
    bench.engine.do(failing, "writing", then)
    bench.engine.wait(SOON)
    assert ends == [(7, ""), (None, "the disk is full")]
    bench.engine.do(held, "writing", then)
    eventually(lambda: bench.engine.status.share == 0.5)
    bench.engine.do(held, "writing", then)   # in its place
    bench.engine.do(held, "writing", then)
    bench.engine.cancel()
    eventually(lambda: len(ends) == 5)
    bench.engine.wait(SOON)
    assert ends[2:] == [(None, "cancelled")] * 3


def test_a_stage_that_returns_nothing_is_refused() -> None:
    empty = Stage("empty", lambda state: "", lambda state, results, job: None)
    engine: Engine[State] = Engine(State(), [empty], lambda callback: callback())
    engine.refresh()
    with pytest.raises(WorkbenchError, match="the stage 'empty' returned None"):
        engine.settled(SOON)
    engine.close()
