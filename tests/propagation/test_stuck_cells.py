"""Stuck cells: both mappings cell by cell in exact arithmetic, what cannot change, and how many a network tolerates."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import workbench as wb
from workbench.propagation import Pipeline, StuckCells, accuracy, campaign, perceptron, tolerated
from workbench.propagation.draws import draws_of

SITES = ("weights 1", "weights 2", "weights 3")
WEIGHTS = arrays.arrays(
    st.sampled_from([np.float32, np.float64]), arrays.array_shapes(max_dims=3, max_side=6),
    elements=st.integers(-64, 64).map(lambda n: n / 16),
)
SHARES = st.tuples(st.floats(0, 0.5), st.floats(0, 0.5))
BOTH = ("two-column", "mirrored")


def chip(weights, off, on, mapping, seed):
    """Each cell of a chip, without rounding: the mirrored cells are the complements, with the columns exchanged."""
    exact = [Fraction(float(each)) for each in weights.ravel()]
    full = max(map(abs, exact))
    parts = [[max(each, Fraction(0)) for each in exact], [max(-each, Fraction(0)) for each in exact]]
    chance = draws_of(seed, 0).random((2, len(exact)))
    found = []
    for place in range(len(exact)):
        cells = []
        for column in (0, 1):
            if mapping == "two-column":
                cell = parts[column][place]
                stuck_off, stuck_on = chance[column][place] < off, chance[column][place] >= 1 - on
            else:
                cell = full - parts[1 - column][place]
                stuck_on, stuck_off = chance[1 - column][place] < on, chance[1 - column][place] >= 1 - off
            cells.append(Fraction(0) if stuck_off else full if stuck_on else cell)
        found.append(cells[0] - cells[1])
    return np.array([float(each) for each in found]).reshape(weights.shape)


@given(WEIGHTS, SHARES, st.sampled_from(BOTH), st.integers(0, 2**64 - 1))
@settings(deadline=None, max_examples=80)
def test_a_chip_is_its_cells(weights, shares, mapping, seed):
    found = StuckCells("w", *shares, mapping, seed=seed).apply(weights)
    assert found.values.dtype == weights.dtype
    np.testing.assert_array_equal(found.values, chip(weights, *shares, mapping, seed))
    differ = np.flatnonzero(found.values != weights)
    assert found.where.tolist() == differ.tolist()
    assert found.notes[0]["values_changed"] == len(differ)


@given(WEIGHTS, SHARES, st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_exchanged_kinds_of_faults_exchange_the_mappings(weights, shares, seed):
    off, on = shares
    one = StuckCells("w", off, on, "two-column", seed=seed).apply(weights)
    other = StuckCells("w", on, off, "mirrored", seed=seed).apply(weights)
    assert one.values.tobytes() == other.values.tobytes()
    assert one.notes[0].get("cells_off") == other.notes[0].get("cells_on")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("mapping", "harmless", "harmful"), [("two-column", "off", "on"), ("mirrored", "on", "off")])
def test_a_zero_survives_one_kind_of_fault(dtype, mapping, harmless, harmful):
    weights = np.random.default_rng(0).normal(size=(20, 30)).astype(dtype)
    weights[:, ::2] = 0.0
    weights[0, 0] = -0.0
    for share in (0.1, 1.0):
        found = StuckCells("w", mapping=mapping, seed=3, **{harmless: share}).apply(weights).values
        assert found[:, ::2].tobytes() == weights[:, ::2].tobytes()
        assert (abs(found) <= abs(weights)).all()    # at worst a weight is lost
        assert (found[:, 1::2] != weights[:, 1::2]).any()
    assert (StuckCells("w", mapping=mapping, seed=3, **{harmful: 0.5}).apply(weights).values[:, ::2] != 0).any()


@pytest.mark.parametrize("mapping", BOTH)
def test_without_faults_all_bits_stay(mapping):
    weights = np.array([0.1, -0.0, 1e-30, -3.0, 0.3], np.float32)
    found = StuckCells("w", mapping=mapping, seed=0).apply(weights)
    assert found.values.tobytes() == weights.tobytes()
    assert not len(found.where)
    zeros = StuckCells("w", off=0.5, on=0.5, seed=0).apply(np.zeros(9)).values
    assert zeros.tobytes() == np.zeros(9).tobytes()


@pytest.mark.parametrize("mapping", BOTH)
def test_a_larger_share_has_the_faults_of_a_smaller_one(mapping):
    weights = np.random.default_rng(1).normal(size=20_000)
    cells, before = [], np.zeros(weights.size, bool)
    for rate in (0.001, 0.01, 0.1, 0.4):
        found = StuckCells("w", off=rate / 2, on=rate, mapping=mapping, seed=9).apply(weights)
        differ = found.values != weights
        assert (before <= differ).all()
        before = differ
        cells.append([found.notes[0]["cells_off"], found.notes[0]["cells_on"]])
        spread = 5 * math.sqrt(2 * weights.size * rate)
        assert abs(cells[-1][0] - weights.size * rate) < spread
        assert abs(cells[-1][1] - 2 * weights.size * rate) < spread
    assert np.all(np.diff(cells, axis=0) > 0)


@pytest.mark.parametrize("bits", [1, 2, 4, 10])
def test_cells_of_few_levels_round_weights(bits):
    weights = np.random.default_rng(bits).normal(size=(40, 50))
    found = StuckCells("w", bits=bits, seed=0).apply(weights)
    step = abs(weights).max() / (2**bits - 1)
    levels = found.values / step
    assert abs(levels - np.rint(levels)).max() < 1e-9
    assert abs(found.values - weights).max() <= step / 2 * (1 + 1e-12)
    assert found.notes[0]["nbytes"] == weights.size * 2 * bits // 8
    stuck = StuckCells("w", on=1.0, bits=bits, seed=0).apply(weights).values
    assert not stuck.any()


def test_trials_are_other_chips_and_the_same_on_any_number_of_workers():
    random = np.random.default_rng(0)
    matrix = random.normal(size=(30, 30))
    pipeline = Pipeline([("product", lambda w: w @ np.ones(30))])
    faults = [
        StuckCells("input", on=0.002), StuckCells("input", on=0.002, mapping="mirrored"), StuckCells("input", 0.1, seed=4),
    ]
    one, three = (campaign(pipeline, matrix, faults, until=90, workers=workers) for workers in (1, 3))
    assert [vars(trial) for trial in one.trials] == [vars(trial) for trial in three.trials]
    damages = [{trial.damage for trial in one.trials if trial.trial % 3 == stratum} for stratum in range(3)]
    assert len(damages[0]) > 20
    assert len(damages[2]) == 1    # one certain chip
    assert one.counts[0]["silent"] > one.counts[1]["silent"]
    run = pipeline.run(matrix)
    for trial in (0, 1, 2):
        (drawn,) = one.drawn(run, trial)
        again = pipeline.perturbed(run, faults[trial], trial=trial)
        assert drawn.apply(matrix).values.tobytes() == again["input"].tobytes()


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: StuckCells("w", 1.5), r"off, a share of the cells, must be a number in \[0, 1\]; got 1.5"),
        (lambda: StuckCells("w", math.nan), "off, a share of the cells"),
        (lambda: StuckCells("w", 0.6, 0.6), "add up to at most 1; got 0.6 and 0.6"),
        (lambda: StuckCells("w", mapping="differential"), "mapping must be one of two-column, mirrored"),
        (lambda: StuckCells("w", bits=0), "bits of a cell must be a whole number, between 1 and 24"),
        (lambda: StuckCells("w", seed=-1), "seed must be a whole number"),
        (lambda: StuckCells("w").check(np.arange(3)), "needs floating-point weights at 'w'; got int64"),
        (lambda: StuckCells("w", seed=0).apply(np.array([np.nan, 1.0])), "needs finite weights at 'w'"),
        (lambda: StuckCells("w", 0.1).apply(np.ones(3)), "is random"),
    ],
)
def test_what_is_no_chip_is_refused(make, complaint):
    with pytest.raises(wb.WorkbenchError, match=complaint):
        make()


# The largest rate that is tolerated


def mean_of(results):
    """The quality of a site of ones, of which faults make zeros."""
    return float(results["same"].mean())


def same():
    return Pipeline([("same", lambda w: w + 0.0)])


@pytest.mark.parametrize("loss", [0.003, 0.02, 0.2])
def test_the_rate_of_a_loss_that_is_the_rate_is_found(loss):
    ones, told = np.ones((40, 50)), []
    found = tolerated(
        same(), ones, lambda rate: StuckCells("input", off=rate), loss, quality=mean_of, draws=40,
        progress=lambda share, what: told.append(share),
    )
    assert found.certain < loss < found.too_much
    assert found.certain <= found.rate < found.too_much
    assert found.too_much / found.certain < 2
    assert found.rate == pytest.approx(loss, rel=0.15)
    for rate, mean in found.losses.items():
        assert mean.value == pytest.approx(rate, rel=0.3, abs=3e-4)
        assert mean.low <= mean.value <= mean.high
    assert told == sorted(told)
    assert f"the mean loss is at most {loss:g}" in found.promise
    assert found.to_dict()["losses"][0]["rate"] == min(found.losses)
    assert "mean loss" in found._repr_html_()
    assert len(found.plot().parts) == 3


def test_the_interval_of_the_rate_is_right_for_other_chips():
    ones, loss, right = np.ones(300), 0.05, 0
    for seed in range(25):
        found = tolerated(
            same(), ones, lambda rate: StuckCells("input", off=rate), loss, quality=mean_of, draws=10, seed=seed,
            rates=(0.01, 0.2),
        )
        right += found.certain <= loss <= found.too_much
    assert right >= 22


def test_a_loss_that_never_or_always_is_too_large_has_no_end():
    ones = np.ones(50)
    found = tolerated(same(), ones, lambda rate: StuckCells("input", off=rate / 2), 0.9, quality=mean_of)
    assert (found.rate, found.too_much) == (0.5, math.inf)
    assert found.certain == 0.5
    assert "at 50% it is not certainly more" in found.promise
    all_lost = tolerated(same(), ones, lambda rate: StuckCells("input", off=1.0), 0.1, quality=mean_of)
    assert (all_lost.rate, all_lost.certain) == (0.0, 0.0)
    assert all_lost.too_much == min(all_lost.losses)

    def refusing(w):
        if not w.all():
            raise ValueError("a zero")
        return w

    failing = tolerated(
        Pipeline([("same", refusing)]), ones, lambda rate: StuckCells("input", off=rate), 0.1, quality=mean_of
    )
    assert failing.rate < 0.02
    assert failing.losses[min(each for each in failing.losses if each > failing.rate)].value == math.inf
    assert failing.plot().parts[2].y.max() == 0


def test_by_default_classes_must_stay():
    rows = np.eye(5).repeat(20, axis=0)
    network = Pipeline([("logits", lambda x: 3 * x)])
    kept = tolerated(network, rows, lambda rate: StuckCells("input", off=rate), 0.1, draws=20)
    labels = np.arange(5).repeat(20)
    same_as = tolerated(network, rows, lambda rate: StuckCells("input", off=rate), 0.1, draws=20, quality=accuracy(labels))
    assert kept.losses == same_as.losses
    assert kept.rate == pytest.approx(0.1 / 0.8, rel=0.3)   # the first of equal numbers is the largest


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: tolerated(same(), np.float64(1), lambda rate: StuckCells("input", rate)), "of which one is the largest"),
        (lambda: tolerated(same(), np.ones(4), lambda rate: rate, quality=mean_of), "must return perturbations; got"),
        (lambda: tolerated(same(), np.ones(4), StuckCells("input")), "perturbation_of_rate must be a function"),
        (lambda: tolerated(same(), np.ones(4), None), "perturbation_of_rate must be a function"),
        (lambda: tolerated(same(), np.ones(4), None, 0.0), "loss must be positive"),
        (lambda: tolerated(same(), np.ones(4), None, rates=(0.5, 0.1)), "a smaller and a larger one"),
        (lambda: tolerated(same(), np.ones(4), None, draws=2), "draws must be a whole number, at least 3"),
        (lambda: tolerated(same(), np.ones(4), abs, quality=lambda results: math.nan), "quality must be a finite number"),
        (lambda: accuracy([1])({"a": np.ones((2, 2))}), "a label for each row"),
        (lambda: accuracy([1])({"a": np.ones((1, 2)), "b": np.ones((1, 2))}), "needs one output"),
    ],
)
def test_what_cannot_be_tolerated_is_said(call, complaint):
    with pytest.raises(wb.WorkbenchError, match=complaint):
        call()


# A network


@pytest.fixture(scope="module")
def network():
    return perceptron(*wb.synthetic.digits(800), epochs=25)


def test_the_mirrored_mapping_tolerates_ten_times_more_cells_that_are_stuck_on(network):
    images, labels = wb.synthetic.digits(300, seed=1)
    assert accuracy(labels)(network.run(images).results) > 0.93
    found = {
        mapping: tolerated(
            network, images, lambda rate, own=mapping: [StuckCells(site, on=rate, mapping=own) for site in SITES],
            quality=accuracy(labels), rates=(2e-4, 0.1), draws=20,
        )
        for mapping in BOTH
    }
    assert found["mirrored"].rate / found["two-column"].rate >= 10
    assert found["mirrored"].certain / found["two-column"].too_much > 3
    swapped = tolerated(
        network, images, lambda rate: [StuckCells(site, off=rate) for site in SITES], quality=accuracy(labels),
        rates=(2e-4, 0.1), draws=20,
    )
    assert swapped.losses == found["mirrored"].losses


def test_digits_and_networks_are_made_again_from_their_seed():
    one, other = wb.synthetic.digits(50, seed=3), wb.synthetic.digits(50, seed=3)
    assert one[0].tobytes() == other[0].tobytes()
    assert one[0].dtype == np.float32
    assert (one[0].min(), one[0].max()) == (0.0, 1.0)
    assert one[0].tobytes() != wb.synthetic.digits(50, seed=4)[0].tobytes()
    first, second = (perceptron(*one, hidden=(8,), epochs=2)(one[0]) for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((np.ones(4), np.ones(4, int)), "images must be rows of numbers"),
        ((np.ones((4, 2)), np.ones(3, int)), "a whole number from 0 for each of 4 rows"),
        ((np.ones((4, 2)), -np.ones(4, int)), "a whole number from 0"),
        ((np.full((4, 2), np.nan), np.ones(4, int)), "images must be finite"),
    ],
)
def test_what_cannot_be_learned_is_refused(arguments, complaint):
    with pytest.raises(wb.WorkbenchError, match=complaint):
        perceptron(*arguments)
