"""The codec `staged` decoded in plain Python, one number after the other: what its kernels must agree with.

It follows `docs/archive-format.md` and shares no code with the codec but pcodec. Large blocks: `slow_levels.py`.
"""

from __future__ import annotations

import itertools
import math
import struct
import zlib

import numpy as np

import slow_levels
from workbench.codecs.pcodec import unpack_integers

HEAD = struct.Struct("<IBBBBBdqQ10I")


class Reader:
    """The parts of a stream."""

    def __init__(self, data: bytes, shape: tuple[int, ...]) -> None:
        _, flags, self.gaps, a, b, c, self.step, self.offset, size, *lengths = HEAD.unpack_from(data)
        self.logs, self.cells = (a, b, c), 1 << a + b + c
        self.wide, self.multiple = flags & 1, 5 if flags & 2 else 1
        long = [n for n in shape if n > 1] or [1]
        if len(long) == 4 and math.prod(long[1:]) < 512:
            long = [long[0] * long[1], *long[2:]]
        self.size = [1] * (4 - len(long)) + long
        self.sides = [1, 1 << a, 1 << b, 1 << c]
        self.counts = [-(-n // side) for n, side in zip(self.size, self.sides, strict=True)]
        blocks, at = math.prod(self.counts), HEAD.size
        self.columns = []
        for length in lengths[:-2]:
            part = data[at : at + length]
            self.columns.append(unpack_integers(part, blocks, np.int64).tolist() if length else [0] * blocks)
            at += length
        groups = np.frombuffer(data[at : at + lengths[-2]], "<u4").tolist()
        stored = data[at + lengths[-2] + lengths[-1] :]
        assert len(stored) == size
        self.body = self.inflated(stored, groups) if groups else stored
        assert len(self.body) == sum(self.columns[7])

    def inflated(self, stored: bytes, groups: list[int]) -> bytes:
        """The bytes of all blocks; a group of 64 that is no smaller than these is stored as it is."""
        found, at = b"", 0
        for number, size in enumerate(groups):
            part, own = stored[at : at + size], sum(self.columns[7][64 * number : 64 * number + 64])
            found += part if size == own else zlib.decompress(part, -15)
            at += size
        return found

    def blocks(self) -> list[tuple[tuple[int, ...], list[int]]]:
        """The first cell of each block, and its numbers."""
        found, at = [], 0
        along = [range(0, count * side, side) for count, side in zip(self.counts, self.sides, strict=True)]
        for block, corner in enumerate(itertools.product(*along)):
            size = self.columns[7][block]
            numbers = self.block(self.body[at : at + size], corner)
            found.append((corner, [self.offset + self.columns[0][block] + n for n in numbers]))
            at += size
        return found

    def block(self, data: bytes, corner: tuple[int, ...]) -> list[int]:
        """The numbers of a block less its base."""
        if self.cells == 4096:
            a, b, c = (n - at for n, at in zip(self.size[1:], corner[1:], strict=True))
            residuals = slow_levels.residuals(self.logs, data, (a, b, c)) if data else [0] * 4096
            return slow_levels.numbers_of(self.logs, residuals, self.multiple)
        if not data:
            return [0] * 512
        predictor, planes = data[0], data[1]
        axes = [2, 2] if predictor == 8 else [axis for axis in range(3) if predictor >> 2 - axis & 1]
        numbers = [0] * 512
        for place, difference in zip(self.order(axes), signed(data[2:], planes), strict=True):
            numbers[place] = difference
        for axis in axes:
            stride = 1 << sum(self.logs[axis + 1 :])
            for i in range(512):
                if i // stride % (1 << self.logs[axis]):
                    numbers[i] += numbers[i - stride]
        return numbers

    def order(self, axes: list[int]) -> list[int]:
        """Where the stored differences belong: those at the beginning of most differenced axes come first."""
        def begins(i: int) -> int:
            place = (i >> self.logs[1] + self.logs[2], i >> self.logs[2] & self.sides[2] - 1, i & self.sides[3] - 1)
            return sum(place[axis] == 0 for axis in set(axes))

        return sorted(range(512), key=lambda i: (-begins(i), i))

    def values(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """The field."""
        return (self.numbers().reshape(shape).astype(np.float64) * self.step).astype(dtype)

    def facts(self, valid: np.ndarray) -> list[list[int]]:
        """What the metadata of each block should state, as far as its valid cells decide: count, sum, squares, extremes."""
        found, there = [], valid.reshape(self.size)
        for block, (corner, numbers) in enumerate(self.blocks()):
            places = itertools.product(*map(range, self.sides))
            cells = [tuple(a + b for a, b in zip(corner, place, strict=True)) for place in places]
            inside = [all(at < n for at, n in zip(cell, self.size, strict=True)) for cell in cells]
            base = self.offset + self.columns[0][block]
            own = [n - base for n, cell, known in zip(numbers, cells, inside, strict=True) if known and there[cell]]
            found.append([len(own), sum(own), sum(n * n for n in own), *((min(own), max(own)) if own else ())])
        return found

    def numbers(self) -> np.ndarray:
        """The lattice numbers of the grid."""
        found = np.zeros(self.size, np.int64)
        for corner, numbers in self.blocks():
            for i, place in enumerate(itertools.product(*map(range, self.sides))):
                cell = tuple(a + b for a, b in zip(corner, place, strict=True))
                if all(at < n for at, n in zip(cell, self.size, strict=True)):
                    found[cell] = numbers[i]
        return found


def signed(data: bytes, planes: int) -> list[int]:
    """The numbers of all planes, with their signs."""
    magnitude, at = [0] * 512, -(-planes // 8)
    for plane in range(planes):
        bits = [0] * 64
        if data[plane // 8] >> plane % 8 & 1:
            there = int.from_bytes(data[at : at + 8], "little")
            at += 8
            for g in range(64):
                if there >> g & 1:
                    bits[g] = data[at]
                    at += 1
        else:
            bits = list(data[at : at + 64])
            at += 64
        for i in range(512):
            magnitude[i] |= (bits[i // 8] >> i % 8 & 1) << plane
    sign_bits = int.from_bytes(data[at:], "little")
    present = [i for i in range(512) if magnitude[i]]
    assert len(data) - at == -(-len(present) // 8)
    for bit, i in enumerate(present):
        if sign_bits >> bit & 1:
            magnitude[i] = -magnitude[i]
    return magnitude
