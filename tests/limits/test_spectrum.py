"""Water-filling against bisection, tables of known values, and what must not matter: order, units, how parts are listed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from workbench.errors import WorkbenchError
from workbench.limits.spectrum import LOG2E, Spectrum, require_distortion, require_excess

variances = arrays(np.float64, st.integers(1, 30), elements=st.one_of(st.just(0.0), st.floats(1e-9, 1e9)))
shares = st.floats(1e-6, 1.5)


def filled_by_bisection(values: np.ndarray, distortion: float) -> tuple[float, float, float]:
    """Level, rate and dispersion in bits by the definitions alone."""
    low, high = 0.0, float(values.max())
    for _ in range(300):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(values, middle).mean() < distortion else (low, middle)
    level = (low + high) / 2
    rate = np.mean([0.5 * np.log2(max(1.0, value / level)) for value in values])
    dispersion = np.mean([0.5 * min(1.0, value / level) ** 2 for value in values]) * LOG2E**2
    return level, float(rate), float(dispersion)


@given(variances, st.floats(1e-6, 0.999))
def test_level_rate_and_dispersion_are_those_of_the_definition(values, share):
    spectrum = Spectrum.of(values)
    distortion = share * spectrum.variance
    if distortion == 0:
        return   # constants alone
    level, rate, dispersion = filled_by_bisection(values, distortion)
    assert spectrum.level(distortion) == pytest.approx(level, rel=1e-11)
    assert spectrum.rate(distortion) == pytest.approx(rate, rel=1e-10, abs=1e-12)
    assert spectrum.dispersion(distortion) == pytest.approx(dispersion, rel=1e-10)


@given(variances, shares)
def test_the_level_leaves_the_distortion_that_was_asked_for(values, share):
    spectrum = Spectrum.of(values)
    distortion = share * spectrum.variance
    if distortion == 0:
        return
    level = spectrum.level(distortion)
    assert spectrum.distortion(level) == pytest.approx(min(distortion, spectrum.variance), rel=1e-11)
    assert np.isinf(level) == (distortion >= spectrum.variance)


@given(variances, shares, shares)
def test_more_distortion_never_costs_more_and_never_lowers_the_level(values, one, other):
    spectrum = Spectrum.of(values)
    less, more = sorted((one * spectrum.variance, other * spectrum.variance))
    if less == 0:
        return
    assert spectrum.level(less) <= spectrum.level(more) * (1 + 1e-12)
    assert spectrum.rate(less) >= spectrum.rate(more) - 1e-12 >= -1e-12


@given(variances, shares, st.randoms(), st.floats(1e-3, 1e3))
def test_order_and_units_do_not_matter(values, share, random, unit):
    spectrum = Spectrum.of(values)
    distortion = share * spectrum.variance
    if distortion == 0 or abs(share - 1) < 1e-9:
        return
    mixed = list(values)
    random.shuffle(mixed)
    assert Spectrum.of(mixed).rate(distortion) == spectrum.rate(distortion)
    scaled = Spectrum.of(unit * values)
    assert scaled.rate(unit * distortion) == pytest.approx(spectrum.rate(distortion), rel=1e-9, abs=1e-12)
    assert scaled.dispersion(unit * distortion) == pytest.approx(spectrum.dispersion(distortion), rel=1e-9)
    assert scaled.level(unit * distortion) == pytest.approx(unit * spectrum.level(distortion), rel=1e-12)


@given(variances, st.lists(st.integers(1, 5), min_size=30, max_size=30), st.floats(1e-6, 0.999))
def test_counting_equal_components_is_listing_them(values, counts, share):
    counted, listed = Spectrum.of(values, counts[: len(values)]), Spectrum.of(np.repeat(values, counts[: len(values)]))
    distortion = share * counted.variance
    if distortion == 0:
        return
    assert counted.size == listed.size
    assert counted.rate(distortion) == pytest.approx(listed.rate(distortion), rel=1e-10, abs=1e-12)
    assert counted.dispersion(distortion) == pytest.approx(listed.dispersion(distortion), rel=1e-10)


@given(variances, variances, st.floats(1e-3, 1e3))
def test_joined_sources_are_filled_to_one_level(one, other, level):
    joined = Spectrum.joined([Spectrum.of(one), Spectrum.of(other)])
    apart = [Spectrum.of(one).distortion(level) * one.size, Spectrum.of(other).distortion(level) * other.size]
    assert joined.size == one.size + other.size
    assert joined.distortion(level) * joined.size == pytest.approx(sum(apart), rel=1e-12)


@given(variances, st.integers(1, 8))
def test_grouping_keeps_number_and_variance(values, classes):
    spectrum = Spectrum.of(values)
    grouped = spectrum.grouped(classes)
    assert grouped.values.size <= max(classes, 1)
    assert grouped.size == pytest.approx(spectrum.size)
    assert grouped.variance == pytest.approx(spectrum.variance, rel=1e-12)
    assert (np.diff(grouped.values) > 0).all() or spectrum.values.size <= classes


def test_grouping_into_many_classes_hardly_changes_the_rate():
    spectrum = Spectrum.of(np.exp(-0.005 * np.arange(2000)))
    for share in (0.5, 0.1, 0.001):
        distortion = share * spectrum.variance
        assert 0 <= spectrum.grouped(512).rate(distortion) - spectrum.rate(distortion) < 1e-4


@pytest.mark.parametrize(("distortion", "level", "rate", "nats"), [
    (0.5, 0.5, 2.16096, 0.5),
    (1, 1, 1.66096, 0.5),
    (2, 3, 1.26472, 0.27778),
    (10, 19, 0.59898, 0.25069),
    (30, 59, 0.19030, 0.25007),
])
def test_two_regions_are_filled_as_tabulated(distortion, level, rate, nats):
    spectrum = Spectrum.of([100.0, 1.0], [7, 7])
    assert spectrum.level(distortion) == pytest.approx(level, rel=1e-12)
    assert spectrum.rate(distortion) == pytest.approx(rate, abs=5.1e-6)
    assert spectrum.dispersion(distortion) == pytest.approx(nats * LOG2E**2, abs=1.1e-5)


def test_white_noise_has_the_rate_and_dispersion_of_the_textbook():
    for distortion in (1e-12, 1e-3, 0.25, 0.999):
        white = Spectrum.of(2.0, 1000)
        assert white.rate(2 * distortion) == pytest.approx(-0.5 * np.log2(distortion), rel=1e-9)
        assert white.dispersion(2 * distortion) == pytest.approx(1.0406844905028039, rel=1e-12)


def test_half_strong_half_weak_is_as_tabulated():
    mixed = Spectrum.of([4.0, 0.5], [50, 50])
    assert (mixed.level(0.75), mixed.rate(0.75)) == (1.0, 0.5)
    assert mixed.dispersion(0.75) == pytest.approx(0.3125 * LOG2E**2, rel=1e-12)


def test_at_the_variance_and_beyond_nothing_is_left_to_say():
    spectrum = Spectrum.of([3.0, 1.0])
    assert spectrum.rate(2.0) == spectrum.rate(5.0) == 0.0
    assert spectrum.dispersion(5.0) == 0.0
    constant = Spectrum.of([0.0, 0.0])
    assert constant.variance == constant.rate(0.1) == constant.dispersion(0.1) == 0.0


@pytest.mark.parametrize("values", [[], [-1.0], [np.nan, 1.0], [np.inf]])
def test_variances_that_are_none_are_refused(values):
    with pytest.raises(WorkbenchError, match="variances must be finite and not negative"):
        Spectrum.of(values)


@pytest.mark.parametrize("counts", [0, -1, np.nan, np.inf])
def test_counts_that_are_none_are_refused(counts):
    with pytest.raises(WorkbenchError, match="counts must be positive"):
        Spectrum.of([1.0, 2.0], [1, counts])


@pytest.mark.parametrize("distortion", [0.0, -1.0, np.nan, np.inf])
def test_distortions_that_are_none_are_refused(distortion):
    for question in (require_distortion, Spectrum.of(1.0).level, Spectrum.of(1.0).rate, Spectrum.of(1.0).dispersion):
        with pytest.raises(WorkbenchError, match="distortion must be a positive mean square error"):
            question(distortion)


@pytest.mark.parametrize("eps", [0.0, -0.1, 0.51, 1.0, np.nan])
def test_probabilities_of_excess_that_are_none_are_refused(eps):
    with pytest.raises(WorkbenchError, match="must lie in"):
        require_excess(eps)


@pytest.mark.parametrize("scale", [1e-2, 1e25])
def test_a_distortion_in_single_precision_is_the_number_that_it_is(scale):
    spectrum = Spectrum(np.array([0.5, 1.0, 2.0]) * scale, np.ones(3))
    distortion = np.float32(0.3 * scale)
    assert spectrum.rate(distortion) == spectrum.rate(float(distortion))
    assert spectrum.level(distortion) == spectrum.level(float(distortion))
