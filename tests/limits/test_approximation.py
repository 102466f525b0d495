"""Normal approximations against the tables, simulation, and the converses that they are near."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from workbench.errors import WorkbenchError
from workbench.limits.approximation import normal, variable_length
from workbench.limits.converse import converse
from workbench.limits.spectrum import LOG2E, Spectrum

WHITE = [
    (0.25, 1e-2, 10, 1.750471),
    (0.25, 1e-2, 30, 1.433285),
    (0.25, 1e-2, 50, 1.335621),
    (0.25, 1e-2, 100, 1.237320),
    (0.25, 1e-2, 300, 1.137017),
    (0.25, 1e-2, 1000, 1.075047),
    (0.25, 1e-4, 100, 1.379392),
    (0.25, 1e-4, 1000, 1.119974),
    (0.10, 1e-2, 100, 1.898284),
    (0.10, 1e-2, 1000, 1.736011),
]
spectra = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20).map(Spectrum.of)
probabilities = st.floats(1e-12, 0.5)


@pytest.mark.parametrize(("distortion", "eps", "n", "expected"), WHITE)
def test_white_noise_needs_nearly_what_is_tabulated(distortion, eps, n, expected):
    assert normal(Spectrum.of(4.0, n), 4 * distortion, eps) == pytest.approx(expected, abs=5.1e-7)


@pytest.mark.parametrize(("n", "expected"), [(40, 0.796650), (100, 0.687618), (200, 0.632666)])
def test_unequal_variances_need_nearly_what_is_tabulated(n, expected):
    mixed = Spectrum.of([4.0, 0.5], [n / 2, n / 2])
    assert normal(mixed, 0.75, 0.01) == pytest.approx(expected, abs=5.1e-7)
    assert normal(mixed, 0.75, 0.01) > converse(mixed, 0.75, 0.01)


@pytest.mark.parametrize(("tiles", "n", "penalty"), [(1000, 64, 0.54371), (4096, 512, 0.20598), (100, 4096, 0.05926)])
def test_many_tiles_that_must_all_keep_the_distortion_pay_nearly_what_is_tabulated(tiles, n, penalty):
    white = Spectrum.of(1.0, n)
    assert normal(white, 0.01, 1 - (1 - 0.01) ** (1 / tiles)) - white.rate(0.01) == pytest.approx(penalty, abs=5.1e-6)


def test_variable_length_saves_what_is_tabulated():
    assert variable_length(Spectrum.of(1.0, 1000), 0.25, 0.01) == pytest.approx(0.98914, abs=5.1e-6)


@given(spectra, st.floats(0.001, 0.999), probabilities)
def test_the_formulas_hold(spectrum, share, eps):
    distortion = share * spectrum.variance
    spread, times = np.sqrt(spectrum.dispersion(distortion) / spectrum.size), stats.norm.isf(eps)
    rate = spectrum.rate(distortion)
    assert normal(spectrum, distortion, eps) == pytest.approx(rate + spread * times, rel=1e-9, abs=1e-12)
    saved = spread * stats.norm.pdf(times)
    expected = max(0, (1 - eps) * rate - saved)
    assert variable_length(spectrum, distortion, eps) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(spectra, st.floats(0.001, 0.999), probabilities)
def test_fixed_length_needs_more_than_the_rate_and_variable_length_less(spectrum, share, eps):
    distortion = share * spectrum.variance
    rate = spectrum.rate(distortion)
    assert 0 <= variable_length(spectrum, distortion, eps) <= rate <= normal(spectrum, distortion, eps)


@given(st.floats(1e-4, 0.9), st.floats(1e-9, 0.4))
@settings(max_examples=20)
def test_long_fields_need_what_the_converse_says_but_for_the_logarithm_of_n(distortion, eps):
    for n in (10**3, 10**6):
        white = Spectrum.of(1.0, n)
        away = (normal(white, distortion, eps) - converse(white, distortion, eps)) * n
        assert 0 < away < 1 + stats.norm.isf(eps) ** 2   # the two agree to 1 / n


def test_the_information_in_a_field_has_the_moments_that_the_approximation_uses():
    random = np.random.default_rng(2)
    mixed = Spectrum.of([4.0, 0.5], [50, 50])
    squares = random.chisquare(50, (100_000, 2))
    information = (0.5 * (squares[:, 0] - 50) + 0.25 * (squares[:, 1] - 50) + 25 * np.log(4)) * LOG2E / 100
    assert information.mean() == pytest.approx(mixed.rate(0.75), abs=1e-3)
    assert information.var() * 100 == pytest.approx(mixed.dispersion(0.75), rel=0.03)


def test_at_the_variance_nothing_is_needed():
    spectrum = Spectrum.of([2.0, 1.0])
    assert normal(spectrum, 1.5, 0.01) == variable_length(spectrum, 1.5, 0.01) == 0


@pytest.mark.parametrize("estimate", [normal, variable_length])
def test_questions_that_are_none_are_refused(estimate):
    with pytest.raises(WorkbenchError, match="distortion must be a positive"):
        estimate(Spectrum.of(1.0), -1.0, 0.01)
    with pytest.raises(WorkbenchError, match="eps"):
        estimate(Spectrum.of(1.0), 0.1, 0.7)
