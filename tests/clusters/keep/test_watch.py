"""Watching clusters being kept: every step is told, what comes out does not change, and whoever raises ends it at once."""

import itertools
import threading

import numpy as np
import pytest

import workbench as wb
from clusters.keep.scenarios import SOLVERS, Scenario, decoded_with
from workbench.clusters.keep import repair
from workbench.clusters.keep.repair import Step

PARTICLES = wb.synthetic.cosmic_web(n=16, seed=3)
LENGTH = 0.2
BOUND = 0.06


class Watcher:
    """Progress that wants to see the steps; it raises at a call of this number."""

    def __init__(self, last: int | None = None) -> None:
        self.last, self.calls = last, 0
        self.told: list[str] = []
        self.steps: list[Step] = []

    def count(self) -> None:
        self.calls += 1
        if self.calls == self.last:
            raise Stopped

    def __call__(self, share: float, text: str) -> None:
        self.told.append(text)
        self.count()

    def watch(self, step: Step) -> None:
        self.steps.append(step)
        self.count()


class Stopped(Exception):
    pass


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    noise = np.random.default_rng(0).uniform(-1, 1, PARTICLES.positions.shape)
    return Scenario(PARTICLES, decoded_with(PARTICLES, noise, BOUND), wb.Absolute(BOUND), (LENGTH,))


def corrected(scenario: Scenario, solver: str, progress: object = None) -> wb.clusters.Correction:
    given = scenario.original, scenario.decoded, scenario.bound, scenario.lengths, "length", 1, solver
    return wb.clusters.correct(*given, progress=progress)


@pytest.mark.parametrize("solver", SOLVERS)
def test_watching_changes_nothing_that_comes_out(scenario: Scenario, solver: str) -> None:
    watcher = Watcher()
    watched, expected = corrected(scenario, solver, watcher), corrected(scenario, solver)
    assert watched.positions.tobytes() == expected.positions.tobytes()
    assert watched.sections() == expected.sections()
    assert watched.descent == expected.descent
    assert len(watcher.steps) > 3


@pytest.mark.parametrize("solver", SOLVERS)
def test_steps_of_descent_are_those_of_the_correction(scenario: Scenario, solver: str) -> None:
    watcher = Watcher()
    correction = corrected(scenario, solver, watcher)
    assert tuple(step for step in watcher.steps if step.phase == "descent") == correction.descent
    assert bool(correction.descent) == (solver == "pgd")   # here, plain moves are enough for the others
    assert "moves" in {step.phase for step in watcher.steps}


@pytest.mark.parametrize("solver", SOLVERS)
def test_moves_begin_with_all_needs_and_miss_fewer_and_fewer(scenario: Scenario, solver: str) -> None:
    watcher = Watcher()
    correction = corrected(scenario, solver, watcher)
    first = watcher.steps[0]
    assert (first.number, first.phase, first.violations) == (0, "moves", correction.needs)
    assert first.missed == 2 * correction.needs
    assert first.loss > 0
    rounds = [step for step in watcher.steps if step.phase == "moves"]
    assert rounds[-1].violations < correction.needs / 10
    for before, after in itertools.pairwise(rounds):
        if after.number == before.number + 1:   # no allowed move breaks anything
            assert after.missed <= before.missed


def test_the_first_loss_is_half_the_squared_misses_at_either_end_in_squared_bounds() -> None:
    original = wb.Particles([[0.10, 0.5], [0.19, 0.5], [0.6, 0.5]], box=1.0)
    decoded = wb.Particles([[0.09, 0.5], [0.20, 0.5], [0.6, 0.5]], box=1.0)
    watcher = Watcher()
    wb.clusters.correct(original, decoded, 0.02, 0.1, "length", progress=watcher)
    assert watcher.steps[0].missed == 2
    assert watcher.steps[0].loss == pytest.approx((0.01 / 0.02) ** 2, rel=1e-3)


def test_who_cannot_watch_is_told_all_the_same(scenario: Scenario) -> None:
    told: list[str] = []
    corrected(scenario, "pgd", lambda share, text: told.append(text))
    assert any("descent, step 1:" in text for text in told)


def test_nothing_is_reckoned_for_who_does_not_watch(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> None:
        raise AssertionError("misses were reckoned")

    monkeypatch.setattr("workbench.clusters.keep.needs.Needs.misses", refuse)
    corrected(scenario, "pgd", lambda share, text: None)
    with pytest.raises(AssertionError, match="misses were reckoned"):
        corrected(scenario, "pgd", Watcher())


@pytest.mark.parametrize("solver", SOLVERS)
def test_raising_at_any_call_ends_it_and_leaves_nothing_behind(scenario: Scenario, solver: str) -> None:
    whole, before = Watcher(), scenario.decoded.copy()
    expected = corrected(scenario, solver, whole)
    for last in {1, 2, whole.calls // 3, whole.calls // 2, whole.calls - 1, whole.calls}:
        watcher = Watcher(last)
        with pytest.raises(Stopped):
            corrected(scenario, solver, watcher)
        assert watcher.calls == last   # not called again once it has raised
    np.testing.assert_array_equal(scenario.decoded, before)
    assert corrected(scenario, solver).positions.tobytes() == expected.positions.tobytes()


def test_raising_inside_a_descent_ends_the_descent(scenario: Scenario) -> None:
    class InDescent(Watcher):
        def watch(self, step: Step) -> None:
            super().watch(step)
            if step.phase == "descent" and step.number == 1:
                raise Stopped

    watcher = InDescent()
    with pytest.raises(Stopped):
        corrected(scenario, "pgd", watcher)
    assert [step.number for step in watcher.steps if step.phase == "descent"] == [0, 1]


@pytest.mark.parametrize("together", [0, 2, 64, 10**6])
@pytest.mark.parametrize("at_once", [1, 7])
def test_steps_of_descent_in_one_launch_are_those_one_by_one(
    monkeypatch: pytest.MonkeyPatch, scenario: Scenario, at_once: int, together: int
) -> None:
    """Whatever the components, which descend by themselves."""
    expected = corrected(scenario, "pgd")
    assert len(expected.descent) > 10
    monkeypatch.setattr(repair, "STEPS_AT_ONCE", at_once)
    monkeypatch.setattr(repair, "MOST_TOGETHER", together)
    found = corrected(scenario, "pgd")
    assert found.descent == expected.descent
    assert found.positions.tobytes() == expected.positions.tobytes()


@pytest.mark.parametrize("order", ["free", "keep"])
def test_compress_hands_steps_on_and_can_be_cancelled(order: str) -> None:
    given = PARTICLES, wb.Absolute(BOUND), "lattice", [wb.KeepClusters(LENGTH, solver="pgd")], order
    whole, threads = Watcher(), threading.active_count()
    archive = wb.compress(*given, progress=whole)
    assert {step.phase for step in whole.steps} == {"moves", "descent"}
    for last in {1, whole.calls // 2, whole.calls}:
        with pytest.raises(Stopped):
            wb.compress(*given, progress=Watcher(last))
    assert threading.active_count() == threads
    assert contents(wb.compress(*given)) == contents(archive)


def contents(archive: wb.Archive) -> dict[str, bytes]:
    return {key: archive.store.read(key) for key in archive.store.keys()}   # noqa: SIM118


def test_a_watcher_sees_nothing_where_nothing_is_to_be_done() -> None:
    watcher = Watcher()
    wb.clusters.correct(PARTICLES, PARTICLES.positions, 0.01, progress=watcher)
    assert watcher.steps == []
    assert watcher.told
