"""Blocks of a field as ZFP codes them: the bits of each within any bound, and its error, without coding anything.

ZFP gives all values of a block of 4 along each axis one exponent, transforms them as integers, and writes bit planes from
the highest to the one that the tolerance allows. In each plane, coefficients up to the last that was ever significant are
written as they are; the others are told by tests. So the bits follow from the lengths of the numbers alone, and are exact
but for the order of equally slow waves. Errors are what is cut off, transformed back. Between powers of two, where the
codec multiplies the values by a factor, bits and logarithms of errors are interpolated.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.bounds.prediction.places import SEED, SHAPES, even_places

SIDE = backend.constant("blocks.cu", "SIDE")
BLOCKS = 24_576          # values in all blocks, at most,
SHARE, FEWEST = 24, 4096   # and one of so many in a small field, but at least these


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of values, one column each; `known` says which of the values are in the field, and valid."""

    values: np.ndarray
    known: np.ndarray
    axes: int
    padding: float = 1.0   # the values in all blocks of the field, over the values in the field

    def coded(self, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The bits of a value within each limit, the mean squared error of valid values, how uneven that is, what is open.

        The last is the standard error of the bits of so many blocks, as a logarithm of its share of them.
        """
        fraction, above = np.frexp(limits)   # limits are fractions from 0.5 up to 1 of a power of two
        ends = above.tolist()
        powers = sorted({*ends, *(power - 1 for power in ends)})
        coarse = np.array([powers.index(power) for power in ends], np.int64)
        bits, squares, uneven, error = self._in_planes(np.array(powers, np.int32))
        fine, up = coarse - 1, np.log2(2 * fraction)   # the power of two below is the one before
        between = squares[fine] ** (1 - up) * squares[coarse] ** up
        return (
            bits[fine] + up * (bits[coarse] - bits[fine]), between, uneven[fine] + up * (uneven[coarse] - uneven[fine]),
            error[fine],
        )

    def _in_planes(self, lowest: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The same where the limits are powers of two with these exponents."""
        size, count = self.values.shape
        cuts, known = len(lowest), self.known.sum(axis=0)
        each, squares, found = np.empty((cuts, count), np.int32), np.empty((cuts, count)), np.empty((4, cuts))
        backend.kernel("blocks", "cut_blocks", self.values.dtype)(
            count, self.axes, cuts, self.values, self.known.view(np.uint8), lowest, _order(self.axes), each, squares
        )
        backend.kernel("blocks", "describe_blocks")(cuts, count, each, squares, known, found)
        bits, spread, total, uneven = found
        mean, error = total / max(int(known.sum()), 1), spread / (bits * math.sqrt(count))
        return bits / size * self.padding, mean, np.log2(uneven / (mean + 1e-300) + 1e-3), np.log2(error + 1e-4)


@functools.cache
def _order(axes: int) -> np.ndarray:
    """The places of the coefficients of a block, from slow to fast waves."""
    places = list(itertools.product(range(SIDE), repeat=axes))
    order = sorted(range(len(places)), key=lambda n: (sum(places[n]), sum(i * i for i in places[n])))
    return np.array(order, np.int32)


def blocks_of(values: np.ndarray, valid: np.ndarray | None) -> Blocks:
    """Blocks spread over the grid; those at its ends are filled up as ZFP does.

    >>> noise = np.random.default_rng(0).standard_normal((64, 64))
    >>> bits, squares, *_ = blocks_of(noise, None).coded(np.array([2.0**-7]))
    >>> round(bits[0]), bool(squares[0] < 0.01**2)
    (13, True)
    """
    inside, there = _blocks_for(values.shape)
    known = there if valid is None else there & valid.reshape(-1)[inside]
    padding = math.prod(SIDE * -(-points // SIDE) / points for points in values.shape)
    return Blocks(values.reshape(-1)[inside], known, values.ndim, padding)


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
