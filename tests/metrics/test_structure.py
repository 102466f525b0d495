"""Histograms and autocorrelations of errors, against plain definitions."""

import math

import numpy as np
import pytest

import workbench as wb
from workbench.metrics import error_autocorrelation, error_histogram


def by_hand(error: np.ndarray, lags: int) -> np.ndarray:
    """NaN marks what is invalid."""
    mean, variance = np.nanmean(error), np.nanvar(error)
    found = np.full((error.ndim, lags), np.nan)
    for axis in range(error.ndim):
        along = np.moveaxis(error, axis, 0) - mean
        for lag in range(1, lags + 1):
            products = along[:-lag] * along[lag:]
            if np.isfinite(products).any():
                found[axis, lag - 1] = np.nanmean(products) / variance
    return found


@pytest.mark.parametrize("pieces", ["whole", "tiles"])
@pytest.mark.parametrize("shape", [(500,), (30, 41), (3, 400), (9, 12, 11), (2, 5, 6, 7)])
@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_autocorrelation_is_that_of_the_definition(shape, holes, pieces, request):
    if pieces == "tiles":
        request.getfixturevalue("small_pieces")
    random = np.random.default_rng(0)
    original, decoded = random.normal(size=(2, *shape))
    decoded = original + np.cumsum(decoded, axis=-1)
    original[random.random(shape) < holes] = np.nan
    np.testing.assert_allclose(
        error_autocorrelation(original, decoded, lags=4), by_hand(decoded - original, 4), rtol=1e-9, atol=1e-12
    )


def test_autocorrelation_tells_white_errors_from_smooth_ones():
    random = np.random.default_rng(1)
    original = wb.synthetic.gaussian_field((48, 48, 48), seed=1).values
    white = original + random.uniform(-1e-3, 1e-3, original.shape)
    smooth = original + 1e-3 * wb.synthetic.gaussian_field(original.shape, 4.0, seed=2).values
    assert np.abs(error_autocorrelation(original, white)).max() < 5 / math.sqrt(original.size * 0.7)
    assert error_autocorrelation(original, smooth)[:, 0].min() > 0.8


@pytest.mark.parametrize("error", [0.0, 0.1, 1e-12])
def test_equal_errors_have_no_correlation(error):
    original = np.zeros((20, 20))
    assert np.array_equal(error_autocorrelation(original, original + error, lags=3), np.zeros((2, 3)))


def test_scales_do_not_matter():
    random = np.random.default_rng(2)
    decoded = random.normal(size=(50, 50))
    usual = error_autocorrelation(np.zeros((50, 50)), decoded)
    for scale in (2.0**-900, 2.0**900):
        assert np.array_equal(error_autocorrelation(np.zeros((50, 50)), scale * decoded), usual)


def test_lost_values_are_refused():
    for lost in (np.nan, np.inf):
        with pytest.raises(wb.WorkbenchError, match="decoded values must be finite, and not masked"):
            error_autocorrelation([0.0, 1.0, 2.0], [0.0, lost, 2.0])


@pytest.mark.usefixtures("small_pieces")
def test_histogram_counts_every_valid_error():
    random = np.random.default_rng(3)
    original, decoded = np.zeros((40, 30)), random.normal(size=(40, 30))
    original[:, 3], decoded[5, 5] = np.nan, np.inf
    error = decoded[np.isfinite(original) & np.isfinite(decoded)]
    found = error_histogram(original, decoded, width=0.5, bins=10)
    assert np.array_equal(found.counts, np.histogram(error, np.linspace(-0.5, 0.5, 11))[0])
    assert (found.below, found.above) == ((error < -0.5).sum(), (error > 0.5).sum())
    assert found.counts.sum() + found.below + found.above == error.size
    assert np.allclose(found.edges, np.linspace(-1, 1, 11))


def test_an_error_as_large_as_the_bound_is_inside():
    found = error_histogram([0.0, 0.0], [0.3, -0.3], width=0.3, bins=4)
    assert (found.counts.tolist(), found.below, found.above) == ([1, 0, 0, 1], 0, 0)


def test_histogram_of_particles_is_that_of_the_nearest_images():
    original, decoded = wb.Particles([[0.05, 0.5]], 1.0), wb.Particles([[0.95, 0.55]], 1.0)
    assert error_histogram(original, decoded, width=0.1001, bins=2).counts.tolist() == [1, 1]
    both, order = wb.Particles([[0.05, 0.5], [0.5, 0.5]], 1.0), [1, 0]
    assert error_histogram(both, both.select(order), 0.1, 3, order).counts.tolist() == [0, 4, 0]


@pytest.mark.parametrize("width", [0.0, -1.0, math.nan, math.inf])
def test_a_width_that_is_none_is_refused(width):
    with pytest.raises(wb.WorkbenchError, match="width must be positive and finite"):
        error_histogram([0.0], [1.0], width)


def test_device_arrays_are_refused_with_a_sentence(cupy):
    values = cupy.asarray(np.zeros((8, 8)))
    with pytest.raises(wb.WorkbenchError, match=r"autocorrelation must be given NumPy arrays; got CuPy arrays"):
        error_autocorrelation(values, values)
    with pytest.raises(wb.WorkbenchError, match=r"histogram must be given NumPy arrays"):
        error_histogram(values, values, 1.0)
