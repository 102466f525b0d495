"""Symbols with known contexts: what went in comes out, rare ones cost little, and damage is named or harmless."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import backend
from workbench.codecs import symbols
from workbench.codecs.codec import CodecFailed
from workbench.codecs.symbols import MOST_SYMBOLS, decode_symbols, encode_symbols


def require_round_trip(symbol: np.ndarray, context: np.ndarray, contexts: int) -> int:
    data = encode_symbols(symbol, context, contexts)
    found, used = decode_symbols(data + b"more", context, contexts)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, symbol)
    assert used == len(data)   # what follows is for the caller
    return len(data)


@given(st.integers(0, 3000), st.integers(1, MOST_SYMBOLS), st.integers(1, 256), st.floats(0.05, 30), st.integers(0, 2**32))
@settings(max_examples=300)
def test_any_symbols_come_back(count: int, several: int, contexts: int, skew: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    symbol = (several * random.random(count) ** skew).astype(np.uint8)
    context = random.integers(0, contexts, count).astype(np.uint8)
    require_round_trip(symbol, context, contexts)


@pytest.mark.parametrize("count", [0, 1, 2, 1000, 300_000])
@pytest.mark.parametrize("value", [0, 1, MOST_SYMBOLS - 1])
def test_one_symbol_alone_takes_next_to_no_room(count: int, value: int) -> None:
    """Nothing for the first symbol; a tenth of a bit for another, as frequencies are in steps."""
    size = require_round_trip(np.full(count, value, np.uint8), np.zeros(count, np.uint8), 1)
    assert size < 100 + (count / 80 if value else 0)


def test_all_symbols_in_all_contexts() -> None:
    symbol, context = (grid.ravel().astype(np.uint8) for grid in np.meshgrid(np.arange(MOST_SYMBOLS), np.arange(256)))
    require_round_trip(symbol, context, 256)
    require_round_trip(symbol[::-1].copy(), context, 256)


def test_symbols_of_a_single_occurrence_have_a_frequency() -> None:
    """All but one of the frequencies would be rounded to nothing."""
    symbol = np.concatenate([np.full(200_000, 5), np.arange(MOST_SYMBOLS)]).astype(np.uint8)
    require_round_trip(symbol, np.zeros(len(symbol), np.uint8), 1)


@pytest.mark.parametrize("first", [0, 1, 100_000])
def test_a_first_symbol_that_hardly_occurs(first: int) -> None:
    """It has what the others leave, and these are all rounded."""
    symbol = np.concatenate([np.zeros(first), np.repeat(np.arange(1, MOST_SYMBOLS), 3000)]).astype(np.uint8)
    random = np.random.default_rng(0)
    require_round_trip(random.permutation(symbol), np.zeros(len(symbol), np.uint8), 1)


@pytest.mark.parametrize("blocks", [1, 7, 64, 999, 1000, 1001])
def test_the_ends_of_blocks_do_not_show(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbols, "BLOCK", blocks)
    random = np.random.default_rng(blocks)
    require_round_trip(random.integers(0, 9, 1000).astype(np.uint8), random.integers(0, 5, 1000).astype(np.uint8), 5)


def test_more_than_one_block_in_earnest() -> None:
    random = np.random.default_rng(0)
    count = symbols.BLOCK + 17
    context = random.integers(0, 3, count).astype(np.uint8)
    require_round_trip((random.random(count) < 0.01 * context).astype(np.uint8), context, 3)


def test_contexts_save_what_they_should() -> None:
    """Within two percent of the entropy given the context, and far below the entropy without."""
    random = np.random.default_rng(1)
    share = np.array([0.001, 0.02, 0.5])
    context = random.choice(3, 200_000, p=[0.8, 0.15, 0.05]).astype(np.uint8)
    symbol = (random.random(len(context)) < share[context]).astype(np.uint8)
    entropy = float((-share * np.log2(share) - (1 - share) * np.log2(1 - share))[context].sum()) / 8
    assert require_round_trip(symbol, context, 3) < 1.02 * entropy + 40
    assert require_round_trip(symbol, np.zeros_like(context), 1) > 1.3 * entropy


def test_threads_change_nothing() -> None:
    random = np.random.default_rng(2)
    context = random.integers(0, 4, 600_000).astype(np.uint8)
    symbol = (random.random(len(context)) < 0.1 * context).astype(np.uint8)
    written = []
    for threads in (1, 3):
        with backend.using_threads(threads):
            written.append(encode_symbols(symbol, context, 4))
            np.testing.assert_array_equal(decode_symbols(written[0], context, 4)[0], symbol)
    assert written[0] == written[1]


def some() -> tuple[bytes, np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    context = random.integers(0, 6, 700).astype(np.uint8)
    symbol = (random.random(700) ** 4 * 12).astype(np.uint8)
    return encode_symbols(symbol, context, 6), context, symbol


def test_bytes_that_are_cut_anywhere_are_refused() -> None:
    data, context, _ = some()
    for end in range(len(data)):
        with pytest.raises(CodecFailed, match=r"damaged|header"):
            decode_symbols(data[:end], context, 6)


@pytest.mark.parametrize("flip", [0x01, 0x10, 0x80, 0xFF])
def test_damaged_bytes_give_an_error_or_symbols_and_never_much_memory(flip: int) -> None:
    data, context, symbol = some()
    tracemalloc.start()
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= flip
        try:
            found, used = decode_symbols(bytes(damaged), context, 6)
        except CodecFailed:
            continue
        assert found.shape == symbol.shape
        assert used <= len(data)
        assert int(found.max()) < MOST_SYMBOLS
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000


@given(st.binary(max_size=600), st.integers(0, 50), st.integers(1, 256))
@settings(max_examples=300)
def test_noise_never_crashes(noise: bytes, count: int, contexts: int) -> None:
    context = (np.arange(count) % contexts).astype(np.uint8)
    try:
        found, used = decode_symbols(noise, context, contexts)
    except CodecFailed:
        return
    assert len(found) == count
    assert used <= len(noise)


def test_contexts_beyond_the_table_are_refused() -> None:
    data, context, _ = some()
    with pytest.raises(CodecFailed, match="contradict"):
        decode_symbols(data, np.maximum(context, 6), 6)


def test_frequencies_that_do_not_add_up_are_refused() -> None:
    data, context, _ = some()
    greedy = data[:5] + b"\x4f" * (6 * (data[0] - 1)) + data[5 + 6 * (data[0] - 1) :]
    with pytest.raises(CodecFailed, match="do not add up"):
        decode_symbols(greedy, context, 6)
