"""Protected pipelines: faults that checks repair, results that stay as they are without one, what cannot be protected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.propagation import BitFlip, Noise, Pipeline, Stage, campaign, protected, strata, trace
from workbench.propagation.protected import PROTECTIONS
from workbench.propagation.protection import Findings, Range, learn_ranges
from workbench.propagation.protection.transforms import checked_rfftn


def density() -> tuple[Pipeline, Any]:
    values = np.exp(wb.synthetic.gaussian_field((16, 12, 10), seed=1).values.astype(float))
    return wb.propagation.power_spectrum(values), values


def waves() -> tuple[Pipeline, Any]:
    values = wb.synthetic.gaussian_field((20, 24), seed=2)
    return wb.propagation.derivatives(values), values


def clumps() -> tuple[Pipeline, Any]:
    random = np.random.default_rng(3)
    points = (random.normal(size=(400, 5)) + 6 * random.integers(0, 4, 400)[:, None]).astype("f4")
    return wb.propagation.kmeans(points, clusters=4, rounds=2), points


def samples() -> tuple[Pipeline, Any]:
    values = np.random.default_rng(4).normal(size=(300, 6)) * np.arange(1, 7)
    return wb.propagation.principal_components(values), values


def product() -> tuple[Pipeline, Any]:
    random = np.random.default_rng(5)
    operator = wb.propagation.linear_operator("product", random.normal(size=(40, 30)))
    return Pipeline([operator, ("squares", lambda p: p * p)]), random.normal(size=30)


CASES = {"density": density, "waves": waves, "clumps": clumps, "samples": samples, "product": product}
CHECKED = {   # the sites of each that have checksums
    "density": ["waves"], "waves": ["gradient", "laplacian"], "samples": ["covariance"], "product": ["product"],
    "clumps": ["products 1", "labels 1", "centres 1", "products 2", "labels 2", "centres 2", "products", "labels"],
}


@pytest.mark.parametrize("name", CASES)
def test_checksums_repair_what_strikes_the_results_of_their_stages(name: str) -> None:
    pipeline, x = CASES[name]()
    safe = protected(pipeline, x, "checksums")
    assert list(safe.checks) == CHECKED[name]
    faults = [
        BitFlip(site, bit=bit) for site in CHECKED[name]
        for bit in ("exponent", "sign", "magnitude") if bit in wb.propagation.number_format.NumberFormat.of(
            pipeline.run(x)[site].dtype).fields
    ]
    trials = 12 * len(faults)
    bare, held = (campaign(each, x, faults, until=trials, seed=1) for each in (pipeline, safe))
    harmed = [trial for trial in bare.trials if trial.outcome in ("silent", "detected", "crash")]
    assert len(harmed) > trials // 20
    assert all(trial.outcome in ("masked", "benign") for trial in held.trials)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("how", PROTECTIONS)
def test_protection_changes_no_bit_without_a_fault_and_finds_none(name: str, how: Any) -> None:
    pipeline, x = CASES[name]()
    run, safe = pipeline.run(x), protected(pipeline, x, how)
    again = safe.run(x)
    assert all(again[site].tobytes() == run[site].tobytes() for site in pipeline.sites)
    assert set(again.findings) == set(safe.checks)
    assert all(found.clean for found in again.findings.values())


@pytest.mark.parametrize("name", ["density", "waves", "clumps"])
def test_a_smooth_error_upstream_is_no_fault(name: str) -> None:
    """Checksums hold for what a stage has read, whatever that is."""
    pipeline, x = CASES[name]()
    safe = protected(pipeline, x, ["checksums", "twice"])
    run = safe.run(x)
    noise = Noise("input", 1e-3, unit="rms")
    changed, plain = safe.perturbed(run, noise), pipeline.perturbed(pipeline.run(x), noise)
    assert all(found.clean for found in changed.findings.values())
    assert all(changed[site].tobytes() == plain[site].tobytes() for site in pipeline.sites)
    one, other = trace(safe, run, noise), trace(pipeline, x, noise)
    assert [each.predicted for each in one.stages] == [each.predicted for each in other.stages]


def test_what_is_computed_twice_is_always_right() -> None:
    pipeline, x = density()
    safe = protected(pipeline, x, "twice")
    found = campaign(safe, x, strata(safe, x, sites=["contrast", "waves", "power"]), until=90)
    assert {trial.outcome for trial in found.trials} == {"masked"}
    run = safe.run(x)
    changed = safe.perturbed(run, BitFlip("power", bit=62, index=7))
    assert changed.findings["power"].recomputed == 1
    assert changed["power"].tobytes() == run["power"].tobytes()


def test_ranges_and_guards_bring_values_back() -> None:
    pipeline, x = density()
    run = pipeline.run(x)
    low, high = float(run["contrast"].min()), float(run["contrast"].max())
    safe = protected(pipeline, run, ["finite", "range"], sites="contrast")
    assert list(safe.checks) == ["contrast"]
    changed = safe.perturbed(safe.run(x), BitFlip("contrast", bit=62, index=5))
    assert low - 0.21 * (high - low) <= changed["contrast"].min() <= changed["contrast"].max() <= high + 0.21 * (high - low)
    several = protected(pipeline, x, learn_ranges([dict(run), dict(pipeline.run(1.1 * x))]))
    assert several.checks["input"][0].guard.high > run["input"].max()   # type: ignore[attr-defined]
    assert list(protected(pipeline, x, {"power": Range(0.0, 1e9)}).checks) == ["power"]


def test_no_result_is_learned_by_heart() -> None:
    """A range of a single value, from the run without an error, would repair any error."""
    pipeline = Pipeline([("contrast", lambda x: x / x.mean() - 1), ("scale", lambda c: c.std()), ("power", lambda s: s**2)])
    x = 1 + np.random.default_rng(0).random(64)
    assert list(protected(pipeline, x, "range").checks) == ["input", "contrast"]
    faults = [BitFlip("input", bit="sign"), BitFlip("contrast", bit="sign")]
    found = campaign(protected(pipeline, x, "range"), x, faults, until=40)
    assert sum(counts["masked"] for counts in found.counts) < 20


def test_the_most_vulnerable_sites_of_a_campaign_are_protected_in_one_call() -> None:
    pipeline, x = density()
    faults = strata(pipeline, x, bits=["exponent"])
    found = campaign(pipeline, x, faults, until=400)
    worst = found.most_vulnerable(2)
    assert worst == [site for site, _ in found.ranking()[:2]]
    safe = protected(pipeline, x, ["twice", "range"], sites=worst)
    held = campaign(safe, x, faults, until=400)
    for site in worst:
        number = [fault.site for fault in faults].index(site)
        assert held.rate("silent", number).estimate < found.rate("silent", number).estimate


def test_campaigns_with_and_without_protection_are_not_mixed(tmp_path: Any) -> None:
    pipeline, x = product()
    path = tmp_path / "trials.jsonl"
    campaign(pipeline, x, [BitFlip("product")], until=5, path=path)
    with pytest.raises(wb.WorkbenchError, match="holds another campaign, with other checks"):
        campaign(protected(pipeline, x, "twice"), x, [BitFlip("product")], until=5, path=path)


def test_the_checksum_of_a_transform_finds_every_flip_that_matters() -> None:
    random = np.random.default_rng(0)
    for trial in range(300):
        shape = tuple(random.integers(1, 9, random.integers(1, 4)))
        values = random.normal(size=shape) * 10.0 ** random.integers(-200, 200)
        found = np.fft.rfftn(values)
        assert checked_rfftn(values, found, np.fft.rfftn)[1].clean, (shape, trial)
        struck = BitFlip("waves", bit=int(random.integers(40, 64))).apply(found, random).values
        with np.errstate(all="ignore"):
            size, limit = abs(struck - found).max(), 1e-11 * np.sqrt(values.size) * abs(values).max()
            repaired, seen = checked_rfftn(values, struck, np.fft.rfftn)
        if not size <= limit:
            assert seen.recomputed == 1
            assert repaired.tobytes() == found.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transforms_of_constants_offsets_and_subnormal_numbers_are_no_fault(dtype: type) -> None:
    random = np.random.default_rng(0)
    for trial in range(150):
        shape = tuple(random.integers(1, [400, 30, 12][trial % 3], trial % 3 + 1))
        normal = random.normal(size=shape)
        tiny = float(np.finfo(dtype).tiny) * 2.0 ** -random.integers(0, 20)
        for values in (np.full(shape, random.random()), 1000 + normal, tiny * normal, np.full(shape, tiny)):
            values = values.astype(dtype)
            assert checked_rfftn(values, np.fft.rfftn(values), np.fft.rfftn)[1] == Findings(checks=1), (shape, trial)
    values = (tiny * random.normal(size=64)).astype(dtype)
    waves = np.fft.rfftn(values)
    struck = waves.copy()
    struck[3] = 1
    assert checked_rfftn(values, struck, np.fft.rfftn)[1] == Findings(checks=1, detected=1, recomputed=1)


def test_round_off_beyond_its_threshold_that_repeats_itself_is_no_fault_of_a_transform() -> None:
    values = np.random.default_rng(0).normal(size=256)
    rough = lambda values: np.fft.rfftn(values) * (1 + 1e-14)   # noqa: E731
    assert checked_rfftn(values, rough(values), rough)[1] == Findings(checks=1, recomputed=1)
    assert checked_rfftn(values, rough(values), np.fft.rfftn)[1].detected == 1
    wrong = lambda values: np.fft.rfftn(values) * 1.1   # noqa: E731
    assert checked_rfftn(values, wrong(values), wrong)[1].detected == 1


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda p, x: protected(p, x, "shield"), "there is no protection 'shield'; there are: checksums"),
        (lambda p, x: protected(p, x, "checksum"), "the nearest names are: checksums"),
        (lambda p, x: protected(p, x, "range", sites=["wave"]), "there is no site 'wave'; the nearest names are: waves"),
        (lambda p, x: protected(p, x, "range", sites="waves"), "must suit the sites; there is none for waves: choose"),
        (lambda p, x: protected(p, x, "checksums", sites=["input"]), "there is none for input"),
        (lambda p, x: protected(p, x, "range", sites=[]), "there is none for none"),
        (lambda p, x: protected(p, x, {"wave": Range(0, 1)}), "there is no site 'wave'"),
    ],
)
def test_what_cannot_be_protected_is_refused(make: Any, complaint: str) -> None:
    with pytest.raises(wb.WorkbenchError, match=complaint):
        make(*density())


def test_labels_of_stages_with_several_outputs_are_computed_twice() -> None:
    pipeline = Pipeline([Stage("both", lambda x: (x + 1, x - 1), outputs=("up", "down"))])
    safe = protected(pipeline, np.ones(4), "twice")
    run = safe.run(np.ones(4))
    changed = safe.perturbed(run, [BitFlip("down", bit=62, index=0), BitFlip("up", bit=63, index=1)])
    assert changed["down"].tolist() == [0.0] * 4
    assert changed["up"].tolist() == [2.0] * 4
