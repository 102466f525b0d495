"""Bounds on every value against the tables, covering by intervals, numerical integration and simulation."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from scipy.integrate import quad

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.limits.approximation import variable_length
from workbench.limits.converse import converse
from workbench.limits.pointwise import PRICE, ScalarQuantiser, pointwise_converse, pointwise_rate, uniform_mse
from workbench.limits.spectrum import Spectrum

# step over sigma, gap to the rate, mean square error over step^2 / 12, share of zeros
QUANTISERS = [
    (0.1, 0.2552, 1.000, 0.040),
    (0.5, 0.2695, 1.000, 0.197),
    (1.0, 0.3124, 1.000, 0.383),
    (1.5, 0.3781, 0.9998, 0.547),
    (2.0, 0.4424, 0.9913, 0.683),
    (3.0, 0.3884, 0.8644, 0.866),
    (4.0, 0.2071, 0.6481, 0.9545),
    (5.0, 0.0793, 0.4608, 0.988),
    (6.0, 0.0230, 0.3303, 0.997),
]
spectra = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20).map(Spectrum.of)
bounds = st.floats(-6, 1).map(lambda exponent: 10**exponent)


def test_the_price_is_that_of_cubes_over_balls():
    assert pytest.approx(0.254614, abs=5.1e-7) == PRICE
    assert 20 * np.log10(2) * PRICE == pytest.approx(1.532931, abs=5.1e-7)   # in decibels


def test_evenly_spread_errors_have_the_mean_square_of_the_formula():
    errors = np.random.default_rng(1).uniform(-0.2, 0.2, 100_000)
    assert uniform_mse(0.2) == pytest.approx(np.mean(errors**2), rel=0.01)


@pytest.mark.parametrize(("eb", "pointwise", "rate"), [
    (0.1, 4.36902, 4.11441), (0.01, 7.69095, 7.43634), (0.001, 11.01288, 10.75827)
])
def test_white_noise_has_the_tabulated_rates(eb, pointwise, rate):
    white = Spectrum.of(1.0, 10)
    assert pointwise_rate(white, eb) == pytest.approx(pointwise, abs=5.1e-6)
    assert white.rate(uniform_mse(eb)) == pytest.approx(rate, abs=5.1e-6)


@given(spectra, st.floats(1e-6, 1e-2))
def test_at_fine_bounds_the_pointwise_rate_is_dearer_by_the_price(spectrum, fineness):
    eb = fineness * np.sqrt(spectrum.values[0])
    assert pointwise_rate(spectrum, eb) - spectrum.rate(uniform_mse(eb)) == pytest.approx(PRICE, abs=1e-9)


def test_at_coarse_bounds_the_pointwise_rate_is_negative_and_returned_as_it_is():
    assert pointwise_rate(Spectrum.of(1.0), 10.0) == pytest.approx(0.5 * np.log2(2 * np.pi * np.e) - np.log2(20), rel=1e-12)


@pytest.mark.parametrize(("n", "expected"), [
    (1, 8.008893), (2, 8.071231), (10, 8.047229), (100, 7.870228), (1000, 7.758450), (10**5, 7.698347)
])
def test_white_noise_has_the_tabulated_pointwise_converses(n, expected):
    assert pointwise_converse(Spectrum.of(1.0, n), 0.01, 0.01) == pytest.approx(expected, abs=5.1e-7)
    assert pointwise_converse(Spectrum.of(9.0, n), 0.03, 0.01) == pytest.approx(expected, abs=5.1e-7)


@pytest.mark.parametrize("eps", [0.5, 0.01, 1e-12])
@pytest.mark.parametrize("eb", [1e-6, 0.1])
def test_one_number_needs_as_many_intervals_as_cover_it(eps, eb):
    assert 2 ** pointwise_converse(Spectrum.of(1.0), eb, eps) == pytest.approx(-special.ndtri(eps / 2) / eb, rel=1e-9)


def test_long_fields_need_the_pointwise_rate():
    spectrum = Spectrum.of([4.0, 1.0], [10**6, 10**6])
    assert pointwise_converse(spectrum, 0.01, 0.01) == pytest.approx(pointwise_rate(spectrum, 0.01), abs=2e-3)


@given(spectra, bounds, st.floats(1e-12, 0.5), st.floats(1e-3, 1e3))
@settings(max_examples=15)
def test_units_do_not_matter_and_no_bound_is_below_that_of_the_mean_square(spectrum, fineness, eps, unit):
    eb = fineness * np.sqrt(spectrum.variance)
    found = pointwise_converse(spectrum, eb, eps)
    scaled = Spectrum.of(unit**2 * spectrum.values)
    assert pointwise_converse(scaled, unit * eb, eps) == pytest.approx(found, abs=1e-6)
    assert pointwise_rate(scaled, unit * eb) == pytest.approx(pointwise_rate(spectrum, eb), abs=1e-9)
    assert found >= converse(spectrum, eb**2, eps) >= 0
    assert found >= pointwise_converse(spectrum, 1.5 * eb, eps) - 1e-6


def test_one_bound_on_the_values_is_kept_by_a_cubic_lattice_at_no_less_than_the_converse():
    """Two numbers with nearly all in a square of cells: as many cells as cover the disc that holds 99 %."""
    eb, radius = 0.05, np.sqrt(-2 * np.log(0.01))
    centres = np.arange(-60, 61) * 2 * eb
    nearest = np.maximum(np.abs(centres) - eb, 0)
    cells = np.count_nonzero(nearest[:, None] ** 2 + nearest[None, :] ** 2 <= radius**2)
    bits = np.log2(cells) / 2
    assert bits - 0.05 < pointwise_converse(Spectrum.of(1.0, 2), eb, 0.01) < bits


def test_a_constant_sample_costs_nothing_but_planes_may_lie_askew():
    whole, padded = Spectrum.of(1.0, 3), Spectrum.of([1.0, 0.0], [3, 1])
    aligned = 3 * pointwise_rate(whole, 0.01)
    askew = aligned - min(0.5, 1.5 * np.log2(4 / 3))   # the largest section of a cube in four dimensions
    assert pointwise_rate(padded, 0.01) * 4 == pytest.approx(askew, rel=1e-12)
    for_samples = 3 * pointwise_converse(whole, 0.01, 0.01)
    assert pointwise_converse(padded, 0.01, 0.01) * 4 == pytest.approx(for_samples - 0.5, abs=1e-9)


def test_one_component_along_the_diagonal_is_cut_as_long_as_the_cube_allows():
    """All samples are equal, so the code of one number serves: 2 eb in each of them is 2 eb sqrt(n) along the diagonal."""
    n, eb = 64, 0.01
    one = Spectrum.of([n * 1.0, 0.0], [1, n - 1])   # the variance of each sample is 1
    assert pointwise_rate(one, eb) * n == pytest.approx(pointwise_rate(Spectrum.of(1.0), eb), rel=1e-12)
    assert pointwise_converse(one, eb, 0.01) * n == pytest.approx(pointwise_converse(Spectrum.of(1.0), eb, 0.01), rel=1e-9)


def test_a_field_that_does_not_vary_costs_nothing():
    assert pointwise_rate(Spectrum.of(0.0, 5), 0.1) == pointwise_converse(Spectrum.of(0.0, 5), 0.1, 0.01) == 0


@pytest.mark.parametrize(("ratio", "gap", "mse", "zeros"), QUANTISERS)
@pytest.mark.parametrize("sigma", [1.0, 1e-3])
def test_quantisers_are_as_tabulated(ratio, gap, mse, zeros, sigma):
    quantiser = ScalarQuantiser(sigma, ratio * sigma)
    assert quantiser.gap_to_rate == pytest.approx(gap, abs=5.1e-5)
    assert quantiser.mse / (quantiser.step**2 / 12) == pytest.approx(mse, abs=5.1e-5 if mse < 1 else 5.1e-4)
    assert quantiser.zero_share == pytest.approx(zeros, abs=5.1e-4 if zeros != 0.9545 else 5.1e-5)


@pytest.mark.parametrize("ratio", [0.05, 0.0999, 0.1, 0.7, 2.0, 5.0, 10.0])
def test_quantisers_are_their_definitions(ratio):
    levels = np.arange(-int(40 / ratio) - 1, int(40 / ratio) + 2)
    edges = (np.abs(levels)[:, None] + [-0.5, 0.5]) * ratio   # of the level's mirror image, if that is above
    shares = special.ndtr(-edges[:, 0]) - special.ndtr(-edges[:, 1])
    quantiser = ScalarQuantiser(1.0, ratio)
    assert shares.sum() == pytest.approx(1)
    assert quantiser.entropy == pytest.approx(special.entr(shares).sum() / np.log(2), rel=1e-11)
    assert quantiser.zero_share == pytest.approx(shares[levels == 0][0], rel=1e-12)
    near = levels[np.abs(levels * ratio) < 14]
    assert quantiser.mse == pytest.approx(sum(squared_error(at, ratio / 2) for at in near * ratio), rel=1e-9)


def squared_error(at: float, half: float) -> float:
    return float(quad(lambda x: (x - at) ** 2 * stats.norm.pdf(x), at - half, at + half, epsabs=0)[0])


@pytest.mark.parametrize("ratio", [1e-3, 0.01, 0.09999])
def test_expansions_for_fine_steps_are_the_sums(ratio):
    levels = np.arange(-int(12 / ratio), int(12 / ratio) + 1)
    half, centres = ratio / 2, np.abs(levels) * ratio
    shares = special.ndtr(-(centres - half)) - special.ndtr(-(centres + half))
    assert ScalarQuantiser(1.0, ratio).entropy == pytest.approx(special.entr(shares).sum() / np.log(2), rel=1e-12)


def test_nothing_jumps_where_expansions_take_over():
    fine, coarse = ScalarQuantiser(1.0, 0.1 - 1e-12), ScalarQuantiser(1.0, 0.1)
    assert fine.entropy == pytest.approx(coarse.entropy, abs=1e-10)
    assert fine.mse == pytest.approx(coarse.mse, rel=1e-10)


@given(st.floats(-6, 2.5))
def test_a_quantiser_is_above_the_rate_and_keeps_its_error(exponent):
    quantiser = ScalarQuantiser(3.0, 3 * 10**exponent)
    assert quantiser.gap_to_rate >= -1e-12
    assert 0 < quantiser.mse <= min(9.0, quantiser.step**2 / 12) * (1 + 1e-12)
    assert 0 < quantiser.zero_share <= 1


def test_at_fine_steps_the_gap_is_the_price_and_at_coarse_ones_all_is_zero():
    assert ScalarQuantiser(1.0, 1e-3).gap_to_rate == pytest.approx(PRICE, abs=1e-6)
    coarse = ScalarQuantiser(1.0, 1e3)
    assert (coarse.entropy, coarse.mse, coarse.zero_share) == (0.0, 1.0, 1.0)


def test_a_quantiser_is_met_by_simulation():
    numbers = np.random.default_rng(4).normal(0, 2.0, 400_000)
    quantiser = ScalarQuantiser(2.0, 3.0)
    levels = np.rint(numbers / 3.0)
    _, counts = np.unique(levels, return_counts=True)
    assert quantiser.mse == pytest.approx(np.mean((numbers - 3 * levels) ** 2), rel=0.01)
    assert quantiser.entropy == pytest.approx(stats.entropy(counts, base=2), abs=0.005)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_bounds_that_are_none_are_refused(value):
    white = Spectrum.of(1.0)
    questions = (uniform_mse, lambda eb: pointwise_rate(white, eb))
    for question in (*questions, lambda eb: pointwise_converse(white, eb, 0.01)):
        with pytest.raises(WorkbenchError, match="eb, the error bound, must be positive"):
            question(value)
    for name, wrong in (("sigma", lambda: ScalarQuantiser(value, 1.0)), ("step", lambda: ScalarQuantiser(1.0, value))):
        with pytest.raises(WorkbenchError, match=f"{name} must be positive"):
            wrong()


def test_a_probability_that_is_none_is_refused():
    with pytest.raises(WorkbenchError, match="eps"):
        pointwise_converse(Spectrum.of(1.0), 0.1, 0.7)


def test_bounds_of_values_reach_whoever_asks_for_the_limits_of_a_source():
    limits, spectrum = wb.rate_distortion(wb.limits.memoryless(4.0, n=500)), Spectrum.of(4.0, 500)
    assert limits.pointwise_converse(0.02, 0.05) == pointwise_converse(spectrum, 0.02, 0.05) > limits.pointwise(0.02)
    assert limits.variable_length(0.1, 0.05) == variable_length(spectrum, 0.1, 0.05) < limits.rate(0.1)


def test_estimated_variances_lower_the_pointwise_converse():
    spectrum = Spectrum.of([4.0, 1.0], [50, 50])
    unsure = dataclasses.replace(spectrum, slack=0.03)
    lowered = pointwise_converse(spectrum, 0.01, 0.01) - 0.03
    assert pointwise_converse(unsure, 0.01, 0.01) == pytest.approx(lowered, abs=1e-12)


def test_steps_of_rounded_values_are_no_finer_than_their_bound():
    rounded = np.round(wb.synthetic.gaussian_field((64, 64), seed=2).values, 2)
    limits = wb.rate_distortion(wb.Field(rounded))
    assert limits.source.step > 0
    assert limits.pointwise_converse(1e-6) == limits.pointwise_converse(limits.source.step / 2)
