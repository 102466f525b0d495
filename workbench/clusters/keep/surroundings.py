"""Neighbour lists of the particles that may move: all particles whose links a move could make or break.

Only candidates, a few percent of the particles, have lists; there is no list of all pairs that an error could flip.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench import backend
from workbench.backend import Array
from workbench.clusters.keep.needs import Needs
from workbench.clusters.keep.scene import Scene
from workbench.clusters.sorted_cells import SortedCells

ROOM = 24             # initial capacity of each candidate's list; few candidates have more neighbours
MOST_LISTED = 2048    # as in kernels/surroundings.cu: limits the lists in overdense regions
MOST_OF_GROUP = 256   # listed neighbours of a candidate's own group: enough in the core of a halo


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The particles that may move (int32), in the order of their cells, with their neighbours and constraints.

    The neighbours of candidate c are entries `start[c]` to `end[c]` of `neighbours`; its constraints (needs) are entries
    `need_start[c]` to `need_start[c + 1]` of `partner`, the particle at the other end, and `kind`. `slot` is every
    particle's number among the candidates, or -1.
    """

    candidates: Array
    slot: Array
    start: Array
    end: Array
    neighbours: Array
    need_start: Array
    partner: Array
    kind: Array

    @classmethod
    def of(cls, scene: Scene, cells: SortedCells, needs: Needs, watched: float) -> Surroundings:
        """The surroundings of the ends of these constraints; `cells` hold the decoded particles.

        Neighbours are listed up to the distance that moves adding up to `watched` bounds can bridge. The next global check
        finds conflicts due to longer moves.
        """
        xp = scene.xp
        place = places_in(scene, cells)
        ends, partner = needs.pairs.T.ravel(), needs.pairs[:, ::-1].T.ravel()
        order = xp.argsort(place[ends], kind="stable")
        ends = ends[order]
        first = xp.flatnonzero(xp.concatenate([xp.ones(1, bool), ends[1:] != ends[:-1]]))
        need_start = xp.concatenate([first, xp.full(1, len(ends), first.dtype)]).astype(xp.int64)
        candidates, slot = xp.ascontiguousarray(ends[first]), xp.full(len(scene), -1, xp.int32)
        slot[candidates] = xp.arange(len(candidates), dtype=xp.int32)
        far = scene.far(len(scene.lengths) - 1)
        reach = min(far + watched * scene.bound, cells.grid.widest_reach)
        own_reach = min(reach, far + 0.5 * watched * scene.bound)
        lists = neighbours_of(scene, cells, candidates, place, reach, own_reach, MOST_OF_GROUP)
        kind = xp.concatenate([needs.kind, needs.kind])[order]
        return cls(candidates, slot, *lists, need_start, xp.ascontiguousarray(partner[order]), kind)


def places_in(scene: Scene, cells: SortedCells) -> Array:
    """The place of each particle in these cells."""
    place = scene.xp.empty(len(cells.order), scene.xp.int32)
    scene.kernel("surroundings", "invert")(len(cells.order), cells.order, place)
    return place


def neighbours_of(
    scene: Scene, cells: SortedCells, candidates: Array, place: Array, reach: float, own_reach: float, most: int
) -> tuple[Array, Array, Array]:
    """The start and end of each candidate's neighbour list, and all lists.

    `candidates` are in the order of the cells, `place` is every particle's place there. Neighbours of a candidate's own
    group are listed up to `own_reach`, at most `most` of them; a list has at most MOST_LISTED entries.
    """
    xp, grid = scene.xp, cells.grid
    blocks = cells.blocks, cells.block_key, cells.occupied, cells.first_cell, cells.first, cells.positions
    walls = (xp.asarray(a) for a in (grid.periods, grid.blocks_along, grid.block_bits, grid.reach_around(reach)))
    groups = cells.order, scene.group, len(scene.lengths), len(scene)
    given = place, len(cells), *blocks, *walls, grid.closed, reach**2, own_reach**2, *groups, most

    def listed(chosen: Array, start: Array, room: Array, neighbours: Array) -> Array:
        found = xp.empty(len(chosen), xp.int64)
        chunks = backend.chunks(len(chosen), chosen)
        scene.kernel("surroundings", "list_around")(chunks, len(chosen), chosen, *given, start, room, found, neighbours)
        return found

    start = xp.arange(len(candidates), dtype=xp.int64) * ROOM
    neighbours = xp.empty(ROOM * len(candidates), xp.int32)
    found = listed(candidates, start, xp.full(len(candidates), ROOM, xp.int64), neighbours)
    if len(crowded := xp.flatnonzero(found > ROOM)):
        ends = len(neighbours) + xp.cumsum(found[crowded])
        start[crowded] = ends - found[crowded]
        neighbours = xp.concatenate([neighbours, xp.empty(int(ends[-1]) - len(neighbours), xp.int32)])
        listed(candidates[crowded], start[crowded], found[crowded], neighbours)
    return start, start + found, neighbours
