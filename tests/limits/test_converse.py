"""Converses against the tables of known values, cases that are solved exactly, and what theory says of any of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from scipy.optimize import brentq

from combinations import in_pairs
from workbench.errors import WorkbenchError
from workbench.limits import converse as module
from workbench.limits.approximation import normal
from workbench.limits.converse import converse, d_tilted, family, volume
from workbench.limits.spectrum import LOG2E, Spectrum
from workbench.limits.tails import SumOfSquares

# distortion, eps, n, by volume, by d-tilted information
WHITE = [
    (0.25, 1e-2, 10, 1.607350, 1.151525),
    (0.25, 1e-2, 30, 1.381241, 1.210751),
    (0.25, 1e-2, 50, 1.303495, 1.195461),
    (0.25, 1e-2, 100, 1.220777, 1.162622),
    (0.25, 1e-2, 300, 1.131330, 1.109610),
    (0.25, 1e-2, 1000, 1.073307, 1.065982),
    (0.25, 1e-4, 100, 1.344957, 1.285395),
    (0.25, 1e-4, 1000, 1.116290, 1.108920),
    (0.10, 1e-2, 100, 1.881741, 1.823586),
    (0.10, 1e-2, 1000, 1.734271, 1.726946),
]
# n, s = 0, s = 0.5, s = 1, d-tilted: as many components of variance 4 as of 1/2, at the level 1, with eps = 0.01
MIXED = [
    (40, 0.793061, 0.778721, 0.755004, 0.629236),
    (100, 0.678296, 0.681658, 0.669844, 0.614454),
    (200, 0.616880, 0.629074, 0.623478, 0.593690),
]
EPS = [0.5, 0.01, 1e-12]

spectra = st.lists(
    st.tuples(st.floats(1e-4, 1e4), st.integers(1, 200)), min_size=1, max_size=8, unique_by=lambda part: part[0]
).map(lambda parts: Spectrum.of(*zip(*parts, strict=True)))
probabilities = st.floats(-12, np.log10(0.5)).map(lambda exponent: min(0.5, 10**exponent))
shares = st.floats(-9, 0.5).map(lambda exponent: 10**exponent)   # of the variance


def mixed(n: int) -> Spectrum:
    return Spectrum.of([4.0, 0.5], [n / 2, n / 2])


@pytest.mark.parametrize(("distortion", "eps", "n", "by_volume", "tilted"), WHITE)
@pytest.mark.parametrize("sigma", [1.0, 30.0])
def test_white_noise_has_the_tabulated_converses(distortion, eps, n, by_volume, tilted, sigma):
    white = Spectrum.of(sigma**2, n)
    assert volume(white, sigma**2 * distortion, eps) == pytest.approx(by_volume, abs=5.1e-7)
    assert converse(white, sigma**2 * distortion, eps) == volume(white, sigma**2 * distortion, eps)
    assert d_tilted(white, sigma**2 * distortion, eps) == pytest.approx(tilted, abs=5.1e-7)


@pytest.mark.parametrize("n", [1, 2, 17, 10**4, 10**6])
@pytest.mark.parametrize("eps", EPS)
@pytest.mark.parametrize("distortion", [1e-12, 0.01, 0.9])
def test_white_noise_has_the_converse_of_the_formula(n, eps, distortion):
    expected = 0.5 * np.log2(1 / distortion) + 0.5 * np.log2(stats.chi2.isf(eps, n) / n)
    assert volume(Spectrum.of(1.0, n), distortion, eps) == pytest.approx(max(0, expected), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("eps", "distortion", "intervals"), [(0.05, 0.01, 19.5996), (0.01, 0.25, 5.1517), (0.01, 0.01, 25.758)]
)
def test_one_number_needs_as_many_intervals_as_cover_it(eps, distortion, intervals):
    words = 2 ** converse(Spectrum.of(1.0), distortion, eps)
    assert words == pytest.approx(special.ndtri(1 - eps / 2) / np.sqrt(distortion), rel=1e-9)
    assert words == pytest.approx(intervals, abs=6e-4 if intervals > 25 else 6e-5)


@pytest.mark.parametrize("n", [1, 2, 10, 500])
@pytest.mark.parametrize("eps", EPS)
def test_where_one_word_is_enough_nothing_is_asked(n, eps):
    distortion = stats.chi2.isf(eps, n) / n
    white = Spectrum.of(1.0, n)
    assert converse(white, distortion, eps) <= 1e-12
    assert converse(white, 1.01 * distortion, eps) == 0
    assert converse(white, 0.99 * distortion, eps) > 0


def test_seven_discs_that_cover_one_are_more_than_the_converse_asks():
    eps = np.exp(-4.0)   # the disc of radius 2 sqrt(2), by seven of radius sqrt(2)
    assert converse(Spectrum.of(1.0, 2), 1.0, eps) == pytest.approx(1.0, abs=1e-9)
    assert converse(Spectrum.of(1.0, 2), 1.0, eps) <= np.log2(7) / 2


@pytest.mark.parametrize(("n", "zero", "half", "one", "tilted"), MIXED)
def test_unequal_variances_have_the_tabulated_converses(n, zero, half, one, tilted):
    for s, expected, tolerance in ((0, zero, 5.1e-7), (0.5, half, 5.1e-7), (1, one, 5.1e-7)):
        assert family(mixed(n), 0.75, 0.01, s) == pytest.approx(expected, abs=tolerance)
    assert d_tilted(mixed(n), 0.75, 0.01) == pytest.approx(tilted, abs=5.1e-7)


def test_between_the_ends_the_family_may_be_best():
    assert family(mixed(100), 0.75, 0.01, 0.25) == pytest.approx(0.682198, abs=5.1e-7)
    assert 0.682198 <= converse(mixed(100), 0.75, 0.01) < 0.683


@given(spectra, shares, probabilities)
@settings(max_examples=20)
def test_the_converse_is_the_best_of_its_family_and_above_d_tilted_information(spectrum, share, eps):
    distortion = share * spectrum.variance
    best = converse(spectrum, distortion, eps)
    for s in (0.0, 0.05, 0.4, 0.8, 1.0):
        assert best >= family(spectrum, distortion, eps, s) - 1e-6
    assert best >= volume(spectrum, distortion, eps) >= 0
    assert family(spectrum, distortion, eps, 1.0) >= d_tilted(spectrum, distortion, eps) - 1e-9 >= -1e-9


@given(spectra, shares, probabilities)
@settings(max_examples=40)
def test_no_converse_asks_for_words_where_one_is_enough(spectrum, share, eps):
    distortion = share * spectrum.variance
    squares = SumOfSquares(spectrum.values, spectrum.counts)
    if squares.log_above(spectrum.size * distortion) <= np.log(eps):
        assert converse(spectrum, distortion, eps) <= 1e-9


@given(spectra, shares, probabilities, st.floats(1e-3, 1e3), st.randoms())
@settings(max_examples=10)
def test_order_and_units_do_not_matter(spectrum, share, eps, unit, random):
    distortion = share * spectrum.variance
    parts = list(zip(unit * spectrum.values, spectrum.counts, strict=True))
    random.shuffle(parts)
    again = Spectrum.of(*zip(*parts, strict=True))
    assert converse(again, unit * distortion, eps) == pytest.approx(converse(spectrum, distortion, eps), abs=1e-6)
    assert d_tilted(again, unit * distortion, eps) == pytest.approx(d_tilted(spectrum, distortion, eps), abs=1e-7)


@given(spectra, shares, st.floats(1.01, 10), probabilities)
@settings(max_examples=15)
def test_allowing_more_distortion_or_more_failures_asks_for_less(spectrum, share, factor, eps):
    distortion = share * spectrum.variance
    asked = converse(spectrum, distortion, eps)
    assert converse(spectrum, factor * distortion, eps) <= asked + 1e-6
    assert converse(spectrum, distortion, min(0.5, factor * eps)) <= asked + 1e-6


@given(spectra, shares, probabilities, st.integers(1, 500))
@settings(max_examples=10)
def test_constants_are_samples_that_cost_nothing(spectrum, share, eps, number):
    padded = Spectrum.joined([spectrum, Spectrum.of(0.0, number)])
    distortion = share * spectrum.variance
    same_error = distortion * spectrum.size / padded.size
    for bound in (converse, volume, d_tilted):
        per_field = bound(spectrum, distortion, eps) * spectrum.size
        assert bound(padded, same_error, eps) * padded.size == pytest.approx(per_field, abs=1e-6 * padded.size)


def test_a_component_that_hardly_varies_is_nearly_a_constant():
    strong = Spectrum.of(1.0, 100)
    padded = Spectrum.joined([strong, Spectrum.of(1e-200, 100)])
    assert converse(padded, 0.125, 0.01) == pytest.approx(converse(strong, 0.25, 0.01) / 2, abs=1e-9)


@pytest.mark.parametrize("bound", [converse, volume, d_tilted, lambda *asked: family(*asked, 0.5)])
def test_a_field_that_does_not_vary_costs_nothing(bound):
    assert bound(Spectrum.of([0.0, 0.0]), 1e-9, 0.01) == 0


@pytest.mark.parametrize("s", [1e-6, 0.1, 0.6, 1.0])
@pytest.mark.parametrize("eps", EPS)
def test_two_strong_components_and_two_weak_ones_have_a_closed_form(s, eps):
    """Squares in pairs are exponential numbers: E[(c - T)+] = c - m (1 - exp(-c/m)) when T has the mean m."""
    strong, weak, allowed = 4.0, 0.5, 3.0   # the squared error of all four, which puts the level at 1
    weight, narrow = 1 - s * (1 - weak), s * (1 / weak - 1)

    def exceeded(end: float) -> float:
        return (np.exp(-end / 2) - weight * np.exp(-end / (2 * weight))) / (1 - weight) - eps

    def left(end: float, mean: float) -> float:
        return end + mean * np.expm1(-end / mean)

    end = brentq(exceeded, 1e-9, 100, xtol=1e-14, rtol=1e-14)
    nats = np.log(strong) + np.log(left(end, 2 * weight / weak / narrow) / left(allowed, 2 / narrow))
    spectrum = Spectrum.of([strong, weak], [2, 2])
    tolerance = 1e-9 if s > 1e-3 else 1e-5   # here the oracle, a small difference of large numbers, is the worse one
    assert family(spectrum, allowed / 4, eps, s) == pytest.approx(nats / 4 * LOG2E, abs=tolerance)


def test_thresholds_of_d_tilted_information_are_all_bounds_and_the_best_is_taken():
    n, distortion, eps = 60, 0.2, 0.003
    gains = np.linspace(0.01, 30, 3000)
    chances = eps + np.exp(-gains)
    bounds = n / 2 * np.log(1 / distortion) + (stats.chi2.isf(chances[chances < 1], n) - n) / 2 - gains[chances < 1]
    assert d_tilted(Spectrum.of(1.0, n), distortion, eps) == pytest.approx(bounds.max() / n * LOG2E, abs=1e-6)
    assert d_tilted(Spectrum.of(1.0, n), distortion, eps) >= bounds.max() / n * LOG2E - 1e-12


@pytest.mark.parametrize(("tiles", "n", "penalty", "whole"), [
    (1000, 64, 0.47758, 0.00935), (4096, 512, 0.19579, 0.00164), (100, 4096, 0.05835, 0.00370)
])
def test_many_tiles_that_must_all_keep_the_distortion_pay_more_than_one_field(tiles, n, penalty, whole):
    each = 1 - (1 - 0.01) ** (1 / tiles)
    white = Spectrum.of(1.0, n)
    assert converse(white, 0.01, each) - white.rate(0.01) == pytest.approx(penalty, abs=5.1e-6)
    field = Spectrum.of(1.0, n * tiles)
    assert converse(field, 0.01, 0.01) - field.rate(0.01) == pytest.approx(whole, abs=6e-6)


@pytest.mark.long_with("spectrum3-1e-12")
@pytest.mark.parametrize(("spectrum", "eps"), in_pairs([
    Spectrum.of(np.exp(-0.005 * np.arange(2000))),
    Spectrum.of(np.arange(1, 1001.0) ** -1.5),
    Spectrum.of(np.linspace(0.001, 1, 2000)),
    Spectrum.of(np.linspace(0.001, 1, 400)),
], [0.01, 1e-12]))
def test_grouping_weak_components_changes_no_converse_by_a_millionth_of_a_bit(spectrum, eps, monkeypatch):
    """Measured: 1.1e-7 bit at most, and nearly always too little, on which side a converse stays true."""
    for share in (0.9, 0.1):
        distortion = share * spectrum.variance
        grouped = [family(spectrum, distortion, eps, s) for s in (0.8, 1.0)]
        with monkeypatch.context() as patched:
            patched.setattr(module, "WEAK_CLASSES", 10**9)
            apart = [family(spectrum, distortion, eps, s) for s in (0.8, 1.0)]
        assert grouped == pytest.approx(apart, abs=1e-6)


def test_millions_of_different_variances_are_no_harder_than_hundreds():
    spectrum = Spectrum.of(np.exp(2 * np.random.default_rng(0).standard_normal(2_000_000)))
    filled = module._Filled.of(spectrum, 0.05 * spectrum.variance)
    assert filled.weak.size <= module.WEAK_CLASSES
    assert filled.strong + filled.number.sum() == pytest.approx(2e6)
    assert filled.strong_nats * LOG2E / 2e6 == pytest.approx(spectrum.rate(0.05 * spectrum.variance), rel=1e-9)
    found = converse(spectrum, 0.05 * spectrum.variance, 0.01)
    estimate = normal(spectrum, 0.05 * spectrum.variance, 0.01)
    assert estimate - 1e-5 < found < estimate


@pytest.mark.parametrize("below", [1e-16, 1e-13, 1e-10, 1e-8, 1e-4])
def test_components_that_nearly_reach_the_level_are_computed(below):
    level = 0.75   # that of a distortion of 0.75, when all others are above
    spectrum = Spectrum.of([level * (1 - below), 4.0], [50, 50])
    plain = volume(spectrum, level, 0.01)
    assert 0 <= converse(spectrum, level, 0.01) - plain < below + 1e-9
    assert family(spectrum, level, 0.01, 1e-12) == pytest.approx(plain, abs=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("eps", EPS)
@pytest.mark.parametrize("share", [1e-12, 1e-3, 0.5, 1 - 1e-9, 1.0, 1.5])
@pytest.mark.parametrize("n", [2, 100, 10**6])
def test_extremes_are_computed_and_rounding_hardly_matters(n, share, eps):
    spectrum = Spectrum.of([1.0, 0.1, 1e-3], [n / 2, n / 4, n / 4])
    for bound in (converse, d_tilted):
        found = bound(spectrum, share * spectrum.variance, eps)
        assert np.isfinite(found)
        assert found == pytest.approx(bound(spectrum, share * (1 + 1e-12) * spectrum.variance, eps), abs=1e-6)


@pytest.mark.parametrize("bound", [converse, d_tilted, lambda *asked: family(*asked, 0.9)])
def test_at_the_variance_a_rare_failure_still_costs_what_it_does_just_below(bound):
    spectrum = Spectrum.of([1.0, 0.5], [50, 50])
    below, at, above = (bound(spectrum, share * spectrum.variance, 1e-9) for share in (1 - 1e-9, 1.0, 1 + 1e-9))
    assert at > 0.1
    assert below == pytest.approx(at, abs=1e-7)
    assert above == pytest.approx(at, abs=1e-7)


@pytest.mark.parametrize("bound", [converse, volume, d_tilted, lambda *asked: family(*asked, 0.5)])
def test_questions_that_are_none_are_refused(bound):
    with pytest.raises(WorkbenchError, match="distortion must be a positive"):
        bound(Spectrum.of(1.0), 0.0, 0.01)
    for eps in (0.0, 0.6, np.nan):
        with pytest.raises(WorkbenchError, match="eps"):
            bound(Spectrum.of(1.0), 0.1, eps)


@pytest.mark.parametrize("s", [-0.1, 1.1, np.nan])
def test_a_family_has_ends(s):
    with pytest.raises(WorkbenchError, match="s must lie in"):
        family(mixed(10), 0.75, 0.01, s)
