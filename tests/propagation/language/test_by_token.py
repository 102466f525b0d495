"""Several faults at once, token by token, give the bits of whole runs: with whatever a library does to products."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from workbench.propagation import BitFlip, StuckAt, protected
from workbench.propagation.language import divergence, faults, token_errors
from workbench.propagation.language.by_token import SIZES, ByToken
from workbench.propagation.rows import Rows
from workbench.propagation.stage import Detected

LONG = "the other 12 theories on the inside of an atom and on another one in the end"   # more tokens than the smallest call


def whole(pipeline, run, interventions):
    """The outputs by computing everything again, stage by stage, without a look at the run before."""
    plain = pipeline.like([replace(stage, together=None) for stage in pipeline.stages])
    try:
        found = plain.run(run["tokens"], at=interventions)
    except Detected as error:
        return str(error)
    return {site: found[site].tobytes() for site in pipeline.outputs}


def column_by_column(x, weight):
    """Rows times a matrix; the bits of a row are the same however many there are."""
    summed = np.zeros((len(x), len(weight)), np.float32)
    for column in range(x.shape[1]):
        summed += x[:, column : column + 1] * weight[:, column]
    return summed


def changes(pipeline, flips):
    """Each with the random numbers of a trial, which are used up once they are applied."""
    return [pipeline.interventions([each], 0, number) for number, each in enumerate(flips)]


def results(pipeline, run, flips):
    return [
        str(found) if isinstance(found, Exception) else {site: value.tobytes() for site, value in found.items()}
        for found in pipeline.results(run, changes(pipeline, flips))
    ]


@pytest.mark.few
@pytest.mark.parametrize("alike", [True, False, None])
@pytest.mark.parametrize("options", [{}, {"last": True}, {"new_tokens": 3}, {"layers": [1], "last": True}])
def test_results_are_those_of_whole_runs(lm, monkeypatch, options, alike):
    """Every bit of the exponent, signs and others, in all parts; NaN and infinity among them."""
    if alike is not None:   # a library whose products of some rows have the bits of others, or never
        def product(x, weight):
            return column_by_column(x, weight) * np.float32(1 if alike else 1 + 1e-6 * len(x))

        monkeypatch.setattr("workbench.propagation.language.model._product", product)
    monkeypatch.setattr(lm, "same_bits", {})
    pipeline = lm.pipeline(**options)
    run = pipeline.run(LONG)
    flips = faults(pipeline, bits=["sign", "exponent_top", 24, "mantissa", 0])
    steps = [BitFlip("token 1 block 1", bit=29), BitFlip("block 0 stored keys", bit=30)] if "new_tokens" in options else []
    others = [BitFlip("embedding", count=3), BitFlip("tokens", bit=1, index=4), BitFlip("logits", bit=22)]
    chosen = [*flips[:18], *others, *steps]
    found = results(pipeline, run, chosen)
    assert found == [whole(pipeline, run, each) for each in changes(pipeline, chosen)]
    assert results(pipeline, run, chosen[:5]) == found[:5]
    if alike is not None:
        products = [same for (part, _, _), same in lm.same_bits.items() if part in ("q", "gate", "down")]
        assert products
        assert set(products) == {alike}


def test_what_does_not_reach_the_end_is_the_run_itself(lm):
    pipeline = lm.pipeline(last=True)
    run = pipeline.run(LONG)
    stuck = StuckAt("block 1 q", bit=0, index=0, to=int(run["block 1 q"].view(np.uint32)[0, 0] & 1))
    (found,) = pipeline.results(run, changes(pipeline, [stuck]))
    assert found["logits"] is run.raw["logits"]
    assert pipeline.results(run, []) == []


def test_logits_after_the_last_token_are_those_of_all(lm, monkeypatch):
    monkeypatch.setattr("workbench.propagation.language.model._product", column_by_column)
    assert np.array_equal(lm.pipeline(last=True)(LONG), lm.pipeline()(LONG)[-1:])


def test_earlier_tokens_are_not_computed_again(lm):
    """Nothing that rounding swallows is followed, and a finite fault at token 5 never reaches token 4."""
    pipeline = lm.pipeline()
    run = pipeline.run(LONG)
    stages = {stage.name: stage for stage in pipeline.stages}
    changed = pipeline.perturbed(run, BitFlip("block 0 down", bit=25, index=(5, 3)))
    count = len(run["tokens"])
    where = [Rows(run["block 1"].shape, 0, np.arange(count - 6, count))]
    case = [changed["block 1"]], [run["block 1"]], [run["block 2 attention norm"]], where
    calls = []
    norm = stages["block 2 attention norm"].together
    counted = ByToken(lambda x: calls.append(len(x)) or norm.function(x), "attention norm", {})
    found = counted([case, case])
    assert calls == [count, SIZES[0], SIZES[0]]   # both are compared, and one call is made for twelve rows
    for ((made, rows),) in found:
        assert made[-6:].tobytes() == changed["block 2 attention norm"][-6:].tobytes()
        assert rows.indices.tolist() == where[0].indices.tolist()
    assert not token_errors(run, changed).errors[:, :5].any()


def test_a_protected_pipeline_gives_the_same(lm):
    pipeline = lm.pipeline(tolerance=divergence(0.01))
    run = pipeline.run(LONG)
    safe = protected(pipeline, run)
    golden = safe.run(run["tokens"])
    flips = faults(safe, bits=["exponent_top"])[:12]
    assert results(safe, golden, flips) == [whole(safe, golden, each) for each in changes(safe, flips)]
