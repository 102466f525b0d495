"""Friends of friends: the groups of particles that hang together through links no longer than the linking length.

Two particles are friends when their squared distance, computed in float64 with the nearest periodic image, is at most
the linking length squared. That predicate stands in one place (`kernels/fof.cu`) and decides every pair; everything here
only arranges the particles so that few pairs have to be looked at. Memory is linear in the number of particles:
no list of pairs is ever held.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.cells import CELL_BITS, CellGrid, fof_kernel, has_keys, regular_grid, regular_keys
from workbench.clusters.dense_cells import build_trees
from workbench.clusters.groups import Groups
from workbench.clusters.sparse_cells import sparse_cells
from workbench.data import Particles
from workbench.errors import WorkbenchError
from workbench.ordering import gather_rows, run_starts, sort_by_key

Unit = Literal["spacing", "length"]


def friends_of_friends(particles: Particles, linking_length: float = 0.2, unit: Unit = "spacing") -> Groups:
    """Exact friends-of-friends groups; a link joins two particles at a distance of at most the linking length.

    `unit` says what `linking_length` is a multiple of: "spacing", the mean spacing (volume / N) ** (1 / D) of the
    particles, or "length", the unit of the positions. The labels are NumPy or CuPy, as the positions are.

    >>> particles = Particles([[0.1, 0.5], [0.95, 0.5], [0.5, 0.5]], box=1.0)
    >>> friends_of_friends(particles, 0.2, unit="length").labels.tolist()
    [0, 0, 2]
    """
    length = absolute_linking_length(particles, linking_length, unit)
    return Groups(_labels(particles.positions, *_cells(particles, length)), length)


def absolute_linking_length(particles: Particles, linking_length: float, unit: Unit = "spacing") -> float:
    """The linking length in the unit of the positions.

    >>> absolute_linking_length(Particles([[0.5, 0.5]], box=3.0), 0.2)
    0.6000000000000001
    """
    if unit not in get_args(Unit):
        raise WorkbenchError(f"unit must be one of {', '.join(get_args(Unit))}; got {unit!r}")
    if isinstance(linking_length, bool) or not isinstance(linking_length, (int, float, np.integer, np.floating)):
        raise WorkbenchError(f"linking_length must be a number; got {linking_length!r}")
    if not (math.isfinite(linking_length) and linking_length > 0):
        raise WorkbenchError(f"linking_length must be positive and finite; got {linking_length}")
    if unit == "spacing" and not particles.spacing > 0:
        raise WorkbenchError(
            "a linking length in units of the mean spacing needs particles that fill a volume; these lie in a plane, on a "
            'line or in one point: give unit="length", or a box'
        )
    length = float(linking_length) * (particles.spacing if unit == "spacing" else 1.0)
    if not 1e-150 < length < 1e150:
        raise WorkbenchError(f"linking_length must lie between 1e-150 and 1e150, or its square is lost; got {length:.6g}")
    return length


def _cells(particles: Particles, length: float) -> tuple[CellGrid, Array]:
    """The grid, and the key of every particle's cell."""
    grid = regular_grid(particles, length)
    return (grid, regular_keys(particles, grid)) if has_keys(grid) else sparse_cells(particles, length)


def _labels(positions: Array, grid: CellGrid, key: Array) -> Array:
    xp = backend.namespace(positions)
    sorted_positions = xp.empty_like(positions)   # before it holds positions, it is room to sort in
    order = sort_by_key(key, grid.key_bits, scratch=sorted_positions)
    first = run_starts(key)
    cells = len(first) - 1
    cell_key, rank, parent = xp.empty(cells, xp.uint64), xp.empty(cells, xp.int32), xp.empty(cells, xp.int32)
    fof_kernel("start_cells", positions)(cells, key, first, order, cell_key, rank, parent)
    del key
    gather_rows(positions, order, out=sorted_positions)
    _link(sorted_positions, first, cell_key, rank, parent, grid)
    labels = xp.empty(len(positions), xp.int64)
    fof_kernel("label_particles", positions)(cells, first, order, rank, parent, labels)
    return labels


def _link(positions: Array, first: Array, cell_key: Array, rank: Array, parent: Array, grid: CellGrid) -> None:
    """Unite the cells that hold friends, block by block."""
    xp = backend.namespace(positions)
    first_cell = run_starts(cell_key, CELL_BITS)
    blocks = len(first_cell) - 1
    block_key, occupied = xp.empty(blocks, xp.uint64), xp.empty(blocks, xp.uint64)
    fof_kernel("start_blocks", positions)(blocks, cell_key, first_cell, block_key, occupied)
    geometry = [xp.asarray(a) for a in (grid.periods, grid.blocks_along, grid.block_bits, grid.reach())]
    open_cells = xp.zeros(len(rank), xp.int32)

    def link(boxes: Array) -> None:
        fof_kernel("link", positions)(
            backend.chunks(blocks, positions), blocks, block_key, occupied, first_cell, first, positions, *geometry,
            grid.closed, grid.linking_length**2, len(boxes) > 0, boxes, open_cells, rank, parent,
        )

    link(xp.empty((0, 2, grid.periods.size), positions.dtype))
    if bool(open_cells.any()):
        link(build_trees(open_cells, first, positions))
