"""The codec of numbers that a file has rounded: every bit comes back, of any numbers; damaged bytes are errors."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.codecs import CodecFailed, Tolerance, registry
from workbench.codecs.rounded import PLAIN, PRODUCT, QUOTIENT, Rounded, precision_of

EXACT = Tolerance(absolute=0.0)


def numbers(way: int, dtype: str, precision: float = 1000.0, shape=(4, 30, 3)) -> np.ndarray:
    whole = np.random.default_rng(0).integers(-9000, 9000, shape)
    if way == PRODUCT:
        return whole.astype(dtype) * (np.dtype(dtype).type(1) / np.dtype(dtype).type(precision))
    return (whole / precision).astype(dtype)


def back(codec: Rounded, values: np.ndarray) -> tuple[bytes, np.ndarray]:
    data = codec.encode(values, EXACT)
    return data, codec.decode(data, values.shape, values.dtype)


@pytest.mark.parametrize("way", [PRODUCT, QUOTIENT])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("inner", ["motion", "interpolation"])
@pytest.mark.parametrize("shape", [(4, 30, 3), (50, 2), (70,), (1, 1, 3)], ids=str)
def test_rounded_numbers_come_back(way, dtype, inner, shape):
    values = numbers(way, dtype, shape=shape)
    data, found = back(Rounded(numbers=inner), values)
    assert data[0] != PLAIN
    assert found.tobytes() == values.tobytes()


def test_a_few_others_stand_beside_them():
    values = numbers(QUOTIENT, "f8", shape=(4, 300, 3))
    values[0, 0, 0], values[2, 7, 1], values[3, 3, 2] = -0.0, 1 / 3, np.pi
    data, found = back(Rounded(), values)
    assert data[0] == QUOTIENT
    assert found.tobytes() == values.tobytes()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=40),
       st.sampled_from([1.0, 1000.0, 0.3]))
def test_any_numbers_come_back(values, precision):
    array = np.array(values, "f4")
    assert back(Rounded(precision), array)[1].tobytes() == array.tobytes()


def test_the_precision_is_found():
    assert precision_of(numbers(QUOTIENT, "f8", 100.0), None) == 100.0
    assert precision_of(numbers(PRODUCT, "f4", 1000.0), 1000.0) == 1000.0
    assert precision_of(numbers(PRODUCT, "f4", 1000.0), 10.0) is None
    assert precision_of(np.random.default_rng(1).random(100), None) is None


def test_they_take_the_room_of_their_digits():
    values = np.random.default_rng(0).integers(-500, 500, (8, 500, 3)) / 1000
    assert 8 * len(Rounded().encode(values, EXACT)) / values.size < 10.6   # log2(1000) is 9.97


def test_it_is_rebuilt_from_its_description():
    codec = Rounded(precision=250.0, numbers="interpolation")
    assert registry.from_dict(codec.to_dict()) == codec


def test_damaged_bytes_are_errors_or_numbers():
    values = numbers(PRODUCT, "f4")
    values[0, 0, 0] = -0.0
    codec = Rounded()
    data = codec.encode(values, EXACT)
    for cut in (0, 5, 21, len(data) // 2):
        with pytest.raises(CodecFailed):
            codec.decode(data[:cut], values.shape, "f4")
    with pytest.raises(CodecFailed, match="header is damaged"):
        codec.decode(b"\7" + data[1:], values.shape, "f4")
    random = np.random.default_rng(3)
    for _ in range(200):
        forged = bytearray(data)
        forged[random.integers(len(data))] ^= 1 << random.integers(8)
        with contextlib.suppress(CodecFailed):
            assert codec.decode(bytes(forged), values.shape, "f4").shape == values.shape
