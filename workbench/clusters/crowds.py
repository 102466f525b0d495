"""The closest particles of different labels in crowded cells, found by trees instead of pair by pair.

Two cells of n particles each have n^2 pairs, and a crowd may hold any number of particles within a linking length. So pairs
of cells with very many pairs are left to this search: for each particle, the closest one of another label. Its cost is
about that of a nearest neighbour in a tree, and it is counted for each particle. A particle with a conflict is always
found, and so is the shortest pair of each label: all that a repair and a spanning forest need.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.dense_cells import along_curve, leaves_of
from workbench.clusters.sorted_cells import SortedCells
from workbench.ordering import repeated


@dataclass(frozen=True, eq=False)
class Crowded:
    """Pairs (M, 2) of particles, each once, the smaller index first; and how many distances each particle took (int64)."""

    pairs: Array
    spent: Array

    @classmethod
    def none(cls, xp: Any) -> Crowded:
        """Where no cells are crowded."""
        return cls(xp.empty((0, 2), xp.int32), xp.zeros(1, xp.int64))

    @property
    def evaluated(self) -> int:
        """The distances that all particles took together."""
        return int(self.spent.sum())

    @property
    def dearest(self) -> int:
        """The most distances that one particle took."""
        return int(self.spent.max())


def closest_pairs(
    cells: SortedCells, marked: Array, labels: tuple[Array, Array], at: Array, reach: float, rule: Mapping[str, Any]
) -> Crowded:
    """Of each particle in the marked cells, the closest one of another label in a crowd near it, as a pair.

    `labels` are those of cells and of particles, in the order of the cells, and `at` says where the particles are, in the
    same order; `reach` is the longest distance, and `rule` the bundle of arguments that says which pairs count.
    """
    xp, (cell_label, sorted_label) = backend.namespace(marked), labels
    crowd = xp.flatnonzero(marked[: len(cells)]).astype(np.int32)
    if not len(crowd):
        return Crowded.none(xp)
    sizes = (cells.first[crowd + 1] - cells.first[crowd]).astype(np.int64)
    place = along_curve(crowd, sizes, cells.first, at)[1]
    number, total = xp.full(len(cells), -1, xp.int32), len(place)
    number[crowd] = xp.arange(len(crowd), dtype=np.int32)
    trees = _Trees.of(at[place], sorted_label[place], cells.order[place], sizes)
    elsewhere = trees.bounding(cells.positions[place])[0] if rule["lost"] else trees.box[:0]
    closest, spent = xp.empty(total, xp.int32), xp.empty(total, xp.int64)
    backend.kernel("crowds", "find_closest", at.dtype, at.shape[1])(
        backend.chunks(total, at), cells.blocks_bundle, trees.given, rule, n=total, cell=repeated(crowd, sizes, total),
        place=place, number=number, cells=len(cells), particles=len(cells.order), cell_label=cell_label,
        around=xp.asarray(cells.grid.reach_around(reach)), other_box=elsewhere, closest=closest, spent=spent,
    )
    found = xp.flatnonzero(closest >= 0)
    return Crowded(each_once(xp.sort(xp.stack([cells.order[place[found]], closest[found]], axis=1), axis=1)), spent)


def each_once(pairs: Array) -> Array:
    """The pairs, sorted, without repeats.

    >>> each_once(np.array([[1, 2], [0, 5], [1, 2]], np.int32)).tolist()
    [[0, 5], [1, 2]]
    """
    xp, code = backend.namespace(pairs), _sorted_codes(pairs)
    return _pairs_of(code[xp.flatnonzero(xp.diff(code, prepend=-1))])


def in_order(pairs: Array) -> Array:
    """The pairs, sorted.

    >>> in_order(np.array([[1, 2], [0, 5], [1, 2]], np.int32)).tolist()
    [[0, 5], [1, 2], [1, 2]]
    """
    return _pairs_of(_sorted_codes(pairs))


def _sorted_codes(pairs: Array) -> Array:
    xp = backend.namespace(pairs)
    return xp.sort(pairs[:, 0].astype(xp.int64) * 2**32 + pairs[:, 1])


def _pairs_of(code: Array) -> Array:
    return backend.namespace(code).stack([code >> 32, code & (2**32 - 1)], axis=1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class _Trees:
    """A tree over the particles of each crowd, in the order of a curve: each node's box, common label and lowest index."""

    at: Array
    label: Array
    index: Array
    start: Array
    root: Array
    box: Array
    common: Array
    lowest: Array

    @classmethod
    def of(cls, at: Array, label: Array, index: Array, sizes: Array) -> _Trees:
        """The trees over these particles, crowd by crowd."""
        xp, nodes = backend.namespace(at), 2 * leaves_of(sizes)
        start = xp.zeros(len(sizes) + 1, xp.int64)
        start[1:] = xp.cumsum(sizes)
        nothing = xp.empty((0, 2, at.shape[1]), at.dtype), xp.empty(0, xp.int32), xp.empty(0, xp.int32)
        bare = cls(at, label, index, start, xp.cumsum(nodes) - nodes, *nothing)
        box, common, lowest = bare.bounding(at)
        return dataclasses.replace(bare, box=box, common=common, lowest=lowest)

    def bounding(self, at: Array) -> tuple[Array, Array, Array]:
        """Each node's box, common label and lowest index for particles at these positions: level by level, from below."""
        xp, leaves = backend.namespace(at), leaves_of(self.start[1:] - self.start[:-1])
        count = int(2 * leaves.sum())
        found = xp.empty((count, 2, at.shape[1]), at.dtype), xp.empty(count, xp.int32), xp.empty(count, xp.int32)
        for level in reversed(range(int(leaves.max()).bit_length())):
            crowd = xp.repeat(xp.flatnonzero(leaves >= 2**level).astype(np.int32), 2**level)
            node = (xp.arange(len(crowd)) % 2**level + 2**level).astype(np.int32)
            backend.kernel("crowds", "bound_crowds", at.dtype, at.shape[1])(
                len(crowd), crowds=len(leaves), crowd=crowd, node=node, start=self.start, root=self.root, at=at,
                label=self.label, index=self.index, box=found[0], common=found[1], lowest=found[2],
            )
        return found

    @property
    def given(self) -> dict[str, Any]:
        """The bundle of kernel arguments that hold the trees."""
        return {
            "crowds": len(self.root), "at": self.at, "at_label": self.label, "at_index": self.index, "start": self.start,
            "root": self.root, "box": self.box, "common": self.common, "lowest": self.lowest,
        }
