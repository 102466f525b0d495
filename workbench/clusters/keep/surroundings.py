"""Who is near the particles that may move: all that a move of one of them could bring within reach, or lose.

Lists are made for candidates alone, a few percent of the particles; there is no list of all pairs that an error could flip.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.keep.needs import Needs
from workbench.clusters.keep.scene import Scene
from workbench.clusters.sorted_cells import SortedCells

MOST_OF_GROUP = 256   # neighbours of a candidate in its own group: in the core of a halo, so many tell enough


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The particles that may move (int32), in the order of their cells, and what each has to do with which others.

    The neighbours of candidate c are those from `start[c]` to `start[c + 1]` of `neighbours`; its needs, with who is at the
    other end, those from `need_start[c]` to `need_start[c + 1]`. `slot` is every particle's number among the candidates, or -1.
    """

    candidates: Array
    slot: Array
    start: Array
    neighbours: Array
    need_start: Array
    partner: Array
    kind: Array

    @classmethod
    def of(cls, scene: Scene, cells: SortedCells, needs: Needs) -> Surroundings:
        """Everything around the ends of these needs; `cells` hold the decoded particles."""
        xp = scene.xp
        place = xp.empty(len(scene), xp.int32)
        scene.kernel("invert")(len(scene), cells.order, place)
        ends, partner = needs.pairs.T.ravel(), needs.pairs[:, ::-1].T.ravel()
        order = xp.argsort(place[ends], kind="stable")
        ends = ends[order]
        first = xp.flatnonzero(xp.concatenate([xp.ones(1, bool), ends[1:] != ends[:-1]]))
        need_start = xp.concatenate([first, xp.full(1, len(ends), first.dtype)]).astype(xp.int64)
        candidates, slot = xp.ascontiguousarray(ends[first]), xp.full(len(scene), -1, xp.int32)
        slot[candidates] = xp.arange(len(candidates), dtype=xp.int32)
        start, neighbours = _neighbours(scene, cells, candidates, place)
        kind = xp.concatenate([needs.kind, needs.kind])[order]
        return cls(candidates, slot, start, neighbours, need_start, xp.ascontiguousarray(partner[order]), kind)


def _neighbours(scene: Scene, cells: SortedCells, candidates: Array, place: Array) -> tuple[Array, Array]:
    """Where the neighbours of each candidate begin, and all of them.

    As far as a plain move of both ends reaches; what a longer one brings about, the next look at all groups finds.
    """
    xp, grid = scene.xp, cells.grid
    reach = min(scene.far(len(scene.lengths) - 1) + 2 * scene.bound, grid.widest_reach)
    given = (
        backend.chunks(len(candidates), candidates), len(candidates), candidates, place, len(cells), cells.blocks,
        cells.block_key, cells.occupied, cells.first_cell, cells.first, cells.positions, xp.asarray(grid.periods),
        xp.asarray(grid.blocks_along), xp.asarray(grid.block_bits), xp.asarray(grid.reach_around(reach)), grid.closed,
        reach**2, cells.order, scene.group, len(scene.lengths), len(scene), MOST_OF_GROUP,
    )
    found = xp.empty(len(candidates), xp.int64)
    scene.kernel("count_around")(*given, found)
    start = xp.concatenate([xp.zeros(1, xp.int64), xp.cumsum(found)])
    neighbours = xp.empty(int(start[-1]), xp.int32)
    scene.kernel("place_around")(*given, start, neighbours)
    return start, neighbours
