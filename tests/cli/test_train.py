"""`workbench train`: a model, with which `workbench compress --model` makes a later step smaller."""

import numpy as np
import pytest

import workbench as wb
from workbench.codecs import Model
from workbench.codecs import interpolation_training as training


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """Three steps of a field with fronts, as files; training is short."""
    monkeypatch.setattr(training, "LEAST_STEPS", 100)
    monkeypatch.setattr("workbench.codecs.interpolation.COPIES", -1)   # small fields would not use it
    y, x = np.mgrid[:96, :96] / 96
    names = []
    for step in range(3):
        values = np.tanh(9 * np.sin(7 * x + step) * np.cos(5 * y + 3 * x * x)) + 0.01 * np.sin(40 * x * y + step)
        names.append(tmp_path / f"{step}.npy")
        np.save(names[-1], values.astype(np.float32))
    return names


def test_a_model_of_two_steps_serves_the_third(run, steps, tmp_path):
    model, out = tmp_path / "waves.model", tmp_path / "2.zip"
    outcome = run("train", *steps[:2], "--kind", "field", "--rel", "1e-3", "--steps", "300", "-o", model, "--json", "-q")
    assert outcome.status == 0, outcome.err
    assert outcome.json["weights"] == Model.load(model).weights
    assert outcome.json["nbytes"] == len(Model.load(model).text)
    arguments = ("compress", steps[2], out, "--kind", "field", "--rel", "1e-3")
    outcome = run(*arguments, "--model", model, "-q")
    assert outcome.status == 0, outcome.err
    archive = wb.open(out)
    assert archive.codec.model == Model.load(model).text
    assert sum(archive.certificate["values"].figures["remarks"].values()) == 1
    assert run("verify", out, steps[2], "--kind", "field", "-q").status == 0
    assert run(*arguments, "--model", model, "--codec", "interpolation", "--overwrite", "-q").status == 0


def test_a_model_is_not_replaced_unasked_and_nothing_is_left_after_an_error(run, steps, tmp_path):
    model = tmp_path / "a.model"
    arguments = ("train", steps[0], "--kind", "field", "--abs", "0.01", "0.001", "--steps", "30", "-o", model, "-q")
    assert run(*arguments).status == 0
    before = model.read_bytes()
    outcome = run(*arguments)
    assert outcome.status == 2
    assert "exists" in outcome.err
    assert run(*arguments, "--overwrite", "--seed", "1").status == 0
    assert model.read_bytes() != before
    assert {path.name for path in tmp_path.iterdir()} == {"0.npy", "1.npy", "2.npy", "a.model"}


def test_wrong_usage(run, steps, snapshot, tmp_path):
    model, damaged = tmp_path / "a.model", tmp_path / "damaged.model"
    assert run("train", steps[0], "--kind", "field", "--rel", "0.01", "--steps", "100", "-o", model, "-q").status == 0
    damaged.write_bytes(model.read_bytes()[:-9])
    compress = ("compress", steps[0], tmp_path / "a.zip", "--kind", "field", "--rel", "0.01", "-q")
    for arguments, message in (
        (("train", snapshot, "--rel", "0.01", "-o", tmp_path / "b", "-q"), "holds particles"),
        (("train", steps[0], "--kind", "field", "--rel", "0", "-o", tmp_path / "b", "-q"), "positive numbers"),
        (("train", steps[0], "-o", tmp_path / "b"), "one of the arguments --abs --rel is required"),
        ((*compress, "--model", model, "--codec", "sz3"), "--model is for the codec interpolation; got --codec sz3"),
        ((*compress, "--model", tmp_path / "none"), "cannot be read"),
        ((*compress, "--model", damaged), "the model is damaged"),
        ((*compress, "--model", steps[0]), "must be the text that wb.codecs.train made"),
    ):
        outcome = run(*arguments)
        assert outcome.status == 2, arguments
        assert message in outcome.err


def test_a_model_that_has_learned_nothing_is_written_with_a_note(run, tmp_path):
    np.save(tmp_path / "small.npy", np.random.default_rng(0).normal(size=(9, 9)))
    outcome = run("train", tmp_path / "small.npy", "--kind", "field", "--rel", "0.01", "-o", tmp_path / "a.model", "-q")
    assert outcome.status == 0
    assert "note: the model has learned nothing, and changes nothing: a network needs 2,000 values" in outcome.err
