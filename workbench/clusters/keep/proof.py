"""Proof that no constraint is violated, from the vicinities of particles that have moved.

A search of all decoded particles came first, and repairs began from what it found. Since then,

* two particles of different groups conflict only if one of them has moved, or both were ends of constraints;
* a group is connected if every link that it had is still there, or was replaced by a common friend, and if the lost links
  that joined its parts are there again.

So it is enough to look at particles that have moved or were ends. Those that have moved are searched by themselves, for
conflicts among them. One that has not moved and conflicts with one that has was at most `far` and the displacement apart
as decoded. The lists of neighbours of the first attempt reach that far for nearly all; the others get new ones. Where
this proves nothing, the particle is suspect: its groups and all particles near it are searched again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.discord import closest_discords
from workbench.clusters.keep.needs import CANNOT_LINK, Needs
from workbench.clusters.keep.region import are_many
from workbench.clusters.keep.state import State
from workbench.clusters.keep.surroundings import MOST_LISTED, Surroundings, neighbours_of
from workbench.clusters.sorted_cells import SortedCells
from workbench.ordering import count_of, places_of

MOST_EVALUATED = 2**12   # distances, for one particle; one that needs more is suspect
ROUNDING = 1e-9          # of computed distances, relative, and far more


@dataclass(frozen=True, eq=False)
class FirstLook:
    """The constraints that were violated before any particle moved, and the neighbours of their ends, if listed then."""

    needs: Needs
    around: Surroundings | None

    def suspects(self, state: State, used: Array) -> Array | None:
        """The particles (rising indices, int32) that may be in a violated constraint now; if there are none, none is.

        None where so many have moved so far that a search of all particles takes less time. `used` (uint8) is set for
        particles of pairs whose original distance took part in a decision.
        """
        problem, xp, around = state.problem, state.problem.xp, self.around
        moved = state.rank != 0
        suspect = _ends(self.needs.pairs, self.needs.missed(state, used), len(problem))
        listed = self.needs.kind[:0] if around is None else around.candidates
        other = moved.copy()   # those that have moved or were ends, and have no list
        other[self.needs.pairs.ravel()] = True
        other[listed] = False
        reach, short = _reach(state, listed), xp.zeros(0, bool)
        if around is not None:
            suspect[listed] |= disturbed(state, listed, around.start, around.end, around.neighbours, used)
            short = around.full | (reach > around.reach)
        beyond = short & (reach > problem.widest_reach)
        suspect[listed] |= beyond
        unseen = short & ~suspect[listed]
        movers, others, far_off, few = backend.numbers(*map(count_of, (moved, other, beyond, unseen)))
        index = xp.concatenate([listed[places_of(unseen, few)], places_of(other, others).astype(np.int32)])
        reach = _reach(state, index)
        farther = int((reach > problem.widest_reach).sum()) if others else 0
        if are_many(problem, far_off + farther):
            return None
        _mark_conflicts(state, places_of(moved, movers), suspect, used)
        suspect[index] |= reach > problem.widest_reach
        chosen = places_of(reach <= problem.widest_reach, len(index) - farther)
        _look_farther(state, index[chosen], reach[chosen], chosen < few, suspect, used)
        return xp.flatnonzero(suspect).astype(np.int32)


def _ends(pairs: Array, chosen: Array, count: int) -> Array:
    """The ends of the chosen pairs, as flags of so many particles."""
    xp = backend.namespace(pairs)
    found = xp.zeros(count + 1, bool)   # the last one stands for the ends of other pairs
    found[xp.where(chosen[:, None], pairs, count)] = True
    return found[:count]


def _mark_conflicts(state: State, index: Array, suspect: Array, used: Array) -> None:
    """Mark the ends of all conflicts between two of these particles (rising indices)."""
    problem, xp = state.problem, state.problem.xp
    if len(index) < 2:
        return
    current = state.particles(index)
    for number in range(len(problem.lengths)):
        cells, group = SortedCells.of(current, problem.far(number)), problem.group[number][index]
        found = closest_discords(cells, group, problem.far(number), current.positions, everywhere=True)
        if not len(found.pairs):
            continue
        pairs = index[found.pairs].astype(np.int32)
        conflicts = Needs(pairs, xp.full(len(pairs), 2 * number + CANNOT_LINK, np.int32)).missed(state, used)
        if not found.complete:   # beside an exempt pair that is listed, there may be a conflict that is not
            conflicts[...] = True
        suspect |= _ends(pairs, conflicts, len(problem))


def _look_farther(state: State, index: Array, reach: Array, listed: Array, suspect: Array, used: Array) -> None:
    """Mark those of these particles that may be in a violated constraint; of those that were `listed`, in a conflict."""
    problem, xp = state.problem, state.problem.xp
    if not len(index):
        return
    along = xp.argsort(problem.decoded_places[index], kind="stable")
    chosen, reach = index[along], xp.minimum(reach[along] * (1 + ROUNDING), problem.widest_reach)
    # Decoded and current positions are both within the bound of the original.
    apart = math.inf if problem.limit.relative else 2 * math.sqrt(problem.original.dimensions) * problem.limit.value
    own, longest = xp.where(listed[along], 0.0, reach), (_far(state) + apart) * (1 + ROUNDING) ** 3
    lists = neighbours_of(problem, chosen, reach, own, MOST_LISTED, longest)
    suspect[chosen] |= disturbed(state, chosen, *lists, used) | (lists[1] - lists[0] >= MOST_LISTED)


def disturbed(state: State, checked: Array, start: Array, end: Array, neighbours: Array, used: Array) -> Array:
    """Which of these particles may be in a violated constraint with a neighbour in their list (bool).

    That is, which conflict, or have lost a link as decoded that no common friend replaces.
    """
    problem = state.problem
    found = problem.xp.empty(len(checked), np.uint8)
    problem.kernel("repair", "find_disturbed")(
        len(checked), problem.given, checked=checked, list_start=start, list_end=end, list=neighbours,
        current=state.current, rank=state.rank, most=MOST_EVALUATED, used=used, disturbed=found,
    )
    return found.view(bool)


def _far(state: State) -> float:
    return state.problem.far(len(state.problem.lengths) - 1)


def _reach(state: State, index: Array) -> Array:
    """At most how far from these particles, as decoded, were those that have not moved and conflict with them now."""
    problem, found = state.problem, state.problem.xp.empty(len(index))
    problem.kernel("repair", "measure_moves")(
        len(index), problem.given, index=index, current=state.current, displacement=found
    )
    return (1 + ROUNDING) * (_far(state) + found)
