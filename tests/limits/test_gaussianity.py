"""Gaussian innovations pass, others do not, wherever they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.limits.gaussianity import LEAST, MOST_CELLS, Gaussianity, gaussianity, largest_box


def white(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.long
def test_gaussian_noise_is_hardly_ever_called_anything_else():
    verdicts = [gaussianity(white((96, 96), seed)) for seed in range(30)]
    assert sum(verdict.visibly_not for verdict in verdicts) <= 1
    assert np.mean([verdict.probability < 0.1 for verdict in verdicts]) < 0.35


def test_outliers_skewness_and_bursts_are_seen():
    random = np.random.default_rng(7)
    outliers = gaussianity(random.standard_t(6, (96, 96)))
    assert outliers.visibly_not
    assert outliers.outliers > 1
    skewed = gaussianity(random.gamma(9.0, size=(96, 96)))
    assert skewed.visibly_not
    assert skewed.lopsidedness > 0.4
    loud = np.repeat(np.repeat(random.choice([0.5, 1.5], (12, 12)), 8, axis=0), 8, axis=1)
    bursts = gaussianity(loud * white((96, 96), 1))
    assert bursts.visibly_not
    assert bursts.bursts > 0.1
    assert bursts.probability == pytest.approx(LEAST)


def test_a_little_is_no_reason_for_a_warning():
    assert Gaussianity(0.06, 0.0, 0.0, LEAST, 10**6).visibly_not
    assert not Gaussianity(0.04, -0.04, 0.04, LEAST, 10**6).visibly_not
    assert not Gaussianity(0.06, 0.0, 0.0, 2 * LEAST, 10**6).visibly_not


def test_where_there_is_nothing_to_test_nothing_is_said():
    assert gaussianity(np.full((30, 30), np.nan)) is None
    assert gaussianity(white((7, 9), 0)) is None


def test_boxes_without_holes_are_looked_at_everywhere():
    values = white((200, 300), 4)
    values[:, :100] = np.nan
    verdict = gaussianity(values)
    assert verdict.boxes == 4
    assert 20_000 < verdict.cells <= 40_000
    assert "values in 4 boxes" in str(verdict)
    assert gaussianity(white((130, 130), 4)).cells <= 4 * MOST_CELLS


def test_a_part_of_the_field_that_is_not_gaussian_is_seen():
    values = white((256, 256), 4)
    odd = values.copy()
    odd[:, :77] = (np.exp(0.7 * odd[:, :77]) - np.exp(0.245)) / np.sqrt(np.exp(0.98) - np.exp(0.49))
    assert gaussianity(odd).visibly_not
    assert not gaussianity(values).visibly_not
    assert 0.05 < gaussianity(values).seen < 0.5


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3), st.integers(0, 10**6), st.floats(0.0, 0.5))
def test_the_box_has_no_holes(dimensions, seed, share):
    random = np.random.default_rng(seed)
    inside = random.random(tuple(random.integers(1, (0, 60, 20, 9)[dimensions], dimensions))) >= share
    inside.flat[random.integers(inside.size)] = True
    box = largest_box(inside)
    assert inside[box].all()
    assert inside[box].size >= 1
