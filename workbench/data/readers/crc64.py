"""The checksum of GenericIO: CRC-64 with the polynomial of XZ, started with all ones and not complemented at the end.

A CRC is linear, so a long message can be cut into equal segments that advance together, one vector step per eight bytes,
and are combined at the end by operators that append a number of zero bytes. An operator is a table of the image of each
byte value at each of the eight positions of the register. Squaring an operator doubles its number of bytes. Leading zeros
change nothing once the initial ones are added to the message itself, so the message is padded in front.
"""

from __future__ import annotations

import functools

import numpy as np

POLYNOMIAL = np.uint64(0xC96C5795D7870F42)   # reflected
WORD = 8
ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
LANES = 8192          # segments that advance together: their states stay in the cache
SHORTEST = 16         # words per segment


def crc64(data: bytes | bytearray | memoryview | np.ndarray) -> int:
    """The checksum of some bytes.

    >>> hex(crc64(b"123456789") ^ 0xFFFFFFFFFFFFFFFF)   # complemented: the published check value of CRC-64/XZ
    '0x995dc9bbdf1939fa'
    """
    message = np.frombuffer(data, np.uint8)
    if len(message) < WORD:
        return _bytewise(message)
    words, exponent = _stretches(message)
    operator = _zeros(0)
    states = np.zeros(len(words), np.uint64)
    for step in range(words.shape[1]):
        states ^= words[:, step]
        states = _apply(operator, states)
    return _join(states, exponent)


def _stretches(message: np.ndarray) -> tuple[np.ndarray, int]:
    """The message as (segments, words), padded in front, with the initial ones added; and log2 of the words of each."""
    count = -(-len(message) // WORD)
    length = max(SHORTEST, -(-count // LANES))
    exponent = (length - 1).bit_length()
    lanes = -(-count >> exponent)
    padded = np.zeros(lanes * WORD << exponent, np.uint8)
    start = len(padded) - len(message)
    padded[start:] = message
    padded[start : start + WORD] ^= np.uint8(255)
    return padded.view("<u8").astype(np.uint64, copy=False).reshape(lanes, -1), exponent


def _join(states: np.ndarray, exponent: int) -> int:
    """Combine neighbours: append zeros of the right segment's length to the left one, then add both."""
    while len(states) > 1:
        if len(states) % 2:
            states = np.concatenate([np.zeros(1, np.uint64), states])
        states = _apply(_zeros(exponent), states[::2]) ^ states[1::2]
        exponent += 1
    return int(states[0])


def _apply(operator: np.ndarray, states: np.ndarray) -> np.ndarray:
    places = np.ascontiguousarray(states).astype("<u8", copy=False).view(np.uint8).reshape(-1, WORD)
    result = operator[0][places[:, 0]]
    for place in range(1, WORD):
        result ^= operator[place][places[:, place]]
    return result


@functools.cache
def _zeros(exponent: int) -> np.ndarray:
    """The operator of 2**exponent words of zeros, (8, 256)."""
    if exponent:
        half = _zeros(exponent - 1)
        return _apply(half, half.ravel()).reshape(WORD, 256)
    tables = [_byte_table()]
    while len(tables) < WORD:
        last = tables[-1]
        tables.append(tables[0][(last & np.uint64(255)).astype(np.intp)] ^ (last >> np.uint64(8)))
    return np.stack(tables[::-1])   # the first byte of a word is followed by seven more


@functools.cache
def _byte_table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint64)
    for _ in range(8):
        table = np.where(table & np.uint64(1), (table >> np.uint64(1)) ^ POLYNOMIAL, table >> np.uint64(1))
    return table


def _bytewise(message: np.ndarray) -> int:
    """The textbook definition, for messages shorter than the register."""
    table, state = _byte_table().tolist(), int(ONES)
    for byte in message.tolist():
        state = table[(state ^ byte) & 255] ^ (state >> 8)
    return state
