"""The section `edit` of a chunk, read as `docs/archive-format.md` says and in no other way: slow, plain, on its own."""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Iterator

import numpy as np

FREQUENCIES = [*range(16), *((8 + t % 8) * 2 ** (t // 8 - 1) for t in range(16, 80))]


def moved(decoded: np.ndarray, section: bytes) -> np.ndarray:
    """The positions of a chunk after the moves."""
    version, dimensions, count, boxed, step = struct.unpack_from("<BBBBd", section)
    assert (version, dimensions) == (1, decoded.shape[1])
    numbers = struct.unpack_from(f"<{count + dimensions * boxed}d", section, 12)
    lengths, box = numbers[:count], numbers[count:] if boxed else None
    sights = [sight(decoded, i, lengths, box, step) for i in range(len(decoded))]
    flags, rest = symbols(section[12 + 8 * len(numbers) :], [context for context, _ in sights], 36)
    places = [i for i, flag in enumerate(flags) if flag]
    ranks, rest = symbols(rest, [0] * len(places), 1)
    bits = iter(np.unpackbits(np.frombuffer(rest, np.uint8)).tolist())
    alphabet, found = moves(dimensions), decoded.copy()
    for i, symbol in zip(places, ranks, strict=True):
        rank = symbol + 1
        if symbol >= 24:
            rank = 24 + 2 ** (symbol - 24) + sum(next(bits) << place for place in range(symbol - 24))
        for axis, steps in enumerate(turned(alphabet[rank], sights[i][1])):
            if steps:
                found[i, axis] = shifted(float(decoded[i, axis]) + steps * step, box and box[axis], decoded.dtype)
    return found


def shifted(x: float, period: float | None, dtype: np.dtype) -> np.floating:
    """Where a coordinate comes to lie."""
    if period is not None:
        x = x + period if x < 0 else x
        x = x - period if x >= period else x
    rounded = dtype.type(x)
    return dtype.type(0) if period is not None and float(rounded) >= period else rounded


def turned(move: tuple[int, ...], direction: tuple[int, bool] | None) -> list[int]:
    """A move, as seen along the axes."""
    steps = list(move)
    if direction is not None:
        axis, backward = direction
        steps[0], steps[axis] = steps[axis], steps[0]
        steps[axis] *= -1 if backward else 1
    return steps


@functools.cache
def moves(dimensions: int) -> list[tuple[int, ...]]:
    """All moves by rank."""
    def sizes(move: tuple[int, ...]) -> tuple[object, ...]:
        whole = [n for n, step in enumerate((8, 4, 2, 1)) if all(m % step == 0 for m in move)]
        kind = 4 if 16 in map(abs, move) else whole[0]
        return kind, sum(m != 0 for m in move), sum(map(abs, move)), sum(m < 0 for m in move), [-m for m in move]

    return sorted(itertools.product(range(-16, 17), repeat=dimensions), key=sizes)


def sight(
    decoded: np.ndarray, i: int, lengths: tuple[float, ...], box: tuple[float, ...] | None, step: float
) -> tuple[int, tuple[int, bool] | None]:
    """The context of a particle, and its direction: an axis, and whether backward."""
    seen = []
    for j in range(max(i - 8, 0), min(i + 9, len(decoded))):
        if j == i:
            continue
        apart = differences(decoded[i], decoded[j], box)
        squared = 0.0
        for d in apart:
            squared += d * d
        misses = [(abs(squared - b * b) / b, b) for b in lengths]
        least = min(misses)[0]
        seen.append((least, squared, apart, max(b for miss, b in misses if miss == least)))
    if not seen:
        return 35, None
    miss, squared, apart, length = min(seen, key=lambda each: each[0])
    nearest = min(each[1] for each in seen) / (lengths[-1] * lengths[-1])
    far = sum(limit <= miss / (16 * step) for limit in (0.5, 1, 1.75, 2.5, 3.5))
    context = 6 * far + sum(limit * limit <= nearest for limit in (0.5, 0.8, 0.95, 1.2, 2.0))
    largest = max(map(abs, apart))
    if far == 5 or largest == 0:
        return context, None
    axis = [abs(d) for d in apart].index(largest)
    closer = squared > length * length
    return context, (axis, (apart[axis] > 0) == closer)


def differences(one: np.ndarray, other: np.ndarray, box: tuple[float, ...] | None) -> list[float]:
    """To the nearest image."""
    found = []
    for axis, d in enumerate((one.astype(np.float64) - other.astype(np.float64)).tolist()):
        if box is not None and abs(d) > box[axis] / 2:
            d += -box[axis] if d > 0 else box[axis]
        found.append(d)
    return found


def symbols(data: bytes, contexts: list[int], kinds: int) -> tuple[list[int], bytes]:
    """Coded symbols, and what follows them."""
    count, words = struct.unpack_from("<BI", data)
    tables = []
    for context in range(kinds):
        given = data[5 + context * (count - 1) : 5 + (context + 1) * (count - 1)]
        others = [FREQUENCIES[t] for t in given]
        tables.append([4096 - sum(others), *others])
    begin = 5 + kinds * (count - 1)
    blocks = -(-len(contexts) // 2**18)
    end = begin + 4 * blocks + 2 * words
    assert blocks == 1
    assert struct.unpack_from("<I", data, begin) == (words,)
    stream = iter(struct.unpack_from(f"<{words}H", data, begin + 4))
    return list(_read(stream, [tables[context] for context in contexts])), data[end:]


def _read(words: Iterator[int], tables: list[list[int]]) -> Iterator[int]:
    state = next(words) << 16 | next(words)
    for table in tables:
        slot, first, symbol = state % 4096, 0, 0
        while slot >= first + table[symbol]:
            first += table[symbol]
            symbol += 1
        yield symbol
        state = table[symbol] * (state // 4096) + slot - first
        if state < 2**16:
            state = state << 16 | next(words)
