"""The check against rational arithmetic, on random pairs and on the last bit before and after every edge."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from guarantees.checks import broken, holds, largest_error
from workbench import backend
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit, check

DTYPES = [np.float32, np.float64]
LARGEST = sys.float_info.max


def by_fractions(x: np.floating, y: np.floating, limit: Limit, period: float | None = None) -> bool:
    """The promise about one value, in the words of its definition."""
    if not np.isfinite(x) or limit.value == 0:
        same = x.tobytes() == y.tobytes()
        return same and (period is None or not np.isfinite(x) or 0 <= y < period)
    if not np.isfinite(y) or (period is not None and not 0 <= Fraction(float(y)) < Fraction(period)):
        return False
    apart = abs(Fraction(float(x)) - Fraction(float(y)))
    if limit.relative:
        return apart <= Fraction(limit.value) * abs(Fraction(float(x)))
    if period is not None:
        apart = min(apart, Fraction(period) - apart)
    return apart <= Fraction(limit.value)


def broken_by_fractions(x: np.ndarray, y: np.ndarray, limit: Limit, period: list[float] | None = None) -> list[int]:
    lengths = np.broadcast_to(period, x.shape).reshape(-1).tolist() if period else [None] * x.size
    pairs = zip(x.reshape(-1), y.reshape(-1), lengths, strict=True)
    return [i for i, (a, b, length) in enumerate(pairs) if not by_fractions(a, b, limit, length)]


def numbers(dtype: type) -> st.SearchStrategy:
    width = np.dtype(dtype).itemsize * 8
    any_number = st.floats(width=width)
    ordinary = st.floats(-4, 4, width=width)
    grid = st.integers(-64, 64).map(lambda n: dtype(n / 16))
    return st.one_of(any_number, ordinary, grid).map(dtype)


def step(value: np.floating, ulps: int) -> np.floating:
    with np.errstate(over="ignore"):
        for _ in range(abs(ulps)):
            value = np.nextafter(value, type(value)(math.copysign(math.inf, ulps)))
    return value


@st.composite
def limits(draw: st.DrawFn) -> Limit:
    share = st.one_of(st.floats(0, 1, exclude_max=True), st.sampled_from([2.0**-11, 2.0**-53, 1e-3]))
    size = st.one_of(st.floats(0, LARGEST), st.floats(0, 4), st.integers(0, 64).map(lambda n: n / 16))
    return Limit("relative", draw(share)) if draw(st.booleans()) else Limit("absolute", draw(size))


@st.composite
def edge_pairs(draw: st.DrawFn, dtype: type) -> tuple[np.floating, np.floating, Limit]:
    """Two numbers whose distance is the limit, give or take a few bits of each of the three."""
    x, limit = draw(numbers(dtype)), draw(limits())
    assume(np.isfinite(x))
    with np.errstate(all="ignore"):
        away = limit.value * abs(float(x)) if limit.relative else limit.value
        y = dtype(float(x) + draw(st.sampled_from([-1, 1])) * away)
        if draw(st.booleans()) and np.isfinite(y) and not limit.relative:
            limit = Limit("absolute", min(abs(float(x) - float(y)), LARGEST))
        elif draw(st.booleans()) and np.isfinite(y) and x != 0 and limit.relative:
            limit = Limit("relative", min(abs(float(x) - float(y)) / abs(float(x)), 0.999))
    y = step(y, draw(st.integers(-2, 2)))
    value = max(float(step(np.float64(limit.value), draw(st.integers(-1, 1)))), 0.0)
    assume(math.isfinite(value) and (value < 1 or not limit.relative))
    return x, y, Limit(limit.kind, value)


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
def test_any_pair_is_judged_as_by_fractions(dtype, data):
    x, y, limit = data.draw(numbers(dtype)), data.draw(numbers(dtype)), data.draw(limits())
    assert holds(np.array([x]), np.array([y]), limit) == by_fractions(x, y, limit)


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
def test_pairs_at_the_edge_are_judged_as_by_fractions(dtype, data):
    x, y, limit = data.draw(edge_pairs(dtype))
    assert holds(np.array([x]), np.array([y]), limit) == by_fractions(x, y, limit), (x, y, limit)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [-1074, -1022, -149, -126, -40, 0, 60, 120, 1000])
@pytest.mark.parametrize("count", [1000, pytest.param(4000, marks=pytest.mark.long)])
def test_thousands_of_edges_at_every_scale(dtype, exponent, count):
    random = np.random.default_rng(exponent + 2000)
    with np.errstate(over="ignore", invalid="ignore"):
        detail = random.choice([1, 1 + 2.0**-20, 1 + 2.0**-50], count)
        x = (random.integers(-(2**12), 2**12, count) * 2.0**exponent * detail).astype(dtype)
        shares = random.choice([2.0**-53, 1e-16, 3e-10, 1e-7, 2.0**-11, 0.1, 1 / 3, 0.75, 1 - 2.0**-53], count)
        y = (x * (1 + random.choice([-1, 1], count) * shares)).astype(dtype)
        for _ in range(2):
            towards = random.choice([-np.inf, np.inf], count).astype(dtype)
            y = np.where(random.random(count) < 0.4, np.nextafter(y, towards), y)
    for share in np.unique(shares):
        chosen = shares == share
        relative = Limit("relative", float(share))
        assert broken(x[chosen], y[chosen], relative).tolist() == broken_by_fractions(x[chosen], y[chosen], relative)
    present = np.isfinite(x) & np.isfinite(y)
    apart = np.abs(x[present].astype(float) - y[present].astype(float))
    for eb in random.choice(apart, 5) if apart.size else []:
        absolute = Limit("absolute", float(eb))
        assert broken(x, y, absolute).tolist() == broken_by_fractions(x, y, absolute)


def test_a_difference_that_rounds_to_the_bound_is_still_above_it():
    x, y = np.array([1.0]), np.array([-(2.0**-60)])
    assert float(x[0] - y[0]) == 1.0
    assert not holds(x, y, Limit("absolute", 1.0))
    assert holds(x, -y, Limit("absolute", 1.0))


def test_a_share_that_rounds_to_the_difference_is_still_below_it():
    share = 0.1   # more than a tenth
    x = np.array([3.0])
    product = Fraction(share) * 3
    for y in (3.0 - float(product), math.nextafter(3.0 - float(product), 0), math.nextafter(3.0 - float(product), 4)):
        assert holds(x, np.array([y]), Limit("relative", share)) == (abs(3 - Fraction(y)) <= product)


def test_differences_beyond_the_range_are_broken():
    x, y = np.array([LARGEST, -LARGEST, LARGEST]), np.array([-LARGEST, LARGEST, LARGEST])
    assert broken(x, y, Limit("absolute", LARGEST)).tolist() == [0, 1]
    assert largest_error(x, y) == math.inf


def test_a_limit_of_zero_means_the_same_bits():
    x = np.array([0.0, -0.0, 1.0, 0.0])
    y = np.array([-0.0, -0.0, 1.0, 0.0])
    for kind in ("absolute", "relative"):
        assert broken(x, y, Limit(kind, 0.0)).tolist() == [0]
        assert holds(x, y, Limit(kind, 5e-324))


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_finite_comes_back_bit_for_bit(dtype):
    word = f"u{np.dtype(dtype).itemsize}"
    payload = np.array([np.nan], dtype).view(word) | 1
    x = np.concatenate([np.array([np.nan, np.inf, -np.inf], dtype), payload.view(dtype), np.array([1.0], dtype)])
    limit = Limit("absolute", 1e300)
    assert holds(x, x.copy(), limit)
    y = x.copy()
    y[3] = np.nan
    assert broken(x, y, limit).tolist() == [3]
    assert broken(x, -x, limit).tolist() == [0, 1, 2, 3]
    for wrong in (np.nan, np.inf, -np.inf):
        y = x.copy()
        y[4] = wrong
        result = check(x, y, limit)
        assert result.broken.tolist() == [4]
        assert result.largest_error == math.inf


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dimensions", [2, 3])
@given(st.data())
def test_a_periodic_distance_is_the_shorter_way_round(dtype, dimensions, data):
    lengths = st.sampled_from([1.0, 0.3, 1e-3, 64.0, 419.99982])
    period = data.draw(st.lists(lengths, min_size=dimensions, max_size=dimensions))
    count = data.draw(st.integers(1, 6))
    rows, decoded = [], []
    limit = Limit("absolute", data.draw(st.one_of(st.floats(0, 2), st.sampled_from([0.125, 2.0**-10, 0.1]))))
    for length in period * count:
        below = np.nextafter(dtype(length), dtype(0)) if dtype(length) >= length else dtype(length)
        x = data.draw(st.one_of(st.sampled_from([dtype(0), below]), st.floats(0, float(below), width=dtype(0).nbytes * 8)))
        turned = float(x) + data.draw(st.sampled_from([-1, 1])) * limit.value
        y = data.draw(st.sampled_from([turned % length, turned, length - float(x), float(below)]))
        rows.append(dtype(x))
        decoded.append(step(dtype(y), data.draw(st.integers(-1, 1))))
    x, y = np.array(rows).reshape(-1, dimensions), np.array(decoded).reshape(-1, dimensions)
    assert broken(x, y, limit, period).tolist() == broken_by_fractions(x, y, limit, period)


def test_decoded_positions_must_lie_in_the_box():
    x = np.array([[0.0, 0.999]])
    assert holds(x, np.array([[0.999, 0.0]]), Limit("absolute", 0.01), period=(1.0, 1.0))
    assert broken(x, np.array([[-1e-9, 1.0]]), Limit("absolute", 0.01), period=(1.0, 1.0)).tolist() == [0, 1]


def test_periods_belong_to_axes():
    x, y = np.array([[0.0, 0.0]] * 50), np.array([[0.9, 0.9]] * 50)
    for threads in (1, 3):
        with backend.using_threads(threads):
            assert broken(x, y, Limit("absolute", 0.2), period=(1.0, 2.0)).tolist() == list(range(1, 100, 2))


def test_relative_limits_in_a_box_are_of_the_coordinate_itself():
    x, y = np.array([[0.95, 0.5]]), np.array([[0.01, 0.5]])
    assert broken(x, y, Limit("relative", 0.5), period=(1.0, 1.0)).tolist() == [0]


def test_masked_values_come_back_bit_for_bit():
    x = np.array([1.0, 1e35, -0.0, 3.0], np.float32)
    y = np.array([1.1, 1e35, 0.0, 4.0], np.float32)
    mask = np.array([False, True, True, False])
    result = check(x, y, Limit("absolute", 0.2), mask=mask)
    assert result.broken.tolist() == [2, 3]
    assert result.largest_error == math.inf
    y[2] = -0.0
    assert check(x, y, Limit("absolute", 0.2), mask=mask).broken.tolist() == [3]
    assert check(x, y, Limit("absolute", 1.0), mask=mask).largest_error == 1.0


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
def test_the_largest_error_is_the_largest_and_agrees_with_the_verdict(dtype, data):
    count = data.draw(st.integers(1, 20))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    x = random.normal(size=count).astype(dtype)
    y = (x + random.normal(scale=0.1, size=count)).astype(dtype)
    apart = np.abs(x.astype(float) - y.astype(float))
    assert largest_error(x, y) == apart.max()
    assert largest_error(x, y, relative=True) == pytest.approx((apart / np.abs(x.astype(float))).max(), rel=1e-15)
    share = float(min(random.choice(apart / np.abs(x.astype(float))), 0.9))
    for limit in (Limit("absolute", float(random.choice(apart))), Limit("relative", share)):
        result = check(x, y, limit)
        assert result.largest_error <= limit.value or not result.holds


def test_an_error_that_rounds_up_does_not_look_like_a_broken_promise():
    rounded_up = 0
    for x in np.arange(1.25, 1.75, 0.0625):
        for y in 0.125 - np.arange(1, 40) * 2.0**-55:
            exact = abs(Fraction(float(x)) - Fraction(float(y))) / Fraction(float(x))
            share = float(exact) if Fraction(float(exact)) >= exact else math.nextafter(float(exact), 1)
            rounded_up += abs(x - y) / x > share
            assert check(np.array([x]), np.array([y]), Limit("relative", share)).largest_error <= share
    assert rounded_up > 0


def test_the_largest_periodic_error_goes_the_shorter_way():
    x, y = np.array([[0.0, 0.5]]), np.array([[0.75, 0.5]])
    assert largest_error(x, y) == 0.75
    assert largest_error(x, y, period=(1.0, 1.0)) == 0.25


@given(st.floats(0, 1e-3), st.floats(0.6, 1, exclude_max=True), st.sampled_from(DTYPES))
@example(1e-20, math.nextafter(1, 0), np.float64)
def test_an_error_across_the_face_is_rounded_once(near, far, dtype):
    x, y = dtype(near), min(dtype(far), np.nextafter(dtype(1), dtype(0)))
    exact = min(y_less_x := Fraction(float(y)) - Fraction(float(x)), 1 - y_less_x)
    assert largest_error(np.array([[x]]), np.array([[y]]), period=[1.0]) == float(exact)
    assert largest_error(np.array([[y]]), np.array([[x]]), period=[1.0]) == float(exact)


@pytest.mark.parametrize("chunks", [1, 2, 7, 1000])
def test_any_number_of_chunks_gives_the_same(monkeypatch, chunks):
    monkeypatch.setattr(backend, "chunks", lambda count, array: min(chunks, count))
    random = np.random.default_rng(5)
    x = random.normal(size=(500, 2))
    y = x + random.normal(scale=0.1, size=x.shape)
    apart = np.abs(x - y).reshape(-1)
    result = check(x, y, Limit("absolute", 0.1))
    assert result.broken.dtype == np.int64
    assert result.broken.tolist() == np.flatnonzero(apart > 0.1).tolist()
    assert result.largest_error == apart.max()


@pytest.mark.parametrize("period", [None, (1.0, 0.75)])
@pytest.mark.parametrize("eb", [0.1, 0.4, 0.6])
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_long_arrays_are_judged_as_their_single_values(period, eb, seed, threads):
    random = np.random.default_rng(seed)
    x = random.random((2000, 2)) * (period or (1.0, 1.0))
    y = np.clip(x + random.uniform(-0.09, 0.09, x.shape), 0, 0.74)
    places = random.integers(0, x.size, 5)
    y.reshape(-1)[places] = random.choice([0.0, 0.7, 0.75, 1.0, -1e-9, 3.0, np.nan], 5)
    limit, lengths = Limit("absolute", eb), np.broadcast_to(period or np.inf, x.shape)
    apart = np.abs(x - y)
    apart = np.where(apart <= lengths, np.fmin(apart, lengths - apart), apart)
    wrong = ~(apart <= eb) | (np.zeros(x.shape, bool) if period is None else ~((y >= 0) & (y < lengths)))
    with backend.using_threads(threads):
        found = check(x, y, limit, period)
    assert found.broken.tolist() == np.flatnonzero(wrong).tolist()
    assert found.largest_error == pytest.approx(math.inf if np.isnan(y).any() else apart.max(), rel=1e-15, abs=1e-16)


def test_an_empty_array_keeps_every_promise():
    assert holds(np.empty((0, 3)), np.empty((0, 3)), Limit("absolute", 0.0))


def test_arrays_that_are_not_contiguous_are_compared_by_place():
    x = np.arange(12.0).reshape(3, 4)
    y = x.copy()
    y[1, 2] += 1
    assert broken(x.T, y.T, Limit("absolute", 0.5)).tolist() == [7]


BAD = [
    (np.zeros(3), np.zeros(4), {}, r"must be float64 of shape \(3,\), as the original .* got float64 of shape \(4,\)"),
    (np.zeros(3), np.zeros(3, np.float32), {}, "must be float64 .* got float32"),
    (np.zeros(3, complex), np.zeros(3, complex), {}, "must be float32, float64 or integers; got complex128"),
    (np.zeros(3), np.zeros(3), {"period": [1.0]}, r"one positive length for each column of \(3,\) values"),
    (np.zeros((3, 2)), np.zeros((3, 2)), {"period": [1.0, 0.0]}, r"one positive length for each .* got \[1.0, 0.0\]"),
    (np.zeros(3), np.zeros(3), {"mask": np.zeros(3, int)}, r"mask must be boolean of shape \(3,\); got int64"),
]


@pytest.mark.parametrize(("x", "y", "options", "message"), BAD)
def test_what_cannot_be_compared_is_refused(x, y, options, message):
    with pytest.raises(WorkbenchError, match=message):
        check(x, y, Limit("absolute", 0.1), **options)


@example(LARGEST)
@example(5e-324)
@given(st.floats(5e-324, LARGEST))
def test_an_error_of_exactly_the_bound_is_kept(eb):
    x = np.array([0.0, 0.0])
    assert holds(x, np.array([eb, -eb]), Limit("absolute", eb))
    if eb < LARGEST:
        assert holds(x, np.array([eb, -eb]), Limit("absolute", math.nextafter(eb, math.inf)))
    assert broken(x, np.array([eb, -eb]), Limit("absolute", math.nextafter(eb, 0))).tolist() == [0, 1]
