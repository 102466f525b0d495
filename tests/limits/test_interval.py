"""The interval of a rate: chi-squared where theory says so, and as wide as estimates from other fields scatter."""

from dataclasses import replace

import numpy as np
import pytest

import workbench as wb
from limits.test_fit import stationary
from workbench.limits.blocks import dense_spectrum
from workbench.limits.correlation import Matern
from workbench.limits.fit import fit
from workbench.limits.interval import Region, sampling_interval
from workbench.limits.periodogram import periodogram
from workbench.limits.regions import segment
from workbench.limits.spectrum import Spectrum


def fitted(values):
    return fit(periodogram(values, np.ones(values.shape, bool), float(values.mean())), values.size)


def test_the_variance_of_white_noise_is_known_as_well_as_that_of_so_many_independent_values():
    from scipy.stats import chi2

    found = fitted(np.random.default_rng(1).standard_normal((40, 40)))
    spectrum = Spectrum.of(found.covariance.variance, 1600)
    low, high = sampling_interval(spectrum, [Region(found, 1600, 1e-3)], 1e-3, 0.9)
    freedom, rate = found.independent, spectrum.rate(1e-3)
    assert low == pytest.approx(rate + 0.5 * np.log2(freedom / chi2.ppf(0.95, freedom)), abs=0.01)
    assert high == pytest.approx(rate + 0.5 * np.log2(freedom / chi2.ppf(0.05, freedom)), abs=0.01)


def test_regions_add_their_squares():
    found, white = fitted(np.random.default_rng(1).standard_normal((40, 40))), Spectrum.of(1.0, 1600)
    one, four = (np.diff(sampling_interval(white.times(number), [Region(found, 1600, 1e-3)] * number, 1e-3, 0.95))[0]
                 for number in (1, 4))
    assert four == pytest.approx(one / 2, rel=0.02)
    assert sampling_interval(white, [], 0.1, 0.95) == (0.0, 0.0)


def test_the_interval_of_a_field_that_is_too_small_is_endless_and_the_warning_says_so():
    limits = wb.rate_distortion(np.array([[1.0, 2.0, 0.5]]))
    assert limits.interval(0.01) == (0.0, np.inf)
    assert any("too small" in warning for warning in limits.warnings)
    layout = np.zeros((30, 30), int)
    layout[3, 4] = 1
    one_cell = wb.rate_distortion(np.random.default_rng(0).standard_normal((30, 30)), regions=layout)
    low, high = one_cell.interval(0.01)   # a single value has no variance to be uncertain of
    assert 0 < low < one_cell.rate(0.01) < high < np.inf


def test_what_a_wrong_model_says_is_corrected():
    found = fitted(stationary(Matern(1.0, (5.0, 5.0), 1.0), (128, 128), 3))
    level = dense_spectrum(found.covariance, (32, 32)).level(0.3)
    right, wrong = Region(found, 1, level), Region(replace(found, expected=1.3 * found.expected), 1, level)
    assert max(map(abs, right.corrections)) < 0.03
    assert min(wrong.corrections) == pytest.approx(-0.5 * np.log2(np.e) * 0.3 / 1.3 * wrong.total(1.0), abs=0.03)
    assert Region(found, 1, level, excess=1.2).above == pytest.approx(right.total(0.5 * np.log2(1.2)), abs=0.03)
    assert Region(replace(found, unresolved=0.5), 1, 1e-9).below >= 0.5


def test_intervals_of_fields_that_are_not_gaussian_reach_as_far_as_codes_might():
    calm = np.add.outer(np.arange(64) // 16, np.arange(64) // 16) % 2
    values = np.random.default_rng(2).standard_normal((64, 64)) * np.where(calm, 0.05, 1.0)
    limits = wb.rate_distortion(values, regions=1)
    assert limits.gaussianity.visibly_not
    assert limits.gaussianity.saved > 0.5
    true = 0.5 * np.mean(np.log2(np.where(calm, 0.05, 1.0) ** 2 / 1e-4))
    assert limits.interval(1e-4)[0] <= true <= limits.rate(1e-4) - 0.5


def test_corrections_are_repeated_for_peaks_that_tapers_blur_and_the_interval_says_so():
    waves = np.fft.rfftn(np.random.default_rng(3).standard_normal((96, 96)))
    wave = np.hypot(np.fft.fftfreq(96)[:, None], np.fft.rfftfreq(96)[None])
    power = np.exp(-0.5 * ((wave - 0.13) / 0.02) ** 2) + 1e-4
    values = np.fft.irfftn(waves * np.sqrt(power), (96, 96), (0, 1))
    limits, whole = wb.rate_distortion(values, regions=1), np.hypot(*np.meshgrid(*[np.fft.fftfreq(96)] * 2))
    true = Spectrum.of((np.exp(-0.5 * ((whole - 0.13) / 0.02) ** 2) + 1e-4).ravel())
    assert limits.source.fits[0].unresolved > 0.05
    assert any("not resolved" in warning for warning in limits.warnings)
    for share in (0.3, 0.1):
        low, high = limits.interval(share * true.variance)
        assert low <= true.rate(share * true.variance) <= high


@pytest.mark.long
def test_intervals_hold_the_rate_about_as_often_as_they_say():
    model = Matern(1.0, (4.0, 4.0), 1.0, 0.02)
    true, inside = dense_spectrum(model, (40, 40)), []
    for seed in range(40):
        limits = wb.rate_distortion(stationary(model, (40, 40), seed), regions=1)
        ends = [limits.interval(distortion * true.variance) for distortion in (0.5, 0.1, 0.001)]
        rates = [true.rate(distortion * true.variance) for distortion in (0.5, 0.1, 0.001)]
        inside.append([low <= rate <= high for (low, high), rate in zip(ends, rates, strict=True)])
        assert ends[2][1] - ends[2][0] < 0.3   # chance alone: 0.2
    assert np.sum(inside, axis=0).min() >= 35


@pytest.mark.long
def test_long_waves_across_the_axes_are_one_texture_though_they_differ_from_place_to_place():
    cosine, sine = float(np.cos(np.deg2rad(35))), float(np.sin(np.deg2rad(35)))
    model = Matern(1.0, (20.0, 6.0), 1.5, directions=((cosine, sine), (-sine, cosine)))
    power = np.fft.fft2(model.at(*np.ix_(*[np.fft.fftfreq(256, 1 / 256)] * 2))).real.clip(0)
    waves = np.fft.fft2(np.random.default_rng(0).standard_normal((256, 256))) * np.sqrt(power)
    field = wb.Field(np.fft.ifft2(waves).real[:128, :128])
    assert segment(field).count > 1
    assert len(wb.rate_distortion(field).source.fits) == 1
