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

from dataclasses import dataclass

import numpy as np

from workbench.backend import Array
from workbench.clusters.alike import Exempt, parts_of
from workbench.clusters.keep.needs import Needs
from workbench.clusters.keep.region import are_many
from workbench.clusters.keep.state import State
from workbench.clusters.keep.surroundings import MOST_LISTED, Surroundings, neighbours_of
from workbench.clusters.keep.view import Region

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
        checked = moved.copy()
        checked[self.needs.pairs.ravel()] = True
        index = xp.flatnonzero(checked).astype(np.int32)
        needed, slack = (1 + ROUNDING) * _displacements(state, index), xp.full(len(index), -1.0)
        if around is not None:   # how far the list of a particle reaches beyond `far`; -1: it has none
            slot, beyond = around.slot[index], xp.where(around.full, -1.0, around.reach - _far(state) * (1 + ROUNDING))
            slack = xp.where(slot >= 0, beyond[slot], slack)
        short = needed > slack
        if are_many(problem, int((short & (_far(state) + needed > problem.widest_reach)).sum())):
            return None
        count = len(problem)
        suspect = xp.zeros(count + 1, bool)   # the last one stands for the ends of satisfied constraints
        suspect[xp.where(self.needs.missed(state, used)[:, None], self.needs.pairs, count)] = True
        suspect = suspect[:count]
        _mark_conflicts(state, xp.flatnonzero(moved), suspect, used)
        if around is not None:
            lists = around.start, around.end, around.neighbours
            suspect[around.candidates] |= disturbed(state, around.candidates, *lists, used)
        unseen = xp.flatnonzero(short & ~suspect[index])
        _look_farther(state, index[unseen], needed[unseen], slack[unseen] >= 0, suspect, used)
        return xp.flatnonzero(suspect).astype(np.int32)


def _mark_conflicts(state: State, index: Array, suspect: Array, used: Array) -> None:
    """Mark the ends of all conflicts between two of these particles (rising indices)."""
    problem, xp = state.problem, state.problem.xp
    if len(index) < 2:
        return
    view = Region(problem, index, xp.zeros((len(problem.lengths), len(index)), bool))
    for number, length in enumerate(problem.lengths):
        spared = Exempt(view.of(problem.original.positions), length)
        cells, group = view.cells(state, number), view.of(problem.group[number])
        found = parts_of(cells, group, problem.near(number), problem.far(number), spared)
        suspect[view.back(found.unlike).ravel()] = True
        used[index] |= found.exempt


def _look_farther(state: State, index: Array, needed: Array, listed: Array, suspect: Array, used: Array) -> None:
    """Mark those of these particles that may be in a violated constraint; of those that were `listed`, in a conflict."""
    problem, xp = state.problem, state.problem.xp
    if not len(index):
        return
    along = xp.argsort(problem.decoded_places[index], kind="stable")
    index, reach, listed = index[along], (_far(state) + needed[along]) * (1 + ROUNDING), listed[along]
    beyond = reach > problem.widest_reach
    suspect[index] |= beyond
    if not len(within := xp.flatnonzero(~beyond)):
        return
    chosen, reach = index[within], reach[within]
    lists = neighbours_of(problem, chosen, reach, xp.where(listed[within], 0.0, reach), MOST_LISTED)
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


def _displacements(state: State, index: Array) -> Array:
    """How far these particles are from their decoded positions."""
    problem, found = state.problem, state.problem.xp.empty(len(index))
    problem.kernel("repair", "measure_moves")(
        len(index), problem.given, index=index, current=state.current, displacement=found
    )
    return found
