"""Power spectra of fields against a direct Fourier sum, Parseval's theorem and fields whose spectrum is known."""

import math

import numpy as np
import pytest

import workbench as wb
from workbench import backend
from workbench.metrics import Spectrum, field_spectrum, spectrum_ratio, worst_deviation


def all_waves(values: np.ndarray, lengths: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The wave number and the power of every wave, by a sum over all points for each: the definition."""
    places = np.meshgrid(*(np.arange(n) / n for n in values.shape), indexing="ij")
    points = np.stack(places, axis=-1).reshape(-1, values.ndim)
    whole = [np.arange(n) - n // 2 + (n % 2 == 0) for n in values.shape]
    modes = np.stack(np.meshgrid(*whole, indexing="ij"), axis=-1).reshape(-1, values.ndim)
    amplitude = np.exp(-2j * np.pi * modes @ points.T) @ (values - values.mean()).ravel()
    volume = math.prod(lengths)
    k = np.sqrt(((2 * np.pi * modes / np.array(lengths)) ** 2).sum(axis=1))
    return k, np.abs(amplitude * volume / values.size) ** 2 / volume


def shells_by_hand(values: np.ndarray, lengths: tuple[float, ...]) -> Spectrum:
    k, power = all_waves(values, lengths)
    width = 2 * np.pi / max(length for n, length in zip(values.shape, lengths, strict=True) if n > 1)
    nyquist = min(np.pi * n / length for n, length in zip(values.shape, lengths, strict=True) if n > 1)
    chosen = [np.abs(k - i * width) < width / 2 for i in range(1, int(nyquist / width + 1e-6) + 1)]
    means = [[q[shell].mean() for shell in chosen] for q in (k, power)]
    return Spectrum(*map(np.array, means), np.array([shell.sum() for shell in chosen]), nyquist)


@pytest.mark.parametrize("pieces", ["whole", "layers"])
@pytest.mark.parametrize(("shape", "spacing"), [
    ((2,), 1.0), ((33,), 0.5), ((64,), 2.0), ((8, 8), 1.0), ((9, 14), (1.0, 0.3)), ((7, 9, 12), 1.0), ((6, 1, 10), 0.2),
    ((4, 6, 8), (3.0, 1.0, 0.5)), ((1, 12), 1.0),
])
def test_shells_are_those_of_a_direct_sum(shape, spacing, pieces, monkeypatch):
    if pieces == "layers":
        monkeypatch.setattr("workbench.metrics.spectrum.CHUNK_VALUES", 20)
    field = wb.Field(np.random.default_rng(0).normal(size=shape) + 5, spacing)
    lengths = tuple(n * step for n, step in zip(shape, field.spacing, strict=True))
    found, expected = field_spectrum(field), shells_by_hand(field.values, lengths)
    assert found.modes.tolist() == expected.modes.tolist()
    assert found.nyquist == pytest.approx(expected.nyquist)
    np.testing.assert_allclose(found.k, expected.k, rtol=1e-12)
    np.testing.assert_allclose(found.power, expected.power, rtol=1e-9)


@pytest.mark.parametrize("points", [100, 101])
def test_powers_add_up_to_the_variance(points):
    field = wb.Field(np.random.default_rng(1).normal(size=points), spacing=0.25)
    found = field_spectrum(field)
    assert found.modes.sum() == points - 1
    assert (found.power * found.modes).sum() / (0.25 * points) == pytest.approx(field.values.var(), rel=1e-12)


@pytest.mark.parametrize("shape", [(100_000,), (512, 256), (64, 60, 50)])
def test_white_noise_is_flat_at_variance_times_cell_volume(shape):
    values = np.random.default_rng(2).normal(scale=3.0, size=shape).astype(np.float32)
    found = field_spectrum(wb.Field(values, spacing=0.5))
    level = 9.0 * 0.5 ** len(shape)
    for part in np.array_split(np.arange(len(found.k)), 8):
        modes = found.modes[part]
        assert np.average(found.power[part], weights=modes) == pytest.approx(level, rel=5 * math.sqrt(2 / modes.sum()))
    assert np.average(found.power, weights=found.modes) == pytest.approx(level, rel=0.02)


@pytest.mark.parametrize("wave", [(3, 0, 0), (0, 4, 0), (0, 0, 5), (2, 3, 6)])
def test_a_plane_wave_is_in_its_shell(wave):
    places = np.meshgrid(*[np.arange(32) / 32] * 3, indexing="ij")
    phase = sum(2 * np.pi * m * x for m, x in zip(wave, places, strict=True))
    found = field_spectrum(wb.Field(2 * np.cos(phase), spacing=1 / 32))
    shell = round(math.sqrt(sum(m * m for m in wave)))
    assert found.power.argmax() == shell - 1
    assert found.power[shell - 1] * found.modes[shell - 1] == pytest.approx(2.0)   # the variance, in a unit volume
    assert np.delete(found.power, shell - 1).max() < 1e-25


def test_the_spectrum_of_a_gaussian_field_is_the_one_it_was_made_with():
    def known(k: np.ndarray) -> np.ndarray:
        return 7.0 / (1 + (3 * k) ** 2)

    found = field_spectrum(wb.synthetic.gaussian_field((64, 64, 64), known, seed=4, spacing=2.0))
    assert np.abs(found.power / known(found.k) - 1).max() < 5 / math.sqrt(found.modes.min() / 2)
    assert np.abs(found.power / known(found.k) - 1)[10:].max() < 0.1


def test_of_four_axes_the_mean_over_the_first_is_taken():
    values = np.random.default_rng(5).normal(size=(3, 8, 9, 10))
    values -= values.mean(axis=(1, 2, 3), keepdims=True)
    found = field_spectrum(values)
    np.testing.assert_allclose(found.power, np.mean([field_spectrum(v).power for v in values], axis=0), rtol=1e-9)


def test_invalid_values_count_as_the_mean():
    values = np.random.default_rng(6).normal(size=(20, 20)) + 100
    invalid = np.random.default_rng(7).random((20, 20)) < 0.1
    filled = np.where(invalid, values[~invalid].mean(), values)
    for field in (np.where(invalid, np.nan, values), np.where(invalid, np.inf, values), wb.Field(values, mask=invalid)):
        np.testing.assert_allclose(field_spectrum(field).power, field_spectrum(filled).power, rtol=1e-9)


def test_the_number_of_threads_does_not_matter():
    values = np.random.default_rng(8).normal(size=(70, 81, 90))
    powers = []
    for threads in (1, 4):
        with backend.using_threads(threads):
            powers.append(field_spectrum(values).power)
    assert np.array_equal(*powers)


def test_ratios_of_nothing():
    def spectrum(*power: float) -> Spectrum:
        return Spectrum(np.arange(1.0, 4.0), np.array(power), np.ones(3, np.int64), 4.0)

    assert spectrum_ratio(spectrum(0, 0, 2), spectrum(0, 1, 3)).tolist() == [1.0, np.inf, 1.5]
    assert worst_deviation(spectrum(1, 2, 4), spectrum(1, 1, 40), k_max=2.0) == 0.5
    assert worst_deviation(spectrum(1, 2, 4), spectrum(1, 1, 40)) == 9
    with pytest.raises(wb.WorkbenchError, match=r"k_max must be at least 1, the longest wave; got 0.5"):
        worst_deviation(spectrum(1, 2, 4), spectrum(1, 1, 40), k_max=0.5)


def test_a_single_point_has_no_waves():
    with pytest.raises(wb.WorkbenchError, match=r"needs at least 2 points along an axis; got shape \(1, 1\)"):
        field_spectrum(np.ones((1, 1)))
