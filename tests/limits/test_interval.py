"""The interval of a rate: chi-squared where theory says so, and as wide as estimates from other fields scatter."""

import numpy as np
import pytest

import workbench as wb
from limits.test_fit import stationary
from workbench.limits.blocks import dense_spectrum
from workbench.limits.correlation import Autoregressive, Matern
from workbench.limits.fit import fit
from workbench.limits.interval import correction, sampling_interval
from workbench.limits.periodogram import periodogram
from workbench.limits.spectrum import Spectrum


def fitted(values):
    return fit(periodogram(values, np.ones(values.shape, bool), float(values.mean())), values.size)


def test_the_variance_of_white_noise_is_known_as_well_as_that_of_so_many_independent_values():
    from scipy.stats import chi2

    found = fitted(np.random.default_rng(1).standard_normal((40, 40)))
    spectrum = Spectrum.of(found.covariance.variance, 1600)
    low, high = sampling_interval(spectrum, [found], [1600], 1e-3, 0.9)
    freedom, rate = found.independent, spectrum.rate(1e-3)
    assert low == pytest.approx(rate + 0.5 * np.log2(freedom / chi2.ppf(0.95, freedom)), abs=0.01)
    assert high == pytest.approx(rate + 0.5 * np.log2(freedom / chi2.ppf(0.05, freedom)), abs=0.01)


def test_regions_add_their_squares():
    found, white = fitted(np.random.default_rng(1).standard_normal((40, 40))), Spectrum.of(1.0, 1600)
    ends = [np.diff(sampling_interval(white.times(number), [found] * number, [1600] * number, 1e-3, 0.95))[0]
            for number in (1, 4)]
    assert ends[1] == pytest.approx(ends[0] / 2, rel=0.02)
    assert sampling_interval(white, [None], [1600], 0.1, 0.95) == (0.0, 0.0)


def test_the_interval_of_a_field_that_is_too_small_is_endless_and_the_warning_says_so():
    limits = wb.rate_distortion(np.array([[1.0, 2.0, 0.5]]))
    assert limits.interval(0.01) == (0.0, np.inf)
    assert any("too small" in warning for warning in limits.warnings)


def test_what_a_wrong_model_says_is_corrected():
    values = stationary(Matern(1.0, (5.0, 5.0), 1.0), (128, 128), 3)
    found, white = fitted(values), Autoregressive(float(values.var()), (0.0, 0.0))
    wrong = type(found)(**{**vars(found), "covariance": white, "expected": found.seen.expected(white)})
    spectrum = Spectrum.of(white.variance, values.size)
    assert abs(correction(dense_spectrum(found.covariance, (32, 32)), [found], [values.size], 0.3)) < 0.04
    assert correction(spectrum, [wrong], [values.size], 0.3) < -0.1


@pytest.mark.long
def test_intervals_hold_the_rate_about_as_often_as_they_say():
    model = Matern(1.0, (4.0, 4.0), 1.0, 0.02)
    true, inside = dense_spectrum(model, (40, 40)), []
    for seed in range(40):
        limits = wb.rate_distortion(stationary(model, (40, 40), seed), regions=1)
        ends = [limits.interval(distortion * true.variance) for distortion in (0.5, 0.1, 0.001)]
        rates = [true.rate(distortion * true.variance) for distortion in (0.5, 0.1, 0.001)]
        inside.append([low <= rate <= high for (low, high), rate in zip(ends, rates, strict=True)])
        assert ends[2][1] - ends[2][0] < 0.25
    assert np.sum(inside, axis=0).min() >= 35
