"""Pipelines over arrays on the stand-in for CuPy: the same faults and results as on a CPU."""

from types import ModuleType

import numpy as np
import pytest

import fake_cupy
import workbench as wb
from workbench.propagation import BitFlip, Bounded, Noise, Pipeline, Stage, StuckAt, campaign, derivatives, strata, trace


@pytest.fixture
def cupy(stand_in: ModuleType) -> ModuleType:
    return stand_in


def values(dtype=np.float64):
    return (1 + np.random.default_rng(0).random((6, 7))).astype(dtype)


def pipeline():
    scaled = Stage("scaled", lambda x: 2 * x, linear=True)
    return Pipeline([scaled, ("squared", lambda y: y * y), ("sum", lambda y: y.sum())])


@pytest.mark.parametrize("perturbation", [
    BitFlip("scaled", bit="exponent"), BitFlip("input", count=5), StuckAt("input", bit=51, index=(2, 3), to=1),
    Noise("scaled", 0.01, unit="rms"),
])
def test_perturbed_runs_are_those_of_the_cpu(cupy, perturbation):
    made, given = pipeline(), values()
    here = made.perturbed(made.run(given), perturbation, seed=1, trial=3)
    there = made.perturbed(made.run(cupy.asarray(given)), perturbation, seed=1, trial=3)
    assert type(there["squared"]) is fake_cupy.ndarray
    for site in made.sites:
        np.testing.assert_array_equal(there[site].get(), here[site])
    assert here.computed == there.computed


def test_traces_and_campaigns_agree_with_the_cpu(cupy):
    made, given = pipeline(), values()
    faults = strata(made, given)
    here = campaign(made, given, faults, until=60)
    there = campaign(made, cupy.asarray(given), faults, until=60)
    assert [each.outcome for each in there.trials] == [each.outcome for each in here.trials]
    one, other = (trace(made, x, Noise("input", 1e-3)) for x in (given, cupy.asarray(given)))
    assert other.badges == one.badges
    assert [each.error for each in other.stages] == pytest.approx([each.error for each in one.stages], rel=1e-12)


def test_a_codec_that_works_on_the_host_refuses_a_device_array_in_a_sentence(cupy):
    made = pipeline()
    with pytest.raises(wb.WorkbenchError, match=r"NumPy arrays|CuPy"):
        made.perturbed(made.run(cupy.asarray(values())), Bounded("input", wb.Absolute(1e-3), "sz3"))


def test_stencils_stay_on_the_device(cupy):
    given = values()
    made = derivatives(given)
    there = made.run(cupy.asarray(given))
    np.testing.assert_array_equal(there["laplacian"].get(), made.run(given)["laplacian"])
