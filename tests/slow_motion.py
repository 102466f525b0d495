"""The decoder of particles predicted in time once more, in plain Python: what the kernels are compared with."""

from __future__ import annotations

import math
import struct
import zlib

import numpy as np

from workbench.codecs.earlier import Earlier
from workbench.codecs.lattice import LatticeCodec
from workbench.codecs.motion_model import Model
from workbench.codecs.residuals import CONTEXTS, DIRECT, ESCAPE, SYMBOLS, Tables


class Decoder:
    """Frames (steps, particles, components) after two earlier ones, in a box or not."""

    def __init__(
        self, data: bytes, shape: tuple[int, int, int], dtype: np.dtype, box: tuple[float, ...] | None,
        earlier: Earlier | None,
    ) -> None:
        assert data[0] == 1
        self.shape, self.real, self.box = shape, np.dtype(dtype).type, box
        known = [np.full(shape[1:], np.nan)] * 2
        self.rates = None
        if earlier is not None:
            values = [np.reshape(each, shape[1:]).astype(float) for each in earlier.values]
            known = [values[1] if len(values) > 1 else known[0], values[0]]
            self.rates = None if earlier.rates is None else np.reshape(earlier.rates, shape[1:]).astype(float)
        self.frames = [each.tolist() for each in known]
        (length,) = struct.unpack_from("<Q", data, 1)
        if length:
            first = LatticeCodec(order="keep", box=box).decode(data[9 : 9 + length], shape[1:], dtype)
            self.frames.append(first.astype(float).tolist())
        body = data[9 + length :]
        self.step, self.block, tables, side = struct.unpack_from("<dIBH", body)
        self.model, at = Model.read(body, 15)
        self.tables = Tables.from_bytes(zlib.decompress(body[at : at + side]), tables)
        self.blocks = -(-shape[1] // self.block)
        sizes = np.frombuffer(body, "<u4", 2 * self.blocks, at + side).reshape(2, self.blocks)
        at += side + 8 * self.blocks
        self.words = np.split(np.frombuffer(body, "<u2", sizes[0].sum(), at), np.cumsum(sizes[0])[:-1])
        self.rest = np.split(np.frombuffer(body, "<u4", sizes[1].sum(), at + 2 * sizes[0].sum()), np.cumsum(sizes[1])[:-1])
        given = self.model.arguments
        self.weight, self.scale = given["weight"].tolist(), given["scale"].reshape(2, -1).tolist()

    def decode(self) -> np.ndarray:
        """The values."""
        coded = range(len(self.frames), self.shape[0] + 2)
        self.frames += [np.zeros(self.shape[1:]).tolist() for _ in coded]
        for block in range(self.blocks):
            self._open(block)
            begin, end = block * self.block, min((block + 1) * self.block, self.shape[1])
            last, mean, missed = 0.0, 0.0, [0.0] * self.shape[1]
            for frame in coded:
                for i in range(begin, end):
                    size = self._particle(frame, i, begin, end, last, mean, missed[i])
                    last, mean = size, mean + 0.125 * (size - mean)
                    missed[i] = float(np.float32(size if frame == coded[0] else missed[i] + 0.4 * (size - missed[i])))
            assert self.state == 1 << 16
            assert not self.left
            assert not self.bits.strip("0")
        return np.array(self.frames[2:]).astype(self.real)

    def _particle(self, t: int, i: int, begin: int, end: int, last: float, mean: float, missed: float) -> float:
        components = range(self.shape[2])
        known = [self._known(t, i, c, begin, end) for c in components]
        way = []
        for each in known:
            total = 0.0
            for weight, number in zip(self.weight, each, strict=True):
                total += weight * number
            way.append(total)
        per = 1 / self.step * (1, 0.5, 1 / 3)[len(components) - 1]
        apart, speed = (sum_of(numbers) for numbers in ((abs(k[1]) + abs(k[7]) for k in known), (abs(k[0]) for k in known)))
        change = sum_of(abs(w - k[0]) for w, k in zip(way, known, strict=True))
        term = [1, last, mean, missed, apart * per, speed * per, change * per, 0]
        sizes = 0
        for c in components:
            term[7] = sizes / c if c else 0
            scale = sum_of(w * m for w, m in zip(self.scale[c > 0], term, strict=True))
            context = math.floor(4 * octave_of(min(max(scale, 2.0**-7), 2.0**32))) - self.model.lowest
            before = self.frames[t - 1][i][c]
            place = before + way[c]
            if math.isnan(before):
                place = self.frames[t][i - 1][c] if i > begin else 0.0
            symbol = self._symbol(min(max(context, 0), CONTEXTS - 1))
            if symbol == ESCAPE:
                bits = self._take(8 * np.dtype(self.real).itemsize)
                value = float(np.array(bits, f"u{np.dtype(self.real).itemsize}").view(self.real))
            else:
                below = 0 if symbol < DIRECT else (symbol - DIRECT) // 8 + 1
                negative = symbol > 0 and self._take(1)
                size = symbol if symbol < DIRECT else (8 | (symbol - DIRECT) % 8) << below | self._take(below)
                sizes += size
                value = self._value(place, -size if negative else size, c)
            self.frames[t][i][c] = value
        return sizes * (1, 0.5, 1 / 3)[len(components) - 1]

    def _known(self, t: int, i: int, c: int, begin: int, end: int) -> list[float]:
        def before(j: int) -> float:
            return self._between(self.frames[t - 1][j][c], self.frames[t - 2][j][c], c)

        left, right = max(i - 1, begin), min(i + 1, end - 1)
        far_left, far_right = max(i - 2, begin), min(i + 2, end - 1)
        own = before(i)
        found = [own, 0.5 * (before(left) + before(right)) - own, 0.5 * (before(far_left) + before(far_right)) - own]
        here, one = self.frames[t], self.frames[t - 1]
        found += [self._between(here[i - k][c], one[i - k][c], c) if i - k >= begin else 0.0 for k in (1, 2, 3)]
        if self.rates is None:
            return [*found, 0.0, 0.0]
        factor = self.model.of_rate
        rate = factor * self.rates[i][c]
        return [*found, rate, 0.5 * (factor * self.rates[left][c] + factor * self.rates[right][c]) - rate]

    def _between(self, to: float, start: float, c: int) -> float:
        if math.isnan(to) or math.isnan(start):
            return 0.0
        way = to - start
        return way if self.box is None else way - self.box[c] * float(np.rint(way * (1 / self.box[c])))

    def _value(self, place: float, steps: int, c: int) -> float:
        if self.box is None:
            return float(self.real(place + self.step * steps))
        length = self.box[c]
        if not 0 <= place < length:
            place -= length * math.floor(place * (1 / length))
        inside = float(np.nextafter(self.real(length), self.real(0)))
        inside = float(self.real(length)) if float(self.real(length)) < length else inside
        line = [place + self.step * (steps - k if steps > 0 else steps + k) for k in range(3)]
        value = line[0]
        if value >= length:
            value = length if line[1] < length else 0.0 if line[2] < length else line[2] - length
        elif value < 0:
            value = 0.0 if line[1] >= 0 else length if line[2] >= 0 else line[2] + length
        return float(self.real(min(max(value, 0.0), inside)))

    def _open(self, block: int) -> None:
        self.left = self.words[block].tolist()
        self.bits = "".join(f"{word:032b}"[::-1] for word in self.rest[block].tolist())
        self.state = self.left.pop(0) << 16 | self.left.pop(0)

    def _symbol(self, context: int) -> int:
        frequency = self.tables.frequency[self.tables.row[context]].tolist()
        slot, symbol = self.state & 4095, 0
        while slot >= frequency[symbol]:
            slot -= frequency[symbol]
            symbol += 1
        self.state = frequency[symbol] * (self.state >> 12) + slot
        if self.state < 1 << 16:
            self.state = self.state << 16 | self.left.pop(0)
        assert symbol < SYMBOLS
        return symbol

    def _take(self, count: int) -> int:
        bits, self.bits = self.bits[:count], self.bits[count:]
        return int(bits[::-1] or "0", 2)


def sum_of(numbers) -> float:
    """The sum, in order and without the corrections of Python's own."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def octave_of(number: float) -> float:
    """The logarithm to base 2, linear between powers of two."""
    fraction, exponent = math.frexp(number)
    return exponent - 1 + (2 * fraction - 1)
