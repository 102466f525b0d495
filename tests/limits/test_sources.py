"""Exact sources: against the tables of the theory, matrices written down, and quadrature."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.linalg import block_diag, toeplitz

from workbench.errors import WorkbenchError
from workbench.limits.correlation import Autoregressive, Matern
from workbench.limits.sources import Source, gauss_markov, gaussian, homogeneous, memoryless, piecewise, separable
from workbench.limits.spectrum import LOG2E, Spectrum

WHITE = Autoregressive(1.0, 0.0)


def printed(value: float, digits: int) -> object:
    return pytest.approx(value, abs=0.5000001 * 10**-digits)


# theta, distortion, rate in bits, dispersion in nats^2, for a = .5 and sigma = 1
GAUSS_MARKOV = [
    (4 / 9, 0.444444, 0.584963, 0.500000),
    (0.6, 0.560947, 0.421281, 0.441770),
    (1.0, 0.764514, 0.230423, 0.319098),
    (2.0, 1.073583, 0.070522, 0.191862),
]


@pytest.mark.parametrize(("level", "distortion", "rate", "dispersion"), GAUSS_MARKOV)
@pytest.mark.parametrize("a", [0.5, -0.5])
def test_an_infinite_gauss_markov_source_has_the_rates_of_the_table(a, level, distortion, rate, dispersion):
    source = gauss_markov(a, 1.0, n=10)
    exact = source.level_distortion(level)
    assert exact == printed(distortion, 6)
    bits, bits_squared = source.limit(exact)
    assert bits == printed(rate, 6)
    assert bits_squared / LOG2E**2 == printed(dispersion, 6)


def test_the_critical_distortion_is_the_least_of_the_power_spectrum():
    assert gauss_markov(0.5, 1.0, 10).critical_distortion == pytest.approx(4 / 9, rel=1e-14)
    assert gauss_markov(-0.5, 3.0, 10).critical_distortion == pytest.approx(4, rel=1e-14)
    rate, dispersion = gauss_markov(0.5, 1.0, 10).limit(4 / 9)
    assert rate == pytest.approx(np.log2(1.5), rel=1e-12)
    assert dispersion == pytest.approx(0.5 * LOG2E**2, rel=1e-12)


@given(st.floats(-0.98, 0.98).filter(lambda a: abs(a) > 1e-3), st.floats(0.1, 10), st.floats(0.001, 0.999))
def test_the_limit_is_the_integral_over_the_power_spectrum(a, sigma, share):
    source = gauss_markov(a, sigma, n=10)
    low, high = source.critical_distortion, (sigma / (1 - abs(a))) ** 2
    level = low * (high / low) ** share

    def power(w):
        return sigma**2 / (1 + a * a - 2 * a * np.cos(w))

    turn = np.arccos(np.clip((1 + a * a - sigma**2 / level) / (2 * a), -1, 1))
    options = {"points": [turn], "limit": 300, "epsabs": 1e-12, "epsrel": 1e-12}
    distortion = quad(lambda w: min(level, power(w)) / np.pi, 0, np.pi, **options)[0]
    rate = quad(lambda w: 0.5 * np.log2(max(1, power(w) / level)) / np.pi, 0, np.pi, **options)[0]
    dispersion = quad(lambda w: 0.5 * min(1, power(w) / level) ** 2 / np.pi, 0, np.pi, **options)[0]
    assert source.level_distortion(level) == pytest.approx(distortion, rel=1e-9)
    found = source.limit(source.level_distortion(level))
    assert found == pytest.approx((rate, dispersion * LOG2E**2), rel=1e-7, abs=1e-9)


@given(st.floats(-0.9, 0.9), st.floats(0.01, 0.9))
def test_long_sources_come_near_the_limit(a, share):
    source = gauss_markov(a, 1.0, n=20000)
    distortion = share / (1 - a * a)
    rate, dispersion = source.limit(distortion)
    for start in (True, False):
        spectrum = gauss_markov(a, 1.0, 20000, start).spectrum()
        assert spectrum.rate(distortion) == pytest.approx(rate, abs=3e-4)
        assert spectrum.dispersion(distortion) == pytest.approx(dispersion, abs=3e-3)


def test_up_to_the_variance_everything_must_be_said_and_beyond_it_nothing():
    source = gauss_markov(0.5, 1.0, n=10)
    assert source.limit(4 / 3) == (0.0, 0.0)
    assert source.limit(100.0) == (0.0, 0.0)
    assert 0 < source.limit(4 / 3 * (1 - 1e-9))[0] < 1e-8
    assert gauss_markov(0.0, 2.0, n=10).limit(1.0) == pytest.approx((1.0, 0.5 * LOG2E**2), rel=1e-14)


def test_the_letters_of_a_source_started_at_0_cost_what_its_noise_costs():
    assert gauss_markov(0.5, 1.0, 50, stationary=False).spectrum().rate(4 / 9) == printed(0.584963, 6)
    assert gauss_markov(0.5, 1.0, 50).spectrum().rate(4 / 9) == printed(0.589113, 6)
    assert gauss_markov(0.5, 1.0, 400).spectrum().rate(4 / 9) == printed(0.585481, 6)


@given(st.floats(-1.5, 1.5) | st.sampled_from([0.0, 1.0, -1.0]), st.floats(0.1, 10), st.integers(1, 40))
def test_a_source_started_at_0_has_the_variances_of_its_matrix(a, sigma, n):
    response = sigma * np.tril(float(a) ** np.maximum(np.subtract.outer(np.arange(n), np.arange(n)), 0))
    singular = np.linalg.svd(response, compute_uv=False)
    spectrum = gauss_markov(a, sigma, n, stationary=False).spectrum()
    assert spectrum.values == pytest.approx(np.sort(singular**2), rel=1e-9)
    assert np.log(spectrum.values).sum() == pytest.approx(2 * n * np.log(sigma), abs=1e-10 * n)   # the determinant


def test_a_growing_source_keeps_its_determinant_however_much_it_grows():
    spectrum = gauss_markov(2.0, 1.0, 500, stationary=False).spectrum()
    assert np.log(spectrum.values).sum() == pytest.approx(0, abs=1e-9)
    assert spectrum.values[-1] > 1e299
    with pytest.raises(WorkbenchError, match="must give finite variances"):
        gauss_markov(2.0, 1.0, 600, stationary=False).spectrum()
    with pytest.raises(WorkbenchError, match="n of a source that grows must be a whole number, between 1 and 8,192"):
        gauss_markov(1.001, 1.0, 10000, stationary=False).spectrum()


def test_a_long_source_started_at_0_is_no_effort():
    spectrum = gauss_markov(0.9, 2.0, 10**5, stationary=False).spectrum()
    assert np.log(spectrum.values).mean() == pytest.approx(np.log(4.0), rel=1e-12)


def test_tiles_of_a_stationary_source_are_stationary_sources():
    tiled, one = gauss_markov(0.9, 1.0, 96).spectrum(tile=16), gauss_markov(0.9, 1.0, 16).spectrum()
    assert tiled.size == 96
    assert tiled.rate(0.3) == pytest.approx(one.rate(0.3), rel=1e-12)
    whole = gauss_markov(0.9, 1.0, 96, stationary=False)
    assert whole.spectrum(tile=96).rate(0.3) == whole.spectrum().rate(0.3)
    with pytest.raises(WorkbenchError, match="tile must be None for a source that is not stationary; got 16"):
        whole.spectrum(tile=16)


def test_independent_samples_have_no_tiles():
    source = gaussian([4.0] * 50 + [0.5] * 50)
    assert source.size == 100
    assert source.spectrum().rate(0.75) == 0.5
    assert source.spectrum().dispersion(0.75) / LOG2E**2 == 0.3125
    assert memoryless(2.0, 7).spectrum().size == memoryless(2.0, 7).size == 7
    with pytest.raises(WorkbenchError, match="tile must be None for independent samples, which have no geometry; got 8"):
        memoryless(1.0, 64).spectrum(tile=8)


def test_a_separable_field_is_a_recursion_along_each_axis():
    source = separable((0.9, 0.5), (6, 5), variance=3.0)
    matrix = 3 * np.kron(toeplitz(0.9 ** np.arange(6)), toeplitz(0.5 ** np.arange(5)))
    assert source.size == 30
    assert source.spectrum().values == pytest.approx(np.linalg.eigvalsh(matrix), rel=1e-11)
    assert separable(0.9, (6, 5)).correlation == Autoregressive(1.0, (0.9, 0.9))
    assert separable(0.9, 6).shape == (6,)


# distortion, level, optimal rate, dispersion in nats^2, rate with the pooled variance
TWO_VARIANCES = [
    (0.5, 0.5, 2.16096, 0.5, 3.32911),
    (1, 1, 1.66096, 0.5, 2.82911),
    (2, 3, 1.26472, 0.27778, 2.32911),
    (10, 19, 0.59898, 0.25069, 1.16814),
    (30, 59, 0.19030, 0.25007, 0.37566),
]


@pytest.mark.parametrize(("distortion", "level", "rate", "dispersion", "pooled"), TWO_VARIANCES)
def test_regions_of_two_variances_have_the_rates_of_the_table(distortion, level, rate, dispersion, pooled):
    source = piecewise(np.repeat([0, 1], 32).reshape(8, 8), [Autoregressive(v, (0.0, 0.0)) for v in (1.0, 100.0)])
    spectrum = source.spectrum()
    assert spectrum.level(distortion) == pytest.approx(level, rel=1e-12)
    assert spectrum.rate(distortion) == printed(rate, 5)
    assert spectrum.dispersion(distortion) / LOG2E**2 == printed(dispersion, 5)
    assert source.pooled_variance_spectrum().rate(distortion) == printed(pooled, 5)


def test_one_variance_for_all_costs_the_arithmetic_over_the_geometric_mean():
    source = piecewise(np.repeat([0, 1], 50), [WHITE, Autoregressive(100.0, 0.0)])
    assert source.pooled_variance_spectrum().rate(0.01) - source.spectrum().rate(0.01) == printed(1.168142, 6)
    rates = (0.9, 0.2)
    correlated = piecewise(np.repeat([0, 1], 50), [Autoregressive(v, rho) for v, rho in zip((1, 100), rates, strict=True)])
    assert correlated.pooled_variance_spectrum().rate(1e-3) - correlated.spectrum().rate(1e-3) == printed(1.168142, 6)


def test_regions_are_independent_blocks_of_one_matrix():
    labels = np.repeat([1, -1, 0, 2], [5, 3, 8, 6])
    models = [Autoregressive(1.0, 0.9), Matern(4.0, 3.0, 1.5, nugget=0.1), Autoregressive(0.2, -0.5)]
    lengths = (8, 5, 6)
    matrices = [toeplitz(model.along(0, n)) + model.nugget * np.eye(n) for model, n in zip(models, lengths, strict=True)]
    source = piecewise(labels, models)
    assert source.size == 19
    assert source.spectrum().values == pytest.approx(np.linalg.eigvalsh(block_diag(*matrices)), rel=1e-10)
    places = [np.flatnonzero(labels == label) for label in range(3)]
    cut = [
        matrix[np.ix_(place // 6 == tile, place // 6 == tile)]
        for place, matrix in zip(places, matrices, strict=True)
        for tile in range(4)
    ]
    tiled = source.spectrum(tile=6)
    found = np.repeat(tiled.values, tiled.counts.astype(int))
    assert found == pytest.approx(np.linalg.eigvalsh(block_diag(*cut)), rel=1e-10)


def test_a_label_that_does_not_occur_changes_nothing():
    labels = np.array([0, 0, 2, 2])
    models = [WHITE, Autoregressive(50.0, 0.0), Autoregressive(4.0, 0.0)]
    assert piecewise(labels, models).spectrum().values.tolist() == [1, 1, 4, 4]
    assert piecewise(labels, models).pooled_variance_spectrum().values.tolist() == [2.5] * 4
    assert "2 regions" in piecewise(labels, models).describe()


def test_a_region_that_does_not_vary_costs_nothing_but_in_a_pooled_model():
    still = Autoregressive(0.0, 0.0)
    source = piecewise(np.repeat([0, 1], 10), [still, Autoregressive(4.0, 0.0)])
    assert source.spectrum().rate(0.5) == pytest.approx(0.5 * 0.5 * np.log2(4))
    assert source.pooled_variance_spectrum().rate(0.5) == pytest.approx(0.5 * np.log2(4))
    assert piecewise(np.zeros(5, int), [still]).spectrum().rate(0.1) == 0
    assert piecewise(np.zeros(5, int), [still]).pooled_variance_spectrum().rate(0.1) == 0


def test_labels_are_not_changed_through_the_array_they_were_made_of():
    labels = np.zeros(4, int)
    source = piecewise(labels, [WHITE])
    labels[:] = -1
    assert source.size == 4


@pytest.mark.parametrize(
    "source",
    [
        memoryless(1.0, 5),
        gaussian([1.0, 2.0, 2.0]),
        gauss_markov(0.5, 1.0, 9),
        gauss_markov(1.5, 1.0, 9, stationary=False),
        homogeneous(Matern(1.0, (2.0, 3.0), 1.5), (4, 5)),
        separable(0.5, (2, 3, 4)),
        piecewise(np.arange(25).reshape(5, 5) % 5, [Autoregressive(1.0, (0.1, 0.1))] * 5),
    ],
    ids=lambda source: type(source).__name__,
)
def test_every_source_says_its_size_its_spectrum_and_what_it_is(source):
    assert isinstance(source, Source)
    assert isinstance(source.spectrum(), Spectrum)
    assert source.size == pytest.approx(source.spectrum().size, rel=1e-14)
    assert isinstance(source.size, int)
    assert "\n" not in source.describe()
    assert f"{source.size:,}" in source.describe() or " x " in source.describe()


REFUSED = [
    (lambda: memoryless(0.0, 5), "variance must be positive and finite; got 0.0"),
    (lambda: memoryless(1.0, 0), "n must be a whole number, at least 1; got 0"),
    (lambda: gaussian([]), "variances must be finite and not negative, at least one"),
    (lambda: gauss_markov(1.0, 1.0, 5), r"a must be in \(-1, 1\) for a stationary source; got 1: set stationary=False"),
    (lambda: gauss_markov(float("nan"), 1.0, 5), "a must be a number in"),
    (lambda: gauss_markov(0.5, -1.0, 5), "sigma must be positive"),
    (lambda: gauss_markov(0.5, 1.0, 2.5), "n must be a whole number"),
    (lambda: gauss_markov(1.5, 1.0, 5, False).limit(0.1), "a must lie between -1 and 1 for the limit of infinite length"),
    (lambda: gauss_markov(0.5, 1.0, 5).limit(0.0), "distortion must be a positive mean square error"),
    (lambda: gauss_markov(0.5, 1.0, 5).level_distortion(-1.0), "level must be positive"),
    (lambda: homogeneous(WHITE, (4, 4)), r"shape must have 1 axes, as the correlation has; got \(4, 4\)"),
    (lambda: homogeneous(0.9, (4, 4)), "a correlation must be Autoregressive, Matern or Sampled; got 0.9"),
    (lambda: separable((0.9, 0.9), (4, 4, 4)), "shape must have 2 axes"),
    (lambda: separable(1.0, (4, 4)), "rhos must lie between -1 and 1"),
    (lambda: piecewise(np.zeros(3), [WHITE]), "labels must be whole numbers from 0 to 0.*got float64"),
    (lambda: piecewise(np.array([0, 1]), [WHITE]), r"labels must be whole numbers from 0 to 0.*in \[0, 1\]"),
    (lambda: piecewise(np.array([0, -2]), [WHITE]), "labels must be whole numbers"),
    (lambda: piecewise(np.array([-1, -1]), [WHITE]), "not -1 everywhere"),
    (lambda: piecewise(np.array([], int), [WHITE]), "labels must be whole numbers"),
    (lambda: piecewise(np.zeros((2, 2), int), [WHITE]), "correlations must have 2 axes, as the labels have"),
    (lambda: piecewise(np.zeros(2, int), ["white"]), "a correlation must be Autoregressive, Matern or Sampled"),
]


@pytest.mark.parametrize(("nonsense", "complaint"), REFUSED)
def test_nonsense_is_refused(nonsense, complaint):
    with pytest.raises(WorkbenchError, match=complaint):
        nonsense()


def test_borders_cost_what_their_length_says():
    """Half a bit of log2(1 / (1 - rho^2)) for each face between two regions, a quarter for each of them."""
    labels = np.add.outer(4 * (np.arange(64) // 16), np.arange(64) // 16)   # squares of one region are not independent
    source = piecewise(labels, [Autoregressive(1.0 + 3.0 * (square % 2), (0.95, 0.95)) for square in range(16)])
    faces = 2 * 3 * 64   # three lines along each axis
    price = source.spectrum().rate(1e-6) - source.borderless_spectrum().rate(1e-6)
    assert price == pytest.approx(faces * 0.5 * np.log2(1 / (1 - 0.95**2)) / labels.size, rel=1e-9)
    assert source.borderless_spectrum(16).rate(0.01) == pytest.approx(source.spectrum(16).rate(0.01), rel=1e-12)
