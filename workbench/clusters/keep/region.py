"""The part of space that some moved particles affect: checking it again is equivalent to checking everything.

A pair of particles that have not moved was right before, and is right now; and a group of which no member has moved is
still connected. So only the groups of moved particles are checked, and all particles that can be near one that has moved.
"""

from __future__ import annotations

import math

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.keep.moves import alphabet
from workbench.clusters.keep.problem import Problem
from workbench.clusters.keep.state import PINNED, State
from workbench.clusters.keep.view import Region
from workbench.clusters.sorted_cells import SortedCells
from workbench.data.periodic import squared_lengths

MOST_BLOCKS = 16      # of space, for each particle: in a few bytes each
FEW = 100            # particles for which a region is worthwhile in any case
WORTHWHILE = 0.025   # where a larger share of all particles has moved, comparing everything takes less time than a region


def region_around(state: State, moved: Array, earlier: float) -> Region | None:
    """The groups of these particles, which have moved, and all particles that can be near them now.

    `earlier` is how far all particles that have moved are, at most, from their decoded positions. None if everything
    is to be checked: because it is hardly more, or because small groups without constraints could merge undetected.
    """
    problem, xp = state.problem, state.problem.xp
    if problem.promise.min_members > 1 or are_many(problem, len(moved)):
        return None
    cells, far = problem.decoded_cells[-1], problem.far(len(problem.lengths) - 1)
    reach = (far + earlier + farthest(state, moved)) * (1 + 1e-6)   # distances are rounded
    if reach <= cells.grid.widest_reach:
        marked = _cells_around(cells, problem.kernel("surroundings", "mark_around"), problem.decoded_places[moved], reach)
    elif (marked := _blocks_around(problem, cells, moved, reach + far)) is None:
        return None
    touched = xp.zeros_like(problem.group, xp.uint8)
    for row, group in zip(touched, problem.group, strict=True):
        row[group[moved]] = 1
    whole, chosen = xp.empty_like(touched), xp.zeros(len(problem), xp.uint8)
    problem.kernel("surroundings", "choose_marked")(
        len(cells), problem.given, first=cells.first, order=cells.order, marked=marked, touched=touched, whole=whole,
        chosen=chosen,
    )
    index = xp.flatnonzero(chosen.view(bool))   # of bytes it takes ten times as long
    return Region(problem, index, whole[:, index].astype(bool))


def are_many(problem: Problem, count: int) -> bool:
    """Whether comparing all particles takes less time than a region around so many."""
    return count > max(WORTHWHILE * len(problem), FEW)


def groups_of(problem: Problem, index: Array) -> Region | None:
    """The groups of these particles; None if everything is to be checked, because small groups may change."""
    xp = problem.xp
    if problem.promise.min_members > 1:
        return None
    whole = xp.zeros(problem.group.shape, bool)
    for row, group in zip(whole, problem.group, strict=True):
        touched = xp.zeros(len(problem), bool)
        touched[group[index]] = True
        row[...] = touched[group]
    chosen = xp.flatnonzero(whole.any(axis=0))
    return Region(problem, chosen, whole[:, chosen])


def _cells_around(cells: SortedCells, mark: backend.Kernel, place: Array, reach: float) -> Array:
    """Which cells may hold particles at most this far from those at these places."""
    xp = backend.namespace(place)
    marked, place = xp.zeros(len(cells), xp.uint8), xp.sort(place)
    mark(
        backend.chunks(len(place), place), cells.blocks_bundle, n=len(place), place=place, cells=len(cells),
        reach=xp.asarray(cells.grid.reach_around(reach)), marked=marked,
    )
    return marked


def _blocks_around(problem: Problem, cells: SortedCells, moved: Array, width: float) -> Array | None:
    """Which cells begin in the blocks of space around those of these particles; None where there would be too many blocks.

    Blocks are so wide that the first particle of every cell with a particle in reach is in the block itself or in one
    beside it: two particles of a cell are at most a linking length apart.
    """
    xp, box, decoded = problem.xp, problem.original.box, problem.decoded
    low = np.zeros(problem.original.dimensions) if box else backend.to_host(decoded.min(axis=0)).astype(np.float64)
    extent = np.array(box) if box else backend.to_host(decoded.max(axis=0)) - low
    count = np.maximum(np.floor(extent / width), 1)
    if count.prod() > MOST_BLOCKS * len(problem):
        return None
    along, side = [int(number) for number in count], [float(number) for number in np.maximum(extent / count, width)]
    first = cells.order[cells.first[:-1]]
    touched = xp.zeros(along, bool)
    touched[_block(problem, moved, low, side, along)] = True
    for axis in range(len(along)):
        ahead, behind = xp.roll(touched, 1, axis), xp.roll(touched, -1, axis)   # around an open space, some too many
        touched = touched | ahead | behind
    return touched[_block(problem, first, low, side, along)].astype(np.uint8)


def _block(problem: Problem, index: Array, low: np.ndarray, side: list[float], along: list[int]) -> tuple[Array, ...]:
    """The block of each of these particles, as decoded: its number along each axis."""
    places = problem.decoded[index].astype(np.float64)
    return tuple(
        problem.xp.clip(((places[:, axis] - low[axis]) / side[axis]).astype(np.int64), 0, along[axis] - 1)
        for axis in range(len(along))
    )


def farthest(state: State, index: Array) -> float:
    """The largest distance of any of these particles from its decoded position."""
    problem, rank = state.problem, state.rank[index]
    lengths = problem.xp.asarray(alphabet(problem.original.dimensions).lengths)
    moves = problem.step * float(lengths[rank].max()) if len(rank) else 0.0
    if not len(pinned := index[rank == PINNED]):
        return moves
    apart = problem.original.positions[pinned].astype(np.float64) - problem.decoded[pinned]
    return max(moves, math.sqrt(float(squared_lengths(apart, problem.original.box).max())))
