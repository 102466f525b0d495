"""Large blocks of `staged`: the order in which their numbers are stored, and the tables of their entropy coder.

Both are constants of the format, so no stream has them. A table holds the frequencies of a logistic distribution, whose
shape is that of residuals of smooth fields; the tables' widths are half an octave apart, so the best of them needs few more
bits than one of its own would. They are computed in fractions: floating-point functions differ between machines.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from workbench import backend

Logs = tuple[int, int, int]

LARGE = backend.constant("staged_levels.cuh", "LARGE")
LOG_LARGE = LARGE.bit_length() - 1
MULTIPLE = backend.constant("staged_large.cu", "MULTIPLE")
WORK = backend.constant("staged_large.cu", "WORK")
LARGE_ROOM = {
    wide: backend.constant("staged_symbols.cuh", name)
    for wide, name in ((False, "NARROW_LARGE_ROOM"), (True, "WIDE_LARGE_ROOM"))
}
TURNS = (1, 2, 4, 3, 5, 6, 7)   # the classes of a level in order: bits of the axes at odd places, the last axis lowest
CONTEXTS = backend.constant("staged_symbols.cuh", "CONTEXTS")
SYMBOLS = backend.constant("staged_symbols.cuh", "SYMBOLS")
SLOTS = backend.constant("staged_symbols.cuh", "SLOTS")

# exp(-1/2w) of the widths w = 0.06, 0.085, ... of the tables 1, 2, ..., in 1/65536.
DECLINES = (16, 181, 1016, 3443, 8160, 15021, 23125, 31376, 38930, 45346, 50511, 54514, 57535)
HALVED = 12       # the first table of numbers without their lowest bit
# The mean magnitude from which on a table takes fewer bits than the one before, in 1/4096.
LEAST_MEANS = (0, 0, 11, 62, 243, 645, 1254, 2047, 3077, 4467, 6382, 9073, 10539, 18239)


@functools.lru_cache(maxsize=64)
def arrangement(logs: Logs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each number of a block is stored, the order in which those stored are coded (uint16), and where contexts begin.

    >>> arrangement((0, 0, 12))[0][[0, 2048, 1024, 3072, 512]].tolist()
    [0, 1, 2, 3, 4]
    """
    at = np.indices([1 << log for log in logs]).reshape(3, -1)
    steps = [np.where(each, each & -each, LARGE) for each in at]   # the widest spacing of points that has this place
    spacing = np.minimum.reduce(steps)
    place, context = np.zeros(LARGE, np.int64), np.zeros(LARGE, np.uint8)
    for each in np.unique(spacing[1:]):
        here = spacing == each
        sizes = [max((1 << log) // (2 * int(each)), 1) for log in logs]
        compact = [a[here] // (2 * int(each)) for a in at]
        odd = [step[here] == each for step in steps]
        axes = sum(flag.astype(int) << 2 - a for a, flag in enumerate(odd))
        active = sum(4 >> a for a, log in enumerate(logs) if 1 << log > each)
        ranks = np.zeros(8, np.int64)
        ranks[[turn for turn in TURNS if not turn & ~active]] = np.arange(1, (1 << active.bit_count()))
        place[here] = ranks[axes] * math.prod(sizes) + np.ravel_multi_index(compact, sizes)
        last = np.logical_and.reduce([~flag | (a == size - 1) for flag, a, size in zip(odd, compact, sizes, strict=True)])
        if each == 1:
            count = sum(flag.astype(int) for flag in odd)
            context[here] = np.where(last, 4, np.choose(count - 1, [3, 5, 6]))
        elif each == 2:
            context[here] = np.where(last, 2, 1)
    stored = np.zeros(LARGE, np.uint8)
    stored[place] = context
    order = np.argsort(stored, kind="stable")
    begin = np.searchsorted(stored[order], np.arange(CONTEXTS + 1))
    found = place.astype(np.uint16), order.astype(np.uint16), begin.astype(np.int32)
    for each in found:
        each.flags.writeable = False
    return found


@functools.cache
def tables() -> tuple[np.ndarray, np.ndarray]:
    """Of each symbol of each table, and of each slot, what `staged_symbols.cuh` says (uint32)."""
    frequency = np.array([[SLOTS] + [0] * (SYMBOLS - 1), *(
        _frequencies(Fraction(each, 65536), int(number >= HALVED)) for number, each in enumerate(DECLINES, 1)
    )])
    begin = np.cumsum(frequency, axis=1) - frequency
    shift = np.array([[int(each - 1).bit_length() for each in row] for row in frequency])
    inverse = ((1 << (31 + shift)) + frequency - 1) // np.maximum(frequency, 1)
    once = frequency == 1   # then the quotient is one too small
    added = np.where(once, begin + SLOTS - 1, begin)
    words = [frequency, SLOTS - frequency, added | np.maximum(shift - 1, 0) << 16, np.where(once, 2**32 - 1, inverse)]
    shares = np.stack(words, axis=2).astype(np.uint32).reshape(-1)
    symbol = np.array([np.repeat(np.arange(SYMBOLS), each) for each in frequency])
    of_symbol, first = (np.take_along_axis(each, symbol, axis=1) for each in (frequency, begin))
    slots = (symbol | of_symbol << 4 | (np.arange(SLOTS) - first) << 16).astype(np.uint32).reshape(-1)
    shares.flags.writeable = slots.flags.writeable = False
    return shares, slots


def _frequencies(decline: Fraction, low: int) -> list[int]:
    """Those of numbers 0, 1, ... without so many low bits, where 2 n stands for a residual n, and 2 n - 1 for -n."""
    def less(halves: int) -> Fraction:
        return 1 / (1 + decline**halves)   # the chance of a residual below halves / 2

    def chance(number: int) -> Fraction:
        size = (number + 1) // 2
        return less(2 * size + 1) - less(2 * size - 1)

    shares = [sum((chance(n) for n in range(j << low, (j + 1) << low)), Fraction(0)) for j in range(SYMBOLS - 1)]
    shares.append(1 - sum(shares, Fraction(0)))
    found = [max(1, math.floor(share * SLOTS + Fraction(1, 2))) for share in shares]
    found[0] += SLOTS - sum(found)
    return found


def described(logs: Logs, xp: Any) -> dict[str, Any]:
    """The bundle of kernel arguments that are constants."""
    (place, order, begin), (share, slot) = arrangement(logs), tables()
    least = np.array(LEAST_MEANS, np.uint32)
    arrays = {"place": place, "order": order, "begin": begin, "share": share, "slot": slot, "least": least}
    return {name: xp.asarray(array) for name, array in arrays.items()}
