"""Corrections: lossless for any bits, small where a codec was nearly right, and never outside the array."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.guarantees.correction import apply_correction, encode_correction

DTYPES = [np.float32, np.float64]


def word(dtype: type) -> str:
    return f"u{np.dtype(dtype).itemsize}"


def random_bits(random: np.random.Generator, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Any pattern: denormals, infinities, NaN with payloads."""
    top = np.iinfo(word(dtype)).max
    return random.integers(0, top, shape, word(dtype), endpoint=True).view(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.integers(1, 300), st.integers(0, 2**32), st.floats(0, 1))
def test_any_bits_come_back_at_the_indices_and_nowhere_else(dtype, size, seed, share):
    random = np.random.default_rng(seed)
    wanted, decoded = random_bits(random, (size,), dtype), random_bits(random, (size,), dtype)
    near = random.random(size) < 0.5
    decoded[near] = (wanted.view(word(dtype))[near] ^ 3).view(dtype)
    index = np.flatnonzero(random.random(size) < share)
    before = decoded.tobytes()
    data = encode_correction(index, wanted, decoded)
    expected = decoded.copy()
    expected[index] = wanted[index]
    assert apply_correction(decoded, data).tobytes() == expected.tobytes()
    assert decoded.tobytes() == before


@pytest.mark.parametrize("dtype", DTYPES)
def test_shapes_and_zeros_of_both_signs_are_kept(dtype):
    wanted = np.array([[0.0, -0.0], [np.inf, np.nan]], dtype)
    decoded = np.array([[-0.0, 0.0], [np.nan, np.inf]], dtype)
    corrected = apply_correction(decoded, encode_correction(np.arange(4), wanted, decoded))
    assert corrected.shape == (2, 2)
    assert corrected.tobytes() == wanted.tobytes()


def test_no_correction_is_no_bytes_and_no_copy():
    values = np.arange(3.0)
    assert encode_correction(np.empty(0, np.int64), values, values) == b""
    assert apply_correction(values, b"") is values


@pytest.mark.parametrize("layout", ["read-only", "transposed"])
def test_decoded_arrays_may_be_laid_out_in_any_way(layout):
    wanted = np.arange(6.0).reshape(2, 3)
    decoded = np.asfortranarray(wanted + 1) if layout == "transposed" else wanted + 1
    decoded.flags.writeable = False
    data = encode_correction(np.arange(6), wanted, decoded)
    assert (apply_correction(decoded, data) == wanted).all()


def test_values_that_are_nearly_right_cost_few_bits():
    random = np.random.default_rng(0)
    wanted = random.normal(size=100_000).astype(np.float32)
    decoded = (wanted.view(np.uint32) + random.integers(-8, 8, wanted.size).astype(np.uint32)).view(np.float32)
    all_of_them = np.arange(wanted.size)
    assert len(encode_correction(all_of_them, wanted, decoded)) < 0.55 * wanted.size   # 4 bits each, and no indices


def test_equal_fill_values_cost_next_to_nothing():
    random = np.random.default_rng(0)
    decoded = random.normal(280, 10, 100_000).astype(np.float32)
    wanted = decoded.copy()
    index = np.concatenate([np.arange(1000, 40_000), np.arange(60_000, 90_000)])
    wanted[index] = 1e35
    assert len(encode_correction(index, wanted, decoded)) < 1000


def good() -> tuple[np.ndarray, bytes]:
    wanted = np.arange(1000.0)
    decoded = wanted + np.where(np.arange(1000) % 3, 0.5, 1e300)
    return decoded, encode_correction(np.arange(0, 1000, 5), wanted, decoded)


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_damaged_bytes_raise_or_give_an_array(seed, count):
    random = np.random.default_rng(seed)
    decoded, data = good()
    damaged = bytearray(data)
    for _ in range(count):
        damaged[random.integers(len(damaged))] = random.integers(256)
    try:
        corrected = apply_correction(decoded, bytes(damaged))
    except WorkbenchError:
        return
    assert corrected.shape == decoded.shape


@pytest.mark.parametrize("length", [1, 23, 24, 40, -1])
def test_truncated_bytes_are_refused(length):
    decoded, data = good()
    with pytest.raises(WorkbenchError, match=r"a correction must have (at least )?\d+ bytes; got"):
        apply_correction(decoded, data[:length])


def test_longer_bytes_are_refused():
    decoded, data = good()
    with pytest.raises(WorkbenchError, match="it is damaged"):
        apply_correction(decoded, data + b"\0")


def test_indices_beyond_the_array_are_refused():
    decoded, data = good()
    with pytest.raises(WorkbenchError, match="names number 995: it is damaged"):
        apply_correction(decoded[:990], data)
    with pytest.raises(WorkbenchError, match="a correction of 100 values changes 200 of them"):
        apply_correction(decoded[:100], data)


def test_a_count_that_does_not_fit_the_parts_is_refused():
    decoded, data = good()
    near, far, *lengths = struct.unpack_from("<6I", data)
    for wrong in ((near, far - 1), (near, far + 1), (near + 1, far), (near + 1, far - 1)):
        with pytest.raises(WorkbenchError):
            apply_correction(decoded, struct.pack("<6I", *wrong, *lengths) + data[24:])


def test_regular_values_behind_noise_take_what_they_take_alone():
    wanted = np.arange(20_000.0)
    decoded = np.random.default_rng(1).normal(5e4, 1, wanted.size)
    data = encode_correction(np.arange(wanted.size), wanted, decoded)
    assert len(data) < 5000   # as differences to the noise, 7 bytes each
    assert apply_correction(decoded, data).tobytes() == wanted.tobytes()
