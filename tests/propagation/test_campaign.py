"""Campaigns: outcomes that depend on nothing but seed and trial, interruptions, stopping, and what the classes mean."""

import itertools
import json
import math
import threading
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc, betaincinv
from scipy.stats import binom

import workbench as wb
from workbench.propagation import (
    BitFlip,
    Bounded,
    CampaignPlan,
    Detected,
    Pipeline,
    Stage,
    StuckAt,
    Tolerance,
    Until,
    campaign,
    histogram,
    power_spectrum,
    strata,
    trace,
    within,
)
from workbench.propagation.beta_quantiles import beta_quantile
from workbench.propagation.intervals import Rate, clopper_pearson, sample_size, weighted


def density(n=8, seed=0):
    return np.exp(np.random.default_rng(seed).normal(size=(n, n, n)))


@pytest.fixture(scope="module")
def spectrum():
    rho = density()
    pipeline = power_spectrum(rho)
    return pipeline, rho, strata(pipeline, rho)


def outcomes(found):
    return [(trial.trial, trial.outcome, trial.error, trial.damage) for trial in found.trials]


class Backwards:
    """An executor that does the last item first."""

    def map(self, name, step, items):
        return [step(item) for item in reversed(items)][::-1]


def test_outcomes_are_the_same_for_any_number_of_workers_and_any_order(spectrum):
    pipeline, rho, perturbations = spectrum
    one = campaign(pipeline, rho, perturbations, seed=3, until=240, workers=1)
    assert len(one.trials) == 240
    for other in (
        campaign(pipeline, rho, perturbations, seed=3, until=240, workers=2),
        campaign(pipeline, rho, perturbations, seed=3, until=240, workers=4),
        CampaignPlan(pipeline, rho, perturbations, seed=3, until=240).run(Backwards()),
    ):
        assert outcomes(other) == outcomes(one)
    assert outcomes(campaign(pipeline, rho, perturbations, seed=4, until=240)) != outcomes(one)


def test_reuse_of_the_unperturbed_prefix_changes_no_outcome(spectrum):
    pipeline, rho, perturbations = spectrum
    experiment = CampaignPlan(pipeline, rho, perturbations).experiment
    plain = Pipeline([replace(stage, update=None) for stage in pipeline.stages], tolerance=pipeline.tolerance)
    for trial in range(150):
        at = pipeline.interventions(experiment.strata[trial % len(perturbations)], 0, trial)
        resumed = pipeline.perturbed(experiment.run, experiment.strata[trial % len(perturbations)], 0, trial)
        whole = plain.run(rho, at=at)
        for site in pipeline.sites:
            assert resumed[site].tobytes() == whole[site].tobytes(), (trial, site)


def test_a_trial_can_be_repeated_as_a_trace(spectrum):
    pipeline, rho, perturbations = spectrum
    run = pipeline.run(rho)
    found = campaign(pipeline, rho, perturbations, seed=7, until=120)
    for trial in found.trials[::17]:
        followed = trace(pipeline, run, found.drawn(run, trial.trial), floor=found.floor)
        if trial.error is not None:
            assert followed.stages[-1].error == trial.error
        assert (followed.stages[-1].badge == "NaN") == (trial.outcome == "detected")


def test_an_interrupted_campaign_continues_to_the_same_end(tmp_path, spectrum):
    pipeline, rho, perturbations = spectrum
    whole = campaign(pipeline, rho, perturbations, until=Until(0.2, 50, 100), workers=1)
    path = tmp_path / "campaign.jsonl"
    stop = threading.Event()
    plan = CampaignPlan(pipeline, rho, perturbations, until=Until(0.2, 50, 100), path=path)
    for state in plan.rounds(cancel=stop):
        if state.trials:
            stop.set()
    assert not state.complete
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(lines[:-20]) + b"\n" + lines[-20][:9])   # cut off in the middle of a line
    resumed = campaign(pipeline, rho, perturbations, until=Until(0.2, 50, 100), path=path)
    assert resumed.complete
    assert outcomes(resumed) == outcomes(whole)
    again = campaign(pipeline, rho, perturbations, until=Until(0.2, 50, 100), path=path)
    assert outcomes(again) == outcomes(whole)


def test_infinite_damage_is_read_as_it_was_written(tmp_path):
    tolerance = Tolerance("zero or infinite", lambda right, other: 0.0 if right == other else np.inf)
    pipeline = Pipeline([("sum", np.sum)], tolerance=tolerance)
    path = tmp_path / "campaign.jsonl"
    first = campaign(pipeline, np.ones(8), [BitFlip("input", bit="sign")], until=20, path=path)
    assert "Infinity" not in path.read_text()
    assert first.trials[0].damage == np.inf
    assert campaign(pipeline, np.ones(8), [BitFlip("input", bit="sign")], until=20, path=path).trials == first.trials


def test_the_file_of_another_campaign_is_not_continued(tmp_path, spectrum):
    pipeline, rho, perturbations = spectrum
    path = tmp_path / "campaign.jsonl"
    campaign(pipeline, rho, perturbations, until=24, path=path)
    with pytest.raises(wb.WorkbenchError, match="holds another campaign, with other seed: give another path"):
        campaign(pipeline, rho, perturbations, seed=1, until=24, path=path)
    with pytest.raises(wb.WorkbenchError, match="with other sites"):
        campaign(pipeline, rho * 2, perturbations, until=24, path=path)
    with pytest.raises(wb.WorkbenchError, match="with other strata"):
        campaign(pipeline, rho, perturbations[:3], until=24, path=path)
    damaged = path.read_text().splitlines()
    path.write_text("\n".join([damaged[0], '{"trial": 0, "outcome": "fine"}', ""]))
    with pytest.raises(wb.WorkbenchError, match="is damaged in line 2"):
        campaign(pipeline, rho, perturbations, until=24, path=path)
    path.write_text("hello\n")
    with pytest.raises(wb.WorkbenchError, match="is not the file of a campaign"):
        campaign(pipeline, rho, perturbations, until=24, path=path)
    with pytest.raises(wb.WorkbenchError, match="must be a file in a folder that exists"):
        campaign(pipeline, rho, perturbations, until=24, path=tmp_path / "no" / "campaign")


def test_strata_end_when_their_intervals_are_narrow():
    values = np.ones(64)
    pipeline = Pipeline([("doubled", lambda x: 2 * x), ("sum", lambda d: d.sum())])
    perturbations = [BitFlip("input", bit=0), BitFlip("input", bit="exponent_top"), BitFlip("doubled", bit=(51, 62))]
    found = campaign(pipeline, values, perturbations, until=0.08)
    assert found.complete
    for number, counts in enumerate(found.counts):
        assert sum(counts.values()) >= 50
        assert all(found.rate(outcome, number).half_width <= 0.08 for outcome in counts)
    assert found.counts[1]["detected"] == sum(found.counts[1].values())   # 1 becomes infinite
    limited = campaign(pipeline, values, perturbations, until=Until(0.001, 50, 60))
    assert [sum(counts.values()) for counts in limited.counts] == [60, 60, 60]


def judged(function, perturbation, tolerance=None, x=None, until=40):
    x = np.arange(1.0, 65.0) if x is None else x
    return campaign(Pipeline([("one", function)]), x, [perturbation], until=until, tolerance=tolerance)


def test_outcomes_mean_what_they_say():
    def refuses(x):
        if not np.isfinite(x).all() or abs(x).max() > 100:
            raise Detected("out of range")
        return x.sum()

    def library(x):
        return wb.Particles(x.reshape(-1, 2), box=64.5).positions

    def breaks(x):
        return np.array([10, 20])[np.int64(x[0] > 100) * 2]

    everything = {name: n for name, n in judged(np.sign, BitFlip("input", bit="mantissa")).counts[0].items() if n}
    assert everything == {"masked": 40}
    found = judged(np.sum, BitFlip("input", bit="sign"), within(0.01)).counts[0]
    assert found["benign"] > 0
    assert found["silent"] > 0
    assert found["benign"] + found["silent"] == 40
    assert judged(refuses, BitFlip("input", bit=61), x=np.full(64, 2.0)).counts[0]["detected"] == 40
    assert judged(library, BitFlip("input", bit="sign")).counts[0]["detected"] == 40
    assert judged(breaks, BitFlip("input", bit=62, index=0), x=np.full(4, 0.5)).counts[0]["crash"] == 40
    assert judged(lambda x: x * 1e300, BitFlip("input", bit=60)).counts[0]["detected"] > 0
    assert judged(lambda x: x[x > 0], BitFlip("input", bit="sign")).counts[0]["crash"] == 40


def test_flips_below_the_floor_are_masked_though_they_change_bits():
    x = np.random.default_rng(0).normal(size=4096)
    found = judged(lambda x: np.fft.ifft(np.fft.fft(x)).real, BitFlip("input", bit=0), x=x)
    assert found.counts[0]["masked"] == 40
    assert any(trial.error > 0 for trial in found.trials)


def test_several_perturbations_at_once_and_bounded_errors_are_strata():
    x = np.sin(np.arange(4096.0))
    pipeline = Pipeline([("mean square", lambda x: (x * x).mean())])
    found = campaign(
        pipeline,
        x,
        [(BitFlip("input", bit="sign"), StuckAt("input", bit=0)), Bounded("input", wb.Absolute(1e-3), "prequantised")],
        until=20,
    )
    assert [sum(each.values()) for each in found.counts] == [10, 10]
    assert found.heat_map().bits == ("sign", "Bounded")


def test_the_result_is_a_table_a_heat_map_and_a_ranking(spectrum):
    pipeline, rho, perturbations = spectrum
    found = campaign(pipeline, rho, perturbations, until=240)
    heat = found.heat_map("silent")
    assert heat.sites == ("input", "contrast", "waves", "power")
    assert heat.bits == ("sign", "exponent", "mantissa")
    assert heat.trials.sum() == 240
    for row in found.rows():
        place = heat.sites.index(row["site"]), heat.bits.index(row["bits"])
        assert heat.share[place] == row["silent"] / row["trials"]
    ranking = found.ranking()
    assert [rate.estimate for _, rate in ranking] == sorted((rate.estimate for _, rate in ranking), reverse=True)
    described = json.loads(found.to_json())
    assert described["trials"] == 240
    assert described["strata"][0]["perturbation"] == "BitFlip('input', bit='sign')"
    assert len(found.to_dataframe()) == 12
    assert "<table>" in found._repr_html_()
    assert "between" in heat._repr_html_()
    assert math.isclose(sum(found.rate(outcome).estimate for outcome in found.counts[0]), 1.0)


def test_strata_name_the_fields_that_a_site_has(spectrum):
    pipeline, rho, _ = spectrum
    each = strata(pipeline, rho, bits="each", sites=["waves"])
    assert [flip.bit for flip in each] == list(range(64))
    counts = histogram(rho, bins=4)
    assert strata(counts, rho, bits=["exponent", 3], sites=["input", "counts"], kind="stuck at 1") == [
        StuckAt("input", bit="exponent", to=1), StuckAt("input", bit=3, to=1), StuckAt("counts", bit=3, to=1),
    ]
    with pytest.raises(wb.WorkbenchError, match="float64 has the fields"):
        strata(pipeline, rho, bits="power")
    with pytest.raises(wb.WorkbenchError, match="no site of counts has bits 'exponent'"):
        strata(counts, rho, bits="exponent", sites=["counts"])
    with pytest.raises(wb.WorkbenchError, match="there is no site 'wave'; the nearest names are: waves"):
        strata(pipeline, rho, sites=["wave"])


@given(st.integers(0, 400), st.integers(0, 400))
@settings(deadline=None)
def test_intervals_of_shares_are_those_of_clopper_and_pearson(one, other):
    trials, successes = max(one, other), min(one, other)
    rate = clopper_pearson(successes, trials)
    if trials:
        low = betaincinv(successes, trials - successes + 1, 0.025) if successes else 0.0
        high = betaincinv(successes + 1, trials - successes, 0.975) if successes < trials else 1.0
        assert (rate.low, rate.high) == pytest.approx((low, high), abs=1e-12)
        assert rate.low <= rate.estimate <= rate.high
    else:
        assert (rate.low, rate.high) == (0, 1)


@given(st.floats(0.01, 1e5), st.floats(0.01, 1e5), st.floats(0.001, 0.999))
@settings(deadline=None)
def test_quantiles_of_beta_distributions_are_those_of_scipy(a, b, level):
    found = beta_quantile(level, a, b)
    assert float(betainc(a, b, found)) == pytest.approx(level, abs=1e-6) or found < 1e-30 or found > 1 - 1e-12


STRATA = [   # trials of each, shares, weights
    (40, [0.002] * 6, [1] * 6),
    (40, [0.002] * 3, [1, 11, 52]),
    (40, [0.9, 0.5, 0.002], [1, 11, 52]),
    (30, [0.01, 0.3, 0.02], [1, 11, 52]),
    (3, [0.05] * 6, [1] * 6),
    (1, [0.3] * 9, [1] * 9),
]


@pytest.mark.parametrize(("trials", "shares", "weights"), STRATA)
def test_intervals_of_strata_cover_as_often_as_they_say(trials, shares, weights):
    """By all combinations of counts, with their probabilities, up to a rest that counts as missed."""
    true, covered = np.average(shares, weights=weights), 0.0
    likely = [[(k, p) for k, p in enumerate(binom.pmf(range(trials + 1), trials, share)) if p > 1e-3] for share in shares]
    alike = len(set(zip(shares, weights, strict=True))) == 1
    combine = itertools.combinations_with_replacement(likely[0], len(shares)) if alike else itertools.product(*likely)
    for found in combine:
        rates = [Rate(k / trials, 0.0, 1.0, trials) for k, _ in found]
        orders = math.factorial(len(found)) / math.prod(map(math.factorial, Counter(found).values())) if alike else 1
        rate = weighted(rates, weights)
        covered += math.prod(p for _, p in found) * orders * (rate.low <= true <= rate.high)
    assert covered >= 0.95


def test_one_stratum_is_in_the_singular():
    found = campaign(Pipeline([("mean", np.mean)]), np.ones(8), [BitFlip("input")], until=5)
    assert repr(found).startswith("Campaign(5 trials in 1 stratum: ")


def test_intervals_have_the_known_values():
    assert round(clopper_pearson(0, 300).high, 3) == 0.012
    assert round(clopper_pearson(0, 1000).high, 4) == 0.0037
    assert (round(clopper_pearson(8, 21).low, 3), round(clopper_pearson(8, 21).high, 3)) == (0.181, 0.616)
    assert abs(sample_size(4_300_000_000, 0.05) - 384) <= 1
    assert abs(sample_size(4_300_000_000, 0.01, 0.99) - 16_587) <= 1
    assert weighted([clopper_pearson(5, 50)], [3]) == clopper_pearson(5, 50)
    half = weighted([clopper_pearson(3, 500)] * 2, [1, 1])
    assert half.high == pytest.approx(clopper_pearson(6, 1000).high, rel=0.01)   # strata that count alike, and are rare


BAD = [
    (lambda p, x: campaign(p, x, []), "at least one perturbation"),
    (lambda p, x: campaign(p, x, [BitFlip("wave")]), "there is no site 'wave'; the nearest names are: waves"),
    (lambda p, x: campaign(p, x.astype("f4"), [BitFlip("input", bit=40)]), "between 0 and 31 for float32; got 40"),
    (lambda p, x: campaign(p, x, [BitFlip("input")], until=0), "until, a number of trials, must be a whole number"),
    (lambda p, x: campaign(p, x, [BitFlip("input")], until=0.9), "half_width must be a number in"),
    (lambda p, x: campaign(p, x, [BitFlip("input")], tolerance=0.01), "tolerance must be one such as within"),
    (lambda p, x: campaign(p, x, [BitFlip("input")], isolate=True), "isolate must be the seconds of processor time"),
    (lambda p, x: campaign(p, x, [None]), "expected perturbations such as BitFlip or Bounded; got None"),
    (lambda p, x: campaign(p, x, [BitFlip("input")], workers=0), "workers must be a whole number"),
    (lambda p, x: campaign(p, x, [BitFlip("input")], until=5).rate("harmless"), "there is no outcome 'harmless'"),
    (
        lambda p, x: campaign(p, x, [BitFlip("input")], tolerance=Tolerance("never", lambda a, b: 2.0)),
        "the tolerance must accept the unperturbed result; its damage there is 2",
    ),
]


@pytest.mark.parametrize(("work", "complaint"), BAD, ids=range(len(BAD)))
def test_bad_campaigns_are_refused_with_a_reason(work, complaint, spectrum):
    with pytest.raises(wb.WorkbenchError, match=complaint):
        work(*spectrum[:2])


def test_a_stage_that_is_not_deterministic_is_named():
    random = np.random.default_rng(0)
    pipeline = Pipeline([("steady", np.sqrt), Stage("noisy", lambda x: x + random.normal())])
    for work in (campaign, trace):
        with pytest.raises(wb.WorkbenchError, match="stage 'noisy' must return the same for the same input"):
            work(pipeline, np.ones(4), [BitFlip("input")])
