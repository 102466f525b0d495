"""Spectra that are moved: what is conserved."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.limits.quantiles import log_ratios, moved, with_mean_log
from workbench.limits.spectrum import Spectrum


def mean_log(spectrum):
    return float(np.log(spectrum.values) @ spectrum.counts) / spectrum.size


def spectra(random):
    return Spectrum.of(np.exp(random.normal(0, random.choice([1e-9, 0.1, 1, 5, 100]), 20)), random.uniform(0.5, 3, 20))


@given(st.integers(0, 2**32 - 1))
def test_a_moved_spectrum_keeps_its_sum_and_the_mean_change_of_its_logarithms(seed):
    random = np.random.default_rng(seed)
    given_, ratios = spectra(random), random.normal(0, random.choice([0, 0.01, 1.0]), 64)
    found = moved(given_, ratios)
    assert found.size == pytest.approx(given_.size)
    assert found.variance == pytest.approx(given_.variance, rel=1e-6)
    assert (found.values > 0).all()
    if abs(ratios).max() < 0.1 and np.log(given_.values).std() > 0.5:   # otherwise no spectrum may have both
        assert mean_log(found) == pytest.approx(mean_log(given_) + ratios.mean(), abs=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_a_spectrum_moved_to_another_has_its_quantiles(seed):
    random = np.random.default_rng(seed)
    one = Spectrum.of(np.exp(random.normal(0, 2, 50)))
    other = Spectrum.of(one.values ** random.uniform(0.7, 1.3))
    other = Spectrum.of(other.values * one.variance / other.variance)
    assert moved(one, log_ratios(other, one, parts=50)).values == pytest.approx(other.values, rel=1e-6)


def test_spectra_without_variety_can_only_be_scaled():
    flat = Spectrum.of([1.0, 1.0])
    assert moved(flat, np.array([0.1, 0.1])).values.tolist() == [1.0, 1.0]
    above_the_mean = np.log(3.0)
    assert with_mean_log(Spectrum.of([1.0, 4.0]), above_the_mean).values.tolist() == pytest.approx([1.0, 4.0])
