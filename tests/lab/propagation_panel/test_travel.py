"""An error followed as far as it gets, also where stages fail; and outcomes as a campaign counts them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import workbench as wb
from lab.propagation_panel.samples import ALL, floor, results, sample, state_of
from workbench.lab.propagation_panel.travel import Baseline, travel
from workbench.propagation import BitFlip, Pipeline, Stage
from workbench.propagation.trials import Experiment


def test_a_failing_stage_stops_only_what_depends_on_it() -> None:
    base = sample("two inputs")
    found = travel(base, BitFlip("b", bit=63, index=0), 0, 0)
    assert dict(found.stopped) == {"roots": "roots raised ValueError: a root of what is negative or not finite"}
    assert set(found.reached) == {"b", "product", "sums", "large", "folded"}
    assert found.errors["product"] > 0
    assert np.array_equal(found.changed["roots"], base.run["roots"])


def test_everything_behind_a_failure_is_not_reached() -> None:
    def refuse(values: np.ndarray) -> np.ndarray:
        if (values < 0).any():
            raise wb.WorkbenchError("values must not be negative")
        return values

    stages = [Stage("checked", refuse), Stage("doubled", lambda c: 2 * c), Stage("total", lambda d: d.sum())]
    found = travel(Baseline(Pipeline(stages).run(np.ones(8))), BitFlip("input", bit=63), 0, 0)
    assert found.reached == ("input",)
    assert set(found.stopped.values()) == {"checked noticed the error: values must not be negative"}
    assert np.isnan(found.damage())


def test_another_shape_is_a_failure_too() -> None:
    pipeline = Pipeline([("positive", lambda x: x[x > 0]), ("sum", lambda p: p.sum())])
    found = travel(Baseline(pipeline.run(np.ones(8))), BitFlip("input", bit=63), 0, 0)
    assert found.stopped["sum"] == "positive returned arrays of another shape or type"


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("bit", [0, 10, 14, 15])
def test_outcomes_are_those_of_a_campaign(name: str, bit: int) -> None:
    run = sample(name).run
    for trial in range(3):
        state = state_of(name, bit=bit, trial=trial, site=run.pipeline.sites[0])
        found = travel(sample(name), state.perturbation, 0, trial)
        limit = run.pipeline.tolerance or wb.propagation.within()
        given = {site: run.raw[site] for site in run.pipeline.inputs}
        experiment = Experiment(run.pipeline, given, ((state.perturbation,),), 0, limit, floor(name))
        with np.errstate(all="ignore"):
            assert found.outcome(floor(name)) == experiment.outcomes([trial])[0].outcome


def test_the_trace_is_that_of_the_library() -> None:
    state = state_of("density", bit=27, trial=5)
    run = sample("density").run
    own = results("density", state)["trace"]
    other = wb.propagation.trace(run.pipeline, run, state.perturbation, trial=5)
    assert [dataclasses.astuple(each) for each in own.stages] == [dataclasses.astuple(each) for each in other.stages]
