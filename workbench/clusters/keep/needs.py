"""Constraints on decoded positions: pairs that must be linked, and pairs that must not be linked.

The must-link constraints of a split group are the minimum spanning forest of its parts: of all links that it lost, the
shortest ones. All linked pairs of different original groups are cannot-link constraints.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.alike import Exempt, Parts, parts_of
from workbench.clusters.broken import distances, spanning_links
from workbench.clusters.discord import UNLABELLED, split_labels
from workbench.clusters.keep.problem import UNASKED
from workbench.clusters.keep.state import State
from workbench.clusters.keep.view import View

MUST_LINK, CANNOT_LINK = 0, 1


@dataclass(frozen=True, eq=False)
class Needs:
    """Constraints: pairs (M, 2) of particles (int32); kinds are twice a linking length's number, plus 1 for CANNOT_LINK."""

    pairs: Array
    kind: Array

    def __len__(self) -> int:
        return len(self.kind)

    @classmethod
    def together(cls, parts: Sequence[Self]) -> Self:
        """The constraints of several linking lengths."""
        xp = backend.namespace(*[part.kind for part in parts])
        return cls(*(xp.concatenate([getattr(part, field.name) for part in parts]) for field in dataclasses.fields(cls)))

    @classmethod
    def none(cls, state: State) -> Self:
        """No constraints."""
        return cls(state.problem.xp.empty((0, 2), np.int32), state.problem.xp.empty(0, np.int32))

    def chosen(self, which: Array) -> Needs:
        """Some of the constraints."""
        return Needs(self.pairs[which], self.kind[which])

    def ends(self, state: State) -> Array:
        """The particles in these constraints (rising indices, int32)."""
        if not len(self):
            return self.kind
        flags = state.problem.xp.zeros(len(state.problem), bool)
        flags[self.pairs.ravel()] = True
        return state.problem.xp.flatnonzero(flags).astype(np.int32)

    def missed(self, state: State, used: Array | None = None) -> Array:
        """Which constraints the current positions violate; kernels/margin.cuh states the rule.

        `used` (uint8) is set for particles of pairs whose original distance took part in a decision.
        """
        missed = state.problem.xp.empty(len(self), np.uint8)
        used = state.problem.xp.empty(len(state.problem), np.uint8) if used is None else used
        state.problem.kernel("repair", "find_missed")(
            len(self), state.problem.given, pair=state.problem.xp.ascontiguousarray(self.pairs), kind=self.kind,
            current=state.current, used=used, missed=missed,
        )
        return missed.astype(bool)

    def misses(self, state: State) -> Array:
        """By how much each constraint is violated; zero where it is satisfied."""
        xp, given, number = state.problem.xp, state.problem.given, self.kind >> 1
        distance = distances(state.current, self.pairs, state.problem.original.box)
        near, far = (xp.sqrt(given[name])[number] for name in ("near_squared", "far_squared"))
        miss = xp.maximum(xp.where((self.kind & 1).astype(bool), far - distance, distance - near), 0)
        return xp.where(self.missed(state), miss, 0)


def find_needs(state: State, view: View | None = None, *, exempt: bool = True, used: Array | None = None) -> Needs:
    """The constraints that the current positions violate; without exemptions, also deciding pairs within the margin.

    `used` (uint8) is set for particles of pairs whose original distance took part in a decision.
    """
    view = View(state.problem) if view is None else view
    return Needs.together([_needs_at(state, view, number, exempt, used) for number in range(len(state.problem.lengths))])


def groups_with_needs(state: State, needs: Needs) -> list[Array]:
    """For each linking length, and each label, whether the original group of this label has constraints."""
    xp, found, count = state.problem.xp, [], len(state.problem)
    for number, wanted in enumerate(state.problem.wanted):
        flags = xp.zeros(count + 1, bool)   # the last one stands for constraints at other linking lengths
        flags[xp.where((needs.kind >> 1 == number)[:, None], wanted.labels[needs.pairs], count)] = True
        found.append(flags[:-1])
    return found


def _needs_at(state: State, view: View, number: int, exempt: bool, used: Array | None) -> Needs:
    """The constraints at one linking length."""
    problem, xp = state.problem, state.problem.xp
    spared = Exempt(view.of(problem.original.positions), problem.lengths[number]) if exempt else None
    parts = _parts(state, view, number, spared)
    if used is not None:
        view.mark(used, parts.exempt)
    links = view.back(_lost_links(state, view, number, parts.part))
    false = view.back(parts.unlike)
    pairs = xp.concatenate([links, false]).astype(xp.int32)
    kinds = [xp.full(len(links), 2 * number + MUST_LINK), xp.full(len(false), 2 * number + CANNOT_LINK)]
    return Needs(pairs, xp.concatenate(kinds).astype(xp.int32))


def _lost_links(state: State, view: View, number: int, part: Array) -> Array:
    """The minimum spanning forest of the parts of each group: lost links, pairs of friends in the original."""
    problem, xp = state.problem, state.problem.xp
    split = view.of_whole_groups(number, split_labels(view.wanted(number), part))
    if problem.promise.min_members > 1:
        split = xp.where(view.of(problem.group[number]) == UNASKED, UNLABELLED, split)
    split = split.astype(xp.int32, copy=False)
    if view.asks_for_split_groups and not bool((split != UNLABELLED).any()):
        return xp.empty((0, 2), xp.int32)
    current = xp.ascontiguousarray(view.of(state.current))
    cells, length = view.original_cells(number), problem.lengths[number]
    return spanning_links(cells, split, length, current, problem.original.box, view.wanted(number))


def _parts(state: State, view: View, number: int, exempt: Exempt | None) -> Parts:
    """The parts of groups, and pairs of particles of different groups that are too close.

    Small groups may merge as long as they stay below the minimum of members; otherwise they must be separated, too.
    """
    problem, xp, group = state.problem, state.problem.xp, view.of(state.problem.group[number])
    cells, near, far, merged = view.cells(state, number), problem.near(number), problem.far(number), None
    if problem.promise.min_members > 1:
        merged = parts_of(cells, group, near, far, exempt, link_up_to_far=True)
        members = xp.bincount(merged.part, minlength=len(group))
        grown = (group == UNASKED) & (members[merged.part] >= problem.promise.min_members)
        group = xp.where(grown, view.wanted(number).labels.astype(group.dtype), group)
    parts = parts_of(cells, group, near, far, exempt, doubt=view.doubt(state, number))
    return parts if merged is None else dataclasses.replace(parts, exempt=parts.exempt | merged.exempt)
