"""Models within a budget of their quality: exact toys, tied and sparse tensors, types, refusals."""

import math

import numpy as np
import pytest

import workbench as wb
from small_language_model import tensors as small_tensors
from small_language_model import write_model
from workbench.archive.collection.model import ModelArchive, is_model
from workbench.propagation import Pipeline, Stage, language_model
from workbench.propagation.weights.bounding import SMALL, bounded, codec_of
from workbench.propagation.weights.compress import ASSESSMENTS
from workbench.propagation.weights.groups import groups_of

RANDOM = np.random.default_rng(0)


def matrices(count=3, rows=40, columns=30, seed=0):
    draws = np.random.default_rng(seed)
    return {f"w{n}": draws.normal(0, 2.0**n, (rows, columns)).astype(np.float32) for n in range(count)}


def gaussian(original, inputs):
    """KL of independent outputs with unit variance: half the mean square of their change, which adds up exactly."""
    def quality(tensors):
        return sum(
            float(np.mean((inputs @ (tensors[name].astype(float) - each.astype(float))) ** 2)) / 2 / 4.0 ** int(name[1:])
            for name, each in original.items()
        )
    return quality


def test_losses_that_add_up_use_the_budget_and_every_bound_holds(tmp_path):
    weights = matrices()
    quality = gaussian(weights, RANDOM.normal(size=(50, 40)))
    archive = wb.compress_model(weights, quality, 1e-3, out=tmp_path / "model.zip")
    said, decoded = archive.certificate, archive.tensors()
    assert said.loss == pytest.approx(quality(decoded), rel=1e-12)
    assert 0.8e-3 <= said.loss <= 1e-3
    assert said.additivity == pytest.approx(1, abs=1e-6)
    assert said.assessments == 1
    for name, each in weights.items():
        assert abs(decoded[name] - each).max() <= archive.bounds[name].eb
        assert decoded[name].dtype == each.dtype
    # Sizes of the same distribution in units of their scale: the best bounds are equal in these units.
    assert len({round(math.log2(archive.chosen[name]) * 2) for name in weights}) <= 2
    opened = wb.open(tmp_path / "model.zip")
    assert isinstance(opened, ModelArchive)
    assert opened.certificate == said
    assert opened.verify(weights).passed
    assert isinstance(wb.open(tmp_path / "model.zip")["w1"], wb.Archive)
    with pytest.raises(wb.WorkbenchError, match="are not in the file: compress the model again"):
        opened.plot()
    assert "Loss of 3 groups" in archive.plot().words
    assert len(archive.plot().x.ticks) <= 9   # more texts would overlap


def test_documents_of_a_model_state_no_more_digits_than_are_read_and_no_notes_on_the_spread_of_a_tensor(tmp_path):
    weights = matrices()
    archive = wb.compress_model(weights, gaussian(weights, RANDOM.normal(size=(50, 40))), 1e3, bounds=[1 / 3, 1.5])
    opened = wb.open(archive.save(tmp_path / "model.zip"))
    for name, bound in opened.bounds.items():
        root_mean_square = math.sqrt(np.mean(weights[name].astype(float) ** 2))
        assert bound.eb == float(f"{bound.eb:.6g}")
        assert 0 <= archive.chosen[name] * root_mean_square / bound.eb - 1 < 1e-5
        assert bound.eb > weights[name].std()
        assert opened[name].certificate.notes == ()


def test_losses_that_do_not_add_up_are_measured_together_and_the_bounds_chosen_again():
    weights = matrices(4, 20, 12)
    alone = gaussian(weights, RANDOM.normal(size=(50, 20)))

    def quality(tensors):   # four equal losses alone are four times their sum together
        return sum(math.sqrt(alone({**weights, name: tensors[name]})) for name in weights) ** 2

    archive = wb.compress_model(weights, quality, 1e-3)
    said = archive.certificate
    assert said.additivity > 2
    assert 1 < said.assessments <= ASSESSMENTS
    assert said.loss == pytest.approx(quality(archive.tensors()))
    assert 0.5e-3 < said.loss <= 1e-3


def test_losses_that_cancel_together_leave_room_that_is_used():
    weights = matrices(4, 20, 12)
    alone = gaussian(weights, RANDOM.normal(size=(50, 20)))

    def quality(tensors):
        return max(alone({**weights, name: tensors[name]}) for name in weights)

    said = wb.compress_model(weights, quality, 1e-3).certificate
    assert said.assessments > 1
    assert said.additivity < 0.4
    assert 0.7e-3 < said.loss <= 1e-3


def test_a_quality_that_jumps_is_refused_after_four_assessments():
    weights, calls = matrices(2), []

    def quality(tensors):
        changed = [name for name in weights if not np.array_equal(tensors[name], weights[name])]
        calls.append(changed)
        return 0.0 if len(changed) < 2 else 1.0

    with pytest.raises(wb.WorkbenchError, match=r"assessments must find bounds within the budget, 0\.01; the decoded"):
        wb.compress_model(weights, quality, 0.01, bounds=[0.01, 0.1])
    assert sum(len(changed) == 2 for changed in calls) <= ASSESSMENTS


def test_tied_weights_are_stored_once_and_change_together(tmp_path):
    table = RANDOM.normal(size=(60, 20)).astype(np.float32)
    weights, seen = {"embedding": table, "output": table, "alone": table.copy()}, []

    def quality(tensors):
        seen.append(np.array_equal(tensors["embedding"], tensors["output"]))
        return sum(float(np.mean((tensors[name] - table) ** 2)) for name in weights)

    archive = wb.compress_model(weights, quality, 1e-3, out=tmp_path / "model")
    assert all(seen)
    assert list(archive) == ["embedding", "alone"]
    decoded = wb.open(tmp_path / "model").tensors()
    assert sorted(decoded) == ["alone", "embedding", "output"]
    assert decoded["output"] is decoded["embedding"]
    assert archive.certificate.loss == pytest.approx(quality(decoded))


def test_integers_stay_halves_are_bounded_and_single_numbers_kept():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    weights = {
        "ids": np.arange(50), "mask": RANDOM.random((5, 5)) > 0.5, "scale": np.array(2.5),
        "none": np.zeros((0, 3), np.float32), "half": RANDOM.normal(size=(40, 50)).astype(np.float16), "zero": np.zeros(9),
        "brain": RANDOM.normal(size=(3, 4, 5, 6, 7)).astype(ml_dtypes.bfloat16), "double": RANDOM.normal(size=300),
    }

    def quality(tensors):
        return sum(
            float(np.mean((tensors[name].astype(float) - each.astype(float)) ** 2)) if each.size else 0.0
            for name, each in weights.items()
        )

    archive = wb.compress_model(weights, quality, 1e-2)
    decoded = archive.tensors()
    for name, each in weights.items():
        assert (decoded[name].dtype, decoded[name].shape) == (each.dtype, each.shape)
        error = abs(decoded[name].astype(float) - each.astype(float)).max(initial=0)
        assert error <= archive.bounds[name].eb
        assert (error > 0) == (name in ("scale", "half", "brain", "double")) or name == "scale"
    assert archive.certificate.loss == pytest.approx(quality(decoded))
    assert archive.certificate.loss <= 1e-2


def test_pruned_values_are_zeros_and_those_of_a_sparse_model_stay_so():
    weights = {"a": RANDOM.normal(size=(100, 50)), "b": RANDOM.normal(size=100)}
    inputs = RANDOM.normal(size=(30, 100)) / 10
    quality = wb.KL(lambda tensors, x: (x * tensors["b"]) @ tensors["a"] / 10, inputs)
    archive = wb.compress_model(weights, quality, 0.02, prune={"a": 0.3})
    kept = abs(weights["a"]) >= np.quantile(abs(weights["a"]), 0.7)
    decoded = archive.tensors()
    assert not decoded["a"][~kept].any()
    assert 0 < archive.certificate.pruned < archive.certificate.loss <= 0.02
    assert np.count_nonzero(decoded["a"]) <= kept.sum()
    sparse = {**weights, "a": np.where(kept, weights["a"], 0)}
    again = wb.compress_model(sparse, quality, 0.02, bounds=[0.1, 0.2]).tensors()
    assert not again["a"][~kept].any()
    with pytest.raises(wb.WorkbenchError, match=r"pruning alone must leave some of the budget, 1e-05; it loses"):
        wb.compress_model(weights, quality, 1e-5, prune=0.3)


def test_complex_numbers_of_any_byte_order_are_pruned_by_their_size():
    weights = {"a": np.array([[0.1 + 9j, 2], [3, 0.2 + 8j]]).astype(">c16"), "large": np.array([1.7e308, -1.7e308], ">f8")}
    archive = wb.compress_model(weights, lambda tensors: 0.0, 1.0, prune=0.5, bounds=[0.1, 2.0], exact=["a"])
    decoded = archive.tensors()
    assert decoded["a"].tolist() == [[0.1 + 9j, 0], [0, 0.2 + 8j]]
    assert [each.dtype.str for each in decoded.values()] == ["<c16", "<f8"]
    assert math.isfinite(archive.bounds["large"].eb)


def test_other_codecs_are_used_and_their_values_measured():
    weights = matrices(2)
    quality = gaussian(weights, RANDOM.normal(size=(20, 40)))
    archive = wb.compress_model(weights, quality, 1e-3, codec="interpolation", bounds=[0.01, 0.02, 0.05])
    assert archive["w0"].codec.id == "interpolation"
    assert archive.certificate.loss == pytest.approx(quality(archive.tensors()))
    assert archive.certificate.loss <= 1e-3


def test_what_is_estimated_of_large_tensors_is_near_what_archives_take():
    values = (RANDOM.normal(size=(600, 500)) * np.exp(RANDOM.normal(size=(600, 1)))).astype(np.float32)
    assert values.size > SMALL
    bound = wb.Absolute(0.1)
    found = bounded(values, bound, codec_of("auto"))
    archive = wb.compress(wb.Field(values), bound, codec="prequantised")
    assert np.array_equal(found.values, archive.decompress().values)
    assert found.nbytes == pytest.approx(archive.nbytes, rel=0.05)


def test_groups_have_one_bound_in_units_of_each_tensor():
    weights = {f"layer.{n}.{part}": RANDOM.normal(0, n + 1, (20, 20)) for n in range(2) for part in ("up", "down")}
    quality = lambda tensors: sum(float(np.mean((tensors[name] - each) ** 2)) for name, each in weights.items())  # noqa: E731
    archive = wb.compress_model(weights, quality, 0.01, groups="layers", exact=["layer.0.up"])
    assert archive.sensitivity.groups == ("layer.0", "layer.1")
    up, down = archive.bounds["layer.1.up"].eb, archive.bounds["layer.1.down"].eb
    rms = {name: np.sqrt(np.mean(weights[name] ** 2)) for name in weights}
    assert up / down == pytest.approx(rms["layer.1.up"] / rms["layer.1.down"], rel=1e-5)   # each has six digits
    assert archive.bounds["layer.0.up"] == wb.Exact()
    named = ["m.1.experts.7.w1", "m.1.experts.7.w2", "m.1.experts.8.w1", "m.1.router"]
    assert list(groups_of("experts", dict.fromkeys(named), {})) == ["m.1.experts.7", "m.1.experts.8", "m.1"]
    own = groups_of({"all": "m.1.experts.*"}, dict.fromkeys(named), dict.fromkeys(named))
    assert [len(members) for members in own.values()] == [3, 1]


def test_pipelines_compute_only_what_follows_a_changed_tensor_and_agree_with_functions():
    weights = {"first": RANDOM.normal(size=(8, 16)), "second": RANDOM.normal(size=(16, 5))}
    x, computed = RANDOM.normal(size=(40, 8)), []

    def hidden(x, first):
        computed.append("hidden")
        return np.maximum(x @ first, 0)

    pipeline = Pipeline(
        [Stage("hidden", hidden, ("x", "first")), Stage("logits", lambda h, w: h @ w, ("hidden", "second"))],
        inputs=("x", "first", "second"),
    )
    one, other = wb.KL(pipeline, x), wb.KL(lambda t, x: np.maximum(x @ t["first"], 0) @ t["second"], x)
    measured = one.of(weights)
    before = len(computed)
    changes = {"second": weights["second"] * 1.01}
    assert measured.changed(changes) == pytest.approx(other.of(weights).changed(changes))
    assert measured.changed(changes) > 0
    assert len(computed) == before
    measured.changed({"first": weights["first"] * 1.01})
    assert len(computed) == before + 1
    assert one.digest == other.digest != wb.KL(pipeline, x + 1).digest
    found = wb.compress_model(weights, one, 1e-3)
    assert found.certificate.inputs == one.digest
    assert found.certificate.loss == pytest.approx(other.of(weights).changed(found.tensors()))
    assert found.certificate.loss <= 1e-3
    with pytest.raises(wb.WorkbenchError, match="inputs of the pipeline, which has x, first, second; got 'b'"):
        wb.compress_model({"b": np.ones(3)}, one, 0.1)


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory):
    pytest.importorskip("gguf")
    return write_model(tmp_path_factory.mktemp("gguf") / "small.gguf")


@pytest.mark.long
def test_a_language_model_from_its_file_or_as_an_object_has_the_same_losses(gguf_file):
    model, tokens = language_model(gguf_file), [5, 80, 33, 200, 7, 7, 91]
    quality = wb.KL(model.pipeline(), tokens)
    one = wb.compress_model(gguf_file, quality, 1e-2, bounds=[0.05, 0.2])
    other = wb.compress_model(model, quality, 1e-2, bounds=[0.05, 0.2])
    assert one.sensitivity.groups[1:4] == ("blk.0", "blk.1", "blk.2")
    assert other.sensitivity.groups[1:4] == ("block 0", "block 1", "block 2")
    assert np.allclose(one.sensitivity.loss, other.sensitivity.loss, rtol=1e-4, equal_nan=True)
    assert one.bounds["blk.1.attn_norm.weight"] == wb.Exact()
    assert other.tied == {"output": "embedding"}
    # The decoded weights as a model of their own diverge by what is stated.
    decoded = {name: np.asarray(each) for name, each in one.tensors().items()}
    own = write_model(gguf_file.with_name("decoded.gguf"), decoded)   # `down` is quantised to 8 bits in this file
    again = language_model(own).forward(tokens)
    from workbench.propagation.language import divergences

    assert divergences(model.forward(tokens), again).mean() == pytest.approx(one.certificate.loss, rel=0.2)
    with pytest.raises(wb.WorkbenchError, match=r"tensors must be weights of small, such as 'embedding'; got 'w0'"):
        wb.compress_model(matrices(), quality, 0.1, exact=())


def test_names_of_files_are_read_as_they_are(gguf_file):
    from workbench.propagation.language.gguf_file import read_tensors

    found = read_tensors(gguf_file)
    assert {name: each.shape for name, each in found.items()} == {n: e.shape for n, e in small_tensors().items()}
    assert np.array_equal(found["blk.1.attn_q.weight"], small_tensors()["blk.1.attn_q.weight"])


def test_a_module_of_torch_has_its_quality_and_its_tied_weights():
    torch = pytest.importorskip("torch", reason="needs the llm extra")
    layers = torch.nn.Linear(8, 12), torch.nn.ReLU(), torch.nn.BatchNorm1d(12), torch.nn.Linear(12, 8)
    module = torch.nn.Sequential(*layers)
    module.append(torch.nn.Linear(8, 12))
    module[4].weight = torch.nn.Parameter(module[0].weight.detach())
    module[4].weight = module[0].weight
    x = torch.randn(50, 8)
    archive = wb.compress_model(module, wb.KL(module, x), 1e-3)
    assert archive.tied == {"4.weight": "0.weight"}
    before = torch.log_softmax(module.eval()(x), 1).detach().double()
    module.load_state_dict({name: torch.tensor(each) for name, each in archive.tensors().items()})
    after = torch.log_softmax(module.eval()(x), 1).detach().double()
    assert float((before.exp() * (before - after)).sum(1).mean()) == pytest.approx(archive.certificate.loss, rel=1e-3)


def only_the_original(tensors):
    return 0.0 if np.array_equal(tensors["w0"], matrices()["w0"]) else math.nan


def test_what_is_said_of_a_model_by_a_foreign_file_is_looked_at_before_it_is_believed():
    archive = wb.compress_model(matrices(1), lambda t: float(abs(t["w0"] - matrices(1)["w0"]).max()), 0.1)
    said = archive.groups[""]["model"]
    members = {name: {} for name in archive}

    def of(said):
        return is_model({"attributes": {"lossbench:collection": {"members": members, "groups": {"": {"model": said}}}}})

    assert of(said)
    assert of({**said, "tied": {"other": "w0"}})
    for change in ({"loss": "0"}, {"inputs": 3}, {"tied": {"other": "w9"}}, {"tied": {"w0": "w0"}}, {"tied": {"other": 3}},
                   {"tied": []}, {"assessments": None}):
        assert not of({**said, **change})
    assert not of(None)
    assert not is_model({"attributes": []})


def broken(tensors):
    raise KeyError("layer")


@pytest.mark.parametrize(("change", "message"), [
    ({"quality": lambda tensors: math.nan}, "quality must be a number, or infinity for a useless model; got NaN"),
    ({"quality": lambda tensors: 0.5}, "quality must be 0 for the original, and rise as the model gets worse; got 0.5"),
    ({"quality": broken}, "quality failed for the original: KeyError: 'layer'"),
    ({"quality": lambda tensors: "good"}, "quality failed for the original: ValueError"),
    ({"quality": lambda tensors: tensors["w0"].fill(0)}, "quality failed for the original: ValueError: .* read-only"),
    ({"quality": only_the_original, "bounds": [0.1]}, r"got NaN for w0 within 0\.1 of its root mean square"),
    ({"quality": 3}, r"quality must be a function of the tensors, or wb.KL\(...\); got 3"),
    ({"budget": 0}, "budget must be positive and finite; got 0"),
    ({"budget": -1.0}, "budget must be positive and finite; got -1.0"),
    ({"budget": math.nan}, "budget must be positive and finite; got nan"),
    ({"tensors": {}}, "a model must have tensors; got none in a mapping"),
    ({"tensors": 3}, "tensors must be a mapping of arrays, a torch module, a language model, or the path"),
    ({"tensors": "nothing.gguf"}, "there is no file nothing.gguf"),
    ({"tensors": {"a": np.array(["x"])}}, "a tensor must hold numbers; 'a' is an array of <U1"),
    ({"tensors": {"a": np.arange(3)}}, "a model must have tensors of floating-point numbers that may change; got none"),
    ({"groups": {"g": "w9"}}, "'w9'"),
    ({"groups": {"g": "w*", "h": "w0"}}, "a tensor is in one group; 'w0' is in 'g' and in 'h'"),
    ({"groups": "blocks"}, "groups must be layers, experts, or a mapping of names to patterns; got 'blocks'"),
    ({"prune": {"w9": 0.5}}, "'w9'"),
    ({"prune": {"w0": 1.5}}, "the share of 'w0' that is kept must be a number between 0 and 1"),
    ({"prune": 0.5, "codec": "interpolation"}, "pruned values stay zero in the built-in codec for weights only"),
    ({"exact": ["w9"]}, "'w9'"),
    ({"bounds": []}, "bounds must be a list of shares of the root mean square"),
    ({"bounds": [0.1, -1]}, "a bound must be positive and finite; got -1"),
    ({"codec": "sz9"}, "codec must be one of"),
])
def test_wrong_input_is_a_sentence(change, message):
    given = {"tensors": matrices(), "quality": gaussian(matrices(), np.eye(40)), "budget": 1e-3, **change}
    with pytest.raises(wb.WorkbenchError, match=message):
        wb.compress_model(given.pop("tensors"), given.pop("quality"), given.pop("budget"), **given)


def test_kl_refuses_what_gives_no_logits():
    with pytest.raises(wb.WorkbenchError, match="KL needs a function of tensors and inputs, a pipeline, a torch module"):
        wb.KL(3, None)
    with pytest.raises(wb.WorkbenchError, match="KL needs logits, floating-point numbers whose last axis"):
        wb.compress_model(matrices(), wb.KL(lambda t, x: 3, None), 0.1)
    with pytest.raises(wb.WorkbenchError, match="a changed model must return logits of the same shape"):
        wb.KL(lambda t, x: t["w"], 0).of({"w": np.ones((2, 3))}).changed({"w": np.ones((3, 3))})
    assert wb.KL(lambda t, x: t["w"], 0).of({"w": np.ones((2, 3))}).changed({"w": np.full((2, 3), np.nan)}) == math.inf
