"""The grid of cells on which friends are looked for: its geometry, and which cells can hold friends of which.

A cell is so small that any two particles in it are friends, and cells are grouped in blocks of 64, whose occupied cells
are the bits of one word (see `kernels/fof.cu`). In a periodic box a whole number of blocks fits along each axis, so that
the grid closes upon itself; this works for every linking length, up to and beyond the box.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from workbench.data import Particles
from workbench.errors import WorkbenchError

KEY_BITS = 64
CELL_BITS = 6
# Cells are smaller than b / sqrt(D) by this much: far more than what rounding can move a particle between cells, far
# less than what would make a difference to the speed.
MARGIN = 2.0**-20


@dataclass(frozen=True, eq=False)
class CellGrid:
    """Cells for one set of particles and one linking length; one entry per axis in every array."""

    origin: np.ndarray
    cells_per_length: np.ndarray
    last_cell: np.ndarray
    blocks_along: np.ndarray
    block_bits: np.ndarray
    periods: np.ndarray
    linking_length: float

    @classmethod
    def around(cls, particles: Particles, linking_length: float) -> CellGrid:
        """The grid for these particles; refused when it would take more cells than a 64-bit key can name."""
        edge = _block_edge(particles.dimensions)
        side = linking_length / np.sqrt(particles.dimensions) * (1 - MARGIN)
        lengths = particles.upper - particles.lower if particles.box is None else np.asarray(particles.box)
        cells = lengths / side
        _check_countable(cells, edge, linking_length)
        if particles.box is None:
            last_cell = np.floor(cells).astype(np.int64)
            blocks = last_cell // edge + 1
            cells_per_length, origin, periods = np.full_like(lengths, 1 / side), particles.lower, np.zeros_like(lengths)
        else:
            blocks = np.ceil(cells / edge).astype(np.int64)
            last_cell = blocks * edge - 1
            cells_per_length, origin, periods = blocks * edge / lengths, np.zeros_like(lengths), lengths
        bits = np.array([int(b - 1).bit_length() for b in blocks], np.int64)
        return cls(origin, cells_per_length, last_cell, blocks, bits, periods, linking_length)

    @property
    def key_bits(self) -> int:
        """How many bits of a cell's key are used."""
        return int(self.block_bits.sum()) + CELL_BITS

    def reach(self) -> np.ndarray:
        """For each neighbouring block ahead and each cell of a block: the cells of the neighbour that can hold friends.

        One 64-bit word each; first the block itself (where each pair of cells is named once), then the neighbours in
        the order in which `kernels/fof.cu` numbers them.
        """
        dimensions = len(self.origin)
        edge = _block_edge(dimensions)
        cells = np.array(list(itertools.product(range(edge), repeat=dimensions)))
        bit = np.uint64(1) << np.arange(64, dtype=np.uint64)
        words = []
        for offset in _offsets_ahead(dimensions):
            apart = np.abs(cells[None] + edge * np.array(offset) - cells[:, None])
            gap = np.maximum(apart - 1, 0) / self.cells_per_length
            reachable = (gap**2).sum(axis=-1) <= self.linking_length**2 * (1 + 1e-3)
            if not any(offset):
                reachable &= np.arange(64) > np.arange(64)[:, None]
            words.append(np.where(reachable, bit, np.uint64(0)).sum(axis=1, dtype=np.uint64))
        return np.concatenate(words)


def _block_edge(dimensions: int) -> int:
    return {2: 8, 3: 4}[dimensions]


def _offsets_ahead(dimensions: int) -> list[tuple[int, ...]]:
    """The block itself, then half of its neighbours: those that come after it in the order of keys."""
    neighbours = itertools.product((-1, 0, 1), repeat=dimensions)
    return [offset for offset in neighbours if offset >= (0,) * dimensions]


def _check_countable(cells: np.ndarray, edge: int, linking_length: float) -> None:
    with np.errstate(over="ignore"):
        bits = np.ceil(np.log2(np.maximum(cells / edge, 1))) + 1
    excess = bits.sum() + CELL_BITS - KEY_BITS
    if not excess <= 0:
        least = linking_length * 2.0 ** np.ceil(excess / len(cells))
        raise WorkbenchError(
            f"linking_length must be at least about {least:.3g} for positions that span this much space "
            f"(64-bit cell keys); got {linking_length:.6g}: check the units, or cut out the region of interest"
        )
