"""The decoder of interpolated fields once more, point by point in plain Python: what the kernels are compared with."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Sequence

import numpy as np

from workbench.codecs import get
from workbench.codecs.interpolation import _HEADER, _weights_from
from workbench.codecs.interpolation_grid import Pass, coarsest, every, four_axes, passes
from workbench.codecs.interpolation_stream import DIRECT, ESCAPE, Blocks, targets_before
from workbench.codecs.pieces import split


class Decoder:
    """The state of decoding: what is known so far."""

    def __init__(self, data: bytes, shape: Sequence[int], dtype: np.dtype) -> None:
        ((_, body),) = split("interpolation", data, tuple(shape), dtype)
        self.step, mean, mask, coarse, tables = _HEADER.unpack_from(body)
        rest = body[_HEADER.size :]
        self.shape, self.real = four_axes(shape), dtype.type
        frozen = tuple(axis for axis in range(4) if mask >> axis & 1)
        self.passes = passes(self.shape, frozen)
        self.value, self.deviation = np.zeros(self.shape, dtype), np.zeros(self.shape, dtype)
        places = every(coarsest(self.shape, frozen), frozen)
        self.value[places] = get("prequantised").decode(rest[:coarse], self.value[places].shape, dtype)
        weights, side = _weights_from(zlib.decompress(rest[coarse : coarse + tables]), self.passes)
        self.weights = [each.for_kernel(mean, self.step / 2, dtype) for each in weights]
        self.blocks = Blocks.from_bytes(side, memoryview(rest)[coarse + tables :], self.passes)

    def decode(self) -> np.ndarray:
        """All values."""
        begin, before = self.blocks.begin.tolist(), targets_before(self.passes).tolist()
        with np.errstate(all="ignore"):
            for block, (first, last) in enumerate(itertools.pairwise(begin)):
                self._open(block)
                for number, of in enumerate(self.passes):
                    start, end = max(first, before[number]), min(last, before[number + 1])
                    order = sorted(range(4), key=lambda axis: (axis in of.layered, axis))
                    for target in range(start, end):
                        place = [0] * 4
                        left = target - before[number]
                        for axis in reversed(order):
                            left, along = divmod(left, of.count[axis])
                            place[axis] = of.first[axis] + along * of.step[axis]
                        self._target(of, self.weights[number], tuple(place), target - start, order)
        return self.value

    def _open(self, block: int) -> None:
        first, rest = self.blocks.word_first[block], self.blocks.rest_first
        self.words = [*self.blocks.words[first : self.blocks.word_first[block + 1]].tolist(), 0, 0]
        self.bits = "".join(f"{word:032b}"[::-1] for word in self.blocks.rest[rest[block] : rest[block + 1]].tolist())
        self.state = self.words.pop(0) << 16 | self.words.pop(0)

    def _target(self, of: Pass, weight: np.ndarray, place: tuple[int, ...], known: int, order: list[int]) -> None:
        location, foreseen, context = self._survey(of, weight, place, known, order)
        centre = float(self.real(location + foreseen))
        symbol = self._symbol(context)
        if symbol == ESCAPE:
            bits = self._take(8 * self.value.itemsize)
            self.value[place] = np.array(bits, f"u{self.value.itemsize}").view(self.value.dtype)
            return
        below = 0 if symbol < DIRECT else (symbol - DIRECT) // 8 + 1
        negative = symbol > 0 and self._take(1)
        size = symbol if symbol < DIRECT else (8 | (symbol - DIRECT) % 8) << below | self._take(below)
        decoded = self.real(centre + float(-size if negative else size) * self.step)
        self.value[place] = decoded
        self.deviation[place] = self.real(decoded - location) * self.real(1 / self.step)

    def _survey(self, of: Pass, weight: np.ndarray, place: tuple[int, ...], known: int, order: list[int]):
        real, half = self.real, self.real(0.5)
        s, inside = of.spacing, self._inside(of, place)
        middles, bends, slopes, bent, spread, near, diagonal = [], [], real(0), real(0), real(0), real(0), real(0)
        best = None
        for axis in of.odd:
            line, both = self._line(place, axis, s)
            total = real(line[1] + line[2])
            middles.append(real(total * half))
            bends.append(real(real(line[0] + line[3]) - total))
            slopes, bent = real(slopes + abs(real(line[2] - line[1]))), real(bent + abs(bends[-1]))
            spread = real(spread + abs(real(middles[-1] - middles[0])))
            if not inside and both and best is None:
                best = len(middles) - 1
            sides = [abs(self.deviation[moved(place, axis, by)]) for by in (-s, s if both else -s)]
            near = real(near + real(sides[0] + sides[1]))
        across = [real(middle - middles[0]) for middle in middles]
        beside = []
        for one, other, aside in of.pairs:
            up = s if place[one] + s < self.shape[one] else -s
            left = -aside if place[other] >= aside else aside
            right = aside if place[other] + aside < self.shape[other] else -aside
            four = [moved(moved(place, one, a), other, b) for a, b in ((-s, left), (-s, right), (up, left), (up, right))]
            v, d = [self.value[p] for p in four], [abs(self.deviation[p]) for p in four]
            beside.append(real(real(real(v[0] + v[1]) + real(v[2] + v[3])) * real(0.25) - middles[0]))
            spread = real(spread + abs(beside[-1]))
            diagonal = real(diagonal + real(real(d[0] + d[1]) + real(d[2] + d[3])))
        location = middles[0]
        if not inside:
            if best:
                location, bends[0] = real(location + across[best]), bends[best]
            location = real(location - real(bends[0] * real(0.0625)))
        else:
            for k, bend in enumerate(bends):
                location = real(location + real(weight[5 + k] * bend))
            for k, other in enumerate(across[1:], 1):
                location = real(location + real(weight[1 + k] * other))
            for k, other in enumerate(beside):
                location = real(location + real(weight[9 + k] * other))
        location = real(weight[1] + real(weight[0] * real(location - weight[1])))
        foreseen, sums = real(0), [real(0), real(0)]
        instead = real(near * real(half / real(len(of.odd))))
        for axis in range(4):
            if of.count[axis] < 2:
                foreseen = real(foreseen + real(weight[12 + axis] * real(0)))
                continue
            back = math.prod(of.count[a] for a in order[order.index(axis) + 1 :])
            there = back <= known and place[axis] > of.first[axis]
            earlier = self.deviation[moved(place, axis, -of.step[axis])] if there else real(0)
            foreseen = real(foreseen + real(weight[12 + axis] * earlier))
            which = int(of.step[axis] == 1)
            sums[which] = real(sums[which] + (abs(earlier) if there else instead))
        scale = weight[16]
        for term, seen in enumerate((slopes, bent, spread, near, diagonal, *sums), 17):
            scale = real(scale + real(weight[term] * seen))
        bits = int(np.array(scale, np.float32).view(np.uint32)) & 0x7FFFFFFF
        return location, foreseen, min(max((bits >> 21) - (127 - 4) * 4, 0), 63)

    def _inside(self, of: Pass, place: tuple[int, ...]) -> bool:
        far = all(3 * of.spacing <= place[axis] < self.shape[axis] - 3 * of.spacing for axis in of.odd)
        return far and all(aside <= place[axis] < self.shape[axis] - aside for _, axis, aside in of.pairs)

    def _line(self, place: tuple[int, ...], axis: int, s: int):
        """The four neighbours along an axis, from left to right, and whether the near two are in the grid."""
        real, x, n = self.real, place[axis], self.shape[axis]
        left, right, far = x >= 3 * s, x + s < n, x + 3 * s < n
        a = self.value[moved(place, axis, -3 * s)] if left else real(0)
        b = self.value[moved(place, axis, -s)]
        c = self.value[moved(place, axis, s)] if right else real(2 * b - a) if left else b
        d = self.value[moved(place, axis, 3 * s)] if far else real(0)
        if not left:
            a = real(d + real(real(3) * real(b - c))) if far else real(real(2) * b - c)
        if not far:
            d = real(a + real(real(3) * real(c - b))) if left and right else real(real(2) * c - b)
        return (a, b, c, d), right

    def _symbol(self, context: int) -> int:
        frequency = self.blocks.tables.frequency[self.blocks.tables.row[context]].tolist()
        slot = self.state % 4096
        ends = list(itertools.accumulate(frequency))
        symbol = next((number for number, end in enumerate(ends) if slot < end), 0)
        count, start = frequency[symbol], ends[symbol] - frequency[symbol]
        self.state = count * (self.state // 4096) + slot - start
        if self.state < 2**16:
            self.state = self.state << 16 | self.words.pop(0)
        return symbol

    def _take(self, count: int) -> int:
        taken, self.bits = self.bits[:count], self.bits[count:]
        return int(taken[::-1], 2) if taken else 0


def moved(place: tuple[int, ...], axis: int, by: int) -> tuple[int, ...]:
    return (*place[:axis], place[axis] + by, *place[axis + 1 :])
