"""Covariances as functions of the distance: their formulas, their symmetry, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from workbench.errors import WorkbenchError
from workbench.limits.correlation import Autoregressive, Correlation, Even, Matern, Sampled

MODELS = [
    Autoregressive(4.0, (0.9, -0.3), nugget=0.5),
    Matern(4.0, (3.0, 7.0), 0.5, nugget=0.5),
    Matern(4.0, (3.0, 7.0), 1.5, nugget=0.5),
    Matern(4.0, (3.0, 7.0), 2.5, nugget=0.5),
    Matern(4.0, (3.0, 7.0), 0.8, nugget=0.5),
    Sampled(4 * np.multiply.outer([1, 0.5, 0.1], [1, 0.25]), nugget=0.5),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_variance_is_signal_and_nugget_and_only_the_signal_is_at_distance_0(model: Correlation):
    assert model.variance == 4.5
    assert model.nugget == 0.5
    assert model.at(0, 0) == 4.0


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_covariance_is_symmetric_in_each_axis(model):
    rows, columns = np.ogrid[-4:5, -4:5]
    table = model.at(rows, columns)
    assert table.shape == (9, 9)
    assert np.array_equal(table, table[::-1])
    assert np.array_equal(table, table[:, ::-1])
    assert np.array_equal(table, model.at(*np.meshgrid(rows, columns, indexing="ij")))


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_along_an_axis_the_other_distances_are_0(model):
    assert np.array_equal(model.along(0, 6), model.at(np.arange(6), 0))
    assert np.array_equal(model.along(1, 6), model.at(0, np.arange(6)))


def test_an_autoregression_falls_by_the_same_factor_at_every_step():
    model = Autoregressive(2.0, (0.5, -0.25, 0.0))
    assert model.at(3, 2, 0) == 2 * 0.5**3 * 0.25**2
    assert model.at(0, 1, 0) == -0.5
    assert model.at(0, 0, 1) == 0
    assert model.separable
    assert model.dimensions == 3


def test_a_recursion_has_the_covariance_of_an_autoregression():
    a, sigma, start = 0.8, 1.5, 400
    response = a ** np.arange(start + 1)   # to one kick of the noise
    for lag, covariance in enumerate(Autoregressive(sigma**2 / (1 - a**2), a).along(0, 5)):
        assert sigma**2 * response[lag:] @ response[: start + 1 - lag] == pytest.approx(covariance, rel=1e-12)


@pytest.mark.parametrize("smoothness", [0.3, 0.5, 1.0, 1.5, 2.5, 4.0])
def test_a_matern_correlation_is_the_transform_of_its_power_spectrum(smoothness):
    def power(w):
        return (2 * smoothness / length**2 + w * w) ** (-smoothness - 0.5)

    length = 3.0
    whole = quad(power, 0, np.inf)[0]
    for lag, correlation in enumerate(Matern(1.0, length, smoothness).along(0, 6)[1:], start=1):
        waves = quad(power, 0, np.inf, weight="cos", wvar=lag)[0]
        assert correlation == pytest.approx(waves / whole, abs=1e-7)


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5])
def test_closed_forms_and_bessel_functions_agree(smoothness):
    closed, nearly = Matern(1.0, 5.0, smoothness).along(0, 200), Matern(1.0, 5.0, smoothness + 1e-10).along(0, 200)
    assert np.allclose(closed, nearly, rtol=1e-7, atol=0)


@pytest.mark.parametrize("smoothness", [1e-3, 0.5, 0.51, 3.0, 30.0])
@pytest.mark.parametrize("length", [1e-9, 0.1, 3.0, 1e4, 1e30])
def test_a_matern_correlation_starts_at_1_and_falls_however_extreme_it_is(smoothness, length):
    falling = Matern(1.0, length, smoothness).along(0, 300)
    assert falling[0] == 1
    assert (np.diff(falling) <= 1e-12).all()
    assert falling.min() >= 0


def test_a_very_smooth_matern_correlation_is_a_bell():
    lags = np.arange(20)
    assert np.allclose(Matern(1.0, 5.0, 30.0).at(lags), np.exp(-0.5 * (lags / 5) ** 2), atol=0.02)


def test_lengths_only_scale_the_axes():
    model = Matern(1.0, (2.0, 6.0, 4.0), 1.3)
    assert model.at(1, 0, 0) == pytest.approx(model.at(0, 3, 0), rel=1e-14)
    assert model.at(0, 3, 4) == pytest.approx(model.at(np.sqrt(0.25 + 1) * 2, 0, 0), rel=1e-14)
    assert not model.separable
    assert Matern(1.0, 2.0, 1.3).separable


def test_a_table_ends_where_it_ends():
    model = Sampled([[3.0, 1.0], [2.0, 0.5]])
    assert model.at(np.arange(4)[:, None], np.arange(3)).tolist() == [[3, 1, 0], [2, 0.5, 0], [0, 0, 0], [0, 0, 0]]
    assert not model.separable
    assert Sampled([1.0, 0.3]).separable
    assert [model.reach(axis, 5) for axis in (0, 1)] == [2, 2]
    assert model.reach(0, 1) == 1


def test_a_table_is_not_changed_through_the_array_it_was_made_of():
    given_values = np.array([2.0, 1.0])
    model = Sampled(given_values)
    given_values[1] = 7
    assert model.at(1) == 1
    with pytest.raises(ValueError, match="read-only"):
        model.values[0] = 1


@given(st.floats(0.2, 40), st.floats(0.1, 5), st.integers(2, 400))
def test_what_is_out_of_reach_is_negligible_and_what_is_in_reach_is_not(length, smoothness, points):
    model = Matern(2.0, (length, 3 * length), smoothness)
    for axis in (0, 1):
        reach = model.reach(axis, points)
        column = model.along(axis, points)
        assert 1 <= reach <= points
        assert (column[reach:] <= 2e-15).all()
        assert column[reach - 1] > 2e-15


@given(st.floats(0.3, 3.0), st.floats(0.5, 20), st.floats(0.5, 20))
def test_matern_matrices_are_positive_definite(smoothness, first, second):
    rows, columns = np.divmod(np.arange(30), 6)
    matrix = Matern(1.0, (first, second), smoothness).at(np.subtract.outer(rows, rows), np.subtract.outer(columns, columns))
    assert np.linalg.eigvalsh(matrix).min() > -1e-13


REFUSED = [
    (lambda: Autoregressive(-1.0, 0.5), "signal must be a number in"),
    (lambda: Autoregressive(float("nan"), 0.5), "signal must be a number in"),
    (lambda: Autoregressive(1.0, 1.0), "rhos must lie between -1 and 1, both excluded; got"),
    (lambda: Autoregressive(1.0, (0.5, float("nan"))), "rhos must lie between -1 and 1"),
    (lambda: Autoregressive(1.0, ()), "rhos must be one number for each of 1 to 4 axes"),
    (lambda: Autoregressive(1.0, (0.5,) * 5), "rhos must be one number for each of 1 to 4 axes"),
    (lambda: Autoregressive(1.0, "high"), "rhos must be one number for each of 1 to 4 axes; got 'high'"),
    (lambda: Autoregressive(1.0, 0.5, nugget=-0.1), "nugget must be a number in"),
    (lambda: Autoregressive(1.0, 0.5, nugget=float("inf")), "nugget must be a number in"),
    (lambda: Matern(1.0, (3.0, 0.0), 0.5), "lengths must be positive and finite; got 0.0"),
    (lambda: Matern(0.0, 3.0, 0.5), "signal must be positive"),
    (lambda: Matern(1.0, 3.0, 0.0), "smoothness must be positive"),
    (lambda: Matern(1.0, 3.0, float("inf")), r"smoothness must be a number in \[0, 30\]"),
    (lambda: Sampled([]), "values must be a finite table of 1 to 4 axes"),
    (lambda: Sampled(np.ones((1,) * 5)), "values must be a finite table of 1 to 4 axes"),
    (lambda: Sampled([1.0, float("nan")]), "values must be a finite table"),
    (lambda: Sampled([1.0, -1.1]), "values must be largest at distance 0; got 1 there and up to 1.1 elsewhere"),
    (lambda: Sampled([0.0, 0.0]), "the covariance at distance 0 must be positive"),
    (lambda: Autoregressive(1.0, (0.5, 0.5)).at(1), "lags must be 2, one for each axis; got 1"),
    (lambda: Autoregressive(1.0, 0.5).along(1, 4), "axis must be a whole number, between 0 and 0; got 1"),
    (lambda: Autoregressive(1.0, 0.5).along(0, 0), "length must be a whole number, at least 1; got 0"),
]


@pytest.mark.parametrize(("nonsense", "complaint"), REFUSED)
def test_nonsense_is_refused(nonsense, complaint):
    with pytest.raises(WorkbenchError, match=complaint):
        nonsense()


def test_directions_turn_the_lags():
    straight, angle = Matern(2.0, (6.0, 2.0), 1.5, 0.1), np.deg2rad(30)
    turned = Matern(2.0, (6.0, 2.0), 1.5, 0.1, ((np.cos(angle), np.sin(angle)), (-np.sin(angle), np.cos(angle))))
    lags = np.array([[3.0, -1.0, 0.0], [2.0, 5.0, 0.0]])
    along = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]) @ lags
    assert turned.at(*lags) == pytest.approx(straight.at(*along))
    assert not turned.even
    assert turned.at(3, 2) != pytest.approx(turned.at(3, -2))
    assert turned.reach(0, 2000) > straight.reach(1, 2000)
    assert Matern(2.0, (6.0, 2.0), 1.5, directions=((1, 0), (0, 1))) == Matern(2.0, (6.0, 2.0), 1.5)


def test_even_is_the_mean_over_signs():
    turned = Matern(2.0, (6.0, 2.0), 1.5, 0.1, ((0.6, 0.8), (-0.8, 0.6)))
    even = Even(turned)
    assert (even.signal, even.nugget, even.dimensions) == (2.0, 0.1, 2)
    assert even.at(3, 2) == even.at(3, -2) == pytest.approx((turned.at(3, 2) + turned.at(3, -2)) / 2)


def test_the_power_of_a_turned_field_is_the_transform_of_its_covariance():
    turned, lags = Matern(1.0, (2.0, 1.0), 0.8, directions=((0.6, 0.8), (-0.8, 0.6))), np.arange(-60, 61)
    table, waves = turned.at(lags[:, None], lags), np.array([0.3, 1.1, 2.9])
    exact = [(np.exp(-1j * one * lags) @ table @ np.exp(-1j * other * lags)).real for one in waves for other in -waves]
    found = turned.power_at(*np.ix_(waves, -waves)).ravel()
    assert found / found[0] == pytest.approx(np.array(exact) / exact[0], rel=1e-2)


@pytest.mark.parametrize("directions", [((1.0, 0.0),), ((1.0, 0.0), (0.6, 0.8)), ((2.0, 0.0), (0.0, 1.0)), "ab"])
def test_directions_that_are_not_orthogonal_unit_vectors_are_refused(directions):
    with pytest.raises(WorkbenchError, match="directions must be 2 orthogonal unit vectors"):
        Matern(1.0, (1.0, 2.0), 0.5, directions=directions)


@pytest.mark.parametrize("values", [[1.0, 0.5], [[0.1, 0.2, 0.3], [0.0, 1.0, 0.0], [0.1, 0.2, 0.1]]])
def test_a_centred_table_without_a_middle_is_refused(values):
    with pytest.raises(WorkbenchError, match="odd number of lags along each axis, and the same value at a lag"):
        Sampled(values, centred=True)
