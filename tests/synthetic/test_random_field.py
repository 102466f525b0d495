"""Gaussian random fields: the spectrum that was asked for is the one that is measured."""

import numpy as np
import pytest

import workbench as wb
from workbench.data.synthetic import gaussian_field


def measured(field: wb.Field) -> tuple[np.ndarray, np.ndarray]:
    """The power per volume of every wave, with its wave number, straight from the definition."""
    waves = [2 * np.pi * np.fft.fftfreq(n, step) for n, step in zip(field.shape, field.spacing, strict=True)]
    k = np.sqrt(sum(wave**2 for wave in np.meshgrid(*waves, indexing="ij")))
    volume = np.prod(field.shape) * np.prod(field.spacing)
    amplitude = np.fft.fftn(field.values.astype(np.float64)) * np.prod(field.spacing)
    return k, np.abs(amplitude) ** 2 / volume


@pytest.mark.parametrize(("shape", "spacing"), [
    ((4096,), 0.5), ((64, 96), (1.0, 3.0)), ((24, 25, 26), 2.0), ((10, 12, 8, 9), 1.0),
])
def test_spectrum_is_the_requested_one(shape: tuple[int, ...], spacing: float | tuple[float, ...]):
    def spectrum(k: np.ndarray) -> np.ndarray:
        return 3.0 / (1 + (2 * k) ** 2)

    k, power = measured(gaussian_field(shape, spectrum, seed=5, spacing=spacing))
    ratio = power[k > 0] / spectrum(k[k > 0])
    rank = np.argsort(k[k > 0])
    for part in np.array_split(ratio[rank], 4):   # the power of a Gaussian wave scatters as much as its mean
        assert part.mean() == pytest.approx(1, abs=4 * np.sqrt(2 / len(part)))


@pytest.mark.parametrize("index", [-1.0, 0.0, 2.0, 3.5])
def test_index_is_the_slope(index: float):
    k, power = measured(gaussian_field((128, 128), index, seed=1))
    bins = np.geomspace(0.1, 3.0, 12)
    which = np.digitize(k, bins)
    means = [(k[which == b].mean(), power[which == b].mean()) for b in range(1, len(bins))]
    slope = np.polyfit(*np.log(means).T, 1)[0]
    assert slope == pytest.approx(-index, abs=0.15)


def test_variance_is_one_in_expectation():
    variances = [gaussian_field((64, 64), 1.0, seed=seed).values.var() for seed in range(20)]
    assert np.mean(variances) == pytest.approx(1, abs=0.05)


def test_variance_of_a_function_is_its_integral():
    field = gaussian_field((256, 256), lambda k: np.full_like(k, 6.0), seed=2, spacing=0.5)
    assert field.values.var() == pytest.approx(6.0 / 0.5**2, rel=0.03)
    scaled = gaussian_field((256, 256), lambda k: np.full_like(k, 6.0), seed=2, spacing=0.5, unit_variance=True)
    assert scaled.values.var() == pytest.approx(1, rel=0.03)


def test_values_are_gaussian_single_precision_and_of_zero_mean():
    field = gaussian_field((64, 64, 64), 0.0, seed=3)
    values = field.values.astype(np.float64)
    assert field.values.dtype == np.float32
    assert abs(values.mean()) < 1e-6
    assert abs((values**3).mean()) < 0.02
    assert (values**4).mean() == pytest.approx(3, abs=0.05)


def test_seeds():
    assert np.array_equal(gaussian_field(64, seed=1).values, gaussian_field(64, seed=1).values)
    assert not np.array_equal(gaussian_field(64, seed=1).values, gaussian_field(64, seed=2).values)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"shape": ()}, "shape must have 1 to 4 axes"),
    ({"shape": (2,) * 5}, "shape must have 1 to 4 axes"),
    ({"shape": (8, 0)}, "each axis of shape must be a whole number, at least 1; got 0"),
    ({"shape": (8, 2.5)}, "each axis of shape must be a whole number"),
    ({"shape": (1, 1)}, "shape must have at least 2 points"),
    ({"shape": 8, "spectrum": "steep"}, r"spectrum must be a function P\(k\), or a number"),
    ({"shape": 8, "spectrum": float("nan")}, r"spectrum must be a function P\(k\), or a number"),
    ({"shape": 8, "spectrum": lambda k: -k}, "spectrum must give finite powers"),
    ({"shape": 8, "spectrum": lambda k: 0 * k}, "spectrum must give finite powers"),
    ({"shape": 8, "spacing": -1}, "spacing must be positive"),
    ({"shape": 8, "seed": 1.5}, "seed must be a whole number"),
])
def test_nonsense_is_refused(arguments: dict[str, object], message: str):
    with pytest.raises(wb.WorkbenchError, match=message):
        gaussian_field(**arguments)
