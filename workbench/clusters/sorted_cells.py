"""Particles in the order of their cells, the start of every neighbour search.

Sorting takes most of the time of a search, so several searches of the same particles share one sort.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.cells import CELL_BITS, CellGrid, fof_kernel, has_keys, regular_grid, regular_keys
from workbench.clusters.sparse_cells import sparse_cells
from workbench.data.outline import Placed
from workbench.ordering import array_in, gather_rows, known_run_starts, nested_run_starts, sort_by_key


@dataclass(frozen=True, eq=False)
class SortedCells:
    """Particles sorted into cells, and cells into blocks of 64; all particles of one cell are friends.

    `order` is the particle at each place of `positions`. `first` holds each cell's first place there, `first_cell` each
    block's first cell; both end with the number of places or cells. `rank` is the smallest particle index of each cell.
    """

    grid: CellGrid
    positions: Array
    order: Array
    first: Array
    rank: Array
    first_cell: Array
    block_key: Array
    occupied: Array

    @classmethod
    def of(cls, particles: Placed, length: float) -> Self:
        """The cells for links of this length, in the unit of the positions."""
        grid = regular_grid(particles, length)
        grid, key = (grid, regular_keys(particles, grid)) if has_keys(grid) else sparse_cells(particles, length)
        xp = backend.namespace(key)
        room = None if backend.on_device(key) else xp.empty_like(particles.positions)   # to sort in, later for positions
        order = sort_by_key(key, grid.key_bits, scratch=room)
        first, blocks = nested_run_starts(key, (0, CELL_BITS))
        cells = len(first) - 1
        cell_key, rank = array_in(room, cells, xp.uint64, xp), xp.empty(cells, xp.int32)
        fof_kernel("start_cells", particles.positions)(cells, key, first, order, cell_key, rank)
        del key
        first_cell = known_run_starts(cell_key, CELL_BITS, blocks)
        block_key, occupied = xp.empty(blocks, xp.uint64), xp.empty(blocks, xp.uint64)
        fof_kernel("start_blocks", particles.positions)(blocks, cell_key, first_cell, block_key, occupied)
        del cell_key
        positions = gather_rows(particles.positions, order, out=room)
        return cls(grid, positions, order, first, rank, first_cell, block_key, occupied)

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def blocks(self) -> int:
        """How many blocks hold particles."""
        return len(self.block_key)

    def blocks_before(self, chosen: Array, length: float) -> Array:
        """Flags (uint8) of the blocks from which a search for pairs at most this far apart comes to these cells.

        `chosen` are bits of cells, as in `occupied`. A search finds each pair of blocks once, from one of the two.
        """
        marked = backend.namespace(chosen).zeros(self.blocks, np.uint8)
        backend.kernel("surroundings", "mark_before", self.positions.dtype, self.positions.shape[1])(
            backend.chunks(self.blocks, chosen), self.blocks_bundle, chosen=chosen, marked=marked,
            reach=backend.namespace(chosen).asarray(self.grid.reach_around(length)),
        )
        return marked

    def geometry(self, length: float) -> dict[str, Any]:
        """The bundle of kernel arguments to visit neighbouring blocks in search of pairs at most this far apart."""
        xp = backend.namespace(self.positions)
        return {**self.blocks_bundle, "reach": xp.asarray(self.grid.reach(length)), "length_squared": length**2}

    @property
    def blocks_bundle(self) -> dict[str, Any]:
        """The bundle of kernel arguments that hold the cells and blocks."""
        xp, grid = backend.namespace(self.positions), self.grid
        walls = {"periods": grid.periods, "blocks_along": grid.blocks_along, "block_bits": grid.block_bits}
        return {
            "count": self.blocks, "block_key": self.block_key, "occupied": self.occupied, "first_cell": self.first_cell,
            "first": self.first, "sorted": self.positions, "closed": grid.closed,
            **{name: xp.asarray(values) for name, values in walls.items()},
        }
