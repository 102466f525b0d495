"""Pipelines: the graph, runs with interventions, and resumed runs, which must be those of a whole run."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.propagation import BitFlip, Noise, Pipeline, Stage, StageFailed


def diamond(**options):
    """One input, two branches, joined again."""
    return Pipeline(
        [
            Stage("joined", lambda a, b: a * b, inputs=("low", "high")),
            Stage("split", lambda x: (x - 1, x + 1), inputs="input", outputs=("low", "high")),
            Stage("total", lambda j: j.sum(), inputs="joined"),
            Stage("peak", lambda h: h.max(), inputs="high"),
        ],
        **options,
    )


def test_stages_run_after_those_that_they_read_from():
    pipeline = diamond()
    assert [stage.name for stage in pipeline.stages] == ["split", "joined", "total", "peak"]
    assert pipeline.sites == ["input", "low", "high", "joined", "total", "peak"]
    assert {name: float(value) for name, value in pipeline(np.array([1.0, 2.0])).items()} == {"total": 3.0, "peak": 3.0}
    assert ("high", "peak", "peak") in pipeline.edges()
    assert pipeline.after("low") == ["low", "joined", "total"]


def test_a_resumed_run_computes_only_what_depends_on_the_change():
    pipeline = diamond()
    run = pipeline.run(np.array([1.0, 2.0]))
    changed = pipeline.resume(run, {"low": np.zeros(2)})
    assert changed.computed == ("joined", "total")
    assert float(changed["total"]) == 0.0
    assert float(run["total"]) == 3.0
    assert changed["peak"] is run["peak"] or changed["peak"] == run["peak"]


def test_work_ends_where_the_bits_are_as_before():
    seen = []
    pipeline = Pipeline([("sign", np.sign), ("sum", lambda s: seen.append(1) or s.sum())])
    run = pipeline.run(np.array([1.0, 2.0]))
    assert pipeline.resume(run, {"input": np.array([3.0, 2.0])}).computed == ("sign",)
    assert len(seen) == 1


def test_a_stage_that_computes_several_runs_and_fails_in_one_fails_in_that_one_alone():
    def rooted(x):
        if x.min() < 0:
            raise ValueError("no real root")
        return np.sqrt(x)

    stage = Stage("root", rooted, together=lambda cases: [[(rooted(inputs[0]), None)] for inputs, *_ in cases])
    pipeline = Pipeline([stage])
    changes = [{"input": np.full(1, value)} for value in (4.0, -1.0, 9.0)]
    two, failed, three = pipeline.results(pipeline.run(np.ones(1)), changes)
    assert (two["root"], three["root"]) == (2.0, 3.0)
    assert isinstance(failed, StageFailed)
    assert "no real root" in str(failed)


@given(st.integers(0, 2**32), st.sampled_from(["input", "low", "high", "joined"]))
@settings(max_examples=60, deadline=None)
def test_resuming_gives_the_bits_of_a_whole_run(seed, site):
    pipeline = diamond()
    x = np.random.default_rng(seed).normal(size=5)
    flips = [BitFlip(site), BitFlip("low", bit="mantissa"), Noise("joined", 0.1)]
    at = pipeline.interventions(flips, seed=1, trial=seed)
    resumed = pipeline.perturbed(pipeline.run(x), flips, seed=1, trial=seed)
    whole = pipeline.run(x, at=pipeline.interventions(flips, seed=1, trial=seed))
    assert set(at) == {site, "low", "joined"}
    for name in pipeline.sites:
        np.testing.assert_array_equal(resumed[name].view(np.uint64), whole[name].view(np.uint64))


def test_several_perturbations_of_one_site_follow_each_other():
    pipeline = Pipeline([("same", lambda x: x + 0)])
    run = pipeline.run(np.ones(3))
    flips = [BitFlip("input", bit=63, index=1), BitFlip("input", bit=63, index=1), BitFlip("input", bit=63, index=2)]
    assert pipeline.perturbed(run, flips)["same"].tolist() == [1.0, 1.0, -1.0]


def test_several_inputs_are_a_dict():
    pipeline = Pipeline([Stage("sum", lambda a, b: a + b, inputs=("a", "b"))], inputs=("a", "b"))
    assert pipeline({"a": np.ones(2), "b": np.ones(2)}).tolist() == [2.0, 2.0]
    with pytest.raises(wb.WorkbenchError, match="needs all of a, b; got no b"):
        pipeline({"a": np.ones(2)})
    with pytest.raises(wb.WorkbenchError, match="needs a dict with a, b; got ndarray"):
        pipeline(np.ones(2))


def test_fields_particles_and_labelled_arrays_are_inputs():
    double = Pipeline([("double", lambda x: 2 * x)])
    assert double(wb.Field([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert double(wb.Particles([[1.0, 2.0]])).tolist() == [[2.0, 4.0]]
    labelled = xr.DataArray([1.0, 2.0, 3.0], dims="time")
    means = Pipeline([("shifted", lambda x: x - x.mean("time")), ("squared", lambda s: (s * s).mean("time"))])
    run = means.run(labelled)
    flipped = means.perturbed(run, BitFlip("shifted", bit=63, index=0))
    assert flipped["shifted"].tolist() == [1.0, 0.0, 1.0]
    assert flipped.raw["shifted"].dims == ("time",)
    assert float(flipped["squared"]) == float(run["squared"])


def test_stages_cannot_write_into_what_others_read():
    def careless(x):
        x += 1
        return x

    x = np.ones(3)
    with pytest.raises(StageFailed, match=r"stage 'careless' raised ValueError: .*must not write into its inputs"):
        Pipeline([("careless", careless)]).run(x)
    assert x.tolist() == [1.0, 1.0, 1.0]


def one(function, **options):
    return Pipeline([Stage("one", function, **options)])


BAD = [
    (lambda: Pipeline([]), "needs at least one stage"),
    (lambda: Pipeline([3]), "made of stages, or of pairs"),
    (lambda: Pipeline([("a", 3)]), "stage 'a' needs a function; got 3"),
    (lambda: Pipeline([("", abs)]), "a stage needs a name"),
    (lambda: Pipeline([("a", abs), ("a", abs)]), "stages need different names; 'a' is there more than once"),
    (lambda: Pipeline([("input", abs)]), "sites need different names; 'input'"),
    (lambda: Pipeline([Stage("a", abs, inputs="inptu")]), "stage 'a' reads 'inptu', but there is no site .* input"),
    (
        lambda: Pipeline([Stage("a", abs, inputs="c"), Stage("b", abs, inputs="a"), Stage("c", abs, inputs="b")]),
        "must not go in a circle; got . -> . -> . -> .",
    ),
    (lambda: Pipeline([("a", abs)], outputs="b"), "there is no site 'b'"),
    (lambda: one(lambda x: "text")(np.ones(2)), "stage 'one' must return an array of numbers for 'one'; got str"),
    (lambda: one(lambda x: x, outputs=("a", "b"))(np.ones(2)), "must return a, b as a tuple; got ndarray"),
    (lambda: one(lambda x: (x,), outputs=("a", "b"))(np.ones(2)), "must return a, b as a tuple; got 1 results"),
    (lambda: one(lambda x: 1 / 0)(np.ones(2)), "stage 'one' raised ZeroDivisionError: division by zero"),
    (
        lambda: Pipeline([("a", lambda x: x.reshape(4, -1)), ("b", lambda a: a @ np.ones((3, 2)))]).run(np.ones(16)),
        r"stage 'b' raised ValueError: matmul.*; it was given a \(float64 of shape \(4, 4\)\)$",
    ),
    (lambda: one(abs)(np.ones(0)), "input must be a non-empty array of numbers; got float64 of shape"),
    (lambda: one(abs)("text"), "input must be a non-empty array of numbers"),
    (lambda: one(abs)({"inptu": np.ones(1)}), "there is no input 'inptu'; the nearest names are: input"),
    (lambda: one(abs).run(np.ones(2), at={"oen": np.ones(2)}), "there is no site 'oen'; the nearest names are: one"),
    (lambda: one(abs).run(np.ones(2), at={"one": np.ones(3)}), "must keep the shape and type of 'one', float64"),
    (lambda: one(abs).perturbed(one(abs).run(np.ones(2)), []), "can be resumed by its own pipeline only"),
    (lambda: one(abs).run(np.ones(2))["tow"], "there is no site 'tow'"),
]


@pytest.mark.parametrize(("work", "complaint"), BAD, ids=range(len(BAD)))
def test_bad_pipelines_are_refused_with_a_reason(work, complaint):
    with pytest.raises(wb.WorkbenchError, match=complaint):
        work()


def test_an_array_of_another_shape_than_before_is_named():
    pipeline = one(lambda x: x[x > 0])
    run = pipeline.run(np.array([1.0, 2.0]))
    with pytest.raises(StageFailed, match=r"must return float64 of shape \(2,\) for 'one', as without the perturbation"):
        pipeline.perturbed(run, BitFlip("input", bit="sign", index=0))


def test_a_list_that_is_no_perturbation_is_refused():
    pipeline = one(abs)
    with pytest.raises(wb.WorkbenchError, match="expected a perturbation such as BitFlip"):
        pipeline.perturbed(pipeline.run(np.ones(2)), ["flip"])
    with pytest.raises(wb.WorkbenchError, match="there is no site 'inpt'; the nearest names are: input"):
        pipeline.perturbed(pipeline.run(np.ones(2)), BitFlip("inpt"))


def test_masked_values_are_refused():
    """A stage sees the numbers below a mask, which are no data."""
    values, mask = np.random.default_rng(0).random((8, 8, 8)) + 1, np.arange(512).reshape(8, 8, 8) % 5 == 0
    for masked in (wb.Field(values, mask=mask), np.ma.masked_array(values, mask)):
        with pytest.raises(wb.WorkbenchError, match=r"no masked .*got 103 of them: fill them first"):
            wb.propagation.power_spectrum(wb.Field(values)).run(masked)


@pytest.mark.parametrize(("function", "reason"), [
    (lambda x: x[:0], r"must return at least one number for 'bad'; got shape \(0,\)"),
    (lambda x: np.ma.masked_greater(x, 0), "must return an array of numbers for 'bad'; an array must have no masked"),
])
def test_a_stage_that_returns_what_cannot_be_measured_is_named(function: Callable[..., object], reason: str) -> None:
    with pytest.raises(StageFailed, match=f"stage 'bad' {reason}"):
        Pipeline([("bad", function), ("end", lambda x: np.asarray(x).sum())]).run(np.ones(4))
