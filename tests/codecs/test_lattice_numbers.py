import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from workbench.codecs import CodecFailed
from workbench.codecs.lattice_numbers import _HEAD, _LISTED, _REPEATS, _listed, pack_numbers, unpack_numbers

kinds = st.sampled_from([np.int32, np.int64])


def made(kind, rng):
    """A grid of numbers of this kind."""
    return {
        "noise": lambda: rng.integers(-5000, 5000, (60, 70)),
        "smooth": lambda: np.add.outer(np.arange(60) ** 2, 3 * np.arange(70)),
        "steps": lambda: rng.integers(-9, 9, (6, 7)).repeat(10, axis=0).repeat(10, axis=1),
        "classes": lambda: np.sort(rng.integers(-(10**5), 10**5, 60))[rng.integers(0, 60, (60, 70))],
        "repeated": lambda: np.tile(rng.integers(0, 3, 83), 70)[:4200].reshape(60, 70),
        "constant": lambda: np.full((60, 70), -(2**31)),
    }[kind]().astype(np.int64)


# The most bytes of each kind, whether it has a palette, and whether it is coded by its repeats.
KINDS = {
    "noise": (4200 * math.log2(10**4) / 8 + 80, False, False), "smooth": (200, False, False), "steps": (150, False, True),
    "classes": (4200 * math.log2(60) / 8 + 300, True, False), "repeated": (90, False, True), "constant": (25, True, False),
}


@given(st.data(), kinds, npst.array_shapes(max_dims=4, max_side=5), st.integers(0, 12))
def test_numbers_come_back_whatever_they_are(data, dtype, shape, level):
    few = st.sampled_from([np.iinfo(dtype).min, -70, 0, 3, 4096, np.iinfo(dtype).max])
    elements = data.draw(st.sampled_from([None, few, st.integers(-3, 3), st.just(7)]))
    numbers = data.draw(npst.arrays(dtype, shape, elements=elements))
    assert np.array_equal(unpack_numbers(pack_numbers(numbers, level), shape, numbers.dtype), numbers)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_each_kind_of_numbers_is_coded_in_its_way(kind, dtype):
    numbers = made(kind, np.random.default_rng(3)).astype(dtype)
    data = pack_numbers(numbers)
    assert np.array_equal(unpack_numbers(data, numbers.shape, numbers.dtype), numbers)
    how, axes = _HEAD.unpack_from(data)
    most, listed, repeats = KINDS[kind]
    assert (len(data) <= most, bool(how & _LISTED), bool(how & _REPEATS)) == (True, listed, repeats)
    assert axes == 0


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_numbers_are_refused_or_decoded_to_something(kind):
    numbers, rng = made(kind, np.random.default_rng(3)), np.random.default_rng(4)
    data, refused = pack_numbers(numbers), 0
    for turn in range(300):
        changed = bytearray(data)
        for place in rng.integers(0, min(len(data), (8, 40, len(data))[turn % 3]), 1 + turn % 2):
            changed[place] = rng.integers(256)
        try:
            part = bytes(changed[: rng.integers(len(data) // 2, 2 * len(data))])
            found = unpack_numbers(part, numbers.shape, numbers.dtype)
            assert found.shape == numbers.shape
            assert found.dtype == numbers.dtype
        except CodecFailed:
            refused += 1
    assert refused > 10


@pytest.mark.parametrize("data", [
    b"", b"\x04", _HEAD.pack(3, 0) + bytes(40), _HEAD.pack(4, 0b100) + bytes(40), _HEAD.pack(4 | _REPEATS, 0) + bytes(8),
    _HEAD.pack(_LISTED, 0) + b"\0\0\1\0\0\0", _HEAD.pack(_LISTED, 0) + _listed(np.arange(3)) + b"x",
    _HEAD.pack(4 | _LISTED, 0) + _listed(np.arange(2)) + pack_numbers(np.arange(6, dtype=np.int32).reshape(2, 3))[2:],
])
def test_bytes_that_are_no_numbers_are_refused(data):
    with pytest.raises(CodecFailed):
        unpack_numbers(data, (2, 3), np.dtype(np.int32))
