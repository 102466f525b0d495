"""Label conflicts between two groupings of the same particles: friends in one that are in different groups of the other.

Two friends-of-friends partitions are equal if and only if neither has such a pair. Only these pairs, a few percent of the
particles at most, have to be repaired, and their absence is a proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.crowds import Crowded, closest_pairs
from workbench.clusters.groups import Groups
from workbench.clusters.sorted_cells import SortedCells
from workbench.ordering import gather_rows, repeated

UNLABELLED = backend.constant("discord.cu", "UNLABELLED")          # excluded particles
ROOM, SPARE = (backend.constant("unlike.cuh", name) for name in ("ROOM", "SPARE"))   # for pairs of each block, each chunk
# Pairs of two cells that are all listed: label conflicts, as alike.py finds them, and lost links, as here.
MOST_BETWEEN_CELLS, MOST_LOST = (backend.constant("unlike.cuh", name) for name in ("ALL_CONFLICTS", "ALL_LOST"))


def split_labels(groups: Groups, other: Array) -> Array:
    """The other labels (int32) of particles in split groups, which have several of them; UNLABELLED for all others.

    >>> import numpy as np
    >>> split_labels(Groups(np.array([0, 0, 2, 2]), 0.1), np.array([0, 1, 2, 2], np.int32)).tolist()
    [0, 1, -1, -1]
    """
    xp, count = backend.namespace(groups.labels, other), len(other)
    split, found = xp.zeros(count, xp.uint8), xp.empty(count, xp.int32)
    backend.kernel("discord", "find_torn")(count, groups.labels, other, split)
    backend.kernel("discord", "label_torn")(count, groups.labels, other, split, found)
    return found


def discords(cells: SortedCells, labels: Array, length: float) -> Array:
    """All pairs (M, 2) of particles at most `length` apart whose labels (int32) differ; in overdense regions, some of them.

    Of two cells with more than MOST_LOST pairs, those of each particle and the one closest to it are listed. The
    smaller index comes first; the order of the pairs is that of the cells.

    >>> import numpy as np
    >>> from workbench.data import Particles
    >>> cells = SortedCells.of(Particles([[0.1, 0.5], [0.2, 0.5], [0.3, 0.5]], box=1.0), 0.15)
    >>> discords(cells, np.array([0, 0, 2], np.int32), 0.15).tolist()
    [[1, 2]]
    """
    positions = backend.namespace(labels).empty_like(cells.positions)
    positions[cells.order] = cells.positions
    return closest_discords(cells, labels, length, positions).pairs


@dataclass(frozen=True, eq=False)
class Discords:
    """Pairs (M, 2) of particles, whether these are all, and the part of the search that was among crowded cells."""

    pairs: Array
    complete: bool
    crowded: Crowded


def closest_discords(
    cells: SortedCells, labels: Array, length: float, positions: Array, split: Groups | None = None, *,
    everywhere: bool = False,
) -> Discords:
    """The discords; how close two particles are is measured in these positions of them.

    With `everywhere`, all cells are searched, as most of them have labels.

    Where labels are those of the parts of `split` groups, each the smallest particle in it, no discord is between two
    particles of main parts, which have the label of their group: most cells need not be searched. As the parts are to be
    joined, only the closest pair between the same two of them counts: of two cells with one label each, it alone is listed.
    """
    xp = backend.namespace(cells.positions, labels, positions)

    def kernel(name: str) -> backend.Kernel:
        return backend.kernel("discord", name, positions.dtype, positions.shape[1])

    sorted_label, cell_label = label_cells(cells, labels)
    some, marked = xp.zeros(1, xp.uint8), xp.zeros(len(cells), xp.uint8)
    labelled, suspect = xp.empty(cells.blocks, xp.uint64), xp.empty(cells.blocks, xp.uint64)
    kernel("label_blocks")(
        cells.blocks, first_cell=cells.first_cell, cell_label=cell_label, first=cells.first, order=cells.order,
        occupied=cells.occupied, split=split is not None, group=xp.empty(0, xp.int64) if split is None else split.labels,
        labelled=labelled, suspect=suspect,
    )
    given = {
        **cells.geometry(length), "order": cells.order, "sorted_label": sorted_label, "cell_label": cell_label,
        "labelled": labelled, "suspect": suspect, "split": split is not None,
        "wanted": xp.ones(cells.blocks, xp.uint8) if everywhere else cells.blocks_before(suspect, length),
        "elsewhere": positions,
    }
    pairs = Pairs.room_for(cells)
    kernel("count_discords")(len(pairs.listed), given, pairs.given, crowded=some, crowd=marked)
    found, (with_crowds, closest_alone) = pairs.all(kernel("place_discords"), given, marked.any(), some.any())
    crowded = Crowded.none(xp)
    if with_crowds:
        crowded = _in_crowds(cells, marked, (cell_label, sorted_label), length, positions)
    return Discords(xp.concatenate([found, crowded.pairs]), not (closest_alone or len(crowded.pairs)), crowded)


def _in_crowds(
    cells: SortedCells, marked: Array, labels: tuple[Array, Array], length: float, positions: Array
) -> Crowded:
    """The closest discord of each particle in the marked cells."""
    alike = dict.fromkeys(("near_squared", "length_squared", "far_squared"), length**2)
    used = backend.namespace(positions).zeros(len(positions), np.uint8)
    rule = {**alike, "exempting": False, "original": positions[:0], "lost": True, "used": used}
    return closest_pairs(cells, marked, labels, gather_rows(positions, cells.order), length, rule)


def label_cells(cells: SortedCells, labels: Array) -> tuple[Array, Array]:
    """The labels (int32) in the order of the cells, and each cell's common label, or MIXED (-2)."""
    xp, count = backend.namespace(labels), len(cells)
    sorted_label, cell_label = xp.empty(len(labels), xp.int32), xp.empty(count, xp.int32)
    backend.kernel("discord", "label_cells")(count, cells.first, cells.order, labels, sorted_label, cell_label)
    return sorted_label, cell_label


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs that kernels list in the order of the cells: `found` in each block, `listed` in each chunk of blocks.

    Each chunk has room for a few; nearly always that is enough, and one walk over the cells does. Chunks have about equally
    many cells: blocks where particles are dense are most of the work.
    """

    first_block: Array   # of each chunk, and the number of blocks
    found: Array
    listed: Array
    pair: Array

    @classmethod
    def room_for(cls, cells: SortedCells) -> Self:
        """Room for the pairs of these cells."""
        xp, chunks = backend.namespace(cells.positions), backend.chunks(cells.blocks, cells.positions)
        first_block = xp.searchsorted(cells.first_cell, len(cells) * xp.arange(chunks + 1) // chunks)
        counts = xp.empty(cells.blocks, xp.int64), xp.empty(chunks, xp.int64)
        return cls(first_block, *counts, xp.empty((ROOM * cells.blocks + SPARE * chunks, 2), xp.int32))

    @property
    def given(self) -> dict[str, Any]:
        """The bundle of kernel arguments: where chunks begin, and what to write to."""
        return {"first_block": self.first_block, "found": self.found, "listed": self.listed, "pair": self.pair}

    def all(self, place: Callable[..., None], given: dict[str, Any], *asked: Array) -> tuple[Array, list[int]]:
        """All pairs (M, 2); `place` writes those of each block of a chunk that had too little room.

        The numbers asked for come along, so that the host waits for a GPU once.
        """
        xp, chunks, blocks = backend.namespace(self.found), len(self.listed), len(self.found)
        begin = ROOM * self.first_block + SPARE * xp.arange(chunks + 1)
        short = self.listed > begin[1:] - begin[:-1]
        some_are_short, total, *answers = backend.numbers(short.any(), self.listed.sum(), *asked)
        if not some_are_short:
            return self._listed(begin[:-1], self.listed, total), answers
        pairs, whole = xp.empty((total, 2), xp.int32), xp.where(short, 0, self.listed)
        pairs[xp.flatnonzero(repeated(~short, self.listed, total))] = self._listed(begin[:-1], whole, int(whole.sum()))
        hit = xp.flatnonzero(repeated(short, self.first_block[1:] - self.first_block[:-1], blocks) & (self.found > 0))
        place(len(hit), given, hit=hit, start=(xp.cumsum(self.found) - self.found)[hit], pair=pairs)
        return pairs, answers

    def _listed(self, begin: Array, count: Array, total: int) -> Array:
        """So many pairs of each chunk, whose room begins here."""
        xp = backend.namespace(count)
        return self.pair[repeated(begin - xp.cumsum(count) + count, count, total) + xp.arange(total)]
