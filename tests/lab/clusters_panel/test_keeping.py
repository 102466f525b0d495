"""Preserve: the groups are those of the original, the overhead is what archives differ in, and every step is traced."""

import numpy as np
import pytest

import workbench as wb
from lab.clusters_panel import samples
from workbench.lab.clusters_panel.drawing import draw
from workbench.lab.clusters_panel.keeping import Trace, keep_halos
from workbench.lab.clusters_panel.state import ClustersState

CLUMPS = [name for name in samples.SETS if name.endswith("-D")]


@pytest.mark.parametrize("name", samples.SETS)
def test_groups_are_kept_and_that_is_found_by_looking(name):
    case = samples.case(name)
    kept = case.kept
    assert kept.verified
    length = case.halos.groups.linking_length
    assert wb.friends_of_friends(kept.outcome.decoded, length, "length").equals(case.halos.groups)
    assert len(kept.outcome.missing) == len(kept.outcome.false) == 0
    assert kept.outcome.counts(case.halos.count(2)) == (case.halos.count(2), 0, 0)
    assert kept.outcome.sizes.tolist() == case.halos.catalogue.members.tolist()
    assert kept.archive.verify(case.particles).passed


@pytest.mark.parametrize("name", samples.SETS)
def test_the_overhead_is_what_the_two_archives_differ_in(name):
    case = samples.case(name)
    extra = case.kept.archive.bits_per_particle - case.breakage.bits_per_particle
    assert case.kept.overhead == pytest.approx(extra)
    assert (case.kept.overhead > 0) == (name in CLUMPS)


def test_groups_that_differ_are_reported_as_different(monkeypatch):
    """A fault in compressing, of which the panel must not believe the certificate."""
    case = samples.case("periodic 3-D")
    certificate = case.kept.archive.certificate
    plain = case.breakage.archive
    monkeypatch.setattr("workbench.lab.clusters_panel.keeping.compress", lambda *given, **named: plain)
    monkeypatch.setattr(type(plain), "certificate", certificate)
    found = keep_halos(case.particles, case.state, case.halos, samples.ignore)
    assert not found.verified


def test_a_promise_about_large_groups_may_let_small_ones_change():
    particles = samples.clumps(3, np.float32, 1.0)
    case = samples.Case.of(particles, bound=samples.case("periodic 3-D").state.bound, keep_members=20)
    assert case.kept.verified
    large, all_ = case.halos.count(20), case.halos.count(2)
    assert case.kept.outcome.counts(large) == (large, 0, 0)
    assert case.kept.outcome.counts(all_) != (all_, 0, 0)
    assert case.kept.overhead < samples.case("periodic 3-D").kept.overhead


@pytest.mark.parametrize("name", CLUMPS)
def test_the_trace_is_told_step_by_step_and_kept(name):
    case = samples.case(name)
    trace, lengths = Trace(), []
    kept = keep_halos(case.particles, case.state, case.halos, lambda share, text: lengths.append(len(trace)), trace)
    assert kept.trace is trace
    assert trace.steps == case.kept.trace.steps
    assert "moves" in {step.phase for step in trace.steps} <= {"descent", "moves"}
    assert trace.steps[0].violations == case.kept.certificate["pairs_set_right"]
    assert sum(step.phase == "descent" for step in trace.steps) == case.kept.certificate["descent_steps"]
    assert set(range(len(trace) + 1)) <= set(lengths)   # one call for each step, so that a panel can draw it


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 1.0])
def test_cancelling_leaves_the_trace_where_it_was(share):
    case = samples.case("periodic 3-D")
    calls: list[float] = []
    keep_halos(case.particles, case.state, case.halos, lambda share, text: calls.append(share))
    assert calls == sorted(calls)
    assert calls[-1] <= 1
    last, seen, trace = max(1, round(share * len(calls))), [], Trace()

    def stop(share: float, text: str) -> None:
        seen.append(text)
        if len(seen) == last:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        keep_halos(case.particles, case.state, case.halos, stop, trace)
    assert len(seen) == last
    assert trace.taken == case.kept.trace.taken[: len(trace.taken)]


@pytest.mark.parametrize("solver", ["auto", "refine", "pgd"])
def test_every_solver_keeps_groups(solver):
    case = samples.case("open 2-D")
    found = keep_halos(case.particles, case.changed(solver=solver), case.halos, samples.ignore)
    assert found.verified
    assert any(step.phase == "moves" for step in found.trace.steps)


def test_of_several_bounds_the_trace_tells_the_one_that_was_taken():
    particles = samples.clumps(3, np.float32, 1.0)
    bound = ClustersState.for_(particles).length(particles)   # as large as the linking length
    case, latest = samples.Case.of(particles, bound=bound), []
    trace, certificate = Trace(), case.kept.certificate
    keep_halos(particles, case.state, case.halos, lambda share, text: latest.append(trace.steps), trace)
    tried = {step.within for step in trace.taken}
    assert len(tried) > 1
    assert max(tried) < bound
    assert {step.within for step in trace.steps} == {certificate["encoded_within"]}
    assert trace.steps[0].violations == certificate["pairs_set_right"]
    assert all(len({step.within for step in steps}) <= 1 for steps in latest)   # meanwhile, those of the trial under way
    assert tried == {step.within for steps in latest for step in steps}
    shown = draw(particles, case.changed(shows="kept"), case.halos, case.breakage, case.kept)
    heading = shown.charts["descent"].title
    assert heading.endswith(f"within {certificate['encoded_within'] / bound:.3g} ξ")
