"""Trees of bounding boxes for pairs of dense cells that a sample of their particles could not decide.

Most snapshots have few such pairs or none. In overdense regions, the trees keep the cost of a cell proportional to its
number of particles. See `kernels/linking.cuh` for their use.
"""

from __future__ import annotations

from workbench import backend
from workbench.backend import Array
from workbench.clusters.cells import fof_kernel
from workbench.clusters.sorted_cells import SortedCells
from workbench.ordering import sort_by_key

DENSE, LEAF, TREE = (backend.constant("linking.cuh", name) for name in ("DENSE", "LEAF", "TREE"))


def build_trees(open_cells: Array, cells: SortedCells) -> Array:
    """The bounding boxes of all dense cells among the open ones; writes where each cell's boxes begin to `open_cells`.

    Sorts the particles of these cells along a space-filling curve, in place.
    """
    xp = backend.namespace(open_cells)
    first, positions = cells.first, cells.positions
    opened = xp.flatnonzero(open_cells)
    sizes = first[opened + 1] - first[opened]
    dense, sizes = opened[sizes > DENSE].astype(xp.int32), sizes[sizes > DENSE].astype(xp.int64)
    place, along = along_curve(dense, sizes, first, positions)
    fof_kernel("reorder_dense", positions)(len(place), place, positions[along], positions)
    cells.order[place] = cells.order[along]
    nodes = 2 * leaves_of(sizes)
    open_cells[dense] = TREE + xp.cumsum(nodes) - nodes
    boxes = xp.empty((int(nodes.sum()), 2, positions.shape[1]), positions.dtype)
    fof_kernel("bound_dense", positions)(len(dense), dense, first, positions, open_cells, boxes)
    return boxes


def along_curve(dense: Array, sizes: Array, first: Array, positions: Array) -> tuple[Array, Array]:
    """The places (int32) of the particles in these cells, cell by cell, and the same in the order of a space-filling curve.

    `positions` are in the order of the cells, of which `first` holds the first places.
    """
    xp = backend.namespace(dense)
    count, total = len(dense), int(sizes.sum())
    cell_bits = (count - 1).bit_length()
    curve_bits = min(16, (64 - cell_bits) // positions.shape[1])
    key, place = xp.empty(total, xp.uint64), xp.empty(total, xp.int32)
    start = xp.cumsum(sizes) - sizes
    fof_kernel("dense_keys", positions)(count, dense, start, first, positions, curve_bits, key, place)
    return place, place[sort_by_key(key, cell_bits + curve_bits * positions.shape[1])]


def leaves_of(sizes: Array) -> Array:
    """The number of leaves of the tree of a cell of each size: the power of two with at most LEAF particles a leaf."""
    xp = backend.namespace(sizes)
    leaves = xp.ones(len(sizes), xp.int64)
    while bool((short := sizes > LEAF * leaves).any()):
        leaves = xp.where(short, 2 * leaves, leaves)
    return leaves
