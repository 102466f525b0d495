"""A model as a pipeline: the same numbers as the model, faults where they are put in, and errors by token."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import workbench as wb
from workbench.propagation import BitFlip, Bounded, trace
from workbench.propagation.language import divergences, same_tokens, token_errors
from workbench.propagation.language.pipeline import PARTS
from workbench.propagation.language.token_errors import FLOOR

TEXT = "the other 12 theories on the inside"


@pytest.fixture(scope="module")
def pipeline(lm):
    return lm.pipeline()


@pytest.fixture(scope="module")
def run(pipeline):
    return pipeline.run(TEXT)


def test_the_pipeline_computes_what_the_model_does(lm, pipeline, run):
    assert np.array_equal(run["logits"], lm.forward(TEXT))
    assert np.array_equal(pipeline.run([5, 6, 7])["logits"], lm.forward([5, 6, 7]))   # any text
    assert np.array_equal(lm.pipeline(last=True)(TEXT), lm.forward(TEXT, last=True))
    assert all(f"block 2 {part}" in pipeline.sites for part in PARTS)


@pytest.mark.parametrize("layers", [(), (1,), None])
def test_tokens_are_written_step_by_step(lm, layers):
    written = lm.generate(TEXT, tokens=5, ends=False)
    run = lm.pipeline(new_tokens=5, layers=layers).run(TEXT)
    assert tuple(run["answer"]) == written.tokens
    for number in range(1, 5):
        assert np.allclose(run[f"token {number} logits"][0], written.logits[number], rtol=1e-4, atol=1e-5)
    again = lm.pipeline(new_tokens=1).run(TEXT)
    assert tuple(again["answer"]) == written.tokens[:1]


def test_weights_are_sites_where_they_are_asked_for(lm, run):
    names = ["embedding", "output norm", *(f"block 1 {part}" for part in ("attention norm", "q", "k", "v", "attention"))]
    names += [f"block 2 {part}" for part in ("feed-forward norm", "gate", "up", "down")]
    pipeline = lm.pipeline(weights=names)
    own = pipeline.run(TEXT)
    assert np.array_equal(own["logits"], run["logits"])
    for name in names:
        changed = pipeline.resume(own, {f"{name} weight": np.zeros_like(lm.weights[name])})
        assert np.array_equal(changed["block 0"], own["block 0"]) == (name != "embedding")
        assert not np.array_equal(changed["logits"], own["logits"])
    assert not pipeline.resume(own, {"output norm weight": 0 * lm.weights["output norm"]})["logits"].any()
    # The embedding gives the logits, too.
    doubled = pipeline.resume(own, {"embedding weight": 2 * lm.weights["embedding"], "block 2": own["block 2"]})
    assert np.allclose(doubled["logits"], 2 * own["logits"])


def test_faults_in_prompt_cache_and_generation_are_told_apart(lm):
    pipeline = lm.pipeline(new_tokens=3, layers=[1])
    run = pipeline.run(TEXT)
    nothing = {"block 1 stored values": np.zeros_like(run["block 1 values"])}
    cache = pipeline.resume(run, nothing)
    assert np.array_equal(cache["logits"], run["logits"])
    assert cache["answer"][0] == run["answer"][0]
    assert not np.array_equal(cache["token 1 logits"], run["token 1 logits"])
    prompt = pipeline.resume(run, {"block 1 values": np.zeros_like(run["block 1 values"])})
    assert not np.array_equal(prompt["logits"], run["logits"])
    step = pipeline.resume(run, {"token 1 block 1 keys": np.zeros_like(run["token 1 block 1 keys"])})
    assert np.array_equal(step["logits"], run["logits"])
    assert not np.array_equal(step["token 2 block 1 scores"], run["token 2 block 1 scores"])


def test_a_token_is_not_chosen_from_what_is_not_finite(lm):
    pipeline = lm.pipeline(new_tokens=2)
    run = pipeline.run(TEXT)
    with pytest.raises(wb.WorkbenchError, match="finite logits; some are not"):
        pipeline.resume(run, {"block 2": np.full_like(run["block 2"], np.nan)})


def test_errors_by_token_are_those_of_a_plain_loop(pipeline, run):
    found = trace(pipeline, run, BitFlip("block 1 down", bit=27, index=(4, 3)))
    errors = token_errors(found.original, found.changed)
    assert errors.sites == ("embedding", "block 0", "block 1", "block 2", "logits")
    assert "".join(errors.tokens) == TEXT
    for row, site in enumerate(errors.sites):
        for token in range(len(errors.tokens)):
            one, other = (each[site][token].astype(float) for each in (run, found.changed))
            assert errors.errors[row, token] == pytest.approx(np.linalg.norm(other - one) / np.linalg.norm(one), abs=1e-15)
    assert np.flatnonzero(errors.errors[2]).tolist() == [4]     # the block itself, and later tokens in the next
    assert errors.reached.min() == 4
    keys = token_errors(run, found.changed, "keys")
    assert keys.errors.shape == (3, len(errors.tokens))
    assert np.flatnonzero(keys.errors[2]).tolist() == [4]
    assert "23 tokens reached, 0 not finite" in repr(errors)


def test_not_a_number_reaches_tokens_before_it(pipeline, run):
    """A share of zero times NaN is NaN: what the mask hides is not harmless."""
    values = run["block 1 values"].copy()
    values[0, 9, 2] = np.nan
    errors = token_errors(run, pipeline.resume(run, {"block 1 values": values}))
    assert errors.lost.tolist() == list(range(23))
    assert errors.plot().words.endswith("token. logits: 23 of 23 tokens reached, 23 not finite.")
    large = run["block 1 values"].copy()
    large[0, 9, 2] = 1e30
    assert token_errors(run, pipeline.resume(run, {"block 1 values": large})).reached.min() == 9


def test_a_map_has_a_cell_for_each_error(pipeline, run):
    noise = wb.propagation.Noise("block 0", 1e-3, unit="rms")
    errors = token_errors(run, pipeline.perturbed(run, noise))
    (cells,) = errors.plot().parts
    assert len(cells.boxes) == np.count_nonzero(errors.errors) > 60
    assert cells.tooltips[0].startswith("block 0, token 0 'the': 0.000")
    assert "<svg" in errors._repr_html_()


def test_a_bounded_error_at_the_cache_is_traced(pipeline, run):
    found = trace(pipeline, run, Bounded("block 1 keys", wb.Absolute(1e-3), codec="prequantised"))
    assert found["block 1 keys"].largest <= 1e-3
    assert found["block 1 scores"].badge == "linear"
    assert found["logits"].ratio == pytest.approx(1.0, abs=0.05)
    exact = trace(pipeline, run, Bounded("block 1 keys", wb.Absolute(0.0), codec="prequantised"))
    assert set(exact.badges.values()) == {"unchanged"}


def test_qualities_are_those_of_their_definition():
    random = np.random.default_rng(0)
    one, other = random.normal(size=(2, 5, 7))
    p, q = (np.exp(each) / np.exp(each).sum(axis=1, keepdims=True) for each in (one, other))
    assert np.allclose(divergences(one, other), (p * np.log(p / q)).sum(axis=1))
    assert np.isnan(divergences(one, np.where(np.arange(7) == 3, np.inf, other))).all()
    assert divergences(one, one + 3).max() < 1e-15
    answers = {"answer": np.array([1, 2, 3, 4]), "logits": one}
    assert same_tokens(0.5).damage(answers, {**answers, "answer": np.array([1, 2, 0, 4])}) == 0.5
    assert same_tokens(0.5).damage({"logits": np.eye(4)}, {"logits": np.eye(4)[[0, 1, 3, 2]]}) == 1.0


def test_a_pipeline_is_sent_without_its_weights(pipeline, run):
    sent = pickle.dumps(pipeline)
    assert len(sent) < 40_000
    assert np.array_equal(pickle.loads(sent).run(TEXT)["logits"], run["logits"])


def test_on_a_gpu_the_numbers_are_those_of_the_cpu(stand_in, lm, model_file, run):
    there = wb.propagation.language_model(model_file, gpu=True)
    pipeline = there.pipeline(new_tokens=2, layers=[1])
    found = pipeline.run(TEXT)
    assert type(found["logits"]) is type(stand_in.asarray(np.zeros(1)))
    assert np.allclose(found["logits"].get(), run["logits"], rtol=1e-4, atol=1e-5)
    assert there.generate(TEXT, tokens=4).tokens == lm.generate(TEXT, tokens=4).tokens
    flip = BitFlip("block 1 down", bit=30, index=(4, 3))
    errors = token_errors(found, pipeline.perturbed(found, flip))
    here = lm.pipeline(new_tokens=2, layers=[1])
    expected = token_errors(here.run(TEXT), here.perturbed(here.run(TEXT), flip))
    assert np.allclose(errors.errors, expected.errors, rtol=1e-2, atol=1e-6)
    assert list(pipeline.written(found, 3)) == list(here.written(here.run(TEXT), 3))


BAD = [
    (lambda lm, run: lm.pipeline(layers=[3]), "between 0 and 2; got 3"),
    (lambda lm, run: lm.pipeline(weights=["block 1 dwn"]), "no weight 'block 1 dwn'; the nearest names are: block 1 down"),
    (lambda lm, run: lm.pipeline(new_tokens=-1), "new_tokens"),
    (lambda lm, run: lm.pipeline(new_tokens=100).run("a" * 40), "at most 128 tokens; got 140"),
    (lambda lm, run: token_errors(run, run, "downs"), "no part of a block 'downs'"),
    (lambda lm, run: token_errors(*[lm.pipeline(layers=[]).run(TEXT)] * 2, "down"), "choose layers"),
    (lambda lm, run: token_errors(run, lm.pipeline(layers=[]).run(TEXT)), "two runs of one pipeline"),
    (lambda lm, run: same_tokens(0), "share must be positive"),
    (lambda lm, run: wb.propagation.language.divergence(0), "limit must be positive"),
]
assert FLOOR < 1e-6


@pytest.mark.parametrize(("work", "complaint"), BAD)
def test_what_is_refused(lm, run, work, complaint):
    with pytest.raises(wb.WorkbenchError, match=complaint):
        work(lm, run)
