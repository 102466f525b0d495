"""The decoder of interpolated fields once more, point by point in plain Python: what the kernels are compared with."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Sequence

import numpy as np

from workbench.codecs.interpolation_decoding import weights_from
from workbench.codecs.interpolation_grid import Pass, coarsest, every, four_axes, passes, steps_of
from workbench.codecs.interpolation_model import CONSTANTS, UNIT, Model, constants_of
from workbench.codecs.interpolation_stream import Blocks, Header, targets_before
from workbench.codecs.interpolation_time import Multiples
from workbench.codecs.pieces import split
from workbench.codecs.prequantised import Prequantised
from workbench.codecs.residuals import DIRECT, ESCAPE


class Decoder:
    """The state of decoding: what is known so far."""

    def __init__(
        self, data: bytes, shape: Sequence[int], dtype: np.dtype, model: Model | None = None,
        earlier: Sequence[np.ndarray] = (),
    ) -> None:
        ((_, body),) = split("interpolation", data, tuple(shape), dtype)
        header, coarse, tables, rest = Header.from_bytes(body)
        self.shape, self.real = four_axes(shape), dtype.type
        self.model, frozen = model if header.model else None, header.frozen
        self.passes = passes(self.shape, frozen)
        self.steps = steps_of(self.passes, header.step, header.finer).tolist()
        self.value, self.deviation = np.zeros(self.shape, dtype), np.zeros(self.shape, dtype)
        places = every(coarsest(self.shape, frozen), frozen)
        self.value[places] = Prequantised()._decode_piece(bytes(rest[:coarse]), self.value[places].shape, dtype)
        side = zlib.decompress(rest[coarse : coarse + tables])
        self.earlier, multiples = [each.reshape(self.shape) for each in earlier], [(0, 0)] * (1 + len(self.passes))
        if header.in_time:
            found, side = Multiples.read(side, self.passes)
            multiples = found.numbers.tolist()
        self.value[places] += self._forecast(multiples[0])[places] if any(multiples[0]) else 0
        self.multiples = multiples[1:]
        weights, side = weights_from(side, self.passes)
        means = [header.mean * (1 - sum(each) / 4096) for each in self.multiples]
        every_pass = zip(weights, means, self.steps, strict=True)
        self.weights = [each.for_kernel(mean, step / 2, dtype) for each, mean, step in every_pass]
        self.blocks = Blocks.from_bytes(side, rest[coarse + tables :], self.passes)

    def decode(self) -> np.ndarray:
        """All values."""
        begin, before = self.blocks.begin.tolist(), targets_before(self.passes).tolist()
        with np.errstate(all="ignore"):
            for block, (first, last) in enumerate(itertools.pairwise(begin)):
                self._open(block)
                for number, of in enumerate(self.passes):
                    start, end = max(first, before[number]), min(last, before[number + 1])
                    self.forecast = None
                    if any(self.multiples[number]) and start < end:
                        self.forecast = self._forecast(self.multiples[number])
                    self.seen = self.value if self.forecast is None else self.value - self.forecast
                    order = sorted(range(4), key=lambda axis: (axis in of.layered, axis))
                    for target in range(start, end):
                        place = [0] * 4
                        left = target - before[number]
                        for axis in reversed(order):
                            left, along = divmod(left, of.count[axis])
                            place[axis] = of.first[axis] + along * of.step[axis]
                        self.step = self.steps[number]
                        self._target(of, self.weights[number], tuple(place), target - start, order)
        return self.value

    def _open(self, block: int) -> None:
        first, rest = self.blocks.word_first[block], self.blocks.rest_first
        self.words = [*self.blocks.words[first : self.blocks.word_first[block + 1]].tolist(), 0, 0]
        self.bits = "".join(f"{word:032b}"[::-1] for word in self.blocks.rest[rest[block] : rest[block + 1]].tolist())
        self.state = self.words.pop(0) << 16 | self.words.pop(0)

    def _target(self, of: Pass, weight: np.ndarray, place: tuple[int, ...], known: int, order: list[int]) -> None:
        location, centre, context = self._survey(of, weight, place, known, order)
        symbol = self._symbol(context)
        if symbol == ESCAPE:
            bits = self._take(8 * self.value.itemsize)
            self._set(place, np.array(bits, f"u{self.value.itemsize}").view(self.value.dtype))
            return
        below = 0 if symbol < DIRECT else (symbol - DIRECT) // 8 + 1
        negative = symbol > 0 and self._take(1)
        size = symbol if symbol < DIRECT else (8 | (symbol - DIRECT) % 8) << below | self._take(below)
        ahead = 0.0 if self.forecast is None else float(self.forecast[place])
        self._set(place, self.real((float(centre) + ahead) + float(-size if negative else size) * self.step))
        self.deviation[place] = self.real(self.seen[place] - location) * self.real(1 / self.step)

    def _set(self, place: tuple[int, ...], value: np.generic) -> None:
        self.value[place] = value
        if self.forecast is not None:
            self.seen[place] = self.real(value - self.forecast[place])

    def _forecast(self, multiples: Sequence[int]) -> np.ndarray:
        """What these multiples of earlier steps say of all values."""
        one, two = (self.real(each / 4096) for each in multiples)
        return one * self.earlier[0] + two * self.earlier[-1]

    def _survey(self, of: Pass, weight: np.ndarray, place: tuple[int, ...], known: int, order: list[int]):
        real, half = self.real, self.real(0.5)
        s, inside = of.spacing, self._inside(of, place)
        middles, bends, slopes, bent, spread, near, diagonal = [], [], real(0), real(0), real(0), real(0), real(0)
        best, enclosed = None, True
        for axis in of.odd:
            line, both = self._line(place, axis, s)
            total = real(line[1] + line[2])
            middles.append(real(total * half))
            bends.append(real(real(line[0] + line[3]) - total))
            slopes, bent = real(slopes + abs(real(line[2] - line[1]))), real(bent + abs(bends[-1]))
            spread = real(spread + abs(real(middles[-1] - middles[0])))
            enclosed &= both
            if both and best is None:
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
            v, d = [self.seen[p] for p in four], [abs(self.deviation[p]) for p in four]
            beside.append(real(real(real(v[0] + v[1]) + real(v[2] + v[3])) * real(0.25) - middles[0]))
            spread = real(spread + abs(beside[-1]))
            beside[-1] = real(0) if left == right else beside[-1]
            diagonal = real(diagonal + real(real(d[0] + d[1]) + real(d[2] + d[3])))
        location = middles[0]
        if not enclosed:
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
        foreseen, sums, before = real(0), [real(0), real(0)], []
        instead = real(near * real(half / real(len(of.odd))))
        for axis in range(4):
            if of.count[axis] < 2:
                before.append(real(0))
                foreseen = real(foreseen + real(weight[12 + axis] * real(0)))
                continue
            back = math.prod(of.count[a] for a in order[order.index(axis) + 1 :])
            there = back <= known and place[axis] > of.first[axis]
            earlier = self.deviation[moved(place, axis, -of.step[axis])] if there else real(0)
            before.append(earlier)
            foreseen = real(foreseen + real(weight[12 + axis] * earlier))
            which = int(of.step[axis] == 1)
            sums[which] = real(sums[which] + (abs(earlier) if there else instead))
        scale = weight[16]
        for term, seen in enumerate((slopes, bent, spread, near, diagonal, *sums), 17):
            scale = real(scale + real(weight[term] * seen))
        centre = real(location + foreseen)
        if inside and self.model:
            sums, along = ([slopes, bent, spread], [near, diagonal, *sums]), (middles, bends)
            return location, *self._corrected(of, place, sums, (foreseen, before), along, location, centre, scale)
        bits = int(np.array(scale, np.float32).view(np.uint32)) & 0x7FFFFFFF
        return location, centre, min(max((bits >> 21) - (127 - 4) * 4, 0), 63)

    def _corrected(self, of, place, sums, earlier, along, location, centre, scale):
        """The centre and the context after the answers of the network."""
        real = self.real
        size = scale if scale > real(0.0625) else real(0.0625)
        unit = real(size * real(self.step / 2))
        per_unit, per_scale = real(real(1) / unit), real(real(2) / size)

        def value(difference):
            return compressed(np.float32(real(difference * per_unit)))

        def steps(deviation):
            return compressed(np.float32(real(deviation * per_scale)))

        seen = [np.float32(octaves_of(np.float32(size)) * np.float32(0.25)), *map(value, sums[0]), *map(steps, sums[1])]
        seen += [value(earlier[0]), *map(steps, earlier[1])]
        for k, axis in enumerate(of.odd):
            a, b, c, d = (self.value[moved(place, axis, by * of.spacing)] for by in (-3, -1, 1, 3))
            slope = real(c - b)
            third = real(real(d - a) - real(real(3) * slope))
            across = real(along[0][k] - along[0][0]) if k else real(location - along[0][0])
            seen += [value(slope), value(third), value(along[1][k]), value(across)]
            seen += [steps(self.deviation[moved(place, axis, by * of.spacing)]) for by in (-1, 1)]
        for one, other, aside in of.pairs:
            left, right = moved(place, one, -of.spacing), moved(place, one, of.spacing)
            corners = [moved(side, other, by) for side in (left, right) for by in (-aside, aside)]
            down, below, above, up = (self.value[corner] for corner in corners)
            first, second = real(below - down), real(up - above)
            seen.append(value(real(real(down + below) - real(real(2) * self.value[left]))))
            seen.append(value(real(real(above + up) - real(real(2) * self.value[right]))))
            seen += [value(real(first + second)), value(real(second - first))]
        shift, octaves = answers_of(self.model.networks[len(of.odd)], of, seen)
        wider = np.float32(octaves_of(np.float32(size)) + octaves)
        quarters = np.float32(np.float32(np.float32(4) * wider) + np.float32(16))
        return real(centre + real(real(shift) * unit)), int(min(max(quarters, np.float32(0)), np.float32(63)))

    def _inside(self, of: Pass, place: tuple[int, ...]) -> bool:
        far = all(3 * of.spacing <= place[axis] < self.shape[axis] - 3 * of.spacing for axis in of.odd)
        return far and all(aside <= place[axis] < self.shape[axis] - aside for _, axis, aside in of.pairs)

    def _line(self, place: tuple[int, ...], axis: int, s: int):
        """The four neighbours along an axis, from left to right, and whether the near two are in the grid."""
        real, x, n = self.real, place[axis], self.shape[axis]
        left, right, far = x >= 3 * s, x + s < n, x + 3 * s < n
        a = self.seen[moved(place, axis, -3 * s)] if left else real(0)
        b = self.seen[moved(place, axis, -s)]
        c = self.seen[moved(place, axis, s)] if right else real(2 * b - a) if left else b
        d = self.seen[moved(place, axis, 3 * s)] if far else real(0)
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


def octaves_of(value: np.float32) -> np.float32:
    bits = int(np.array(value, np.float32).view(np.uint32)) & 0x7FFFFFFF
    return np.float32(np.float32(min(max(bits, 111 << 23), 143 << 23) - (127 << 23)) * np.float32(2.0**-23))


def compressed(value: np.float32) -> np.float32:
    size = octaves_of(np.float32(np.float32(1) + abs(value)))
    return -size if value < 0 else size


def answers_of(network, of: Pass, seen: list[np.float32]) -> list[np.float32]:
    """What the network answers, every sum in the order of the kernel."""
    weight = [(part * UNIT).astype(np.float32) for part in (network.first[CONSTANTS:], network.second, network.answers)]
    constant = ((constants_of(of) @ network.first[:CONSTANTS].astype(np.int64)) * UNIT).astype(np.float32)
    units = []
    for unit in range(weight[0].shape[1]):
        sums = [constant[unit], np.float32(0)]
        for place, given in enumerate(seen):
            sums[place % 2] = np.float32(sums[place % 2] + np.float32(given * weight[0][place, unit]))
        units.append(np.float32(sums[0] + sums[1]))
    for layer in weight[1:]:
        units = [unit if unit > 0 else np.float32(unit * np.float32(0.125)) for unit in units]
        sums = list(layer[-1])
        for place, given in enumerate(units):
            sums = [np.float32(total + np.float32(given * by)) for total, by in zip(sums, layer[place], strict=True)]
        units = sums
    return units
