import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from workbench import backend
from workbench.codecs import CodecFailed
from workbench.codecs.crc import crc32_of_blocks
from workbench.codecs.entropy import CodedIntegers, Layout, _mean_octave
from workbench.codecs.packing import PackedIntegers, PcodecIntegers

CODERS = [CodedIntegers, PackedIntegers, PcodecIntegers]
EXTREME = np.array([0, 1, 2, 3, 4, 7, 8, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)


def sizes_that_wander(count: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    level = np.cumsum(random.normal(size=count) * 0.2) % 30
    return random.integers(0, np.exp2(level).astype(np.uint64) + 1, dtype=np.uint64)


@pytest.mark.parametrize("coder", CODERS)
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 1000, 4096 * 3 + 17])
@pytest.mark.parametrize("components", [1, 2, 3])
@pytest.mark.parametrize("signs", [False, True])
def test_numbers_come_back(coder, count, components, signs):
    numbers = sizes_that_wander(count * components)
    numbers = numbers if components == 1 else numbers.reshape(count, components)
    decoded = coder.from_bytes(coder.of(numbers, 64, signs).to_bytes(), Layout(count, 64, components)).decode()
    assert decoded.dtype == np.uint64
    assert np.array_equal(decoded, numbers)


@pytest.mark.parametrize("coder", CODERS)
@pytest.mark.parametrize("signs", [False, True])
@given(numbers=hnp.arrays(np.uint64, st.integers(1, 300), elements=st.sampled_from(EXTREME.tolist()) | st.integers(0, 50)))
def test_any_numbers_come_back(coder, signs, numbers):
    data = coder.of(numbers, 16, signs).to_bytes()
    assert np.array_equal(coder.from_bytes(data, Layout(len(numbers), 16, 1)).decode(), numbers)


@pytest.mark.parametrize("coder", CODERS)
def test_some_blocks_come_back_alone_and_as_running_sums(coder):
    numbers = sizes_that_wander(1000)
    numbers[::100] = 0   # the first number of a block is what its base stands for
    coded = coder.from_bytes(coder.of(numbers, 100).to_bytes(), Layout(1000, 100, 1))
    blocks, base = [1, 4, 9], np.array([5, 2**40, 0], np.uint64)
    alone = coded.decode(blocks)
    assert np.array_equal(alone, np.concatenate([numbers[b * 100 : (b + 1) * 100] for b in blocks]))
    sums = coded.decode(blocks, base)
    expected = [b + np.cumsum(numbers[n * 100 : (n + 1) * 100], dtype=np.uint64) for n, b in zip(blocks, base, strict=True)]
    assert np.array_equal(sums, np.concatenate(expected))


def test_levels_that_wander_cost_less_than_their_histogram():
    numbers = sizes_that_wander(200_000)
    coded, plain = (len(coder.of(numbers, 4096).to_bytes()) for coder in (CodedIntegers, PcodecIntegers))
    assert coded < 0.95 * plain


def test_constant_numbers_cost_next_to_nothing():
    assert len(CodedIntegers.of(np.full(100_000, 3, np.uint64), 4096).to_bytes()) < 1200


@given(hnp.arrays(np.uint64, st.integers(1, 200), elements=st.sampled_from(EXTREME.tolist()) | st.integers(0, 50)))
def test_the_mean_octave_is_the_mean_of_logarithms_rounded_down(numbers):
    mean = sum(math.log2(number + 1) for number in numbers.tolist()) / len(numbers)
    found = _mean_octave(numbers)
    assert found - 1e-9 <= mean < found + 1 + 1e-9


def test_the_mean_octave_is_exact_where_rounding_would_decide():
    assert _mean_octave(np.array([7, 7, 7], np.uint64)) == 3
    assert _mean_octave(np.array([2**63 - 1, 2**63 - 2], np.uint64)) == 62   # a mean of 63 - 1e-19
    assert _mean_octave(np.full(1000, 2**64 - 1, np.uint64)) == 64


def test_the_bytes_do_not_depend_on_the_number_of_threads():
    numbers = sizes_that_wander(50_000)
    with backend.using_threads(1):
        alone = CodedIntegers.of(numbers, 4096).to_bytes()
    with backend.using_threads(3):
        assert CodedIntegers.of(numbers, 4096).to_bytes() == alone


@pytest.mark.parametrize("coder", CODERS)
def test_damaged_bytes_are_refused_or_decode_to_the_same(coder):
    numbers = sizes_that_wander(2000)
    data = coder.of(numbers, 256).to_bytes()
    random = np.random.default_rng(5)
    for place in random.integers(0, len(data), 300):
        damaged = bytearray(data)
        damaged[place] ^= 1 << random.integers(8)
        try:
            decoded = coder.from_bytes(bytes(damaged), Layout(2000, 256, 1)).decode()
        except CodecFailed:
            continue
        assert np.array_equal(decoded, numbers)
    for size in range(0, len(data), 97):
        with pytest.raises(CodecFailed):
            coder.from_bytes(data[:size], Layout(2000, 256, 1)).decode()


@pytest.mark.parametrize("coder", CODERS)
@pytest.mark.parametrize("layout", [(999, 64, 2), (1000, 65, 2), (1000, 64, 1), (1000, 64, 3), (2000, 64, 1)])
def test_numbers_of_another_layout_than_expected_are_refused(coder, layout):
    data = coder.of(sizes_that_wander(2000).reshape(1000, 2), 64).to_bytes()
    with pytest.raises(CodecFailed, match=r"must be .* items of \d in blocks of 6\d; their header says 1,000 items of 2"):
        coder.from_bytes(data, Layout(*layout))


@pytest.mark.parametrize("offset", range(8))
def test_bytes_at_any_address_decode(offset):
    numbers = sizes_that_wander(2000)
    data = CodedIntegers.of(numbers, 256).to_bytes()
    shifted = memoryview(bytes(offset) + data)[offset:]
    assert np.array_equal(CodedIntegers.from_bytes(shifted, Layout(2000, 256, 1)).decode(), numbers)


def test_hostile_words_do_not_read_outside():
    numbers = sizes_that_wander(5000)
    coded = CodedIntegers.of(numbers, 256)
    random = np.random.default_rng(6)
    words = random.integers(0, 2**16, len(coded.words), dtype=np.uint16)
    bits = random.integers(0, 2**32, len(coded.bits), dtype=np.uint32)
    parts = [(words, coded.word_first), (bits, coded.bits_first)]
    sums = crc32_of_blocks(parts, np.arange(len(coded.checksums)))
    hostile = replace(coded, words=words, bits=bits, checksums=sums)
    assert hostile.decode().shape == numbers.shape
