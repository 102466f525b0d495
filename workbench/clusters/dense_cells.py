"""Trees of bounding boxes for pairs of dense cells that a sample of their particles could not decide.

Most snapshots have few such pairs or none. In overdense regions, the trees keep the cost of a cell proportional to its
number of particles. See `kernels/linking.cuh` for their use.
"""

from __future__ import annotations

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.cells import fof_kernel
from workbench.clusters.sorted_cells import SortedCells
from workbench.ordering import sort_by_key

DENSE, TREE = (backend.constant("linking.cuh", name) for name in ("DENSE", "TREE"))
PIECE, BRANCH = (backend.constant("fof.cu", name) for name in ("PIECE", "BRANCH"))


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
    leaves = leaves_of(sizes)
    nodes = _starts(2 * leaves)
    open_cells[dense] = TREE + nodes[:-1]
    boxes = xp.empty((int(nodes[-1]), 2, positions.shape[1]), positions.dtype)
    branches = _starts(-(-leaves // BRANCH))
    fof_kernel("bound_branches", positions)(
        int(branches[-1]), len(dense), branches, leaves, dense, first, positions, open_cells, boxes
    )
    fof_kernel("bound_trunks", positions)(len(dense), leaves, dense, open_cells, boxes)
    return boxes


def along_curve(dense: Array, sizes: Array, first: Array, positions: Array) -> tuple[Array, Array]:
    """The places (int32) of the particles in these cells, cell by cell, and the same in the order of a space-filling curve.

    `positions` are in the order of the cells, of which `first` holds the first places.
    """
    xp = backend.namespace(dense)
    count, dimensions = len(dense), positions.shape[1]
    cell_bits = (count - 1).bit_length()
    curve_bits = min(16, (64 - cell_bits) // dimensions)
    start = _starts(sizes)
    total = int(start[-1])
    key, place = xp.empty(total, xp.uint64), xp.empty(total, xp.int32)
    fof_kernel("dense_keys", positions)(
        backend.chunks(total, key), total, count, start, dense, first, positions, _extents(dense, sizes, first, positions),
        curve_bits, key, place,
    )
    return place, place[sort_by_key(key, cell_bits + curve_bits * dimensions)]


def leaves_of(sizes: Array) -> Array:
    """The number of leaves of the tree of a cell of each size: the power of two with at most LEAF particles a leaf."""
    leaves = backend.namespace(sizes).empty(len(sizes), np.int64)
    backend.kernel("fof", "tree_leaves")(len(sizes), sizes, leaves)
    return leaves


def _extents(dense: Array, sizes: Array, first: Array, positions: Array) -> Array:
    """The bounding box of each of these cells."""
    xp = backend.namespace(dense)
    start = _starts(-(-sizes // PIECE))
    pieces, count, of_box = int(start[-1]), len(dense), (2, positions.shape[1])
    piece, box = xp.empty((pieces, *of_box), positions.dtype), xp.empty((count, *of_box), positions.dtype)
    fof_kernel("bound_pieces", positions)(pieces, count, start, dense, first, positions, piece)
    fof_kernel("join_pieces", positions)(count, start, piece, box)
    return box


def _starts(sizes: Array) -> Array:
    """Where each of these begins when they stand one after the other, and the end."""
    xp = backend.namespace(sizes)
    return xp.concatenate([xp.zeros(1, xp.int64), xp.cumsum(sizes)])
