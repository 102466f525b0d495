"""What is measured, and what is expected: both by definition, on small boxes, with a mask of any shape."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.data.synthetic import Region, piecewise_field
from workbench.limits.correlation import Autoregressive, Matern
from workbench.limits.periodogram import MOST_BLOCKS, folded_transform, periodogram


def by_definition(weight, covariance):
    """The expected power of a weighted field: sum w_i w_j c(i - j) exp(-i omega (i - j)) / sum w^2, mean over signs."""
    points = np.argwhere(weight > 0)
    weights = weight[tuple(points.T)]
    lags = points[:, None] - points[None]
    matrix = covariance.at(*np.moveaxis(np.abs(lags), -1, 0)) + covariance.nugget * np.eye(len(points))
    power = np.zeros([length // 2 + 1 for length in weight.shape])
    for place in np.ndindex(power.shape):
        signs = np.array(np.meshgrid(*[[-1, 1]] * weight.ndim)).reshape(weight.ndim, -1).T
        for sign in signs:
            omega = 2 * np.pi * sign * np.array(place) / np.array(weight.shape)
            wave = weights * np.exp(-1j * points @ omega)
            power[place] += (wave.conj() @ matrix @ wave).real / len(signs)
    return power / np.sum(weights**2)


@pytest.mark.parametrize("shape", [(7, 6), (5,), (4, 3, 5)])
@pytest.mark.parametrize("holes", [False, True])
def test_what_is_expected_is_what_the_definition_says(shape, holes):
    random = np.random.default_rng(5)
    inside = random.random(shape) > 0.3 if holes else np.ones(shape, bool)
    seen = periodogram(random.standard_normal(shape), inside, 0.0)
    fades = [np.sin(np.pi * (np.arange(n) + 0.5) / n) ** 2 if n > 4 else np.ones(n) for n in shape]
    weight = functools.reduce(np.multiply.outer, fades) * inside
    for covariance in (Autoregressive(2.0, (0.7,) * len(shape), 0.1), Matern(1.0, (2.0,) * len(shape), 1.5)):
        assert seen.expected(covariance) == pytest.approx(by_definition(weight, covariance), rel=1e-10)


def test_frequencies_of_either_sign_are_expected_as_the_definition_says():
    shape = (6, 5)
    inside = np.random.default_rng(6).random(shape) > 0.2
    seen = periodogram(np.random.default_rng(5).standard_normal(shape), inside, 0.0)
    across = Matern(2.0, (3.0, 1.0), 0.8, 0.1, directions=((0.6, 0.8), (-0.8, 0.6)))
    points, fades = np.argwhere(inside), [np.sin(np.pi * (np.arange(n) + 0.5) / n) ** 2 for n in shape]
    weights = np.multiply.outer(*fades)[inside]
    matrix = across.at(*np.moveaxis(points[:, None] - points[None], -1, 0)) + 0.1 * np.eye(len(points))
    expected = np.zeros((6, 3))
    for row, column in np.ndindex(6, 3):
        wave = weights * np.exp(-2j * np.pi * points @ [row / 6, column / 5])
        expected[row, column] = (wave.conj() @ matrix @ wave).real / np.sum(weights**2)
    assert seen.signed.expected(across) == pytest.approx(expected, rel=1e-10)


def test_an_even_covariance_has_the_same_likelihood_with_signs_and_without():
    seen = periodogram(np.random.default_rng(5).standard_normal((50, 60)), np.ones((50, 60), bool), 0.0)
    even = Matern(2.0, (3.0, 1.0), 0.8, 0.1)
    assert seen.signed.deviance(seen.signed.expected(even)) == pytest.approx(seen.deviance(seen.expected(even)), rel=1e-12)
    assert seen.signed.covariance(seen.signed.power)[23:, 23:] == pytest.approx(   # of 23 lags on either side, and 24
        np.fft.irfftn(seen.signed.power, (48, 48), (0, 1))[:24, :24], abs=1e-12)


def test_white_noise_has_its_variance_at_every_frequency():
    seen = periodogram(3 * np.random.default_rng(1).standard_normal((256, 256)), np.ones((256, 256), bool), 0.0)
    assert seen.power.ravel() @ seen.multiplicity.ravel() / seen.multiplicity.sum() == pytest.approx(9, rel=0.02)
    assert np.all(np.abs(seen.power.ravel()[1:] - 9) < 9)
    assert folded_transform(np.eye(1, 9)[0]) == pytest.approx(1)


def test_the_mean_is_no_part_of_it():
    values = 1e6 + np.random.default_rng(1).standard_normal((64, 64))
    seen = periodogram(values, np.ones((64, 64), bool), float(values.mean()))
    assert seen.multiplicity.flat[0] == 0
    assert seen.power.flat[5:] == pytest.approx(np.ones_like(seen.power.flat[5:]), abs=8)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3), st.integers(0, 10**6), st.floats(0.02, 0.98))
def test_any_region_can_be_measured(dimensions, seed, share):
    random = np.random.default_rng(seed)
    shape = tuple(random.integers(3, (0, 900, 150, 40)[dimensions], dimensions))
    inside = random.random(shape) < share
    inside.flat[random.integers(inside.size)] = True
    values = np.where(inside, random.standard_normal(shape), np.nan)
    seen = periodogram(values, inside, 0.0)
    assert np.isfinite(seen.power).all()
    assert seen.power.min() >= 0
    assert np.isfinite(seen.expected(Autoregressive(1.0, (0.5,) * dimensions))).all()
    assert seen.weights.sum() == pytest.approx(1)
    assert seen.window.flat[0] == pytest.approx(1)


def test_a_cell_between_all_blocks_is_found():
    inside = np.zeros((40000,), bool)
    inside[20011:20013] = True
    assert np.isfinite(periodogram(np.ones(40000), inside, 0.5).power).all()


def test_of_a_large_field_blocks_from_everywhere_are_looked_at():
    values = np.ones((4000, 1100))
    values[2000:] = 3.0
    seen = periodogram(values * np.random.default_rng(0).choice([-1.0, 1.0], values.shape), values > 0, 0.0)
    assert len(seen.weights) == MOST_BLOCKS[2]
    assert np.mean(seen.blocks.mean(axis=(1, 2)) > 4) == pytest.approx(0.5, abs=0.03)


def test_a_field_agrees_with_its_covariance_and_not_with_another():
    field = piecewise_field((256, 256), [Region(2.0, 0.9)], seed=3)
    seen = periodogram(np.asarray(field.values, float), np.ones(field.shape, bool), 0.0)
    right, wrong = Autoregressive(4.0, (0.9, 0.9)), Autoregressive(4.0, (0.9, 0.8))
    assert seen.deviance(seen.expected(right)) < seen.deviance(seen.expected(wrong))
    ratio = seen.power / seen.expected(right)
    assert ratio.ravel() @ seen.multiplicity.ravel() / seen.multiplicity.sum() == pytest.approx(1, abs=0.02)
