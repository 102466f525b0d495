"""Blocks of quantised keys or values as few bytes as the entropy coder needs.

A block holds the numbers of a few tokens of one layer. For each channel, its mean and how widely it spreads in this block
select the frequencies of its numbers (`gaussian_tables.py`). Both change little from block to block, so their changes are
coded. The numbers of a block are then decoded without those of any other, and its bytes never depend on later tokens.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from workbench import backend
from workbench.codecs.codec import CodecFailed
from workbench.codecs.entropy import even_blocks, slots_of, starts, words_of
from workbench.propagation.caches.gaussian_tables import (
    CLASS_CHANGE,
    CONTEXTS,
    ESCAPE,
    FIRST_SPREAD,
    MEAN_CHANGE,
    NUMBER,
    SYMBOLS,
    WIDEST,
    frequency_table,
    numbers_of,
    symbols_of,
)

_HEADER = struct.Struct("<HHIH")   # words of the classes, of the means, of the numbers; escapes


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of each channel before a block: the class of its spread and twice its mean, and whether of a block."""

    spread: np.ndarray
    mean: np.ndarray
    first: bool

    @classmethod
    def nothing(cls, channels: int) -> Known:
        """Before the first block."""
        return cls(np.full(channels, FIRST_SPREAD, np.int64), np.zeros(channels, np.int64), True)


def encode_blocks(numbers: np.ndarray, known: Known) -> tuple[list[bytes], Known]:
    """The bytes of each block of numbers (blocks, channels, tokens), and what is known after the last.

    >>> numbers = np.random.default_rng(0).normal(0, 2, (3, 16, 64)).round().astype(np.int32)
    >>> coded, after = encode_blocks(numbers, Known.nothing(16))
    >>> decoded, _ = decode_blocks(coded, 16, 64, Known.nothing(16))
    >>> bool((decoded == numbers).all()), 3.0 < 8 * len(b"".join(coded)) / numbers.size < 3.5
    (True, True)
    """
    blocks, channels, tokens = numbers.shape
    spread, mean = _described(numbers)
    shift = _shifts(spread)
    class_change = np.diff(spread, axis=0, prepend=known.spread[None])
    before = np.concatenate([known.mean[None], mean[:-1]])
    mean_change = (mean >> shift) - (before >> shift)
    above = numbers - (mean >> 1)[..., None]
    wide, centre = (shift > 0)[..., None], _centres(mean, shift)
    scaled = np.where(wide, (above >> shift[..., None]) + 1, above)
    rows = _first_rows(blocks, known)
    parts = [
        _coded(class_change, _class_contexts(rows, channels)),
        _coded(mean_change, _mean_contexts(rows, spread)),
        _coded(scaled.reshape(blocks, -1), np.repeat(_number_contexts(spread, centre), tokens, axis=-1)),
    ]
    found = []
    for block in range(blocks):
        words, escapes = zip(*(part[block] for part in parts), strict=True)
        low = _packed_low(above[block], shift[block])
        head = _HEADER.pack(*(len(each) for each in words), sum(len(each) for each in escapes))
        found.append(b"".join([head, *(each.astype("<u2").tobytes() for each in words),
                               *(each.astype("<i4").tobytes() for each in escapes), low]))
    return found, Known(spread[-1], mean[-1], False)


def decode_blocks(coded: Sequence[bytes], channels: int, tokens: int, known: Known) -> tuple[np.ndarray, Known]:
    """The numbers (blocks, channels, tokens) of successive blocks, and what is known after the last."""
    blocks = len(coded)
    streams = [_Stream(data) for data in coded]
    rows = _first_rows(blocks, known)
    spread = known.spread + np.cumsum(_decoded(streams, 0, _class_contexts(rows, channels)), axis=0)
    if spread.size and not (spread.min() >= 0 and spread.max() < 64):
        raise CodecFailed("a block of a cache states a spread that no channel can have: it is damaged")
    shift = _shifts(spread)
    change = _decoded(streams, 1, _mean_contexts(rows, spread))
    mean, before = np.empty((blocks, channels), np.int64), known.mean
    for block in range(blocks):
        before = mean[block] = ((before >> shift[block]) + change[block]) << shift[block]
    contexts = np.repeat(_number_contexts(spread, _centres(mean, shift)), tokens, axis=-1)
    scaled = _decoded(streams, 2, contexts).reshape(blocks, channels, tokens)
    low = np.stack([_unpacked_low(stream.rest, each, tokens) for stream, each in zip(streams, shift, strict=True)])
    above = np.where((shift > 0)[..., None], ((scaled - 1) << shift[..., None]) + low, scaled)
    return (above + (mean >> 1)[..., None]).astype(np.int32), Known(spread[-1], mean[-1], False)


def _described(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The class of the spread of each channel of each block, and twice its mean as far as it is stored."""
    twice = np.rint(2 * numbers.mean(axis=-1)).astype(np.int64)
    variance = ((numbers - twice[..., None] / 2) ** 2).mean(axis=-1)
    with np.errstate(divide="ignore"):
        spread = np.maximum(np.rint(np.log2(variance)) + FIRST_SPREAD, 1)
    spread = np.where(variance > 0, spread, 0).astype(np.int64)
    shift = _shifts(spread)
    return spread, (twice >> shift) << shift


def _shifts(spread: np.ndarray) -> np.ndarray:
    """How many low bits of the numbers of a class are stored as they are: they are as good as random."""
    return np.maximum(spread - WIDEST + 1, 0) // 2


def _centres(mean: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """1 where numbers without their low bits lie around a half: by the mean, or since bits were cut off."""
    return np.where(shift > 0, 1, mean & 1)


def _first_rows(blocks: int, known: Known) -> np.ndarray:
    """0 for the first block of a cache, 1 for others."""
    return np.where((np.arange(blocks) == 0) & known.first, 0, 1)[:, None]


def _class_contexts(rows: np.ndarray, channels: int) -> np.ndarray:
    return np.repeat(CLASS_CHANGE + rows, channels, axis=-1).astype(np.uint8)


def _mean_contexts(rows: np.ndarray, spread: np.ndarray) -> np.ndarray:
    return (MEAN_CHANGE + rows * (WIDEST + 1) + _narrow(spread)).astype(np.uint8)


def _number_contexts(spread: np.ndarray, centre: np.ndarray) -> np.ndarray:
    return (NUMBER + centre * (WIDEST + 1) + _narrow(spread)).astype(np.uint8)


def _narrow(spread: np.ndarray) -> np.ndarray:
    """The class after the low bits are cut off."""
    return spread - 2 * _shifts(spread)


def _coded(numbers: np.ndarray, contexts: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each row, the words of its numbers and the numbers that are escaped."""
    table = frequency_table()
    symbols = np.minimum(symbols_of(numbers), ESCAPE)
    escaped = table[contexts, symbols] == 0
    escaped |= symbols == ESCAPE
    symbols = np.where(escaped, ESCAPE, symbols)
    if (table[contexts, symbols] == 0).any():
        raise CodecFailed("a channel of class 0 must not vary")
    code = (contexts.astype(np.uint16) * np.uint16(SYMBOLS) + symbols.astype(np.uint16)).reshape(-1)
    words, first = words_of(code, even_blocks(code.size, numbers.shape[1]), table)
    return [(words[a:b], row[out]) for (a, b), row, out in zip(pairwise(first), numbers, escaped, strict=True)]


class _Stream:
    """The parts of the bytes of a block; escapes are taken in order."""

    def __init__(self, data: bytes) -> None:
        if len(data) < _HEADER.size:
            raise CodecFailed(f"a block of a cache has a header of {_HEADER.size} bytes; got {len(data)}")
        *words, escapes = _HEADER.unpack_from(data)
        ends = (_HEADER.size + np.cumsum([0, *(2 * each for each in words), 4 * escapes])).tolist()
        if len(data) < ends[-1]:
            raise CodecFailed(f"a block of a cache must have {ends[-1]} bytes; got {len(data)}")
        self.words = [np.frombuffer(data[a:b], "<u2").astype(np.uint16) for a, b in pairwise(ends[:-1])]
        self.escapes = np.frombuffer(data[ends[-2] : ends[-1]], "<i4")
        self.rest = data[ends[-1] :]

    def taken(self, count: int) -> np.ndarray:
        """The next escaped numbers."""
        found, self.escapes = self.escapes[:count], self.escapes[count:]
        if len(found) < count:
            raise CodecFailed("a block of a cache lacks numbers that do not fit its table: it is damaged")
        return found


def _decoded(streams: Sequence[_Stream], part: int, contexts: np.ndarray) -> np.ndarray:
    """The numbers of one part of all blocks."""
    table = frequency_table().reshape(-1)
    words = [stream.words[part] for stream in streams]
    symbols = np.empty(contexts.size, np.uint8)
    backend.kernel("entropy", "decode_known")(
        len(streams), n=contexts.size, block=contexts.shape[1], context=contexts.reshape(-1), symbols=SYMBOLS,
        word_first=starts(np.array([len(each) for each in words])), words=np.concatenate(words), frequency=table,
        start=slots_of(frequency_table()).reshape(-1), symbol=symbols,
    )
    found = numbers_of(symbols).reshape(contexts.shape)
    for row, escaped, stream in zip(found, symbols.reshape(contexts.shape) == ESCAPE, streams, strict=True):
        row[escaped] = stream.taken(int(np.count_nonzero(escaped)))
    return found


def _packed_low(numbers: np.ndarray, shift: np.ndarray) -> bytes:
    """The low bits of the numbers (channels, tokens), channel by channel."""
    wide = np.flatnonzero(shift)
    bits = [(numbers[c][:, None] >> np.arange(shift[c])) & 1 for c in wide]
    return np.packbits(np.concatenate([each.reshape(-1) for each in bits]).astype(np.uint8)).tobytes() if bits else b""


def _unpacked_low(data: bytes, shift: np.ndarray, tokens: int) -> np.ndarray:
    found = np.zeros((len(shift), tokens), np.int64)
    if (need := int(shift.sum()) * tokens) > 8 * len(data):
        raise CodecFailed(f"a block of a cache must have {-(-need // 8)} bytes of low bits; got {len(data)}")
    bits, at = np.unpackbits(np.frombuffer(data, np.uint8)), 0
    for c in np.flatnonzero(shift):
        taken = bits[at : at + tokens * shift[c]].reshape(tokens, -1).astype(np.int64)
        found[c] = (taken << np.arange(shift[c])).sum(axis=1)
        at += tokens * int(shift[c])
    return found


assert CONTEXTS <= 256   # a context is one byte
