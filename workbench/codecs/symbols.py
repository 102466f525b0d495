"""Context coding of symbols from a small alphabet, for rare events; encoder and decoder know the context of each symbol.

If an event concerns one particle in a hundred, the indices of these particles cost more than the events themselves. But
events are more likely in some contexts than in others, and a frequency table for each context saves much of this cost.
Frequencies are static and stored in a byte each; blocks are independent, so that they are coded in parallel.
"""

from __future__ import annotations

import struct

import numpy as np

from workbench import backend
from workbench.codecs.codec import CodecFailed
from workbench.codecs.entropy import PRECISION, even_blocks, slots_of, words_of

MOST_SYMBOLS = 64
BLOCK = 2**18

_HEADER = struct.Struct("<BI")   # how many symbols occur, and how many words there are
# The frequencies that the bytes in a table stand for, out of 2**PRECISION, 1 to 16 and then in steps of an eighth or less.
_FREQUENCIES = np.array([0, *range(1, 16), *((8 + m) << e for e in range(1, PRECISION - 3) for m in range(8))], np.int64)


def encode_symbols(symbol: np.ndarray, context: np.ndarray, contexts: int) -> bytes:
    """Symbols (uint8, less than 64), each with its context (uint8), as bytes; the caller keeps their number.

    >>> symbol, context = np.zeros(10_000, np.uint8), np.zeros(10_000, np.uint8)
    >>> symbol[::100] = 1
    >>> data = encode_symbols(symbol, context, contexts=1)
    >>> bool((decode_symbols(data, context, contexts=1)[0] == symbol).all()), len(data)
    (True, 114)
    """
    symbols = int(symbol.max(initial=0)) + 1
    code = context.astype(np.uint16) * np.uint16(symbols) + symbol
    counts = np.bincount(code, minlength=contexts * symbols).reshape(contexts, symbols)
    table = _table(counts)
    words, first = words_of(code, even_blocks(len(code), BLOCK), _frequencies(table))
    body = table[:, 1:].astype(np.uint8), np.diff(first).astype("<u4"), words.astype("<u2")
    return b"".join([_HEADER.pack(symbols, len(words)), *(part.tobytes() for part in body)])


def decode_symbols(data: bytes | memoryview, context: np.ndarray, contexts: int) -> tuple[np.ndarray, int]:
    """The symbols (uint8) that were encoded with these contexts, and how many of the bytes they took."""
    view, blocks = memoryview(data), -(-len(context) // BLOCK)
    if len(view) < _HEADER.size:
        raise CodecFailed(f"coded symbols have a header of {_HEADER.size} bytes; got {len(view)}")
    symbols, count = _HEADER.unpack_from(view)
    tables = contexts * (symbols - 1)
    end = _HEADER.size + tables + 4 * blocks + 2 * count
    if not 1 <= symbols <= MOST_SYMBOLS or len(view) < end:
        raise CodecFailed(f"{len(view)} bytes cannot be {len(context):,} symbols of {symbols}: they are damaged")
    body = view[_HEADER.size : end]
    table = np.zeros((contexts, symbols), np.int64)
    table[:, 1:] = np.frombuffer(body[:tables], np.uint8).reshape(contexts, symbols - 1)
    sizes = np.frombuffer(body[tables : tables + 4 * blocks], "<u4")
    words = np.frombuffer(body[tables + 4 * blocks :], "<u2").astype(np.uint16)
    first = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    if first[-1] != count or (table >= len(_FREQUENCIES)).any() or (len(context) and int(context.max()) >= contexts):
        raise CodecFailed("the tables of coded symbols contradict what follows: they are damaged")
    frequency = _frequencies(table)
    slots = slots_of(frequency)
    symbol = np.empty(len(context), np.uint8)
    backend.kernel("entropy", "decode_known")(
        blocks, n=len(context), block=BLOCK, context=context, symbols=symbols, word_first=first, words=words,
        frequency=frequency.reshape(-1), start=slots.reshape(-1), symbol=symbol,
    )
    return symbol, end


def _table(counts: np.ndarray) -> np.ndarray:
    """For each context and symbol the byte that comes nearest to its share from below, at least 1 if it occurs."""
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    share = counts * ((1 << PRECISION) - 1) // total
    table = np.searchsorted(_FREQUENCIES, share, side="right") - 1
    table = np.maximum(table, counts > 0)
    table[:, 0] = 0
    while (over := _FREQUENCIES[table].sum(axis=1) >= 1 << PRECISION).any():   # leave room for the first symbol
        rows = np.flatnonzero(over)
        table[rows, table[rows].argmax(axis=1)] -= 1
    return table


def _frequencies(table: np.ndarray) -> np.ndarray:
    """The frequencies that a table stands for; the first symbol has what the others leave."""
    frequency = _FREQUENCIES[table]
    rest = (1 << PRECISION) - frequency.sum(axis=1)
    if (rest < 1).any():
        raise CodecFailed("the frequencies of coded symbols do not add up: they are damaged")
    frequency[:, 0] = rest
    return frequency.astype(np.uint32)
