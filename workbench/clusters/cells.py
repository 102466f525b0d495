"""The cell grid of the neighbour search: its geometry, and the pairs of cells that can hold friends.

A cell is so small that any two particles in it are friends. Cells form blocks of 64, whose occupied cells are the bits of
one word (see `kernels/cells.cuh`). In a periodic box a whole number of blocks fits along each axis, so the grid is
periodic too; this works for every linking length, up to and beyond the box.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.data.outline import Placed

KEY_BITS = 64
CELL_BITS = 6
# Cells are smaller than b / sqrt(D) by this much: far more than rounding can move a particle between cells, far too
# little to affect the speed.
MARGIN = 2.0**-20
MOST_CELLS = 2**29   # along one axis: with more, rounding would come near the margin


@dataclass(frozen=True, eq=False)
class CellGrid:
    """How cells and blocks are numbered; one entry per axis in every array.

    `closed`: the last block along an axis is a neighbour of the first. `periods` are the periods of space (0: open), which
    may be periodic although the grid is not closed.
    """

    linking_length: float
    cell_sides: np.ndarray
    blocks_along: np.ndarray
    periods: np.ndarray
    closed: bool

    @property
    def block_bits(self) -> np.ndarray:
        """The number of bits of a key for the block coordinate along each axis."""
        return np.array([int(blocks - 1).bit_length() for blocks in self.blocks_along], np.int64)

    @property
    def key_bits(self) -> int:
        """The number of bits of a cell's key; more than 64 when cells cannot be numbered this way."""
        return int(self.block_bits.sum()) + CELL_BITS

    def reach(self, length: float) -> np.ndarray:
        """For each neighbouring block ahead and each cell of a block: the cells of the neighbour at most this far away.

        One 64-bit word each; after every 64 words follow the cells that reach any cell, and the cells that are reached.
        First the block itself (each pair of cells once), then the neighbours as numbered in `kernels/cells.cuh`.
        """
        return _reach_ahead(tuple(self.cell_sides.tolist()), length)

    def reach_around(self, length: float) -> np.ndarray:
        """For every neighbouring block, itself included, and each cell of a block: the cells at most this far away."""
        return _reach_around(tuple(self.cell_sides.tolist()), length)

    @property
    def repeats(self) -> bool:
        """Whether two blocks can be neighbours through several faces of the box."""
        return self.closed and int(self.blocks_along.min()) < 3

    @property
    def widest_reach(self) -> float:
        """The largest distance at which all neighbours of a particle lie in its own or a neighbouring block."""
        return float(self.cell_sides.min()) * block_edge(len(self.cell_sides)) * (1 - 1e-3)


def regular_grid(particles: Placed, linking_length: float) -> CellGrid:
    """Equal cells over the box or the extent of the particles."""
    edge = block_edge(particles.dimensions)
    side = largest_side(particles.dimensions, linking_length)
    if particles.box is None:
        extent = particles.upper - particles.lower
        with np.errstate(over="ignore"):
            cells = np.minimum(np.floor(extent / side), 2.0**62).astype(np.int64) + 1
        return CellGrid(linking_length, np.full_like(extent, side), -(-cells // edge), np.zeros_like(extent), closed=False)
    periods = np.asarray(particles.box)
    blocks = np.minimum(np.ceil(periods / (side * edge)), 2.0**56).astype(np.int64)
    return CellGrid(linking_length, periods / (blocks * edge), blocks, periods, closed=True)


def has_keys(grid: CellGrid) -> bool:
    """Whether all cells of a regular grid have distinct keys of at most 64 bits, in spite of rounding."""
    edge = block_edge(len(grid.blocks_along))
    return grid.key_bits <= KEY_BITS and int(grid.blocks_along.max()) * edge <= MOST_CELLS


def regular_keys(particles: Placed, grid: CellGrid) -> Array:
    """The key of every particle's cell in a regular grid."""
    positions = particles.positions
    xp = backend.namespace(positions)
    origin = particles.lower if particles.box is None else np.zeros(particles.dimensions)
    last_cell = grid.blocks_along * block_edge(particles.dimensions) - 1
    geometry = (xp.asarray(a) for a in (origin, 1 / grid.cell_sides, last_cell, grid.block_bits))
    key = xp.empty(len(positions), xp.uint64)
    fof_kernel("cell_keys", positions)(len(positions), positions, *geometry, key)
    return key


def fof_kernel(name: str, positions: Array) -> backend.Kernel:
    """The kernel of `kernels/fof.cu` for positions of this type and number of dimensions."""
    return backend.kernel("fof", name, positions.dtype, positions.shape[1])


def block_edge(dimensions: int) -> int:
    """Cells along the edge of a block of 64."""
    return {2: 8, 3: 4}[dimensions]


def largest_side(dimensions: int, linking_length: float) -> float:
    """The largest side of a cell whose particles are all friends."""
    return float(linking_length / np.sqrt(dimensions) * (1 - MARGIN))


def _around(dimensions: int) -> tuple[tuple[int, ...], ...]:
    """The offsets of all neighbouring blocks and of the block itself."""
    return tuple(itertools.product((-1, 0, 1), repeat=dimensions))


def _ahead(dimensions: int) -> tuple[tuple[int, ...], ...]:
    """The offsets of the block itself and of the half of its neighbours that come later in the order of keys."""
    return tuple(offset for offset in _around(dimensions) if offset >= (0,) * dimensions)


@functools.cache
def _squared_gaps(offsets: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """The squared number of whole cells between any cell of a block and any cell of a neighbour, along each axis."""
    dimensions = len(offsets[0])
    edge = block_edge(dimensions)
    cells = np.array(list(itertools.product(range(edge), repeat=dimensions)))
    apart = np.abs(cells + edge * np.array(offsets)[:, None, None] - cells[:, None])
    return np.maximum(apart - 1.0, 0.0) ** 2


@functools.lru_cache(maxsize=64)   # small regions of the same grid are searched again and again
def _reach_ahead(sides: tuple[float, ...], length: float) -> np.ndarray:
    reachable = _within(_ahead(len(sides)), sides, length)
    reachable[0] &= np.arange(64) > np.arange(64)[:, None]
    borders = np.stack([reachable.any(axis=2), reachable.any(axis=1)], axis=1)
    return _words(np.concatenate([reachable, borders], axis=1))


@functools.lru_cache(maxsize=64)
def _reach_around(sides: tuple[float, ...], length: float) -> np.ndarray:
    return _words(_within(_around(len(sides)), sides, length))


def _within(offsets: tuple[tuple[int, ...], ...], sides: tuple[float, ...], length: float) -> np.ndarray:
    """Whether any cell of a block and any cell of a neighbour may hold particles that are at most so far apart."""
    return _squared_gaps(offsets) @ (np.array(sides) / length) ** 2 <= 1 + 1e-3


def _words(bits: np.ndarray) -> np.ndarray:
    words = np.packbits(bits, axis=-1, bitorder="little").view("<u8").astype(np.uint64).ravel()
    words.flags.writeable = False
    return words
