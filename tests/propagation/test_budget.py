"""Budgets and dose-response curves: bounds that the end tolerates, on real codecs, and their honesty about it."""

import json

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom

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
    realisations,
    within,
)
from workbench.propagation.certification import FACTORS, Holds, certified, fields_for, may_break, share_held


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


@pytest.fixture(scope="module")
def fields():
    return [np.abs(np.random.default_rng(seed).normal(size=512)) + 5 for seed in range(8)]


def largest_change(share):
    return Tolerance("the mean", lambda right, other: float(abs(other["mean"] - right["mean"])) / share)


MEAN = Pipeline([("mean", lambda x: x.mean())], tolerance=largest_change(1e-4))


def test_bounds_from_several_fields_are_tolerated_by_all_but_those_that_may_break_them(fields):
    told = []
    found = budget(MEAN, fields, codec="prequantised", coverage=0.7, progress=lambda share, what: told.append(what))
    alone = budget(MEAN, fields[0], codec="prequantised")
    assert (found.holds.share, found.holds.fields, found.holds.broken) == (0.7, 7, 0)
    damages = [dose_response(MEAN, x, "input", [found.bounds["input"]], "prequantised").doses[0].damage for x in fields]
    assert max(damages[1:]) == found.damage <= 1
    assert found.bounds["input"].eb / alone.bounds["input"].eb in FACTORS
    sizes = [wb.compress(wb.Field(fields[0]), each.bounds["input"], "prequantised").nbytes for each in (found, alone)]
    assert found.price == pytest.approx(sizes[0] / sizes[1], rel=1e-3)
    assert "raising the bounds on field 7 of 7" in told
    assert found.promise.startswith("holds on 70% of fields of this kind, with 90% confidence, from n = 7 beside the one")
    assert json.loads(json.dumps(found.to_dict()))["holds"]["fields"] == 7
    assert found.promise in repr(found)
    assert alone.promise.startswith("tuned to this field alone: a new field of the kind may break it")


def test_a_budget_says_when_fields_are_too_few(fields):
    few = budget(MEAN, fields[:3], codec="prequantised")
    assert "holds on 31.6% of fields" in few.promise
    assert "; 95% takes n = 45." in few.promise
    runs = [MEAN.run(x) for x in fields[1:3]]
    sampled = budget(MEAN, runs, codec="prequantised", sample=fields[0])   # tunes the bounds, so that both others count
    assert (sampled.bounds, sampled.holds) == (few.bounds, few.holds)


def test_limits_are_those_of_wilks():
    assert fields_for(0.95, 0.9) == 45
    assert share_held(45, 0, 0.9) == pytest.approx(0.1 ** (1 / 45))
    for fields, share, confidence in ((45, 0.95, 0.9), (100, 0.95, 0.9), (250, 0.9, 0.95), (60, 0.5, 0.9)):
        broken = may_break(fields, share, confidence)
        assert binom.cdf(broken, fields, 1 - share) <= 1 - confidence < binom.cdf(broken + 1, fields, 1 - share)
    with_more = Holds(0.95, 0.9, 100, 1, 0.95)
    assert str(with_more).endswith("n = 100 beside the one that it was tuned to, of which 1 broke it")


@pytest.mark.parametrize(("fields", "coverage"), [(45, 0.95), (20, 0.95), (100, 0.9)])
def test_bounds_hold_on_new_fields_as_often_as_they_say(fields, coverage):
    """Where damage is no smooth function of the bound, and the limit is found on the fields that certify it."""
    kept, repeats = 0, 200
    random = np.random.default_rng(0)
    for _ in range(repeats):
        new = random.normal(size=(500 + fields, len(FACTORS))) * 0.3 + random.normal(size=(500 + fields, 1)) * 0.3
        damages = np.array(FACTORS) * np.exp(new)
        each = [lambda factor, row=row: row[FACTORS.index(factor)] for row in damages[:fields]]
        factor, holds, largest = certified(each, fields, coverage, 0.9, lambda share, what: None)
        kept += np.mean(damages[fields:, FACTORS.index(factor)] <= 1) >= holds.share
        assert holds.broken > 0 or largest <= 1
    assert kept / repeats >= 0.9 - 2 * (0.09 / repeats) ** 0.5


def test_a_field_is_cut_into_realisations():
    values = np.arange(4 * 6 * 5.0).reshape(4, 6, 5)
    times, blocks = realisations(values, axis=1), realisations(values, block=(2, 3, 5))
    assert [each.shape for each in times] == [(4, 5)] * 6
    assert (times[2] == values[:, 2]).all()
    assert (np.block([[[blocks[0]], [blocks[1]]], [[blocks[2]], [blocks[3]]]]) == values).all()
    with pytest.warns(UserWarning, match="make one realisation of"):
        assert len(realisations(values, block=4)) == 1   # what is left at the ends is left out
    field = wb.Field(values, spacing=(1, 2, 3), mask=values > 100)
    assert realisations(field, axis=0)[1].spacing == (2, 3)
    assert realisations(field, block=(4, 6, 1))[3].mask.sum() == (values[..., 3] > 100).sum()
    labelled = xr.DataArray(values, dims=("time", "lat", "lon"))
    assert realisations(labelled, axis="time")[3].dims == ("lat", "lon")


@pytest.mark.parametrize(("work", "complaint"), [
    (lambda x: budget(MEAN, [*x[:2], np.ones(7)]), r"the first, \(512,\) at 'input'; number 3 has \(7,\) at 'input'"),
    (lambda x: budget(MEAN, x[:1]), "takes at least 2, one to tune the bounds and others to certify them; got a list of 1"),
    (lambda x: budget(MEAN, x[0], coverage=0.9), "coverage of a budget takes at least 2 fields; got one"),
    (lambda x: budget(MEAN, x, confidence=1), "confidence must be a number between 0 and 1, both excluded; got 1"),
    (lambda x: budget(MEAN, x, coverage="most"), "coverage must be a number between 0 and 1, both excluded; got 'most'"),
    (
        lambda x: budget(MEAN, [x[0], *(each / 1e4 for each in x[1:3])], each_within(0.01), codec="prequantised"),
        "must be of one kind: 1/32 of the bounds that the first tolerates breaks the tolerance on 2 of 2 others",
    ),
    (lambda x: realisations(x, axis=0), "takes a field or an array, and an axis or the shape of a block"),
    (lambda x: realisations(x[0]), "axis None and block None"),
    (lambda x: realisations(x[0], axis=1), "axis of an array with 1 axes must be a whole number, between 0 and 0; got 1"),
    (lambda x: realisations(x[0], block=(2, 2)), r"a block must have 1 axes, as the field; got \(2, 2\)"),
    (lambda x: realisations(x[0], block=513), "the side of a block must be a whole number, between 1 and 512; got 513"),
])
def test_fields_that_certify_nothing_are_refused(work, complaint, fields):
    with pytest.raises(wb.WorkbenchError, match=complaint):
        work(fields)


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
