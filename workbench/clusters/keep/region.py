"""The part of the particles that moves affect: checking it again is equivalent to checking everything.

A pair of particles that have not moved was right before, and is right now; and a group of which no member has moved is
still connected. So it is enough to compare the whole groups of moved particles, and all particles that are near a moved one
now: two particles conflict by their distance alone, and in the region are all that are within the distance of a conflict,
by the same arithmetic. How far any of them has moved does not matter, as current positions are compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.keep.problem import Problem
from workbench.clusters.keep.state import State
from workbench.clusters.keep.view import Region
from workbench.ordering import sort_by_key

MOST_BLOCKS = backend.constant("region.cu", "MOST_BLOCKS")   # of space, along an axis
WIDER = 1.25         # than the distance of a conflict: a block, so that rounding leaves out no neighbour
SLOTS = 4096         # of the hash table, for each moved particle: most other particles then look at one slot alone
MOST_SLOTS = 4       # of the hash table, for each of all particles
FEW = 100            # particles for which a region is worthwhile in any case
WORTHWHILE = 0.025   # where a larger share of all particles has moved, comparing everything takes less time than a region


def region_around(state: State, moved: Array) -> Region | None:
    """The groups of these particles, which have moved, and all particles that are near them now.

    These are as few as possible, apart from piles of hundreds of moved particles: there, some around them are included.
    None if everything is to be checked: because it is hardly more, or because small groups without constraints could merge
    undetected.
    """
    problem, xp = state.problem, state.problem.xp
    if problem.promise.min_members > 1 or are_many(problem, len(moved)):
        return None
    touched, chosen = xp.zeros_like(problem.group, xp.uint8), xp.empty(len(problem), xp.uint8)
    for row, group in zip(touched, problem.group, strict=True):
        row[group[moved]] = 1
    problem.kernel("region", "choose_region")(
        len(problem), problem.given, **_blocks_around(state, moved), current=state.current, touched=touched, chosen=chosen,
        reach_squared=problem.far(len(problem.lengths) - 1) ** 2,
    )
    index = xp.flatnonzero(chosen.view(bool))   # of bytes it takes ten times as long
    whole = xp.stack([row[group[index]] for row, group in zip(touched, problem.group, strict=True)])
    return Region(problem, index, whole.view(bool))


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


def _blocks_around(state: State, moved: Array) -> dict[str, Any]:
    """The blocks of space with these particles, and those around them, as kernels/region.cu looks them up."""
    problem, xp, place = state.problem, state.problem.xp, state.current[moved]
    dimensions, box = place.shape[1], problem.original.box
    per_length = np.full(dimensions, 1 / (WIDER * problem.far(len(problem.lengths) - 1)))
    along = np.zeros(dimensions, np.int64)
    if box is not None:   # whole blocks
        along = np.clip(box * per_length, 1, MOST_BLOCKS).astype(np.int64)
        per_length = along / np.array(box)
    space = {"per_length": xp.asarray(per_length), "blocks_along": xp.asarray(along)}
    bits = max(min(SLOTS * len(moved), MOST_SLOTS * len(problem)).bit_length(), 1)
    slot_of, table = xp.empty(len(moved), xp.uint64), xp.zeros(2**bits, xp.uint8)
    problem.kernel("region", "mark_blocks")(len(moved), space, place=place, slot_bits=bits, slot_of=slot_of, table=table)
    place, begin = place[sort_by_key(slot_of, bits)], xp.empty(2**bits, xp.int32)
    problem.kernel("region", "begin_slots")(len(moved), slot_of, bits, begin, table)
    lists = {"table": table, "begin": begin, "moved": len(moved), "slot_of": slot_of, "place": place}
    return {**space, "slot_bits": bits, **lists}
