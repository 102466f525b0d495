"""Blocks of a field as ZFP codes them: the bits of each within any bound, and its error, without coding anything.

ZFP gives all values of a block of 4 along each axis one exponent, transforms them as integers, and writes bit planes from
the highest to the one that the tolerance allows. In each plane, coefficients up to the last that was ever significant are
written as they are; the others are told by tests. So the bits follow from the lengths of the numbers alone, and are exact
but for the order of equally slow waves. Errors are what is cut off, transformed back. Between powers of two, where the
codec multiplies the values by a factor, bits and logarithms of errors are interpolated.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np

from workbench.bounds.prediction.places import SEED, SHAPES, even_places

SIDE = 4
BLOCKS = 24_576          # values in all blocks, at most,
SHARE, FEWEST = 24, 4096   # and one of so many in a small field, but at least these
EXPONENT_BITS = {32: 8, 64: 11}   # by the bits of a number
EMPTY = -(1 << 12)       # the exponent of a block of zeros: below all others
GUARD = 2                # bits that the transform may need
BACK = np.array([[4, 6, -4, -1], [4, 2, 4, 5], [4, -2, 4, -5], [4, -6, -4, 1]], np.float32) / 4   # coefficients to values


@dataclass(frozen=True, eq=False)
class Blocks:
    """Transformed blocks, one column each, so that sums over a block go along whole rows.

    `codes` are negabinary numbers in units of 2 to the power of the exponent less `planes` - 2; `known` says which of the
    values are in the field, and valid.
    """

    codes: np.ndarray
    exponents: np.ndarray
    known: np.ndarray
    axes: int
    padding: float = 1.0   # the values in all blocks of the field, over the values in the field

    @property
    def planes(self) -> int:
        """The bits of a number."""
        return 8 * self.codes.dtype.itemsize

    @functools.cached_property
    def _lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """The length of the longest number from each place on; and the same where the number itself is the longest."""
        own = np.frexp(self.codes.astype(np.float64))[1].astype(np.int16)[_order(self.axes)]
        rest = np.maximum.accumulate(own[::-1])[::-1]
        return rest, np.where(own == rest, own, 0)

    def coded(self, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The bits of a value within each limit, the mean squared error of valid values, how uneven that is, what is open.

        The last is the standard error of the bits of so many blocks, as a logarithm of its share of them.
        """
        fraction, above = np.frexp(limits)   # limits are fractions from 0.5 up to 1 of a power of two
        powers, place = np.unique([above - 1, above], return_inverse=True)
        bits, squares, uneven, error = (row[place] for row in self._in_planes(powers))
        up = np.log2(2 * fraction)
        between = squares[0] ** (1 - up) * squares[1] ** up
        return bits[0] + up * (bits[1] - bits[0]), between, uneven[0] + up * (uneven[1] - uneven[0]), error[0]

    def _in_planes(self, lowest: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The same where the limits are powers of two with these exponents."""
        depth = np.clip(self.exponents - lowest[:, None] + 2 * self.axes + 2, 0, self.planes)
        cut = (self.planes - depth).astype(np.int16)
        rest, leading = self._lengths
        bits = np.maximum(rest - cut[:, None], 0).sum(axis=1, dtype=np.int16)
        bits += (leading > cut[:, None]).sum(axis=1, dtype=np.int16)
        bits += self.planes - np.maximum(cut, rest[-1]) - (rest[-1] > cut)
        each = np.where(depth > 0, bits + (1 + EXPONENT_BITS[self.planes]), 1)
        coded = each.sum(axis=1) / self.codes.size
        error = each.std(axis=1) / (each.mean(axis=1) * math.sqrt(each.shape[1]))
        counts, squares = self.known.sum(axis=0), self._squares(cut)
        mean = squares.sum(axis=1) / max(int(counts.sum()), 1)
        uneven = (squares / np.maximum(counts, 1)).std(axis=1)
        return coded * self.padding, mean, np.log2(uneven / (mean + 1e-300) + 1e-3), np.log2(error + 1e-4)

    def _squares(self, cut: np.ndarray) -> np.ndarray:
        """The sum of squared errors of each block whose planes below the cut are left out, over known values."""
        kind, (size, count) = self.codes.dtype.type, self.codes.shape
        below = np.where(cut >= self.planes, ~kind(0), (kind(1) << np.minimum(cut, self.planes - 1).astype(kind)) - kind(1))
        unit = self.planes // 2   # so that no square leaves the range of single precision
        error = _from_negabinary(self.codes & below[:, None]).astype(np.float32) * np.float32(2.0**-unit)
        for axis in range(self.axes):
            error = BACK @ error.reshape(len(cut) * SIDE**axis, SIDE, -1)
        error = error.reshape(len(cut), size, count) * self.known
        squares = np.einsum("lij,lij->lj", error, error).astype(np.float64)
        return squares * np.ldexp(1.0, 2 * (self.exponents - self.planes + GUARD + unit))


@functools.cache
def _order(axes: int) -> np.ndarray:
    """The places of the coefficients of a block, from slow to fast waves."""
    places = list(itertools.product(range(SIDE), repeat=axes))
    return np.array(sorted(range(len(places)), key=lambda n: (sum(places[n]), sum(i * i for i in places[n]))))


def blocks_of(values: np.ndarray, valid: np.ndarray | None) -> Blocks:
    """Blocks spread over the grid; those at its ends are filled up as ZFP does.

    >>> noise = np.random.default_rng(0).standard_normal((64, 64))
    >>> bits, squares, *_ = blocks_of(noise, None).coded(np.array([2.0**-7]))
    >>> round(bits[0]), bool(squares[0] < 0.01**2)
    (13, True)
    """
    inside, there = _blocks_for(values.shape)
    known = there if valid is None else there & valid.reshape(-1)[inside]
    found = transformed(values.reshape(-1)[inside], known, values.ndim)
    return dataclasses.replace(found, padding=math.prod(SIDE * -(-points // SIDE) / points for points in values.shape))


@functools.lru_cache(SHAPES)
def _blocks_for(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The places of the values of blocks in a flat field, one column each, and which of them are in the field."""
    grid = [-(-points // SIDE) for points in shape]
    most = max(min(math.prod(shape) // SHARE, BLOCKS), FEWEST) // SIDE ** len(shape)
    count = min(max(most, 1), math.prod(grid))
    inside, there = np.zeros((1, count), np.int64), np.ones((1, count), bool)
    uniform = even_places(len(shape), count, np.random.default_rng(SEED))
    for axis, points in enumerate(shape):
        corner = SIDE * (uniform[axis] * grid[axis]).astype(np.int64)
        held, turn = np.minimum(points - corner, SIDE), np.arange(SIDE)[:, None]
        present = turn < held   # ZFP repeats the first value in the fourth place, and the last one in others
        place = corner + np.where(present, turn, np.where(turn == SIDE - 1, 0, held - 1))
        inside = (inside[:, None] + place * math.prod(shape[axis + 1 :])).reshape(-1, count)
        there = (there[:, None] & present).reshape(-1, count)
    return inside, there


def transformed(found: np.ndarray, known: np.ndarray, axes: int) -> Blocks:
    """The coefficients of blocks of values, one column each."""
    planes = 8 * found.dtype.itemsize
    whole, code = (np.int32, np.uint32) if planes == 32 else (np.int64, np.uint64)
    largest = np.abs(found).max(axis=0)
    exponents = np.where(largest > 0, np.frexp(largest)[1], EMPTY)
    fixed = np.ldexp(found.astype(np.float64), planes - GUARD - exponents).astype(whole)
    for axis in range(axes):
        _lift(np.moveaxis(fixed.reshape(SIDE**axis, SIDE, -1), 1, 0))
    mask = code(0xAAAAAAAAAAAAAAAA & (2**planes - 1))
    return Blocks((fixed.view(code) + mask) ^ mask, exponents, known, axes)


def _lift(moved: np.ndarray) -> None:
    """ZFP's transform of four values along the first axis, in place."""
    x, y, z, w = (moved[n].copy() for n in range(SIDE))
    x += w
    x >>= 1
    w -= x
    z += y
    z >>= 1
    y -= z
    x += z
    x >>= 1
    z -= x
    w += y
    w >>= 1
    y -= w
    w += y >> 1
    y -= w >> 1
    moved[0], moved[1], moved[2], moved[3] = x, y, z, w


def _from_negabinary(codes: np.ndarray) -> np.ndarray:
    """The integers of negabinary numbers."""
    bits = 8 * codes.dtype.itemsize
    kind = codes.dtype.type
    mask = kind(0xAAAAAAAAAAAAAAAA & (2**bits - 1))
    return ((codes ^ mask) - mask).view(f"i{codes.dtype.itemsize}")
