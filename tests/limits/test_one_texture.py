"""Regions of one texture: rates beside dense eigenvalues, and fields whose regions share their waves or do not."""

import numpy as np
import pytest

import workbench as wb
from workbench.data.synthetic import Region, piecewise_field
from workbench.errors import WorkbenchError
from workbench.limits.blocks import covariance_of_points
from workbench.limits.correlation import Autoregressive, Correlation, Matern, Sampled
from workbench.limits.spectrum import Spectrum

STRIPES = np.broadcast_to(np.arange(192) // 32 % 2, (192, 192))


def dense(correlation: Correlation, labels: np.ndarray, strengths: tuple[float, ...]) -> Spectrum:
    """The eigenvalues of the covariance of all points."""
    deviations = np.array(strengths)[labels.ravel()]
    covariance = covariance_of_points(correlation, np.argwhere(labels >= 0))
    return Spectrum.of(np.linalg.eigvalsh(deviations[:, None] * covariance * deviations))


def modulated(rho: float, strengths: tuple[float, ...], seed: int, mean: float = 0.0) -> wb.Field:
    """One texture whose strength depends on the stripe."""
    texture = piecewise_field(STRIPES.shape, [Region(1.0, rho)], seed=seed).values
    return wb.Field(texture * np.array(strengths)[STRIPES] + mean)


@pytest.mark.parametrize(("labels", "correlation"), [
    (np.arange(512) // 8 % 2, Autoregressive(1.0, 0.95)),
    (np.broadcast_to(np.arange(32) // 4 % 2, (32, 32)), Autoregressive(1.0, (0.95, 0.95))),
    (np.indices((30, 30)).sum(axis=0) // 10 % 2, Matern(1.0, (4.0, 4.0), 1.5, 0.01)),
    (np.indices((10, 10, 10))[0] // 5, Autoregressive(1.0, (0.8, 0.8, 0.8))),
])
def test_the_rate_is_exact_at_fine_distortions_and_hardly_too_low_at_coarse_ones(labels, correlation):
    true = dense(correlation, labels, (1.0, 4.0))
    source = wb.limits.piecewise(labels, [correlation, correlation.times(16.0)], one_texture=True)
    independent = wb.limits.piecewise(labels, [correlation, correlation.times(16.0)])
    rates = wb.rate_distortion(source)
    assert rates.variance == pytest.approx(true.variance, rel=1e-6)
    least = float(true.values.min())
    assert rates.rate(0.5 * least) == pytest.approx(true.rate(0.5 * least), abs=0.003)
    for share in (1e-3, 0.01, 0.1, 0.5):
        found, right = rates.rate(share * true.variance), true.rate(share * true.variance)
        assert -0.03 <= found - right <= 0.005
        assert rates.rate(share * true.variance) <= wb.rate_distortion(independent).rate(share * true.variance) + 1e-9
    assert rates.price_of_borders(0.01 * true.variance) == 0


@pytest.mark.few(1)
@pytest.mark.parametrize(("rho", "strengths", "mean"), [(0.95, (1.0, 4.0), 0.0), (0.9, (1.0, 2.0), 5.0)])
def test_waves_that_go_on_across_borders_are_found_out(rho, strengths, mean):
    field = modulated(rho, strengths, seed=3, mean=mean)
    limits = wb.rate_distortion(field, regions=STRIPES)
    assert limits.source.one_texture
    assert "of one texture" in repr(limits)
    model = Autoregressive(1.0, (rho, rho))
    exact = wb.rate_distortion(wb.limits.piecewise(STRIPES, [model.times(s * s) for s in strengths], one_texture=True))
    for share in (1e-4, 0.01, 0.1):
        distortion = share * exact.variance
        assert limits.rate(distortion) == pytest.approx(exact.rate(distortion), abs=0.02)
        low, high = limits.interval(distortion)
        assert low - 0.003 <= exact.rate(distortion) <= high + 0.003
    apart = wb.limits.piecewise(STRIPES, [model.times(s * s) for s in strengths])
    assert limits.rate(0.01) < wb.rate_distortion(apart).rate(0.01) - 0.01
    assert limits.warnings == ()


@pytest.mark.few(1)
@pytest.mark.parametrize("models", [(Region(1.0, 0.95), Region(4.0, 0.95)), (Region(1.0, 0.95), Region(4.0, 0.6))])
def test_independent_regions_are_not_taken_for_one_texture(models):
    field = piecewise_field(STRIPES.shape, models, seed=5, layout=STRIPES)
    assert not wb.rate_distortion(field, regions=STRIPES).source.one_texture


def test_tiles_of_one_texture_know_nothing_of_borders():
    model = Autoregressive(1.0, (0.95, 0.95))
    source = wb.limits.piecewise(STRIPES, [model, model], one_texture=True)
    plain = wb.rate_distortion(wb.limits.separable(0.95, STRIPES.shape), tile=48)
    tiled = wb.rate_distortion(source, tile=48)
    assert tiled.rate(0.01) == pytest.approx(plain.rate(0.01), abs=1e-9)
    assert tiled.converse(0.01, per="tile") == pytest.approx(plain.converse(0.01, per="tile"), abs=1e-6)


@pytest.mark.parametrize("correlation", [
    Autoregressive(2.0, (0.5,), 0.1), Matern(2.0, (3.0,), 1.5, 0.1), Sampled([2.0, 1.0, 0.25], 0.1),
])
def test_a_covariance_is_multiplied_whole(correlation):
    lags = np.arange(6)
    assert np.allclose(correlation.times(9.0).at(lags), 9 * correlation.at(lags), rtol=1e-14)
    assert correlation.times(9.0).nugget == pytest.approx(0.9)


def test_different_textures_are_refused():
    with pytest.raises(WorkbenchError, match="correlations must be multiples of each other"):
        wb.limits.piecewise(STRIPES, [Autoregressive(1.0, (0.9, 0.9)), Autoregressive(4.0, (0.8, 0.8))], one_texture=True)
