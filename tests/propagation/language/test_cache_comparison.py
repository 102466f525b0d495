"""Caches in a model: what is exact stays exact, what is coded is compared, and budgets keep what they promise."""

import numpy as np
import pytest

import small_language_model as small
import workbench as wb
from workbench.propagation import KVCache, cache_budget, compare_caches
from workbench.propagation.caches.comparison import predictions
from workbench.propagation.language import ExactCache


@pytest.fixture(scope="module")
def lm(tmp_path_factory):
    """The small model, for texts that fill some blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small, "CONTEXT", 512)
        return wb.propagation.language_model(small.write_model(tmp_path_factory.mktemp("model") / "long.gguf"))


@pytest.fixture(scope="module")
def text():
    return np.random.default_rng(0).integers(5, 200, 220)


def test_a_cache_without_coded_blocks_writes_the_same_tokens(lm, text):
    plain = lm.generate(text[:40], 30, ends=False)
    cached = lm.generate(text[:40], 30, ends=False, cache=KVCache(recent=80))
    assert plain.tokens == cached.tokens
    assert np.isnan(cached.cache.bits_per_value)
    fine = lm.generate(text[:160], 20, ends=False, cache=KVCache(0.002, 0.002))
    assert fine.tokens == lm.generate(text[:160], 20, ends=False).tokens
    assert fine.cache.certificate.checked > 0
    assert fine.cache.certificate.score_bound < 0.05


@pytest.mark.parametrize("coder", ["entropy", "packed"])
def test_predictions_in_stretches_are_those_token_by_token(lm, text, coder):
    cache, found = KVCache(1.0, 0.6, recent=16, coder=coder), []
    several = predictions(lm, text, 150, cache.empty())
    lm.forward(text[:150], cache, last=True)
    for token in text[150:-1]:
        logits = lm.forward([token], cache).astype(np.float64)
        found.append(logits - np.log(np.exp(logits).sum()))
    assert np.allclose(several, np.concatenate(found), atol=1e-3)


def test_a_comparison_ranks_caches_by_what_they_do(lm, text):
    fixed = {"recent": 0}
    caches = [KVCache(0.05, 0.05, **fixed), KVCache(4.0, 2.0, **fixed), KVCache(1.0, 0.6, coder="packed", **fixed), "kivi"]
    told, texts = [], [text, text[::-1].copy()]
    found = compare_caches(lm, texts, caches, prompt=100, tokens=119, progress=lambda *each: told.append(each))
    fine, coarse = found[0], found[1]
    assert fine.bits > coarse.bits > coarse.fewest_bits
    assert 0 <= fine.divergence.value < coarse.divergence.value
    assert fine.kept.value >= coarse.kept.value
    assert coarse.divergence.low < coarse.divergence.value < coarse.divergence.high
    assert found.predictions == 2 * 119
    assert len(told) == 2 * 5
    exact = predictions(lm, text, 100, ExactCache())
    assert found.perplexity > 1
    assert exact.shape == (119, lm.shape.vocabulary)
    assert found.to_dict()["caches"][3]["name"] == "KIVI, 4/4 bits"
    assert "KIVI" in found._repr_html_()
    assert [part.name for part in found.plot().parts if getattr(part, "name", "")]


def test_a_budget_keeps_its_divergence_and_saves_bits(lm, text):
    found = cache_budget(lm, text, divergence=0.02, groups=2, prompt=150, tokens=60)
    assert 0 < found.divergence <= 0.02
    assert set(found.steps) == {"keys 1", "values 1", "keys 2", "values 2"}
    (same,) = compare_caches(lm, text, [found.cache], prompt=150, tokens=60).figures
    assert same.divergence.value == pytest.approx(found.divergence, rel=1e-3)
    finest = KVCache(*(min(found.steps[f"{kind} {group}"] for group in (1, 2)) for kind in ("keys", "values")))
    assert found.bits <= compare_caches(lm, text, [finest], prompt=150, tokens=60)[0].bits


def test_what_a_comparison_refuses_is_said(lm, text):
    for arguments, message in (
        (([1, 2, 3], ["kivi"]), "a text must have at least 769 tokens, for the prompt and 512 predictions; got 3"),
        ((text, []), "a comparison needs at least one cache"),
        ((text, [ExactCache()]), "caches must be KVCache, baseline_cache or their names"),
        ((text, "zip"), "name must be one of"), ((None, KVCache()), "a text must be text"),
    ):
        with pytest.raises(wb.WorkbenchError, match=message):
            compare_caches(lm, *arguments)
    with pytest.raises(wb.WorkbenchError, match="codes nothing of 100 tokens, with recent=64 and block=64: make these"):
        compare_caches(lm, text, "kivi", prompt=50, tokens=50)
    with pytest.raises(wb.WorkbenchError, match="a budget needs a text of 513 tokens"):
        cache_budget(lm, text)
