"""Label conflicts between two groupings of the same particles: friends in one that are in different groups of the other.

Two friends-of-friends partitions are equal if and only if neither has such a pair. Only these pairs, a few percent of the
particles at most, have to be repaired, and their absence is a proof.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench import backend
from workbench.backend import Array
from workbench.clusters.groups import Groups
from workbench.clusters.sorted_cells import SortedCells

UNLABELLED = backend.constant("discord.cu", "UNLABELLED")          # excluded particles
MOST_BETWEEN_CELLS = backend.constant("unlike.cuh", "ALL_LISTED")   # pairs of two cells that are all listed


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

    Of two cells with more than MOST_BETWEEN_CELLS pairs, those of each particle and the one closest to it are listed. The
    smaller index comes first; the order of the pairs is that of the cells.

    >>> import numpy as np
    >>> from workbench.data import Particles
    >>> cells = SortedCells.of(Particles([[0.1, 0.5], [0.2, 0.5], [0.3, 0.5]], box=1.0), 0.15)
    >>> discords(cells, np.array([0, 0, 2], np.int32), 0.15).tolist()
    [[1, 2]]
    """
    positions = backend.namespace(labels).empty_like(cells.positions)
    positions[cells.order] = cells.positions
    return closest_discords(cells, labels, length, positions)[0]


def closest_discords(cells: SortedCells, labels: Array, length: float, positions: Array) -> tuple[Array, bool]:
    """The discords, and whether all are listed; how close two particles are is measured in these positions of them."""
    xp = backend.namespace(cells.positions, labels, positions)

    def kernel(name: str) -> backend.Kernel:
        return backend.kernel("discord", name, positions.dtype, positions.shape[1])

    sorted_label, cell_label = label_cells(cells, labels)
    labelled, crowded = xp.empty(cells.blocks, xp.uint64), xp.zeros(1, xp.uint8)
    kernel("label_blocks")(cells.blocks, cells.first_cell, cell_label, cells.occupied, labelled)
    given = {
        **cells.geometry(length), "order": cells.order, "sorted_label": sorted_label, "cell_label": cell_label,
        "labelled": labelled, "elsewhere": positions,
    }
    found = xp.empty(cells.blocks, xp.int64)
    kernel("count_discords")(backend.chunks(cells.blocks, positions), given, found=found, crowded=crowded)
    return placed(found, kernel("place_discords"), given), not bool(crowded.any())


def label_cells(cells: SortedCells, labels: Array) -> tuple[Array, Array]:
    """The labels (int32) in the order of the cells, and each cell's common label, or MIXED (-2)."""
    xp, count = backend.namespace(labels), len(cells)
    sorted_label, cell_label = xp.empty(len(labels), xp.int32), xp.empty(count, xp.int32)
    backend.kernel("discord", "label_cells")(count, cells.first, cells.order, labels, sorted_label, cell_label)
    return sorted_label, cell_label


def placed(found: Array, place: Callable[..., None], given: dict[str, Any]) -> Array:
    """The pairs (M, 2) that a kernel writes, for blocks in which so many were found."""
    xp = backend.namespace(found)
    hit = xp.flatnonzero(found)
    ends = xp.cumsum(found[hit])
    pairs = xp.empty((int(ends[-1]) if len(hit) else 0, 2), xp.int32)
    place(len(hit), given, hit=hit, start=ends - found[hit], pair=pairs)
    return pairs
