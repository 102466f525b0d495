"""Neighbour lists of the particles that may move: all particles whose links a move could make or break.

Only candidates, a few percent of the particles, have lists; there is no list of all pairs that an error could flip.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.keep.needs import Needs
from workbench.clusters.keep.problem import Problem
from workbench.clusters.keep.state import State
from workbench.ordering import count_of, places_of, repeated, sort_by_key

ROOM = 24             # initial capacity of each candidate's list; few candidates have more neighbours
MOST_LISTED = 512     # neighbours of a candidate; one that has more, in an overdense region, is not moved
MOST_NEEDS = backend.constant("repair.cu", "MOST_NEEDS")   # constraints of a candidate; one that has more is not moved


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The particles that may move (int32), in the order of their cells, with their neighbours and constraints.

    The neighbours of candidate c are entries `start[c]` to `end[c]` of `neighbours`; its constraints (needs) are entries
    `need_start[c]` to `need_start[c + 1]` of `partner`, the particle at the other end, and `kind`. `slot` is every
    particle's number among the candidates, or -1. `reach` is the distance up to which neighbours are listed, and `crowds`
    how many candidates have too many neighbours or constraints, if that is known.
    """

    candidates: Array
    slot: Array
    reach: Array
    start: Array
    end: Array
    neighbours: Array
    need_start: Array
    partner: Array
    kind: Array
    crowds: int | None = None

    @classmethod
    def of(cls, state: State, needs: Needs, radius: Array, largest: float = math.inf) -> Surroundings:
        """The surroundings of the ends of these constraints.

        `radius` is the interaction radius of each particle, in bounds, none above `largest`: neighbours are listed up to
        the distance that moves adding up to it can bridge, once they are rounded. `proof.py` finds conflicts due to longer
        moves.
        """
        problem, xp = state.problem, state.problem.xp
        candidates, *constraints = _by_candidate(needs, problem.decoded_places)
        far = problem.far(len(problem.lengths) - 1)
        reach = xp.minimum(far + radius[candidates] * problem.bound + 2 * problem.margin, problem.widest_reach)
        own_reach = xp.minimum(reach, far + 0.5 * radius[candidates] * problem.bound)
        longest, many = far + largest * problem.bound + 2 * problem.margin, _have_many(constraints[0])
        *lists, crowds = _lists_around(problem, candidates, reach, own_reach, MOST_LISTED, longest, many)
        found = cls(candidates, _slots(candidates, len(problem)), reach, *lists, *constraints)
        return dataclasses.replace(found, crowds=crowds)

    def among(self, needs: Needs) -> Surroundings:
        """The surroundings of the ends of some of the constraints, with the same interaction radius."""
        candidates, *constraints = _by_candidate(needs, self.slot)
        rows, slot = self.slot[candidates], _slots(candidates, len(self.slot))
        lists = self.start[rows], self.end[rows], self.neighbours
        return Surroundings(candidates, slot, self.reach[rows], *lists, *constraints)

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def given(self) -> dict[str, Any]:
        """The bundle of kernel arguments that hold the candidates."""
        return {
            "candidate": self.candidates, "list_start": self.start, "list_end": self.end, "list": self.neighbours,
            "need_start": self.need_start, "need_partner": self.partner, "need_kind": self.kind, "slot": self.slot,
        }

    @property
    def crowded(self) -> Array:
        """The candidates that have too many neighbours or constraints to be moved."""
        are = self.full | _have_many(self.need_start)
        return self.candidates[are if self.crowds is None else places_of(are, self.crowds)]

    @property
    def full(self) -> Array:
        """Which candidates have so many neighbours that some may not be listed."""
        return self.end - self.start >= MOST_LISTED

    @property
    def listed(self) -> Array:
        """All particles in a list of some candidate."""
        return _flattened(self.start, self.end, self.neighbours)

    def components(self, problem: Problem) -> Array:
        """The component of each candidate: candidates connected by neighbour lists and constraints; int32."""
        xp, count = problem.xp, len(self)
        own, component = xp.arange(count, dtype=np.int32), xp.empty(count, np.int32)
        parent = own.copy()
        problem.kernel("surroundings", "unite_candidates")(count, self.given, own=own, parent=parent)
        problem.kernel("surroundings", "name_components")(count, parent, component)
        return component


def _have_many(need_start: Array) -> Array:
    """Which candidates have more constraints than are taken into account."""
    return need_start[1:] - need_start[:-1] > MOST_NEEDS


def _by_candidate(needs: Needs, place: Array) -> tuple[Array, Array, Array, Array]:
    """The ends of the constraints, by their place; for each where its constraints begin; and all partners and kinds."""
    xp = backend.namespace(place)
    ends, partner = needs.pairs.T.ravel(), needs.pairs[:, ::-1].T.ravel()
    order = sort_by_key(place[ends].astype(np.uint64), len(place).bit_length())
    ends = ends[order]
    first = xp.flatnonzero(xp.concatenate([xp.ones(1, bool), ends[1:] != ends[:-1]]))
    start = xp.concatenate([first, xp.full(1, len(ends), first.dtype)]).astype(xp.int64)
    kind = xp.concatenate([needs.kind, needs.kind])[order]
    return xp.ascontiguousarray(ends[first]), start, xp.ascontiguousarray(partner[order]), kind


def _slots(candidates: Array, particles: int) -> Array:
    """Every particle's number among the candidates, or -1."""
    xp = backend.namespace(candidates)
    slot = xp.full(particles, -1, xp.int32)
    slot[candidates] = xp.arange(len(candidates), dtype=xp.int32)
    return slot


def listed_around(problem: Problem, index: Array, radius: float) -> Array:
    """All neighbours of these particles within an interaction radius, in bounds; some of them repeatedly."""
    xp = problem.xp
    candidates = index[xp.argsort(problem.decoded_places[index], kind="stable")]
    far = problem.far(len(problem.lengths) - 1)
    longest = min(far + radius * problem.bound, problem.widest_reach)
    reach = xp.full(len(index), longest)
    return _flattened(*neighbours_of(problem, candidates, reach, reach, MOST_LISTED, longest))


def _flattened(start: Array, end: Array, neighbours: Array) -> Array:
    """The entries of all lists."""
    xp, found = backend.namespace(neighbours), end - start
    before, total = xp.cumsum(found) - found, int(found.sum())
    return neighbours[repeated(start - before, found, total) + xp.arange(total)]


def neighbours_of(
    problem: Problem, candidates: Array, reach: Array, own_reach: Array, most: int, longest: float = math.inf
) -> tuple[Array, Array, Array]:
    """The start and end of each candidate's neighbour list, and all lists.

    `candidates` are in the order of the decoded cells. Neighbours are listed up to a distance of `reach`, those of a
    candidate's own group up to `own_reach`; a list has at most `most` entries. No reach is above `longest`.
    """
    return _lists_around(problem, candidates, reach, own_reach, most, longest, problem.xp.zeros(len(candidates), bool))[:3]


def _lists_around(
    problem: Problem, candidates: Array, reach: Array, own_reach: Array, most: int, longest: float, others: Array
) -> tuple[Array, Array, Array, int]:
    """The same, and how many candidates have a full list or are among others (flags): the host waits for both together."""
    xp, cells = problem.xp, problem.decoded_cells[-1]
    given = {
        **cells.blocks_bundle, "place": problem.decoded_places, "cells": len(cells), "order": cells.order,
        "decoded": problem.decoded, "group": problem.group,
        "reach": xp.asarray(cells.grid.reach_around(_largest(reach, min(longest, problem.widest_reach)))),
        "lengths": len(problem.lengths), "particles": len(problem), "most": most,
    }

    def listed(chosen: Array, start: Array, room: Array, neighbours: Array) -> Array:
        found = xp.empty(len(chosen), np.int64)
        problem.kernel("surroundings", "list_around")(
            backend.chunks(len(chosen), chosen), given, n=len(chosen), candidate=candidates[chosen],
            range_squared=xp.square(reach[chosen]), own_squared=xp.square(own_reach[chosen]), start=start, room=room,
            found=found, list=neighbours,
        )
        return found

    every = xp.arange(len(candidates))
    start, neighbours = every * ROOM, xp.empty(ROOM * len(candidates), np.int32)
    found = listed(every, start, xp.full(len(candidates), ROOM, np.int64), neighbours)
    short, crowded = found > ROOM, (found >= most) | others
    few, more, crowds = backend.numbers(count_of(short), xp.where(short, found, 0).sum(), count_of(crowded))
    if few:
        again = places_of(short, few)
        start[again] = len(neighbours) + xp.cumsum(found[again]) - found[again]
        neighbours = xp.concatenate([neighbours, xp.empty(more, np.int32)])
        listed(again, start[again], found[again], neighbours)
    return start, start + found, neighbours, crowds


def _largest(reach: Array, longest: float) -> float:
    """No smaller than any of these reaches. For a GPU, which may visit a few cells in vain, the host does not wait."""
    if backend.on_device(reach):
        return longest
    return float(reach.max()) if len(reach) else 0.0
