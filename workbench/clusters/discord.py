"""Label conflicts between two groupings of the same particles: friends in one that are in different groups of the other.

Two friends-of-friends partitions are equal if and only if neither has such a pair. Only these pairs, a few percent of the
particles at most, have to be repaired, and their absence is a proof.
"""

from __future__ import annotations

from workbench import backend
from workbench.backend import Array
from workbench.clusters.groups import Groups
from workbench.clusters.sorted_cells import SortedCells

UNLABELLED = -1           # excluded particles; as in kernels/discord.cu
MOST_BETWEEN_CELLS = 64   # listed pairs per pair of cells: all pairs of an overdense region would not fit into memory


def torn_labels(groups: Groups, other: Array) -> Array:
    """The other labels (int32) of particles in split groups, which have several of them; UNLABELLED for all others.

    >>> import numpy as np
    >>> torn_labels(Groups(np.array([0, 0, 2, 2]), 0.1), np.array([0, 1, 2, 2], np.int32)).tolist()
    [0, 1, -1, -1]
    """
    xp, count = backend.namespace(groups.labels, other), len(other)
    torn, found = xp.zeros(count, xp.uint8), xp.empty(count, xp.int32)
    backend.kernel("discord", "find_torn")(count, groups.labels, other, torn)
    backend.kernel("discord", "label_torn")(count, groups.labels, other, torn, found)
    return found


def discords(cells: SortedCells, labels: Array, length: float) -> Array:
    """All pairs (M, 2) of particles at most `length` apart whose labels (int32) differ; in overdense regions, some of them.

    The smaller index comes first; the order of the pairs is that of the cells.

    >>> import numpy as np
    >>> from workbench.data import Particles
    >>> cells = SortedCells.of(Particles([[0.1, 0.5], [0.2, 0.5], [0.3, 0.5]], box=1.0), 0.15)
    >>> discords(cells, np.array([0, 0, 2], np.int32), 0.15).tolist()
    [[1, 2]]
    """
    xp = backend.namespace(cells.positions, labels)
    real, dimensions = cells.positions.dtype, cells.positions.shape[1]

    def kernel(name: str) -> backend.Kernel:
        return backend.kernel("discord", name, real, dimensions)

    sorted_label, cell_label = xp.empty(len(labels), xp.int32), xp.empty(len(cells), xp.int32)
    kernel("label_cells")(len(cells), cells.first, cells.order, labels, sorted_label, cell_label)
    labelled, found = xp.empty(cells.blocks, xp.uint64), xp.empty(cells.blocks, xp.int64)
    kernel("label_blocks")(cells.blocks, cells.first_cell, cell_label, cells.occupied, labelled)
    given = *cells.geometry(length), cells.order, sorted_label, cell_label, labelled, MOST_BETWEEN_CELLS
    kernel("count_discords")(backend.chunks(cells.blocks, cells.positions), *given, found)
    hit = xp.flatnonzero(found)
    ends = xp.cumsum(found[hit])
    pairs = xp.empty((int(ends[-1]) if len(hit) else 0, 2), xp.int32)
    kernel("place_discords")(len(hit), hit, ends - found[hit], *given, pairs)
    return pairs
