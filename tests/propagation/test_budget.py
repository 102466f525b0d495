"""Budgets and dose-response curves: bounds that the end tolerates, on real codecs, and their honesty about it."""

import json

import numpy as np
import pytest

import workbench as wb
from workbench.propagation import (
    Bounded,
    Pipeline,
    Stage,
    Tolerance,
    budget,
    dose_response,
    each_within,
    halos,
    power_spectrum,
    within,
)


def density(n=16):
    return np.exp(wb.synthetic.gaussian_field((n, n, n), seed=1).values.astype(float)).astype(np.float32)


@pytest.fixture(scope="module")
def rho():
    return density()


def test_a_budget_gives_bounds_that_compress_takes_and_the_end_tolerates(rho):
    pipeline = power_spectrum(rho)
    found = budget(pipeline, rho, codec="prequantised")
    archive = wb.compress(wb.Field(rho), found.bounds["input"], codec="prequantised")
    right, other = pipeline(rho), pipeline(archive.decompress())
    assert abs(other / right - 1).max() <= 0.01
    assert found.damage == pytest.approx(abs(other / right - 1).max() / 0.01)
    assert 0.5 < found.damage <= 1
    assert found.ratio == pytest.approx(rho.nbytes / archive.nbytes, rel=0.02)
    tighter = budget(pipeline, rho, each_within(0.0001), codec="prequantised")
    assert tighter.bounds["input"].eb < found.bounds["input"].eb
    assert tighter.ratio < found.ratio


def test_several_sites_share_a_budget(rho):
    pipeline, told = power_spectrum(rho), []
    progress = lambda share, what: told.append((share, what))   # noqa: E731
    found = budget(pipeline, rho, sites=["input", "waves"], codec="prequantised", progress=progress)
    assert all(0 <= share <= 1 for share, _ in told)
    assert list(dict.fromkeys(what for _, what in told)) == [
        "raising the bound of input", "raising the bound of waves", "sharing the tolerance among the sites",
        "verifying the bounds",
    ]
    assert found.damage <= 1
    together = [Bounded(site, bound, "prequantised") for site, bound in found.bounds.items()]
    changed = pipeline.perturbed(pipeline.run(rho), together)
    assert pipeline.tolerance.damage({"P": pipeline(rho)}, {"P": changed["spectrum"]}) == found.damage
    assert found.additivity == pytest.approx(found.damage / sum(found.single.values()))
    assert json.loads(json.dumps(found.to_dict()))["sites"]["waves"]["bound"]["kind"] == "absolute"
    assert "waves" in found._repr_html_()


def test_damages_of_a_linear_pipeline_add():
    x = {name: np.abs(np.random.default_rng(seed).normal(size=4096)) + 5 for seed, name in enumerate("ab")}
    pipeline = Pipeline([Stage("sum", lambda a, b: a.sum() - 0.5 * b.sum(), inputs=("a", "b"))], inputs=("a", "b"))
    biased = Tolerance("the largest change", lambda right, other: float(abs(other["sum"] - right["sum"])) / 5)
    found = budget(pipeline, x, biased, codec="prequantised")
    assert set(found.bounds) == {"a", "b"}
    assert found.damage <= 1


def test_positions_get_a_budget_for_their_mass_function():
    snapshot = wb.synthetic.cosmic_web(n=16, seed=1)
    found = budget(halos(snapshot), snapshot)
    decoded = wb.compress(snapshot, found.bounds["input"]).decompress()
    right, other = halos(snapshot)(snapshot), halos(snapshot)(decoded)
    assert (abs(right - other) <= np.maximum(np.sqrt(right), 1)).all()
    assert found.ratio > 2


def test_a_budget_from_a_sample_is_verified_on_the_full_data():
    small, full = density(8), density(16)
    pipeline = Pipeline([("mean square", lambda x: (x.astype(float) ** 2).mean())])
    found = budget(pipeline, full, within(1e-3), codec="prequantised", sample=small)
    assert found.damage <= 1
    spiky = full.copy()
    spiky[::2] *= 1e-3
    assert budget(pipeline, spiky, within(1e-5), codec="prequantised", sample=small).damage <= 1


def test_budgets_that_cannot_be_are_refused(rho):
    pipeline = power_spectrum(rho)
    never = Tolerance("nothing", lambda right, other: 0.0 if np.array_equal(right["spectrum"], other["spectrum"]) else 2.0)
    with pytest.raises(wb.WorkbenchError, match=r"must allow the bound .* at 'input', a ten-millionth of its root"):
        budget(pipeline, rho, never, codec="prequantised")
    with pytest.raises(wb.WorkbenchError, match="there is no site 'wave'"):
        budget(pipeline, rho, sites="wave")
    with pytest.raises(wb.WorkbenchError, match="at least one site of floating-point values"):
        budget(Pipeline([("sum", np.sum)]), np.ones(4, int))
    with pytest.raises(wb.WorkbenchError, match="a bound needs a scale; the values at 'input' are all zero"):
        budget(Pipeline([("sum", np.sum)]), np.zeros(4))


def test_a_dose_response_curve_rises_and_tells_the_largest_dose(rho):
    pipeline = power_spectrum(rho)
    found = dose_response(pipeline, rho, "input", codec="prequantised")
    assert [dose.bound.eb for dose in found.doses] == sorted(dose.bound.eb for dose in found.doses)
    assert found.doses[0].damage < found.doses[-1].damage
    assert found.doses[0].ratio < found.doses[-1].ratio
    best = found.largest
    assert best is not None
    assert best.damage <= 1
    assert "tolerated up to Absolute" in repr(found)
    assert found.plot().svg.startswith("<svg")
    assert json.loads(json.dumps(found.to_dict()))["doses"][0]["bound"]["kind"] == "absolute"
    assert dose_response(pipeline, rho, "input", [1e9], "prequantised").largest is None


def test_a_stage_that_refuses_a_decompressed_array_is_infinite_damage():
    def positive(x):
        if (x <= 0).any():
            raise ValueError("values must be positive")
        return np.log(x).mean()

    found = dose_response(Pipeline([("log", positive)]), np.linspace(0.1, 1, 4096), "input", [1e-3, 0.5], "prequantised")
    assert found.doses[0].damage < 1
    assert found.doses[1].damage == np.inf
    assert "values must be positive" in found.doses[1].reason
    assert found.to_dict()["doses"][1]["damage"] is None
