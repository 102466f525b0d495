"""The coders of caches: what they return, and what their bytes depend on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.codecs.codec import CodecFailed
from workbench.propagation.caches.coded_blocks import Known, decode_blocks, encode_blocks
from workbench.propagation.caches.gaussian_tables import ESCAPE, frequency_table, numbers_of, symbols_of
from workbench.propagation.caches.packed_blocks import PACKED_BLOCK, PackedBlocks
from workbench.propagation.caches.packed_codes import pack_codes, unpack_codes

SPREADS = [0.0, 0.05, 0.4, 1.0, 6.0, 50.0, 4000.0]


def numbers(seed, blocks=3, channels=7, tokens=64, spread=1.0):
    """Channels of unequal spread and mean, some of them constant, with rare numbers far away."""
    random = np.random.default_rng(seed)
    scale = spread * np.exp(random.normal(size=(1, channels, 1)))
    scale[:, ::3] = 0
    found = random.standard_t(2.5, (blocks, channels, tokens)) * scale + 3 * spread * random.normal(size=(1, channels, 1))
    return np.clip(np.rint(found), -(2**15), 2**15).astype(np.int32)


@given(st.integers(0, 10**6), st.sampled_from(SPREADS), st.integers(1, 4), st.sampled_from([1, 17, 64]))
@settings(deadline=None, max_examples=60)
def test_blocks_come_back_and_do_not_depend_on_later_ones(seed, spread, blocks, tokens):
    given = numbers(seed, blocks, tokens=tokens, spread=spread)
    nothing = Known.nothing(given.shape[1])
    coded, after = encode_blocks(given, nothing)
    decoded, seen = decode_blocks(coded, given.shape[1], tokens, nothing)
    assert (decoded == given).all()
    assert (seen.mean == after.mean).all()
    assert (seen.spread == after.spread).all()
    one_by_one, known = [], nothing
    for block in given:
        new, known = encode_blocks(block[None], known)
        one_by_one += new
    assert one_by_one == coded


@pytest.mark.parametrize("spread", [0.7, 2.0, 9.0])
def test_gaussian_numbers_take_hardly_more_than_their_entropy(spread):
    values = np.rint(np.random.default_rng(1).normal(0, spread, (20, 192, 64))).astype(np.int32)
    coded, _ = encode_blocks(values, Known.nothing(192))
    _, counts = np.unique(values, return_counts=True)
    entropy = -(counts / values.size * np.log2(counts / values.size)).sum()
    assert 8 * len(b"".join(coded)) / values.size < entropy + 0.12   # means, spreads and headers are 0.07 of it


def test_every_cut_and_every_changed_size_of_a_block_is_an_error_or_other_numbers():
    given = numbers(5, 1, spread=3.0)
    (data,), _ = encode_blocks(given, Known.nothing(7))
    for end in range(len(data)):
        with pytest.raises(CodecFailed):
            decode_blocks([data[:end]], 7, 64, Known.nothing(7))


def test_symbols_are_numbers_and_frequencies_fill_the_table():
    assert (numbers_of(symbols_of(np.arange(-31, 32))) == np.arange(-31, 32)).all()
    table = frequency_table()
    assert (table.sum(axis=1) == 4096).all()
    assert (table[3:, ESCAPE] > 0).sum() >= len(table) - 5   # all but channels that do not vary


@given(
    st.integers(0, 10**6), st.sampled_from([0.0, 0.4, 1.0, 20.0, 3000.0]), st.integers(1, 3), st.sampled_from([1, 5, 80])
)
@settings(deadline=None, max_examples=40)
def test_products_with_packed_numbers_are_those_with_the_numbers(seed, spread, heads, width):
    random = np.random.default_rng(seed)
    scale = spread * np.exp(random.normal(size=(heads, 1, width)))
    given = np.rint(random.normal(size=(heads, 2 * PACKED_BLOCK, width)) * scale + spread).clip(-(2**15), 2**15 - 1)
    halves = [PackedBlocks.of(half.astype(np.int32)) for half in np.split(given, 2, axis=1)]
    packed = PackedBlocks.joined(halves)
    assert (packed.numbers() == given).all()
    queries = random.normal(size=(heads, 3, width)).astype(np.float32)
    sizes = abs(given) + abs(given).max(axis=1, keepdims=True)   # a number is the smallest and what is above it
    shares = random.random(size=(heads, 3, given.shape[1])).astype(np.float32)
    for found, exact, size in (
        (packed.scores(queries), queries @ given.swapaxes(1, 2), abs(queries) @ sizes.swapaxes(1, 2)),
        (packed.sums(shares), shares @ given, shares @ sizes),
    ):
        assert (abs(found - exact) <= 1e-5 * size + 1e-9).all()


def test_the_bits_of_packed_numbers_are_those_of_their_widths():
    given = np.zeros((1, PACKED_BLOCK, 3), np.int32)
    given[0, :, 1] = np.arange(PACKED_BLOCK) % 4 - 2
    given[0, 0, 2] = 300
    assert PackedBlocks.of(given).bits == PACKED_BLOCK * (0 + 2 + 9) + 3 * (16 + 5)


@given(st.lists(st.integers(-800, 800), min_size=1, max_size=70))
def test_steps_come_back(codes):
    data = pack_codes(np.array(codes, np.int16))
    assert unpack_codes(data + b"more", len(codes))[0].tolist() == codes
    with pytest.raises(CodecFailed):
        unpack_codes(data[: len(data) - 1], len(codes)) if len(data) > 3 else unpack_codes(data[:2], len(codes))
