"""Campaigns of faults in a model: with any number of workers, made again from a file, and with ranges restricted."""

from __future__ import annotations

import json

import numpy as np
import pytest

import small_language_model as small
import workbench as wb
from workbench.propagation import BitFlip, CampaignPlan, Noise, campaign, protected
from workbench.propagation.executor import Threads
from workbench.propagation.language import divergence, faults, pooled, recorded
from workbench.propagation.protection import learn_ranges

TEXT = "the other 12 theories on the inside"


@pytest.fixture(scope="module")
def pipeline(lm):
    return lm.pipeline(last=True, tolerance=divergence(0.01))


def test_outcomes_are_the_same_for_any_number_of_workers(pipeline):
    flips = faults(pipeline, ("q", "down", ""), bits=["sign", "exponent", "mantissa", 30])
    plan = CampaignPlan(pipeline, TEXT, flips, until=144)
    one, two = (plan.run(Threads(workers)) for workers in (1, 2))
    assert one.trials == two.trials
    assert len(one.strata) == 36
    blind = plan.experiment.outcomes((7, 50))
    assert [one.trials[7], one.trials[50]] == blind


def test_strata_are_pooled_by_what_they_share(lm):
    pipeline = lm.pipeline(new_tokens=2, layers=[0, 2])
    flips = faults(pipeline, ("down", "keys"), bits=["sign", "exponent_top"], steps=(0, 1))
    found = campaign(pipeline, TEXT, flips, until=160)
    assert {by: list(pooled(found, by)) for by in ("all", "field", "bits", "layer", "part", "step")} == {
        "all": ["all"], "field": ["exponent_top", "sign"], "bits": ["exponent_top", "sign"], "layer": [0, 2],
        "part": ["down", "keys"], "step": [0, 1],
    }
    each = campaign(pipeline, TEXT, faults(pipeline, ("down",), format="float16"), until=32)
    assert {group: rates["silent"].trials for group, rates in pooled(each, "field").items()} == {
        "exponent": 8, "exponent_top": 2, "mantissa": 20, "sign": 2,
    }
    assert len(pooled(each, "bits")) == 16
    tops = pooled(found, "bits")["exponent_top"]
    own = [sum(each["silent"] for n, each in enumerate(found.counts) if found.strata[n][0].bit == "exponent_top")]
    assert tops["silent"].trials == 80
    assert round(80 * tops["silent"].estimate) == own[0]
    assert sum(rate.estimate for rate in tops.values()) == pytest.approx(1.0)
    assert pooled(campaign(pipeline, TEXT, [BitFlip("embedding", bit=3)], until=10), "layer").keys() == {"embedding"}


def test_a_campaign_is_made_again_from_its_file(tmp_path, lm, pipeline):
    run = pipeline.run(TEXT)
    safe = protected(pipeline, run, learn_ranges([pipeline.run("a 34 thin nation"), run]))
    for number, each in enumerate((pipeline, safe)):
        path = tmp_path / f"{number}.jsonl"
        flips = faults(each, ("down",), bits=["exponent_top", 3], format="bfloat16")
        first = campaign(each, TEXT, flips, seed=5, until=48, path=path)
        plan = recorded(path, lm)
        assert plan.run().trials == first.trials
        assert plan.experiment.tolerance.name == divergence(0.01).name
    made = json.loads((tmp_path / "1.jsonl").read_text().splitlines()[0])["made"]
    assert made["model"] == lm.digest
    assert made["tokens"] == lm.tokens(TEXT).tolist()
    assert set(made["ranges"]) == set(pipeline.sites) - {"tokens"}


def test_ranges_restrict_what_a_flip_of_the_top_bit_does(lm):
    pipeline = lm.pipeline()
    run = pipeline.run(TEXT)
    draws = np.random.default_rng(0)
    ranges = learn_ranges((pipeline.run(draws.integers(3, 260, 40)) for _ in range(4)), 0.1)
    safe = pipeline.like(checks=protected(pipeline, run, ranges).checks)
    golden, wrong = safe.run(TEXT), []
    flips = faults(pipeline, ("values", "gate", "down", ""), bits=["exponent_top"])
    for each, start in ((pipeline, run), (safe, golden)):
        shares = []
        for trial in range(60):
            changed = each.perturbed(start, flips[trial % len(flips)], trial=trial)
            logits = np.nan_to_num(changed["logits"], nan=-np.inf)
            shares.append(float((logits.argmax(axis=1) != start["logits"].argmax(axis=1)).mean()))
        wrong.append(np.mean(shares))
    assert wrong[0] > 0.1
    assert wrong[1] < wrong[0] / 5


def test_files_that_do_not_make_a_campaign_again(tmp_path, lm, pipeline):
    path = tmp_path / "x.jsonl"
    with pytest.raises(wb.WorkbenchError, match="must be readable"):
        recorded(path, lm)
    path.write_text("{}\n")
    with pytest.raises(wb.WorkbenchError, match="is not the file of a campaign"):
        recorded(path, lm)

    def written(pipeline, perturbation, **options):
        path.unlink()
        campaign(pipeline, TEXT, [perturbation], until=1, path=path, **options)
        return path

    flip = BitFlip("block 1 down", bit=3)
    with pytest.raises(wb.WorkbenchError, match=r"if it flips bits; got .*Noise"):
        recorded(written(pipeline, Noise("block 1", 0.1)), lm)
    with pytest.raises(wb.WorkbenchError, match="has a tolerance of a kind"):
        recorded(written(pipeline, flip, tolerance=wb.propagation.within(0.1)), lm)
    with pytest.raises(wb.WorkbenchError, match="has checks of a kind"):
        recorded(written(protected(pipeline, TEXT, "finite"), flip), lm)
    other = wb.propagation.language_model(small.write_model(tmp_path / "other.gguf", small.tensors(1)))
    with pytest.raises(wb.WorkbenchError, match=r"got another one, with .*: give that model"):
        recorded(written(pipeline, flip), other)
    plain = wb.propagation.Pipeline([("double", lambda x: 2 * x)])
    path.unlink()
    campaign(plain, np.ones(3), [BitFlip("input", bit=3)], until=1, path=path)
    with pytest.raises(wb.WorkbenchError, match="must hold a campaign of a language model"):
        recorded(path, lm)
