"""Achievability: against the tables of the theory, other ways to compute it, codes that were made, and the converse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc
from scipy.stats import chi, ncx2, norm

from workbench.errors import WorkbenchError
from workbench.limits.achievability import achievable, caps, classes, gaussian, gaussian_codebook, intervals, rogers, sphere
from workbench.limits.achievability.ball import Ball
from workbench.limits.achievability.caps import _angle, _log_cap
from workbench.limits.achievability.classes import Classes
from workbench.limits.achievability.covering import log_cover
from workbench.limits.achievability.random_code import RandomCode
from workbench.limits.converse import converse
from workbench.limits.spectrum import Spectrum
from workbench.limits.tails import SumOfSquares

# Equal variances: distortion, eps, n, theorem 37 as it stands, exact cap and best radius, Rogers.
TABLE = [
    (0.25, 1e-2, 10, np.inf, np.inf, 2.854294),
    (0.25, 1e-2, 30, 2.163875, 1.5545, 1.847735),
    (0.25, 1e-2, 50, 1.668222, 1.37215, 1.610061),
    (0.25, 1e-2, 100, 1.382446, 1.249573, 1.393991),
    (0.25, 1e-2, 300, 1.182683, 1.143147, 1.200356),
    (0.25, 1e-2, 1000, 1.088886, 1.077653, 1.097897),
    (0.25, 1e-4, 100, 1.867890, 1.403023, 1.517093),
    (0.25, 1e-4, 1000, 1.150799, 1.120675, 1.140840),
    (0.1, 1e-2, 100, 2.216587, 2.010176, 2.049198),
    (0.1, 1e-2, 1000, 1.761369, 1.738079, 1.758264),
]
SHARES = st.floats(0.02, 0.98)
CAPS = ["exact", "thm37"]
RADII = [(0.25, 100, 1.0474), (0.25, 300, 0.9739), (0.25, 1000, 0.9256), (0.1, 1000, 1.0034)]


# ---------------------------------------------------------------- the tables


@pytest.mark.parametrize(("distortion", "eps", "n", "plain", "best", "cover"), TABLE)
def test_equal_variances_have_the_rates_of_the_table(distortion, eps, n, plain, best, cover):
    assert sphere(n, distortion, eps, (1 - distortion) ** 0.5, "thm37") == pytest.approx(plain, abs=1e-6)
    assert sphere(n, distortion, eps) == pytest.approx(best, abs={30: 5e-5, 50: 5e-6}.get(n, 1e-6))
    assert rogers(n, distortion, eps) == pytest.approx(cover, abs=5.1e-7)


@pytest.mark.parametrize(("distortion", "n", "radius"), RADII)
def test_no_radius_beats_the_one_that_is_found_and_it_is_that_of_the_table(distortion, n, radius):
    best = sphere(n, distortion, 0.01)
    assert sphere(n, distortion, 0.01, radius) == pytest.approx(best, abs=2e-6)
    for other in np.linspace(0.9, 1.1, 21) * radius:
        assert sphere(n, distortion, 0.01, float(other)) >= best - 1e-8


@pytest.mark.parametrize(("n", "rate"), [(100, 1.29780), (200, 1.20006)])
def test_a_plain_gaussian_codebook_has_the_rates_of_the_table(n, rate):
    assert gaussian_codebook(Spectrum.of(1.0, n), 0.25, 0.01, "plain") == pytest.approx(rate, abs=6e-6)


@pytest.mark.parametrize(("n", "rate"), [(40, 0.94823), (100, 0.75053), (200, 0.66564)])
def test_strong_and_weak_components_have_the_rates_of_the_table(n, rate):
    two = Spectrum.of([4.0, 0.5], [n / 2, n / 2])
    assert gaussian_codebook(two, 0.75, 0.01, "plain") == pytest.approx(rate, abs=1e-4)
    assert gaussian_codebook(two, 0.75, 0.01) < rate - 0.01


@pytest.mark.parametrize(("n", "words", "exact", "disc"), [(4, 64, 0.3420, 0.3589), (8, 512, 0.5275, 0.5583)])
def test_spherical_codebooks_fail_as_often_as_the_formula_says(n, words, exact, disc):
    for cap, share in (("exact", exact), ("thm37", disc)):
        assert caps.random_code(n, 0.25, 0.33, 0.75**0.5, cap).excess(np.log(words)) == pytest.approx(share, abs=5.1e-5)


@pytest.mark.parametrize(("n", "words", "bound"), [(4, 64, 0.3331), (8, 512, 0.5288)])
def test_gaussian_codebooks_fail_no_more_often_than_the_bound_by_an_exponential(n, words, bound):
    source = Classes.of(Spectrum.of(1.0, n), 0.25)
    code = gaussian.random_code(source, gaussian.plain(source), 0.33)
    assert code.weights @ np.exp(-words * np.exp(code.log_hits)) == pytest.approx(bound, abs=5.1e-5)
    assert bound - 0.003 < code.excess(np.log(words)) < bound


# ---------------------------------------------------------------- the same, computed otherwise


@pytest.mark.parametrize("n", [2, 3, 4, 10, 100, 600])
def test_caps_are_incomplete_beta_functions(n):
    angle = np.array([1e-3, 0.1, 0.5, 1.0, 1.5, np.pi / 2, 1.6, 2.0, 3.0, np.pi])
    half = 0.5 * betainc((n - 1) / 2, 0.5, np.sin(angle) ** 2)
    share = np.where(angle <= np.pi / 2, half, 1 - half)
    known = share > 1e-290
    assert np.exp(_log_cap(n, angle, "exact"))[known] == pytest.approx(share[known], rel=1e-12)


def test_small_caps_of_a_million_dimensions_are_between_disc_and_cone():
    angle = np.array([1e-6, 1e-3, 0.3, 1.0])
    disc, cap = _log_cap(10**6, angle, "thm37"), _log_cap(10**6, angle, "exact")
    assert (cap - disc > -1e-8).all()
    assert (cap - disc < 1e-8 - np.log(np.cos(angle))).all()
    assert cap[3] > disc[3] + 0.6   # the disc is smaller by cos(1), nearly


@given(st.integers(2, 400), st.floats(0.05, 0.95), st.floats(0.3, 1.5), st.floats(0.02, 0.4), st.sampled_from(CAPS))
@settings(max_examples=20)
def test_the_quadrature_over_lengths_is_exact_on_spheres(n, distortion, radius, eps, cap):
    code = caps.random_code(n, distortion, eps, radius, cap)
    log_words = code.log_codewords(eps)
    if not 0 < log_words < 700:   # more code words than a float can count
        return
    length = np.linspace(*chi.ppf([1e-13, 1 - 1e-13], n), 100_001)
    with np.errstate(divide="ignore", over="ignore"):
        hits = _log_cap(n, _angle(length[:, None].ravel(), radius * n**0.5, (distortion * n) ** 0.5), cap)
        missing = np.exp(np.exp(log_words) * np.log1p(-np.minimum(np.exp(hits), 1 - 1e-15)))
    if cap == "thm37":   # which counts what a whole sphere around x would reach as missed
        missing[length < (distortion * n) ** 0.5 - radius * n**0.5] = 1.0
    assert np.trapezoid(missing * chi.pdf(length, n), length) == pytest.approx(eps, rel=1e-4)


@pytest.mark.parametrize("n", [1, 2, 5, 30, 1000, 10**6])
@pytest.mark.parametrize("distortion", [1e-12, 1e-4, 0.25, 0.9])
def test_the_content_of_a_ball_is_the_tail_that_is_computed_one_by_one(n, distortion):
    energies = n * np.array([1e-9, 0.3, 1.0, 1.5, 3.0])
    got = Ball(np.array([1 - distortion]), np.array([float(n)]), n * distortion).log_hit(energies[:, None])
    for energy, value in zip(energies, got, strict=True):
        one = SumOfSquares(np.array([1 - distortion]), np.array([float(n)]), np.array([energy / (1 - distortion)]))
        assert value == pytest.approx(one.log_below(n * distortion), abs=1e-8, rel=1e-12)
    if n == 5 and distortion > 0.1:
        known = ncx2.cdf(n * distortion, n, energies / (1 - distortion), scale=1 - distortion)
        assert np.exp(got) == pytest.approx(known, rel=1e-9)


@given(st.integers(0, 2**32), st.integers(2, 40), st.booleans())
@settings(max_examples=60)
def test_the_content_of_a_ball_is_right_for_any_variances(seed, number, silent):
    random = np.random.default_rng(seed)
    variances = 10 ** random.uniform(-6, 3, number)
    variances[0] *= not silent
    counts = random.integers(1, 10 ** random.integers(1, 5), number).astype(float)
    energies = (variances + 10 ** random.uniform(-4, 2)) * counts * random.uniform(0.5, 2, (3, number))
    room = variances @ counts * 10 ** random.uniform(-3, 0.5) + silent * energies[:, 0].max()
    got = Ball(variances, counts, room).log_hit(energies)
    spoken = variances > 0
    for energy, value in zip(energies, got, strict=True):
        one = SumOfSquares(variances[spoken], counts[spoken], energy[spoken] / variances[spoken])
        assert value == pytest.approx(one.log_below(room - energy[~spoken].sum()), abs=1e-6, rel=1e-7)


def test_no_codeword_serves_what_is_too_far_where_codewords_say_nothing():
    ball = Ball(np.array([0.0, 1.0]), np.array([3.0, 3.0]), 2.0)
    assert np.isneginf(ball.log_hit(np.array([[2.0, 0.0], [3.0, 0.0], [1.9, 0.0]]))).tolist() == [True, True, False]


@given(st.integers(1, 300), st.floats(1e-3, 0.95), st.floats(-6, -0.4), st.sampled_from(["plain", "tilted"]))
@settings(max_examples=15)
def test_the_quadrature_over_lengths_is_exact_for_gaussian_codebooks(n, distortion, log_eps, codebook):
    eps = 10**log_eps
    source = Classes.of(Spectrum.of(1.0, n), distortion)
    codewords = gaussian.plain(source) if codebook == "plain" else _tilted(source, eps)
    code = gaussian.random_code(source, codewords, eps)
    if code is None or not 0 < (log_words := code.log_codewords(eps)) < np.inf:
        return
    length = np.linspace(0, n**0.5 + 12, 20_001)[1:]
    hits = Ball(codewords, source.counts, source.room).log_hit(length[:, None] ** 2)
    missing = RandomCode(hits, np.ones_like(hits))
    shares = np.exp(-np.exp(np.minimum(log_words + missing._log_rates, 700)))
    assert np.trapezoid(shares * chi.pdf(length, n), length) == pytest.approx(eps, rel=1e-3)


@given(st.floats(1, 5.5), SHARES, st.floats(-2, 1), st.floats(-2, 1), SHARES, st.floats(-11, -0.5))
@settings(max_examples=10)
def test_sampling_claims_no_more_than_quadrature_and_little_less(log_n, share, first, second, part, log_eps):
    n, eps = 10**log_n, 10**log_eps
    counts = np.maximum(1, np.round(n * np.array([share, 1 - share])))
    two = Spectrum.of([10**first, 10**second], counts)
    halves = Spectrum.of([10**first, 10**first * (1 + 1e-7), 10**second], [counts[0] / 2, counts[0] / 2, counts[1]])
    exact = gaussian_codebook(two, part * two.variance, eps)
    estimate = gaussian_codebook(halves, part * two.variance, eps)
    nats = (estimate - exact) * two.size * np.log(2)
    assert nats > -0.06
    if n >= 100:   # of few samples, the choice of the codewords may be unlucky for one of the two
        assert nats < 2 + 0.05 * np.sqrt(two.size)   # next to the standard deviation of j, about sqrt(n / 2)


@pytest.mark.parametrize("share", [0.001, 0.3, 0.9])
def test_grouping_a_thousand_variances_hardly_matters(share, monkeypatch):
    many = Spectrum.of(np.exp(np.random.default_rng(1).uniform(0, 10, 400)), 100)
    grouped = gaussian_codebook(many, share * many.variance, 0.01)
    monkeypatch.setattr(classes, "MOST_CLASSES", 400)
    monkeypatch.setattr(gaussian, "NUMBERS", 2**19)
    assert grouped == pytest.approx(gaussian_codebook(many, share * many.variance, 0.01), abs=2e-4)


# ---------------------------------------------------------------- codes that were made


@pytest.mark.parametrize("codebook", ["plain", "tilted"])
def test_real_codebooks_of_unequal_variances_fail_as_often_as_computed(codebook):
    spectrum, distortion, words = Spectrum.of([4.0, 0.5], [3, 3]), 1.0, 128
    source = Classes.of(spectrum, distortion)
    codewords = gaussian.plain(source) if codebook == "plain" else _tilted(source, 0.2)
    code = gaussian.random_code(source, codewords, 0.2) if codebook == "tilted" else _with_weak(source, codewords)
    random = np.random.default_rng(7)
    counts = spectrum.counts.astype(int)
    failed, tries = 0, 200
    for _ in range(tries):   # a new codebook each time: the bound is about their mean
        x = random.standard_normal((500, 6)) * np.sqrt(np.repeat(spectrum.values, counts))
        y = random.standard_normal((words, 6)) * np.sqrt(np.repeat(codewords, counts))
        squares = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2 * x @ y.T
        failed += int((squares.min(axis=1) > 6 * distortion).sum())
    share = failed / (500 * tries)
    assert share == pytest.approx(code.excess(np.log(words)), abs=4 * np.sqrt(share / 20_000))


def _tilted(source, eps):
    failing, level = gaussian.tilted(source, eps)
    return np.maximum(failing - level, 0)


def _with_weak(source, codewords):
    return gaussian._Polar.about_to_fail(source, Ball(codewords, source.counts, source.room), 0.2).integrated(0.2)


def test_a_real_spherical_codebook_fails_as_often_as_computed():
    random = np.random.default_rng(8)
    failed = 0
    for _ in range(200):
        x, y = random.standard_normal((500, 5)), random.standard_normal((100, 5))
        y *= 0.9 * 5**0.5 / np.linalg.norm(y, axis=1, keepdims=True)
        squares = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2 * x @ y.T
        failed += int((squares.min(axis=1) > 5 * 0.3).sum())
    share, computed = failed / 100_000, caps.random_code(5, 0.3, 0.3, 0.9, "exact").excess(np.log(100))
    assert share == pytest.approx(computed, abs=4 * np.sqrt(share / 20_000))


@pytest.mark.parametrize(("eps", "distortion", "words"), [(0.05, 0.01, 20), (0.01, 0.25, 6), (0.01, 0.01, 26)])
def test_one_sample_needs_as_many_intervals_as_cover_it(eps, distortion, words):
    for scale in (1.0, 1e-6, 1e8):
        rate = achievable(Spectrum.of(scale), scale * distortion, eps)
        assert 2**rate == pytest.approx(words, rel=1e-12)
        assert words - 1 < 2 ** converse(Spectrum.of(scale), scale * distortion, eps) <= words


def test_intervals_of_every_component_are_a_code():
    spectrum, distortion, eps = Spectrum.of([4.0, 1.0, 0.01]), 0.05, 0.1
    share = 1 - (1 - eps) ** (1 / 3)
    ends = np.sqrt(spectrum.values) * norm.isf(share / 2)
    words = np.maximum(1, np.ceil(ends / distortion**0.5))
    assert intervals(spectrum, distortion, eps) == pytest.approx(np.log2(words).sum() / 3, rel=1e-12)
    x = np.random.default_rng(3).standard_normal((20_000, 3)) * np.sqrt(spectrum.values)
    middle = np.round((x + ends) / (2 * ends / words) - 0.5) * (2 * ends / words) + ends / words - ends
    inside = np.clip(middle, -ends, ends)
    assert (((x - inside) ** 2).mean(axis=1) > distortion).mean() < eps


def test_seven_discs_of_two_samples_are_between_converse_and_random_codes():
    pair, eps = Spectrum.of(1.0, 2), float(np.exp(-4.0))
    seven = np.log2(7) / 2
    assert converse(pair, 1.0, eps) <= 1 + 1e-9 <= seven
    assert converse(pair, 1.0, eps) <= achievable(pair, 1.0, eps) < seven + 0.6


@pytest.mark.parametrize(("values", "counts"), [(1.0, 7), ([3.0, 1.0, 0.2], [2, 3, 40]), ([1.0, 0.0], [5, 3])])
def test_one_codeword_is_enough_exactly_where_the_source_is_within_reach_of_it(values, counts):
    spectrum = Spectrum.of(values, counts)
    variable = spectrum.values > 0
    energy = SumOfSquares(spectrum.values[variable], spectrum.counts[variable])
    for eps in (0.4, 0.01, 1e-9):
        reach = energy.quantile(np.log(eps)) / spectrum.size
        assert achievable(spectrum, reach * (1 + 1e-6), eps) == 0
        assert achievable(spectrum, reach * (1 - 1e-6), eps) > 0


@pytest.mark.parametrize("distortion", [1e6, 1e18, 1e300])
def test_one_codeword_is_enough_for_any_distortion_far_above_the_variance(distortion):
    assert achievable(Spectrum.of([1.0, 1e-3, 1e-9], [100, 1000, 3000]), distortion, 0.01) == 0


def test_the_balls_of_rogers_cover_more_volume_than_they_contain():
    for size in (3, 8, 9, 20, 500, 10**6):
        for log_radius in (1e-3, 0.5, 0.8, 1.5, 3.0, 20.0, 800.0):
            assert log_cover(size, log_radius) > size * log_radius
    assert rogers(50, 2.0, 0.01) == 0


# ---------------------------------------------------------------- the whole range


def cases(seed, number, unequal):
    """Spectra, distortions and probabilities of all kinds; a share of them with unequal variances."""
    random = np.random.default_rng(seed)
    for _ in range(number):
        n = round(10 ** random.uniform(0, 6))
        different = min(n, [1, 2, random.integers(3, 20)][random.choice(3, p=[1 - unequal, unequal / 2, unequal / 2])])
        counts = np.maximum(1, np.round(n * random.dirichlet(np.ones(different))))
        values = 10 ** random.uniform(-random.uniform(-1, 6), 2, different)
        if different > 2 and random.random() < 0.2:
            values[0] = 0.0
        spectrum = Spectrum.of(values, counts)
        shares = [10 ** random.uniform(-12, 0), random.uniform(0.001, 1), 1 - 10 ** random.uniform(-6, -1)]
        share = shares[random.choice(3, p=[0.5, 0.4, 0.1])]
        yield spectrum, share * spectrum.variance, 10 ** random.uniform(-12, np.log10(0.5))


def check(seed, number, unequal):
    for spectrum, distortion, eps in cases(seed, number, unequal):
        low, high = converse(spectrum, distortion, eps), achievable(spectrum, distortion, eps)
        assert np.isfinite(high), (spectrum.values, spectrum.counts, distortion, eps)
        assert low <= high + 1e-12, (low, high, spectrum.values, spectrum.counts, distortion, eps)
        if spectrum.values.size == 1 and spectrum.size > 100:   # and not by much
            assert high - low < 0.02 + 10 / spectrum.size, (low, high, spectrum.size, distortion, eps)


@pytest.mark.long
def test_what_is_achieved_is_never_below_the_converse():
    check(1, 50, unequal=0.1)


@pytest.mark.long
def test_what_is_achieved_is_never_below_the_converse_in_ten_thousand_cases():
    check(2, 10_000, unequal=0.03)


@pytest.mark.long
@pytest.mark.parametrize("n", [1, 2, 5, 1000, 10**6])
@pytest.mark.parametrize("eps", [1e-12, 0.5])
@pytest.mark.parametrize("share", [1e-12, 0.5, 1 - 1e-9, 1.0, 1.2])
def test_every_corner_has_a_finite_rate(n, eps, share):
    for spectrum in (Spectrum.of(2.0, n), Spectrum.of([3.0, 1e-9], [n, n]), Spectrum.of([0.0, 1e-6, 1.0, 1e4], n)):
        distortion = share * spectrum.variance
        assert converse(spectrum, distortion, eps) <= achievable(spectrum, distortion, eps) + 1e-12 < np.inf


@given(st.integers(0, 2**32))
@settings(max_examples=5)
def test_units_and_constant_components_change_nothing(seed):
    random = np.random.default_rng(seed)
    values, counts = 10 ** random.uniform(-2, 2, 2), random.integers(1, 200, 2)
    spectrum, eps = Spectrum.of(values, counts), 10 ** random.uniform(-8, -0.4)
    distortion = random.uniform(0.01, 0.99) * spectrum.variance
    rate = achievable(spectrum, distortion, eps)
    assert achievable(Spectrum.of(1e-9 * values, counts), 1e-9 * distortion, eps) == pytest.approx(rate, rel=1e-7, abs=1e-9)
    listed = Spectrum.of(np.repeat(values, counts))
    assert achievable(listed, distortion, eps) == pytest.approx(rate, rel=1e-7, abs=1e-9)
    n = spectrum.size
    padded = Spectrum.of([*values, 0.0], [*counts, n])
    assert achievable(padded, distortion / 2, eps) == pytest.approx(rate / 2, rel=1e-7, abs=1e-9)


@given(st.integers(20, 10**5), st.floats(-6, -0.1), st.floats(-10, -0.4))
@settings(max_examples=20)
def test_more_distortion_or_failures_need_no_higher_rate(n, log_distortion, log_eps):
    white = Spectrum.of(1.0, n)
    rate = achievable(white, 10**log_distortion, 10**log_eps)
    assert achievable(white, 1.2 * 10**log_distortion, 10**log_eps) <= rate + 1e-9
    assert achievable(white, 10**log_distortion, 1.2 * 10**log_eps) <= rate + 1e-9


def test_the_answer_is_the_same_each_time():
    many = Spectrum.of(np.geomspace(1e-3, 10, 30), 20)
    assert achievable(many, 0.1, 0.01) == achievable(many, 0.1, 0.01)


# ---------------------------------------------------------------- refused, or nothing to say


def test_what_no_codeword_can_serve_makes_a_bound_infinite():
    assert sphere(20, 0.25, 0.01, 0.75**0.5) == np.inf
    assert sphere(100, 1e-12, 0.01) == np.inf
    spectrum = Spectrum.of([100.0, 0.5], [1, 1])   # the weak component alone exceeds the distortion too often
    assert gaussian_codebook(spectrum, 0.6, 0.01, "plain") == np.inf
    assert gaussian_codebook(spectrum, 0.6, 0.01) < np.inf


def test_a_random_code_needs_all_its_words_for_vectors_that_are_hardly_served():
    code = RandomCode(np.log([0.5, 1e-9]), np.array([0.9, 0.1]))
    assert code.log_codewords(0.05) == pytest.approx(np.log(np.log(2) * 1e9), rel=1e-6)
    assert RandomCode(np.array([-1.0, -np.inf]), np.array([0.9, 0.1])).log_codewords(0.1) == np.inf
    assert RandomCode(np.array([-1.0]), np.array([1.0]), missed=0.2).log_codewords(0.1) == np.inf
    assert code.excess(0.0) == pytest.approx(0.9 * 0.5 + 0.1, rel=1e-8)


def test_samples_count_with_four_standard_errors():
    hits = np.log(np.random.default_rng(5).uniform(0.1, 0.2, 4000))
    exact = RandomCode(hits, np.full(4000, 1 / 4000))
    estimate = RandomCode(hits, np.full(4000, 1 / 4000), sampled=True)
    spread = np.std(np.exp(hits)) / np.sqrt(4000)   # with one word, what is missed is 1 - p
    assert estimate.excess(0.0) - exact.excess(0.0) == pytest.approx(4 * spread, rel=0.1)


@pytest.mark.parametrize(("distortion", "eps"), [(0, 0.1), (-1, 0.1), (np.nan, 0.1), (0.1, 0), (0.1, 0.6), (0.1, np.nan)])
def test_impossible_questions_are_refused(distortion, eps):
    white = Spectrum.of(1.0, 10)
    for question in (
        lambda: achievable(white, distortion, eps),
        lambda: gaussian_codebook(white, distortion, eps),
        lambda: intervals(white, distortion, eps),
        lambda: sphere(10, distortion, eps),
        lambda: rogers(10, distortion, eps),
    ):
        with pytest.raises(WorkbenchError, match=r"must"):
            question()


def test_dimensions_and_codebooks_that_do_not_exist_are_refused():
    with pytest.raises(WorkbenchError, match="at least 2 for codewords on a sphere"):
        sphere(1, 0.1, 0.1)
    with pytest.raises(WorkbenchError, match="at least 3 for the bound by coverings"):
        rogers(2, 0.1, 0.1)
    with pytest.raises(WorkbenchError, match="codebook must be"):
        gaussian_codebook(Spectrum.of(1.0, 9), 0.1, 0.1, "lattice")
    with pytest.raises(WorkbenchError, match="constant field"):
        gaussian_codebook(Spectrum.of([0.0, 0.0]), 0.1, 0.1)
    assert achievable(Spectrum.of([0.0, 0.0]), 0.1, 0.1) == 0


def test_the_excess_of_a_quadrature_sums_to_one_without_codewords():
    source = Classes.of(Spectrum.of([2.0, 1.0], [30, 50]), 0.3)
    code = gaussian.random_code(source, gaussian.plain(source), 0.5)
    assert code.weights.sum() == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize(("variances", "counts", "eps"), [
    ([1.0, 0.1], [1, 11], 0.1), ([1.0, 0.3, 0.05], [4, 4, 4], 1e-4),
    *(pytest.param(*each, 1e-4, marks=pytest.mark.long) for each in (([1.0, 0.1], [1, 11]), ([4.0, 0.5], [6, 6]))),
])
def test_few_components_of_unequal_variances_need_no_more_where_more_error_is_allowed(variances, counts, eps):
    source = Spectrum.of(variances, counts)
    distortions = np.array([0.28, 0.39, 0.45, 0.58, 0.7]) * source.variance
    nats = np.log(2) * source.size
    above = nats * np.array([achievable(source, each, eps) for each in distortions])
    below = nats * np.array([converse(source, each, eps) for each in distortions])
    assert (np.diff(above) < 0).all()
    assert (above > below).all()
    assert (above - below < 4).all()   # of equal variances, it is up to 2.4
