"""The logarithm made of bits: exact, the same everywhere, and an absolute error in it is a relative error of the value."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantees.checks import broken
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit
from workbench.guarantees.logarithm import from_logs, log_dtype, to_logs

DTYPES = [np.float32, np.float64]


def spread_values(random: np.random.Generator, count: int, dtype: type, decades: float) -> np.ndarray:
    values = 10.0 ** random.uniform(-decades, decades, count) * random.choice([-1, 1], count)
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("eb", [1e-1, 1e-2, 1e-4, 1e-6])
@given(st.integers(0, 2**32), st.sampled_from([0.1, 3, 30]))
def test_any_error_within_the_tolerance_keeps_the_relative_bound(dtype, eb, seed, decades):
    random = np.random.default_rng(seed)
    values = spread_values(random, 200, dtype, decades)
    logs = to_logs(values, eb)
    if logs.tolerance == 0:
        return
    wrong = logs.values + logs.tolerance * random.choice([-1, -0.5, 0, 1], 200)
    if logs.values.dtype == np.float32:   # rounding to the nearest single may leave the tolerance
        wrong = np.where(np.abs(wrong.astype(np.float32) - logs.values.astype(float)) > logs.tolerance, logs.values, wrong)
    back = from_logs(wrong.astype(logs.values.dtype), logs.extra, dtype)
    assert broken(values, back, Limit("relative", eb)).size == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_error_of_more_than_the_bound_breaks_it_somewhere(dtype):
    values = np.linspace(1, 2, 10_000).astype(dtype)
    logs = to_logs(values, 1e-2)
    back = from_logs((logs.values + 1.01e-2).astype(logs.values.dtype), logs.extra, dtype)
    assert broken(values, back, Limit("relative", 1e-2)).size > 0


@given(st.floats(1e-300, 1e300), st.floats(0, 1), st.booleans())
def test_the_proof_holds_in_numbers(value, error, down):
    def x(place: float) -> float:
        return math.ldexp(1 + place - math.floor(place), math.floor(place))

    mantissa, exponent = math.frexp(value)
    place = exponent - 1 + (2 * mantissa - 1)
    assert abs(x(place - error if down else place + error) - value) <= error * value * (1 + 1e-9) + 1e-12 * value


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_of_two_have_whole_logarithms(dtype):
    values = (2.0 ** np.arange(-100, 100)).astype(dtype)
    assert to_logs(values, 1e-3).values.tolist() == list(range(200))


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.integers(0, 2**32))
def test_double_logarithms_of_one_decade_are_exact(dtype, seed):
    values = np.random.default_rng(seed).uniform(1, 1.99, 50).astype(dtype)
    logs = to_logs(values, 1e-9)
    assert logs.values.dtype == np.float64
    assert from_logs(logs.values, logs.extra, dtype).tobytes() == values.tobytes()


def test_single_precision_is_taken_where_there_is_room():
    values = np.geomspace(1, 1e6, 100)
    assert to_logs(values, 1e-2).values.dtype == np.float32
    assert to_logs(values, 1e-2, single=False).values.dtype == np.float64
    assert to_logs(values, 1e-7).values.dtype == np.float64
    assert log_dtype(to_logs(values, 1e-2).extra) == np.float32


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_and_signs_come_back(dtype):
    values = np.array([0.0, -0.0, 3.0, -5.0, 0.0], dtype)
    logs = to_logs(values, 1e-3)
    back = from_logs(logs.values, logs.extra, dtype)
    assert back[[0, 1, 4]].tobytes() == values[[0, 1, 4]].tobytes()
    assert back == pytest.approx(values, rel=1e-3)


def test_positive_values_cost_no_map_and_negative_ones_a_small_one():
    values = np.geomspace(1, 100, 80_000)
    assert len(to_logs(values, 1e-3).extra) == 17
    assert len(to_logs(-values, 1e-3).extra) < 100


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 0.0, "denormal"])
def test_what_has_no_logarithm_gets_one_between_its_neighbours(dtype, special):
    special = np.finfo(dtype).smallest_subnormal if special == "denormal" else special
    values = np.array([special, 4.0, special, 2.0], dtype)
    logs = to_logs(values, 1e-3).values
    assert logs[[1, 3]].tolist() == [1.0, 0.0]
    assert 0 <= logs[2] <= logs[0] <= 1
    only = to_logs(np.full(3, special, dtype), 1e-3).values
    assert np.isfinite(only).all()


def test_a_bound_below_the_last_bit_leaves_no_room():
    assert to_logs(np.array([1.0, 2.0]), 1e-17).tolerance == 0
    assert to_logs(np.array([1.0, 2.0], np.float32), 1e-8).tolerance == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", DTYPES)
def test_anything_a_codec_may_return_becomes_finite_numbers(dtype, width):
    logs = to_logs(np.array([1.0, 2.0, 3.0, -4.0, 5.0, 6.0], dtype), 1e-3)
    wild = np.array([np.nan, np.inf, -np.inf, np.finfo(width).max, -np.finfo(width).max, -1.0], width)
    back = from_logs(wild, logs.extra, dtype)
    assert back.dtype == dtype
    assert np.isfinite(back).all()
    assert back[0] == 0
    assert (np.abs(back[1:]) >= np.finfo(dtype).tiny).all()


def test_damaged_maps_are_refused():
    values = np.array([1.0, -2.0, 0.0] * 100)
    logs = to_logs(values, 1e-3)
    for extra in (b"", logs.extra[:16], logs.extra[:-1], logs.extra + b"x"):
        with pytest.raises(WorkbenchError, match=r"signs (and|or) zeros"):
            from_logs(logs.values, extra, np.float64)
    with pytest.raises(WorkbenchError, match="must decode to 2097152 values"):
        from_logs(np.zeros(2**24), logs.extra, np.float64)
    broken_map = logs.extra[:17] + b"\7" + logs.extra[18:]
    with pytest.raises(WorkbenchError, match="damaged"):
        from_logs(logs.values, broken_map, np.float64)
    with pytest.raises(WorkbenchError, match="logarithms must be 4 or 8 bytes wide; got 7"):
        log_dtype(b"\7" + logs.extra[1:])
