"""Tails of sums of squares against closed forms, SciPy's chi-squared distributions, and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from scipy.integrate import quad

from workbench.errors import WorkbenchError
from workbench.limits import tails
from workbench.limits.tails import SumOfSquares


def chi_square(freedom: float, weight: float = 1.0) -> SumOfSquares:
    return SumOfSquares(np.array([weight]), np.array([freedom]))


def exponentials(means: np.ndarray) -> SumOfSquares:
    """A sum of exponential numbers: squares come in pairs."""
    return SumOfSquares(means / 2, np.full(len(means), 2.0))


def above_exponentials(means: np.ndarray, value: float) -> float:
    """P[sum > value], by partial fractions; the means must differ."""
    shares = [np.prod(mean / (mean - np.delete(means, place))) for place, mean in enumerate(means)]
    return float(shares @ np.exp(-value / means))


@pytest.mark.parametrize("freedom", [1, 2, 3, 10, 1e3, 1e6])
@pytest.mark.parametrize("deviations", [-6, -3, -1, -1e-6, 0, 1e-6, 1, 3, 6])
def test_equal_weights_are_chi_squared(freedom, deviations):
    value = freedom + deviations * np.sqrt(2 * freedom)
    if value <= 0:
        return
    above, below = np.log(special.chdtrc(freedom, value)), np.log(special.chdtr(freedom, value))
    assert chi_square(freedom, 3.0).log_above(3 * value) == pytest.approx(above, rel=1e-10, abs=1e-11)
    assert chi_square(freedom, 3.0).log_below(3 * value) == pytest.approx(below, rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("freedom", [0.3, 1.7, 64.25])
def test_the_number_of_squares_need_not_be_whole(freedom):
    for value in (0.1 * freedom, freedom, 5 * freedom + 20):
        above, below = special.gammaincc(freedom / 2, value / 2), special.gammainc(freedom / 2, value / 2)
        assert chi_square(freedom).log_above(value) == pytest.approx(np.log(above), rel=1e-9)
        assert chi_square(freedom).log_below(value) == pytest.approx(np.log(below), rel=1e-9)


@pytest.mark.parametrize("freedom", [1, 4, 50])
@pytest.mark.parametrize("shift", [0.5, 10.0, 400.0])
def test_shifted_squares_are_non_central_chi_squared(freedom, shift):
    shifted = SumOfSquares(np.array([1.0]), np.array([float(freedom)]), np.array([shift]))
    for deviations in (-2, -0.5, 0.5, 3):
        value = shifted.mean + deviations * np.sqrt(shifted.variance)
        if value > 0:
            assert np.exp(shifted.log_above(value)) == pytest.approx(stats.ncx2.sf(value, freedom, shift), rel=1e-8)
            assert np.exp(shifted.log_below(value)) == pytest.approx(stats.ncx2.cdf(value, freedom, shift), rel=1e-8)


@pytest.mark.parametrize("probability", [1e-3, 1e-12, 1e-100])
def test_pairs_of_squares_are_exponential_numbers(probability):
    means = np.array([0.3, 1.0, 2.0, 7.0])
    value = exponentials(means).quantile(np.log(probability))
    assert above_exponentials(means, value) == pytest.approx(probability, rel=1e-9)
    assert exponentials(means).log_above(value) == pytest.approx(np.log(probability), abs=1e-11)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6, unique=True), st.floats(0.2, 12))
def test_any_sum_of_exponential_numbers_is_met(means, times):
    each = np.array(sorted(means), float)
    expected = above_exponentials(each, times * each.sum())
    assert np.exp(exponentials(each).log_above(times * each.sum())) == pytest.approx(expected, rel=1e-7, abs=1e-9)


@given(
    st.lists(st.tuples(st.floats(1e-6, 1e6), st.floats(0.5, 1e5)), min_size=1, max_size=20),
    st.floats(-3, 6),
)
def test_both_sides_sum_to_one_and_the_quantile_is_the_inverse(parts, deviations):
    weights, freedom = (np.array(column) for column in zip(*parts, strict=True))
    squares = SumOfSquares(weights, freedom)
    value = squares.mean + deviations * np.sqrt(squares.variance)
    if value <= 0:
        return
    above, below = squares.log_above(value), squares.log_below(value)
    assert np.exp(above) + np.exp(below) == pytest.approx(1, abs=1e-11)
    if -30 < above < -0.1:
        assert squares.quantile(above) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("freedom", [0.5, 8.5, 9.0, 9.1, 40.0, 1e4])
def test_no_place_near_the_mean_is_left_out(freedom):
    squares = SumOfSquares(np.array([1.0]), np.array([freedom]))
    for deviations in (-0.5, -1e-9, 0.0, 1e-9, 1e-3, 0.1, 0.2499, 0.25, 0.2501, 0.5):
        value = squares.mean + deviations * np.sqrt(squares.variance)
        assert np.exp(squares.log_above(value)) == pytest.approx(stats.chi2.sf(value, freedom), rel=1e-11)
        assert np.exp(squares.log_below(value)) == pytest.approx(stats.chi2.cdf(value, freedom), rel=1e-11)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12), st.floats(0.1, 4), st.floats(1e-6, 1e6))
@settings(max_examples=50)
def test_units_do_not_matter(weights, times, unit):
    squares = SumOfSquares(np.array(weights), np.full(len(weights), 3.0))
    value = times * squares.mean
    assert squares.scaled(unit).log_above(unit * value) == pytest.approx(squares.log_above(value), rel=1e-9, abs=1e-12)
    assert squares.scaled(unit).log_power(unit * value, 2.5) == pytest.approx(
        squares.log_power(value, 2.5) + 2.5 * np.log(unit), rel=1e-9, abs=1e-9
    )


@given(st.floats(0.5, 3), st.floats(0.5, 1e3), st.floats(0.01, 5), st.floats(0, 1e5))
def test_a_power_of_what_is_left_is_one_more_sum_of_squares(weight, freedom, times, power):
    squares, value = chi_square(freedom, weight), times * weight * freedom
    exact = power_by_kummer(weight, freedom, value, power)
    assert squares.log_power(value, power) == pytest.approx(exact, rel=1e-10, abs=1e-9)


def power_by_kummer(weight: float, freedom: float, value: float, power: float) -> float:
    """ln E[(c - Q)^a / Gamma(a + 1)] of one weight: a confluent hypergeometric function, as a positive series."""
    z, b = value / (2 * weight), freedom / 2 + power + 1
    terms = np.arange(int(20 * np.sqrt(z + b) + 6 * z) + 200)   # e^-z 1F1(b - f/2, b, z), by Kummer
    top = power + 1
    logs = special.gammaln(top + terms) - special.gammaln(top) - special.gammaln(b + terms) + special.gammaln(b)
    logs = logs + terms * np.log(z) - special.gammaln(terms + 1)
    return float(freedom / 2 * np.log(z) + power * np.log(value) - special.gammaln(b) - z + special.logsumexp(logs))


@pytest.mark.parametrize(("freedom", "power"), [(1.0, 0.5), (10.0, 3.0), (2.0, 40.0)])
def test_a_power_is_the_mean_that_it_says(freedom, power):
    value = 1.3 * freedom
    mean, _ = quad(lambda q: (value - q) ** power * stats.chi2.pdf(q, freedom), 0, value, epsabs=0, epsrel=1e-12, limit=500)
    assert chi_square(freedom).log_power(value, power) == pytest.approx(np.log(mean) - special.gammaln(power + 1), abs=1e-8)


def test_unequal_weights_are_met_by_simulation():
    random = np.random.default_rng(1)
    weights, freedom, shifts = np.array([3.0, 1.0, 0.2]), np.array([2.0, 5.0, 30.0]), np.array([1.0, 0.0, 6.0])
    squares = SumOfSquares(weights, freedom, shifts)
    draws = sum(
        weight * (random.noncentral_chisquare(count, shift, 200_000) if shift else random.chisquare(count, 200_000))
        for weight, count, shift in zip(weights, freedom, shifts, strict=True)
    )
    assert draws.mean() == pytest.approx(squares.mean, rel=0.01)
    assert draws.var() == pytest.approx(squares.variance, rel=0.02)
    for value in np.quantile(draws, [0.02, 0.5, 0.97]):
        assert np.exp(squares.log_above(value)) == pytest.approx(np.mean(draws > value), abs=0.004)
    left = np.maximum(squares.mean - draws, 0) ** 1.5 / special.gamma(2.5)
    assert np.exp(squares.log_power(squares.mean, 1.5)) == pytest.approx(left.mean(), rel=0.02)


def test_tilting_counts_outcomes_by_their_exponential():
    squares, tilt = SumOfSquares(np.array([1.0, 0.3]), np.array([4.0, 9.0])), 0.1
    step = 1e-4
    below, at, above = squares.cumulants(tilt + np.array([-step, 0.0, step], complex)).real
    assert squares.tilted(tilt).mean == pytest.approx((above - below) / (2 * step), rel=1e-6)
    assert squares.tilted(tilt).variance == pytest.approx((above - 2 * at + below) / step**2, rel=1e-4)


def test_nothing_is_below_zero_and_all_is_above():
    squares = chi_square(5)
    assert squares.log_below(0.0) == squares.log_below(-3.0) == squares.log_power(0.0, 2.0) == -np.inf
    assert squares.log_above(0.0) == squares.log_above(-3.0) == 0.0


@pytest.mark.parametrize("eps", [0.5, 0.01, 1e-12])
@pytest.mark.parametrize("freedom", [1.0, 7.0, 1e6])
def test_quantiles_are_those_of_chi_squared(freedom, eps):
    assert chi_square(freedom).quantile(np.log(eps)) == pytest.approx(2 * special.gammainccinv(freedom / 2, eps), rel=1e-11)


def test_weights_of_many_magnitudes_and_numbers_are_computed():
    weights = 10.0 ** -np.arange(0, 16)
    squares = SumOfSquares(weights, 10.0 ** np.arange(0, 16) * 0.1)
    above, below = squares.log_above(squares.mean), squares.log_power(squares.mean, 0.0)
    assert np.exp(above) + np.exp(below) == pytest.approx(1, abs=1e-11)


@pytest.mark.parametrize("deviations", [-1e-3, -1e-6, 0.0])
def test_just_below_the_mean_of_many_the_path_does_not_lean_too_far(deviations):
    squares = SumOfSquares(np.array([1.0, 0.5]), np.array([1e6, 1e6]))
    above = squares.log_above(squares.mean + deviations * np.sqrt(squares.variance))
    skewness = squares.third / squares.variance**1.5
    expected = 0.5 - deviations / np.sqrt(2 * np.pi) - skewness / (6 * np.sqrt(2 * np.pi))   # Edgeworth, to the first order
    assert np.exp(above) == pytest.approx(expected, abs=1e-6)


def test_an_integral_that_does_not_settle_is_an_error(monkeypatch):
    monkeypatch.setattr(tails, "_trapezoids", lambda heights, most: None)
    with pytest.raises(WorkbenchError, match="could not be computed"):
        chi_square(3).log_above(5.0)
