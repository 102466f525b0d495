"""Samples and entropies against plain definitions, on fields whose answers are known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.bounds.prediction.features import NAMES, Counts, features_of
from workbench.bounds.prediction.numbers import KINDS, entropies, rounded
from workbench.bounds.prediction.residuals import Residuals
from workbench.bounds.prediction.survey import FEWEST, PLACES, Survey
from workbench.bounds.prediction.trees import DEPTH, Ensembles, Trees


@given(st.lists(st.integers(-50, 50), min_size=200, max_size=400))
def test_entropy_is_that_of_the_counts_with_its_correction(numbers):
    counts = {value: numbers.count(value) for value in set(numbers)}
    shares = [count / len(numbers) for count in counts.values()]
    plain = -sum(share * math.log2(share) for share in shares) + (len(shares) - 1) / (2 * math.log(2) * len(numbers))
    assert entropies(np.array([numbers], float))[0] == pytest.approx(plain, rel=1e-4)


def test_weights_count_like_repetitions():
    rng = np.random.default_rng(0)
    numbers, times = rng.integers(-20, 20, 500), rng.integers(1, 5, 500)
    repeated = np.repeat(numbers, times)
    weighted = entropies(numbers[None].astype(float), times / times.sum())[0]
    shares = np.unique(repeated, return_counts=True)[1] / len(repeated)
    plain = -(shares * np.log2(shares)).sum()
    assert plain < weighted < plain + 0.2   # with the correction for fewer, uneven samples
    assert weighted > entropies(repeated[None].astype(float))[0]


def test_coarse_levels_get_more_samples_than_their_share_and_less_weight():
    errors = Survey(wb.synthetic.gaussian_field((64, 64, 64), seed=1)).interpolation
    assert errors.weight.sum() == pytest.approx(1)
    assert errors.of_pairs.sum() == pytest.approx(1)
    fine = errors.weight == errors.weight.max()
    assert errors.weight[fine].sum() > fine.mean()


def test_rows_have_entropies_of_their_own_and_far_numbers_are_told_apart():
    far = np.array([-1000.0, 1000.0] * 500)
    found = entropies(np.stack([far, np.zeros(1000), np.arange(1000.0)]))
    assert found == pytest.approx([1, 0, math.log2(1000) + 999 / (2000 * math.log(2))], abs=1e-2)
    assert KINDS > 2000


def test_rounded_errors_are_whole_and_not_too_large():
    assert rounded(np.array([-1.6, 0.4, 0.6, 1e30])).tolist() == [-2, 0, 1, 1 << 20]


@pytest.mark.parametrize("shape", [(5000,), (64, 70), (20, 24, 30), (5, 12, 14, 16), (1, 50, 60), (3, 3), (2,), (1,)])
def test_every_shape_can_be_surveyed(shape):
    values = np.random.default_rng(1).standard_normal(shape)
    survey = Survey(wb.Field(values))
    for codec in ("prequantised", "zfp"):
        found = features_of(Counts(survey, np.array([0.1, 1.0])), wb.codecs.get(codec))
        assert np.isfinite(found.vectors).all()
        assert found.vectors.shape == (2, len(NAMES))
        assert (found.bits > 0).all()
    assert len(survey.corners) == 2 ** len(survey.shape)
    assert FEWEST <= survey.places <= PLACES


@given(st.integers(1, 3), st.integers(0, 1000))
def test_cubics_are_interpolated_without_error(axes, seed):
    rng = np.random.default_rng(seed)
    shape = (300,) if axes == 1 else (40,) * axes
    grid = np.meshgrid(*[np.linspace(-1, 1, n) for n in shape], indexing="ij")
    values = sum(rng.normal() * axis**power for axis in grid for power in range(4))
    survey = Survey(wb.Field(values))
    assert np.quantile(np.abs(survey.interpolation.here[0]), 0.85) < 1e-9
    assert survey.interpolation.here.shape == (2, survey.places)


def test_white_noise_has_the_entropy_of_its_distribution():
    rng = np.random.default_rng(3)
    survey = Survey(wb.Field(rng.standard_normal((256, 256))))
    numbers = features_of(Counts(survey, np.array([0.05])), wb.codecs.get("prequantised"))
    differential = 0.5 * math.log2(2 * math.pi * math.e)   # of the values, the least that any difference has
    assert numbers.bits[0] == pytest.approx(differential + 0.5 - math.log2(0.1), abs=0.1)   # of one difference


def test_features_do_not_depend_on_units():
    field = wb.synthetic.gaussian_field((64, 64), 3, seed=1)
    codec = wb.codecs.get("sz3")
    one = features_of(Counts(Survey(field), np.array([0.01])), codec).vectors
    other = features_of(Counts(Survey(wb.Field(field.values * 1024.0)), np.array([0.01 * 1024])), codec).vectors
    assert one == pytest.approx(other, abs=1e-4)


def test_all_limits_at_once_are_the_limits_one_by_one():
    survey, limits = Survey(wb.synthetic.gaussian_field((40, 50, 60), 3, seed=1)), np.array([1e-4, 0.01, 0.3])
    for name in ("sz3", "zfp", "sperr", "prequantised"):
        codec = wb.codecs.get(name)
        together = features_of(Counts(survey, limits), codec).vectors
        apart = np.concatenate([features_of(Counts(survey, limits[n : n + 1]), codec).vectors for n in range(3)])
        assert together == pytest.approx(apart, abs=1e-4)


def test_samples_do_not_depend_on_what_was_sampled_before():
    field = wb.synthetic.gaussian_field((64, 64), 3, seed=1)
    one, other = Counts(Survey(field), np.array([0.01])), Counts(Survey(field), np.array([0.01]))
    for name in ("zfp", "sperr", "prequantised"):
        features_of(one, wb.codecs.get(name))
    for name in ("prequantised", "sperr", "zfp"):
        first, second = (features_of(each, wb.codecs.get(name)).vectors for each in (one, other))
        assert first.tolist() == second.tolist()


def test_masked_and_infinite_values_are_not_sampled():
    values = wb.synthetic.gaussian_field((64, 64), 3, seed=1).values.copy()
    mask = np.zeros(values.shape, bool)
    mask[:20] = True
    values[:20] = 1e20
    values[30, 30] = np.nan
    survey = Survey(wb.Field(values, mask=mask))
    assert np.abs(survey.values).max() < 10
    errors = survey.interpolation
    assert np.abs(errors.here).max() < 20
    assert errors.counted.sum() == pytest.approx(1)
    assert (errors.counted == 0).mean() > 0.2


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_all_trees_at_once_are_the_trees_one_by_one(seed, count):
    rng = np.random.default_rng(seed)
    rows, wanted = rng.standard_normal((120, 4)).astype(np.float32).astype(float), rng.standard_normal(120)
    trees = Trees.fitted(rows, wanted, count)
    plain = np.full(len(rows), trees.start)
    for features, thresholds, leaves in zip(trees.features, trees.thresholds, trees.leaves, strict=True):
        for number, row in enumerate(rows):
            node = 0
            for _ in range(DEPTH):
                node = 2 * node + 1 + int(row[features[node]] > thresholds[node])
            plain[number] += leaves[node - len(features)]
    assert trees(rows) == pytest.approx(plain)
    again = Trees.from_arrays(trees.to_arrays())
    assert again(rows) == pytest.approx(trees(rows), abs=1e-5)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_ensembles_together_are_ensembles_alone(seed, counts):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((60, 3))
    several = [Trees.fitted(rows, rng.standard_normal(60), count) for count in counts]
    assert Ensembles.of(several)(rows) == pytest.approx(np.array([trees(rows) for trees in several]))


def test_residuals_of_known_scale_take_the_entropy_of_their_scale():
    rng = np.random.default_rng(0)
    scale = rng.choice([0.5, 15.0], 40_000)
    here, even = np.stack([scale * rng.standard_normal(len(scale))] * 2), np.full(len(scale), 1 / len(scale))
    found = Residuals(here, np.stack([scale] * 2), np.zeros(len(scale)), even, 0.9).bits(np.array([0.5]), np.array([12.0]))
    gaussian = math.log2(15 * math.sqrt(2 * math.pi * math.e))
    numbers = np.rint(0.5 * rng.standard_normal(40_000))   # of the calm half, in units of twice the limit
    calm = entropies(numbers)
    assert found[0] == pytest.approx(0.9 * 0.5 * (gaussian + calm) + 0.1 * 12, abs=0.1)


def test_trees_learn_a_product_and_ignore_noise():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (2000, 5))
    wanted = rows[:, 0] * rows[:, 1] + 0.05 * rng.standard_normal(2000)
    trees = Trees.fitted(rows[:1500], wanted[:1500])
    assert np.abs(trees(rows[1500:]) - wanted[1500:]).mean() < 0.15
    with pytest.raises(wb.WorkbenchError, match="a value for each row"):
        Trees.fitted(rows, wanted[:3])
