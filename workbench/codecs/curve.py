"""Cells of a lattice, and the Morton curve through them: the order in which particles are stored.

Along the curve neighbours in space are mostly neighbours in the file. That makes deltas small for the lattice codec, helps
every other codec too, and gives access by region: each key range of the curve is a union of a few cubes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs.codec import CodecFailed
from workbench.codecs.together import Pieces

KEY_BITS = {2: 31, 3: 21}   # of each axis, in a key of 64
MOST_CELL_BITS = 52         # the tolerance that `fitted` demands keeps cell numbers exact in float64


@dataclass(frozen=True)
class Lattice:
    """Equal cubes: cell 0 begins at `origin`, `last` is the last cell along each axis.

    A decoded coordinate is the middle of its cell, but never above `top`. In a `periodic` lattice, cell 0 follows the last.

    >>> lattice = Lattice.fitted((0.0, 0.0), (1.0, 1.0), tolerance=0.125, dtype=np.float64)
    >>> lattice.last, lattice.keys(np.array([[0.1, 0.9]])).tolist()
    ((4, 4), [10])
    """

    origin: tuple[float, ...]
    step: float
    last: tuple[int, ...]
    top: tuple[float, ...]
    periodic: bool = False

    @classmethod
    def fitted(
        cls,
        lower: Sequence[float],
        upper: Sequence[float],
        tolerance: float,
        dtype: Any,
        box: Sequence[float] | None = None,
    ) -> Lattice:
        """The coarsest lattice on which no coordinate moves by more than the tolerance, rounding included."""
        dtype = np.dtype(dtype)
        tolerance = min(tolerance, float(np.finfo(dtype).max) / 4)
        if box is not None:
            lower, upper = [0.0] * len(box), [below(length, dtype) for length in box]
        reach = float(np.max(np.abs([lower, upper]))) + tolerance   # decoded positions can lie beyond the original ones
        step = 2 * (tolerance - _rounding(reach, dtype))
        if not step > tolerance / 2:
            raise CodecFailed(
                f"the lattice needs a tolerance well above the spacing of {dtype} numbers at {reach:g}, which is "
                f"{float(np.spacing(dtype.type(reach))):.3g}; got {tolerance:.3g}: such values can only be kept exactly"
            )
        cells = [math.floor((high - low) * (1 / step)) for low, high in zip(lower, upper, strict=True)]
        top = tuple(upper) if box is not None else (float(np.finfo(dtype).max),) * len(cells)
        return cls(tuple(map(float, lower)), step, tuple(cells), tuple(map(float, top)), box is not None)

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return len(self.origin)

    @property
    def shift(self) -> int:
        """The number of low bits of each cell number that do not fit into a key."""
        return max(max(self.last).bit_length() - KEY_BITS[self.dimensions], 0)

    @property
    def key_bits(self) -> int:
        """How many bits a key has."""
        return self.dimensions * (max(self.last).bit_length() - self.shift)

    def keys(self, positions: Array) -> Array:
        """The place of each position on the curve (uint64)."""
        xp = backend.namespace(positions)
        keys = xp.empty(len(positions), xp.uint64)
        kernel = backend.kernel("lattice", "cells_to_keys", positions.dtype, self.dimensions)
        kernel(len(positions), positions, *self._cells(xp), self.shift, keys)
        return keys

    def low_bits(self, positions: Array) -> Array:
        """The lowest bits of each cell number, which do not fit into the keys, axis by axis."""
        xp = backend.namespace(positions)
        low = xp.zeros(positions.size if self.shift else 0, xp.uint64)
        if self.shift:
            kernel = backend.kernel("lattice", "low_bits", positions.dtype, self.dimensions)
            kernel(len(positions), positions, *self._cells(xp), self.shift, low)
        return low

    def positions(self, keys: Array, low: Array, dtype: Any) -> Array:
        """The middles of these cells."""
        xp = backend.namespace(keys)
        positions = xp.empty((len(keys), self.dimensions), dtype)
        top = xp.asarray(self.top, xp.float64)
        kernel = backend.kernel("lattice", "keys_to_positions", dtype, self.dimensions)
        kernel(len(keys), keys, low, xp.asarray(self.origin, xp.float64), self.step, top, self.shift, positions)
        return positions

    def gaps(self, keys: Array, pieces: Pieces, block: int) -> tuple[Array, np.ndarray]:
        """The delta of each key to the one before, 0 at the first of each block of each piece; and these first keys."""
        gaps = backend.namespace(keys).empty_like(keys)
        backend.kernel("lattice", "key_gaps")(len(keys), pieces.length, block, keys, gaps)
        if len(pieces) == 1:
            return gaps, backend.to_host(keys[::block])
        return gaps, backend.to_host(keys[backend.namespace(keys).asarray(pieces.block_starts(block)[:-1])])

    def steps(self, positions: Array, pieces: Pieces, block: int) -> tuple[Array, Array]:
        """The deltas from cell to cell in the given order, signs in the lowest bit; and the first cell of each block."""
        xp, blocks = backend.namespace(positions), pieces.blocks(block)
        steps, first = xp.empty(positions.shape, xp.uint64), xp.empty((blocks, self.dimensions), xp.int64)
        kernel = backend.kernel("lattice", "cell_steps", positions.dtype, self.dimensions)
        runs = len(positions) if backend.on_device(positions) else backend.chunks(len(positions), positions)
        given = positions, *self._cells(xp), self._period(xp)
        kernel(runs, len(positions), pieces.length, block, *given, steps, blocks, first)
        return steps, first

    def walk(self, steps: Array, first: Array, piece: int, block: int, dtype: Any) -> Array:
        """The positions from the deltas of `steps`, within the tolerance; each block of each piece has a first cell."""
        xp = backend.namespace(steps)
        positions = xp.empty((len(steps), self.dimensions), dtype)
        origin, top = xp.asarray(self.origin, xp.float64), xp.asarray(self.top, xp.float64)
        kernel = backend.kernel("lattice", "walk_cells", dtype, self.dimensions)
        kernel(len(first), len(positions), piece, block, steps, first, origin, self.step, self._period(xp), top, positions)
        return positions

    def cells(self, positions: Array) -> Array:
        """The number of each position's cell along each axis (int32), of a lattice whose numbers have at most 31 bits."""
        xp = backend.namespace(positions)
        cells = xp.empty(positions.shape, xp.int32)
        kernel = backend.kernel("lattice", "positions_to_cells", positions.dtype, self.dimensions)
        kernel(len(positions), positions, *self._cells(xp), cells)
        return cells

    def middles(self, cells: Array, dtype: Any) -> Array:
        """The positions in the middle of these cells."""
        xp = backend.namespace(cells)
        positions = xp.empty(cells.shape, dtype)
        origin, top = xp.asarray(self.origin, xp.float64), xp.asarray(self.top, xp.float64)
        kernel = backend.kernel("lattice", "cells_to_positions", dtype, self.dimensions)
        kernel(len(cells), cells, origin, self.step, top, positions)
        return positions

    def stretches_in(
        self, first: np.ndarray, final: np.ndarray, lower: Sequence[float], upper: Sequence[float]
    ) -> np.ndarray:
        """Which key ranges of the curve, each from `first` to `final`, may hold decoded positions in a region.

        >>> lattice = Lattice((0.0, 0.0), 1.0, (3, 3), (4.0, 4.0))
        >>> first, final = np.array([0, 4, 8, 12], np.uint64), np.array([3, 7, 11, 15], np.uint64)
        >>> lattice.stretches_in(first, final, (0.0, 0.0), (0.9, 3.9)).tolist()   # the left column of cells
        [True, False, True, False]
        """
        # One cell more on each side: `top` and rounding move a decoded position a little.
        low = [max(math.floor((a - o) / self.step) - 1, 0) for a, o in zip(lower, self.origin, strict=True)]
        high = [min(math.floor((b - o) / self.step) + 1, n) for b, o, n in zip(upper, self.origin, self.last, strict=True)]
        if any(a > b for a, b in zip(low, high, strict=True)):
            return np.zeros(len(first), bool)
        corners = np.array([_interleaved([cell >> self.shift for cell in corner]) for corner in (low, high)], np.uint64)
        reaches = np.empty(len(first), np.uint8)
        kernel = backend.kernel("lattice", "reaches_box", np.float64, self.dimensions)
        kernel(len(first), first, final, corners, self.key_bits, reaches)
        return reaches.astype(bool)

    def _cells(self, xp: Any) -> tuple[Array, float, Array]:
        return xp.asarray(self.origin, xp.float64), 1 / self.step, xp.asarray(self.last, xp.int64)

    @property
    def period(self) -> list[int]:
        """The number of cells around along each axis, or 0."""
        return [n + 1 if self.periodic else 0 for n in self.last]

    def _period(self, xp: Any) -> Array:
        return xp.asarray(self.period, xp.int64)


def below(length: float, dtype: np.dtype) -> float:
    """The largest number of this type that is below a length."""
    nearest = dtype.type(min(length, float(np.finfo(dtype).max)))
    return float(nearest if float(nearest) < length else np.nextafter(nearest, dtype.type(0)))


def _rounding(reach: float, dtype: np.dtype) -> float:
    """The largest rounding error of a decoded coordinate: of the type, and of float64 arithmetic before."""
    if not reach:
        return 0.0
    last = np.nextafter(np.finfo(dtype).max, dtype.type(0))   # of the largest itself, NumPy cannot tell the spacing
    to_type = float(np.spacing(dtype.type(min(reach, float(last))))) / 2 if dtype == np.float32 else 0.0
    return to_type + 8 * float(np.spacing(reach))


def _interleaved(cells: Sequence[int]) -> int:
    key = 0
    for axis, cell in enumerate(cells):
        for bit in range(cell.bit_length()):
            key |= (cell >> bit & 1) << (bit * len(cells) + axis)
    return key
