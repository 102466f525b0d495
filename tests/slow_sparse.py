"""The decoder of numbers that are mostly zeros, once more: without tables of states and running counts."""

from fractions import Fraction

import numpy as np

ONE = 2**22


class Chance:
    """A chance that adapts: it moves by 2 / (2 n + 3) of the way when it was met n times."""

    def __init__(self, p=ONE // 2, met=0):
        self.p, self.met = p, met

    def learn(self, bit):
        way = ((ONE - 1 if bit else 0) - self.p) * 2
        self.p += abs(way) // (2 * self.met + 3) * (1 if way > 0 else -1)
        self.met = min(self.met + 1, 400)


class Reader:
    """Bits of a byte string under chances in 1/2^16; behind the end are zeros."""

    def __init__(self, data):
        self.data, self.at, self.code, self.range = data, 4, int.from_bytes(data[:4].ljust(4, b"\0"), "big"), 2**32 - 1

    def bit(self, p):
        share = (self.range >> 16) * max(p, 1)
        found = self.code < share
        self.code, self.range = (self.code, share) if found else (self.code - share, self.range - share)
        while self.range < 2**24:
            self.code = self.code << 8 | (self.data[self.at] if self.at < len(self.data) else 0)
            self.at, self.range = self.at + 1, self.range << 8
        return int(found)


def octave(number):
    """The logarithm to base 2, in 1/256, linear between powers of 2."""
    length = number.bit_length() - 1
    return 256 * length + (number * 256 >> length) - 256


def density(filled, count, prior, weight):
    """A share in 1/2^20."""
    return max(int(Fraction(filled * 2**20 + prior, count + weight)), 1)


def decoded(data, rows, columns):
    """A table of so many rows, which is one block."""
    reader = Reader(data)
    filled = {(k, beside): Chance(_at_first(k), 6) for k in range(25) for beside in range(16)}
    sign, longer, mantissa = Chance(), {}, {}
    table = [[0] * columns for _ in range(rows)]
    for r in range(rows):
        before = sum(number != 0 for row in table[:r] for number in row)
        overall = density(2 * before + 1, 2 * r * columns + 2, 0, 0)
        for c in range(columns):
            row = density(sum(number != 0 for number in table[r][:c]), c, 8 * overall, 8)
            column = density(sum(table[above][c] != 0 for above in range(r)), r, 8 * overall, 8)
            odds = octave(row * column * (2**20 - overall)) - octave((2**20 - row) * (2**20 - column) * overall)
            place = min(max(12 * 256 + odds, 0), 24 * 256 - 1)
            k, part = divmod(place, 256)
            at = [(r, c - 1), (r - 1, c), (r - 1, c - 1)]
            left, up, up_left = (int(min(y, x) >= 0 and table[y][x] != 0) for y, x in at)
            beside = 8 * left + 4 * up + 2 * up_left + any(table[r][:c])
            low, high = filled[k, beside], filled[k + 1, beside]
            found = reader.bit((low.p * (256 - part) + high.p * part) // 256 >> 6)
            (low if part < 128 else high).learn(found)
            if found:
                table[r][c] = _number(reader, (place + 128) // 256, sign, longer, mantissa)
    return np.array(table, np.int64)


def _at_first(k):
    less = ONE // (2 ** abs(k - 12) + 1)
    return less if k < 12 else ONE - less


def _number(reader, k, sign, longer, mantissa):
    negative = reader.bit(sign.p >> 6)
    sign.learn(negative)
    below = 0
    while below < 63:
        wide, narrow = longer.setdefault(below, Chance()), longer.setdefault((k, below), Chance())
        more = reader.bit((narrow.p * narrow.met + wide.p * 8) // (narrow.met + 8) >> 6)
        wide.learn(more)
        narrow.learn(more)
        if not more:
            break
        below += 1
    size = 1
    for place in range(below):
        if place < 3:
            chance = mantissa.setdefault((below, size), Chance())
            bit = reader.bit(chance.p >> 6)
            chance.learn(bit)
        else:
            bit = reader.bit(2**15)
        size = 2 * size + bit
    return -size if negative else size
