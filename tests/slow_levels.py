"""Large blocks of the codec `staged` in plain Python, one number after the other: what its kernels must agree with.

It follows `docs/archive-format.md` and shares no code with the codec.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

Point = tuple[int, int, int]

DECLINES = (16, 181, 1016, 3443, 8160, 15021, 23125, 31376, 38930, 45346, 50511, 54514, 57535)
CLASSES = (1, 2, 4, 3, 5, 6, 7)


@functools.cache
def points(logs: Point) -> list[tuple[Point, int, int]]:
    """The points of a block but the first one, in order, with the spacing of their level and their class."""
    sides, found = [1 << log for log in logs], []
    spacing = max(sides) // 2
    while spacing:
        for axes in CLASSES:
            odd = [bool(axes & 4 >> a) for a in range(3)]
            if all(spacing < side or not flag for side, flag in zip(sides, odd, strict=True)):
                along = [range(spacing * flag, side, 2 * spacing) for side, flag in zip(sides, odd, strict=True)]
                found += [(point, spacing, axes) for point in itertools.product(*along)]
        spacing //= 2
    return found


def ends(logs: Point, point: Point, spacing: int, axes: int) -> list[int]:
    """The axes of a class along which a block ends behind a point."""
    return [a for a in range(3) if axes & 4 >> a and point[a] + spacing >= 1 << logs[a]]


def context_of(logs: Point, point: Point, spacing: int, axes: int) -> int:
    """The context of a residual."""
    alone = len(ends(logs, point, spacing, axes)) == axes.bit_count()
    if spacing > 2:
        return 0
    if spacing == 2:
        return 2 if alone else 1
    return 4 if alone else (3, 5, 6)[axes.bit_count() - 1]


def along(known: dict[Point, int], point: Point, spacing: int, axis: int, side: int) -> tuple[int, bool]:
    """Sixteen times the prediction of a point along an axis, and whether there is a point behind."""
    def value(steps: int) -> int:
        return known[(*point[:axis], point[axis] + steps * spacing, *point[axis + 1 :])]

    m, count = point[axis] // (2 * spacing), side // (2 * spacing)
    if m + 1 < count:
        before, behind = m > 0, m + 2 < count
        if before and behind:
            return 9 * value(-1) + 9 * value(1) - value(-3) - value(3), True
        if behind:
            return 6 * value(-1) + 12 * value(1) - 2 * value(3), True
        return (12 * value(-1) + 6 * value(1) - 2 * value(-3) if before else 8 * value(-1) + 8 * value(1)), True
    if m > 1:
        return 30 * value(-1) - 20 * value(-3) + 6 * value(-5), False
    return (24 * value(-1) - 8 * value(-3) if m else 16 * value(-1)), False


def numbers_of(logs: Point, residuals: list[int], multiple: int) -> list[int]:
    """The numbers of a block less its base."""
    known = {(0, 0, 0): 0}
    for (point, spacing, axes), residual in zip(points(logs), residuals[1:], strict=True):
        own = [a for a in range(3) if axes & 4 >> a]
        used = [a for a in own if a not in ends(logs, point, spacing, axes)] or own
        weights = dict(zip(used, {1: (4,), 2: (2, 2), 3: (1, 1, 2)}[len(used)], strict=True))
        total = sum(weights[a] * along(known, point, spacing, a, 1 << logs[a])[0] for a in used)
        known[point] = (total + 32 >> 6) + multiple * residual
    return [known[point] for point in itertools.product(*(range(1 << log) for log in logs))]


@functools.cache
def frequencies() -> list[list[int]]:
    """Those of all tables."""
    def table(decline: int, low: int) -> list[int]:
        p = Fraction(decline, 65536)
        sizes = [(z + 1) // 2 for z in range(15 << low)]
        chances = [1 / (1 + p ** (2 * m + 1)) - 1 / (1 + p ** (2 * m - 1)) for m in sizes]
        shares = [sum(chances[j << low : (j + 1) << low]) for j in range(15)]
        found = [max(1, math.floor(2048 * share + Fraction(1, 2))) for share in (*shares, 1 - sum(shares))]
        return [found[0] + 2048 - sum(found), *found[1:]]

    return [[2048] + [0] * 15, *(table(each, int(k > 10)) for k, each in enumerate(DECLINES))]


def bits(data: bytes) -> Iterator[int]:
    """The bits of bytes, the lowest of each first."""
    return (byte >> k & 1 for byte in data for k in range(8))


def residuals(logs: Point, data: bytes, room: Point) -> list[int]:
    """The residuals of a block in the order of its points; zero beyond the `room` cells that the grid has here."""
    choices = list(data[:7])
    state = [int.from_bytes(data[7 + 4 * s : 11 + 4 * s], "little") for s in range(4)]
    contexts = [0, *(context_of(logs, *each) for each in points(logs))]
    places = [(0, 0, 0), *(point for point, _, _ in points(logs))]
    inside = [i for i in range(4096) if all(at < size for at, size in zip(places[i], room, strict=True))]
    order = sorted(inside, key=lambda i: (contexts[i], i))
    at, symbols = 23, []
    for context, several in itertools.groupby(order, key=lambda i: contexts[i]):
        choice = choices[context]
        table = frequencies()[choice if choice < 12 else 12 + choice % 2]
        starts = [0, *itertools.accumulate(table)]
        for turn, _ in enumerate(several):
            x = state[turn % 4]
            symbol = max(s for s in range(16) if table[s] and starts[s] <= x % 2048)
            x = table[symbol] * (x // 2048) + x % 2048 - starts[symbol]
            if x < 2**15:
                x, at = x << 16 | int.from_bytes(data[at : at + 2], "little"), at + 2
            state[turn % 4] = x
            symbols.append(symbol)
    assert state == [2**15] * 4
    rest, found, read = bits(data[at:]), [0] * 4096, 0

    def take(count: int) -> int:
        nonlocal read
        read += count
        return sum(next(rest) << k for k in range(count))

    for i, symbol in zip(order, symbols, strict=True):
        choice = choices[contexts[i]]
        low = 0 if choice < 12 else (choice - 10) // 2
        if symbol == 15:
            length = take(6)
            symbol = 14 + (1 << length | take(length))
        number = symbol << low | take(low)
        found[i] = -(number + 1) // 2 if number % 2 else number // 2
    assert at + -(-read // 8) == len(data)
    return found
