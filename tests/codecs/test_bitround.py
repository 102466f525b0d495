import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.codecs import Tolerance, get
from workbench.codecs.bitround import rounded


def slowly_rounded(value, keepbits, dtype):
    """Round one number to nearest even in exact arithmetic."""
    limits = np.finfo(dtype)
    exact = Fraction(float(value))
    exponent = max(math.frexp(float(value))[1] - 1, int(limits.minexp))
    unit = Fraction(2) ** (exponent - keepbits)
    result = float(round(exact / unit) * unit)   # Python rounds fractions to nearest even
    if abs(result) > float(limits.max):
        result = float(math.trunc(exact / unit) * unit)
    return math.copysign(result, value)


@given(value=st.floats(width=32, allow_nan=False, allow_infinity=False), keepbits=st.integers(0, 23))
def test_float32_is_rounded_as_exact_arithmetic_says(value, keepbits):
    assert rounded(np.array([value], np.float32), keepbits)[0] == np.float32(slowly_rounded(value, keepbits, np.float32))


@given(value=st.floats(allow_nan=False, allow_infinity=False), keepbits=st.integers(0, 52))
def test_float64_is_rounded_as_exact_arithmetic_says(value, keepbits):
    try:
        expected = slowly_rounded(value, keepbits, np.float64)
    except OverflowError:   # beyond float64: towards zero
        bits = np.array([value]).view(np.uint64) >> np.uint64(52 - keepbits) << np.uint64(52 - keepbits)
        expected = bits.view(np.float64)[0]
    assert rounded(np.array([value]), keepbits)[0] == expected


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_not_a_number_keeps_all_its_bits_and_large_numbers_stay_finite(dtype):
    word = np.dtype(f"u{np.dtype(dtype).itemsize}")
    infinity = int(np.array(np.inf, dtype).view(word))
    sign = 1 << (8 * word.itemsize - 1)
    rest = (1 << np.finfo(dtype).nmant) - 1
    odd = np.array([infinity, infinity + 1, infinity + rest, sign + infinity, sign + infinity + rest, infinity - 1], word)
    values = odd.view(dtype)
    for keepbits in (0, 1, 10):
        result = rounded(values, keepbits)
        assert (result.view(word)[:5] == odd[:5]).all()
        assert np.isfinite(result[5])
        assert result[5] > np.finfo(dtype).max / 2.1
    codec = get("bitround", keepbits=3)
    back = codec.decode(codec.encode(values, Tolerance(absolute=1.0)), values.shape, dtype)
    assert (back.view(word)[:5] == odd[:5]).all()


def test_not_a_number_beside_numbers_does_not_change_how_they_are_rounded():
    values = np.random.default_rng(0).normal(size=100).astype(np.float32)
    codec, tolerance = get("bitround"), Tolerance(absolute=1e-2)
    alone = codec.decode(codec.encode(values, tolerance), (100,), "f4")
    beside = codec.decode(codec.encode(np.append(values, np.float32(np.nan)), tolerance), (101,), "f4")
    assert (beside[:100] == alone).all()
    nothing = np.full(5, np.nan)
    assert np.isnan(codec.decode(codec.encode(nothing, tolerance), (5,), "f8")).all()


def test_a_number_of_bits_overrides_the_tolerance():
    values = np.random.default_rng(0).normal(size=1000)
    for kept in (0, 5, 52):
        codec = get("bitround", keepbits=kept)
        back = codec.decode(codec.encode(values, Tolerance(absolute=0.0)), (1000,), "f8")
        assert np.array_equal(back, rounded(values, kept))
    assert np.array_equal(back, values)


def test_no_more_bits_are_kept_than_needed():
    values = np.random.default_rng(0).uniform(1, 2, 10_000)
    codec = get("bitround")
    for tolerance in (Tolerance(absolute=1e-3), Tolerance(relative=1e-3)):
        back = codec.decode(codec.encode(values, tolerance), values.shape, "f8")
        assert 0.3e-3 < np.abs(back - values).max() <= 1e-3
