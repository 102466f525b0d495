"""Fitted covariances: parameters within what chance allows, the right family, and as much doubt as there should be."""

import re

import numpy as np
import pytest

from workbench.data.synthetic import Region, gaussian_field, piecewise_field
from workbench.limits.blocks import block_spectrum
from workbench.limits.correlation import Autoregressive, Matern
from workbench.limits.families import MaternFamily
from workbench.limits.fit import fit
from workbench.limits.misfit import misfit
from workbench.limits.neighbour_fit import all_families
from workbench.limits.periodogram import periodogram


def fitted(values, inside=None):
    values = np.asarray(values, float)
    inside = np.ones(values.shape, bool) if inside is None else inside
    return fit(periodogram(values, inside, float(values[inside].mean())), int(inside.sum()))


def stationary(covariance, shape, seed):
    """A Gaussian field with this covariance, cut out of a periodic one that is twice as large."""
    axes = [np.minimum(np.arange(2 * n), 2 * n - np.arange(2 * n)) for n in shape]
    power = np.fft.fftn(covariance.at(*np.ix_(*axes))).real.clip(0) + covariance.nugget
    noise = np.fft.fftn(np.random.default_rng(seed).standard_normal(power.shape))
    return np.fft.ifftn(noise * np.sqrt(power)).real[tuple(slice(n) for n in shape)]


@pytest.mark.long_with("shape4-0.7-1.0")
@pytest.mark.parametrize(("shape", "rho", "sigma"), [((40000,), 0.9, 1.0), ((256, 256), 0.95, 1.0), ((256, 200), 0.5, 10.0),
                                                     ((64, 64, 64), 0.9, 1e-3), ((20, 20, 20, 20), 0.7, 1.0)])
def test_autoregressions_are_recognised(shape, rho, sigma):
    found = fitted(piecewise_field(shape, [Region(sigma, rho)], seed=2).values)
    exact, box = Autoregressive(sigma**2, (rho,) * len(shape)), tuple(min(n, 32 // len(shape)) for n in shape)
    for level in (1e-3, 0.05):
        expected = block_spectrum(exact, box).rate(level * sigma**2)
        assert block_spectrum(found.covariance, box).rate(level * sigma**2) == pytest.approx(expected, abs=0.012)
    assert found.family.startswith("autoregressive") or len(shape) == 1   # in one dimension it is a Matérn field, too
    assert not found.misfit.serious


@pytest.mark.parametrize("covariance", [
    Matern(1.0, (6.0, 6.0), 1.5, 0.05), Matern(4.0, (3.0, 8.0), 2.5, 0.01), Matern(1.0, (5.0, 5.0), 0.5),
])
def test_matern_fields_are_recognised_with_their_noise(covariance):
    found = fitted(stationary(covariance, (300, 280), seed=4))
    assert found.family.startswith(f"Matérn {covariance.smoothness:g}")
    assert found.covariance.lengths == pytest.approx(covariance.lengths, rel=0.12)
    assert found.covariance.nugget == pytest.approx(covariance.nugget, rel=0.05, abs=1e-3)
    assert found.covariance.variance == pytest.approx(covariance.variance, rel=0.2)
    assert not found.misfit.serious


def test_a_family_of_ones_own_is_fitted_and_widened_whatever_its_name(monkeypatch):
    class Own(MaternFamily):
        name = "of my own"

    for module in ("fit", "neighbour_fit"):
        monkeypatch.setattr(f"workbench.limits.{module}.FAMILIES", (Own(1.5),))
    values = stationary(Matern(1.0, (3.0, 3.0), 1.0, 0.05), (64, 64), seed=4)
    found = fitted(values)
    assert {"of my own", "of my own and noise", "Matérn of any smoothness and noise"} <= found.deviances.keys()
    assert [family.name for family, _ in all_families(found.seen, 1.0)] == ["of my own and noise"]


def test_what_no_family_fits_is_taken_as_sampled():
    ring = stationary(Autoregressive(1.0, (0.0, 0.0)), (512, 512), seed=1)
    waves = np.fft.rfftn(ring)
    k = np.hypot(np.fft.fftfreq(512)[:, None], np.fft.rfftfreq(512)[None])
    found = fitted(np.fft.irfftn(waves * np.exp(-0.5 * ((k - 0.2) / 0.05) ** 2) + 0.05 * waves, (512, 512), (0, 1)))
    assert found.family == "as sampled"


def test_a_region_of_any_shape_is_enough():
    field = piecewise_field((256, 256), [Region(1.0, 0.95), Region(1.0, 0.5)], layout="discs", seed=1)
    where = field.metadata["regions"]
    for region, rho in enumerate((0.95, 0.5)):
        found = fitted(field.values, where == region)
        assert np.mean(found.covariance.rhos) == pytest.approx(rho, abs=0.02)


def test_a_misfit_is_told_in_bits_and_where_it_is():
    field = gaussian_field((512, 512), 2.0, seed=1).values + 0.0
    seen = periodogram(np.asarray(field, float), np.ones(field.shape, bool), 0.0)
    wrong = misfit(seen, seen.expected(Autoregressive(1.0, (0.5, 0.5))), 3)
    assert wrong.serious
    assert wrong.bits > 0.1
    assert "cells" in str(wrong)


@pytest.mark.long
def test_chance_is_no_misfit():
    probabilities = []
    for seed in range(12):
        field = piecewise_field((128, 128), [Region(1.0, 0.8)], seed=seed)
        probabilities.append(fitted(field.values).misfit.probability)
    assert np.median(probabilities) > 0.02
    assert min(probabilities) > 1e-4


@pytest.mark.parametrize("shape", [(64,), (12, 12), (8, 8, 8), (3, 90)])
def test_small_fields_are_fitted_with_doubt(shape):
    found = fitted(np.random.default_rng(3).standard_normal(shape))
    assert np.isfinite(found.covariance.variance)
    assert 8 < found.independent < np.prod(shape)


DIAGONAL = ((0.6, 0.8), (-0.8, 0.6))


def across_the_axes(covariance, shape, seed):
    """A Gaussian field with this covariance, whose lags have signs, cut out of a periodic one that is twice as large."""
    lags = [np.fft.fftfreq(2 * n, 1 / (2 * n)) for n in shape]
    power = np.fft.fftn(covariance.at(*np.ix_(*lags))).real.clip(0) + covariance.nugget
    noise = np.fft.fftn(np.random.default_rng(seed).standard_normal(power.shape))
    return np.fft.ifftn(noise * np.sqrt(power)).real[tuple(slice(n) for n in shape)]


@pytest.mark.long_with("covariance2-shape2")
@pytest.mark.parametrize(("covariance", "shape"), [
    (Matern(1.0, (7.5, 2.5), 0.7, 0.0, DIAGONAL), (128, 128)),
    (Matern(4.0, (2.0, 6.0), 1.5, 0.04, DIAGONAL), (150, 100)),
    (Matern(1.0, (2.0, 2.0, 5.0), 0.6, 0.0, ((1.0, 0.0, 0.0), (0.0, 0.6, 0.8), (0.0, -0.8, 0.6))), (40, 40, 40)),
])
def test_directions_across_the_axes_are_recognised(covariance, shape):
    found = fitted(across_the_axes(covariance, shape, seed=7))
    assert found.family.startswith("Matérn of any smoothness and direction")
    assert not found.misfit.serious
    assert np.sort(found.covariance.lengths) == pytest.approx(np.sort(covariance.lengths), rel=0.25)
    box = (30, 30) if len(shape) == 2 else (9, 9, 9)
    for distortion in (0.1, 1e-2, 1e-3):
        level = distortion * covariance.variance
        expected = block_spectrum(covariance, box).rate(level)
        assert block_spectrum(found.covariance, box).rate(level) == pytest.approx(expected, abs=0.03)


def test_structures_in_two_directions_are_measured():
    values = sum(across_the_axes(Matern(1.0, (9.0, 1.5), 1.5, 0.01, each), (128, 128), seed=seed)
                 for seed, each in enumerate([DIAGONAL, ((1.0, 0.0), (0.0, 1.0))]))
    found = fitted(values)
    assert found.family == "as sampled, by direction"
    assert not found.misfit.serious


def test_a_misfit_of_direction_is_named():
    values = across_the_axes(Matern(1.0, (7.5, 2.5), 0.7, 0.0, DIAGONAL), (128, 128), seed=7)
    seen = periodogram(values, np.ones(values.shape, bool), 0.0).signed
    wrong = misfit(seen, seen.expected(Matern(1.0, (4.0, 4.0), 0.7)), 3)
    assert wrong.serious
    assert wrong.of_direction
    assert re.search(r"mostly along axis [01], with axis [01] (rising|falling)", str(wrong))
    right = misfit(seen, seen.expected(Matern(1.0, (7.5, 2.5), 0.7, 0.0, DIAGONAL)), 3)
    assert not right.serious
