"""Who is near the particles that may move: all that a move of one of them could bring within reach, or lose.

Lists are made for candidates alone, a few percent of the particles; there is no list of all pairs that an error could flip.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench import backend
from workbench.backend import Array
from workbench.clusters.sorted_cells import SortedCells

UNASKED = -1        # the group of particles among which nothing is asked; as in kernels/repair.cu
MOST_OF_GROUP = 100000   # neighbours of a candidate in its own group: in the core of a halo, any few of them tell enough


@dataclass(frozen=True, eq=False)
class Surroundings:
    """For each candidate (int32) its neighbours: those from `start[c]` to `start[c + 1]` of `neighbours`."""

    candidates: Array
    start: Array
    neighbours: Array
    slot: Array   # of every particle, its number among the candidates, or -1

    @classmethod
    def of(cls, candidates: Array, cells: SortedCells, group: Array, reach: float) -> Surroundings:
        """Those of the particles in `cells` that are at most `reach` away; `group` holds a row for each linking length."""
        xp, count = backend.namespace(candidates), len(cells.order)
        place, slot = xp.empty(count, xp.int32), xp.full(count, -1, xp.int32)
        slot[candidates] = xp.arange(len(candidates), dtype=xp.int32)
        real, dimensions = cells.positions.dtype, cells.positions.shape[1]

        def kernel(name: str) -> backend.Kernel:
            return backend.kernel("repair", name, real, dimensions)

        kernel("invert")(count, cells.order, place)
        reach = min(reach, cells.grid.widest_reach)
        grid = cells.grid
        given = (
            len(candidates), candidates, place, len(cells), cells.blocks, cells.block_key, cells.occupied,
            cells.first_cell, cells.first, cells.positions, xp.asarray(grid.periods), xp.asarray(grid.blocks_along),
            xp.asarray(grid.block_bits), xp.asarray(grid.reach_around(reach)), grid.closed, reach**2, cells.order, group,
            len(group), count, MOST_OF_GROUP,
        )
        found = xp.empty(len(candidates), xp.int64)
        kernel("count_around")(*given, found)
        start = xp.concatenate([xp.zeros(1, xp.int64), xp.cumsum(found)])
        neighbours = xp.empty(int(start[-1]), xp.int32)
        kernel("place_around")(*given, start, neighbours)
        return cls(candidates, start, neighbours, slot)
