"""`workbench compress-model`: a language model within a budget, any tensors within a bound."""

import numpy as np
import pytest

import workbench as wb
from small_language_model import write_model
from workbench.propagation.weights import read_safetensors, write_safetensors


@pytest.mark.long
def test_a_language_model_keeps_its_budget_on_a_text(run, tmp_path):
    pytest.importorskip("gguf")
    pytest.importorskip("tokenizers")
    model = write_model(tmp_path / "small.gguf")
    (tmp_path / "text.txt").write_text("then on the inn")
    outcome = run(
        "compress-model", model, tmp_path / "small.zip", "--budget", "0.02", "--text", tmp_path / "text.txt", "--decoded",
        tmp_path / "decoded.safetensors", "--json", "-q",
    )
    assert outcome.status == 0, outcome.err
    archive, decoded = wb.open(tmp_path / "small.zip"), read_safetensors(tmp_path / "decoded.safetensors")
    assert 0 < outcome.json["loss"] == archive.certificate.loss <= 0.02
    assert outcome.json["file_bytes"] == model.stat().st_size
    assert outcome.json["archive_bytes"] == archive.nbytes
    for name, each in archive.tensors().items():
        assert np.array_equal(decoded[name], each)
    assert run("verify", tmp_path / "small.zip").status == 0
    assert "small.zip" in run("info", tmp_path / "small.zip").out
    said = run("compress-model", model, tmp_path / "b.zip", "--budget", "0.05", "--text", tmp_path / "text.txt", "-q")
    assert "the decoded model loses" in said.out
    assert said.err == ""


def test_tensors_of_any_model_have_a_bound_in_units_of_each(run, tmp_path):
    given = {"a": np.random.default_rng(0).normal(size=(50, 40)).astype(np.float32), "b": np.ones(9), "n": np.arange(3)}
    path = write_safetensors(tmp_path / "m.safetensors", given)
    asked = ("--rms", "0.1", "--exact", "b", "--prune", "0.5", "--json", "-q")
    outcome = run("compress-model", path, tmp_path / "m.zip", *asked)
    assert outcome.status == 0, outcome.err
    archive = wb.open(tmp_path / "m.zip")
    decoded = archive["a"].decompress().values
    kept = abs(given["a"]) >= np.median(abs(given["a"]))
    assert abs(decoded - given["a"])[kept].max() <= 0.1 * np.sqrt((given["a"][kept] ** 2).mean()) * 1.0001
    assert not decoded[~kept].any()
    assert archive["b"].decompress().values.tolist() == [1.0] * 9
    assert "compress-model" in run("info", path).out
    assert run("decompress", tmp_path / "m.zip", tmp_path / "back.safetensors").status == 0
    back = read_safetensors(tmp_path / "back.safetensors")
    assert list(back) == list(given)
    assert np.array_equal(back["a"], decoded)
    refused = run("decompress", tmp_path / "m.zip", tmp_path / "a.safetensors", "--member", "a")
    assert ".safetensors is for all tensors of an undamaged model" in refused.err
    assert run("salvage", tmp_path / "m.zip", tmp_path / "b.safetensors").status == 2
    small = write_safetensors(tmp_path / "small.safetensors", {"a": given["a"][:2]})
    larger = run("compress-model", small, tmp_path / "exact.zip", "--rms", "1e-12", "-q")
    assert larger.err.startswith("note: the archive is larger than")


@pytest.mark.parametrize(("more", "message"), [
    (("--budget", "0.01"), "is not in the file, so its quality cannot be measured here: give --rms"),
    (("--rms", "-1"), "--rms must be positive; got -1"),
    (("--rms", "0.1", "--text", "x"), "--text is what --budget is measured on"),
    (("--rms", "0.1", "--exact", "q"), "'q'"),
    (("--rms", "0.1", "--budget", "1"), "not allowed with"),
    ((), "one of the arguments --budget --rms is required"),
])
def test_wrong_usage_is_a_sentence(run, tmp_path, more, message):
    path = write_safetensors(tmp_path / "m.safetensors", {"a": np.ones((3, 3))})
    outcome = run("compress-model", path, tmp_path / "m.zip", *more, "-q")
    assert outcome.status == 2
    assert message in outcome.err
    assert not (tmp_path / "m.zip").exists()


def test_a_file_that_is_no_model_is_refused(run, tmp_path):
    (tmp_path / "x.gguf").write_bytes(b"GGUF" + bytes(20))
    outcome = run("compress-model", tmp_path / "x.gguf", tmp_path / "x.zip", "--budget", "1")
    assert "must be a whole GGUF file" in outcome.err
    assert "there is no file" in run("compress-model", tmp_path / "none", tmp_path / "x.zip", "--rms", "1").err
