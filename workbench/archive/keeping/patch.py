"""Particles that are near some constraints, and attempts to repair these; `settling.py` says which particles.

The moves are those of `clusters/keep`. A patch differs in two points from a whole set of particles. Only some of its
particles may move: the others belong to somebody else, so constraints that reach them are left alone, with all candidates
that interact with them. And groups extend beyond it: parts that are connected outside count as connected.

After particles got their original coordinates, only those around suspects are compared again, as in `attempts.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np

from workbench.archive.keeping.moved import STATE
from workbench.archive.keeping.terms import Terms
from workbench.backend import Array
from workbench.clusters.alike import Exempt, parts_of
from workbench.clusters.broken import linked_labels
from workbench.clusters.groups import Groups
from workbench.clusters.keep.attempts import Allowance, Attempts
from workbench.clusters.keep.edits import Surmise
from workbench.clusters.keep.needs import MUST_LINK, Needs
from workbench.clusters.keep.problem import UNASKED, Problem
from workbench.clusters.keep.proof import disturbed
from workbench.clusters.keep.region import region_around
from workbench.clusters.keep.repair import Repair
from workbench.clusters.keep.state import PINNED, State
from workbench.clusters.keep.surroundings import Surroundings, neighbours_of
from workbench.clusters.keep.view import Region
from workbench.clusters.sorted_cells import SortedCells
from workbench.data import Particles
from workbench.subdomains.merging import Renaming

MOST_ATTEMPTS = 24   # in one patch, before all are compared again
MOST_LISTED = 2048   # particles around the end of a constraint that may move for it
FEW_LABELS = 4       # for each particle: up to so many possible labels, there is a table of them
COLUMNS = ("index", "original", "decoded", "current", "rank", "tries", "context", "forward")
OF_LENGTH = ("label", "group", "joined")   # columns for each linking length


class Columns(Protocol):
    """Arrays by name, with an entry for each particle."""

    def __getitem__(self, name: str, /) -> np.ndarray:
        """One of the arrays."""


@dataclass(frozen=True, eq=False)
class Excerpt(Problem):
    """Some particles of all subdomains, by rising index; `columns` has their arrays by name."""

    terms: Terms = field(kw_only=True)
    columns: Columns = field(kw_only=True)
    named_by: str = field(default="label", kw_only=True)   # the columns whose numbers are the same in a group

    @classmethod
    def of(cls, terms: Terms, columns: Columns, **others: Any) -> Self:
        """The problem of these particles."""
        original = Particles(np.ascontiguousarray(columns["original"]), terms.box)
        given = original, np.ascontiguousarray(columns["decoded"]), terms.limit, terms.promise, len(original)
        return cls(*given, terms=terms, columns=columns, **others)

    @property
    def lengths(self) -> tuple[float, ...]:
        """The linking lengths."""
        return self.terms.lengths

    @property
    def margin(self) -> float:
        """The distance that deciding pairs keep from a linking length."""
        return self.terms.margin

    @functools.cached_property
    def surmise(self) -> Surmise:
        """The side information, from the chunks of the file."""
        return Surmise(self.columns["context"], self.columns["forward"], (self.bound, self.lengths, self.original.box))

    @functools.cached_property
    def group(self) -> Array:
        """For each linking length the label of every particle's group (int32); UNASKED in groups that are too small."""
        return np.stack([self.columns[f"group{number}"] for number in range(len(self.lengths))])

    def state(self) -> State:
        """The particles as they are now."""
        state = State(self)
        for name in STATE:
            getattr(state, name)[...] = self.columns[name]
        state.most_tries = int(state.tries.max(initial=0))
        return state


@dataclass(frozen=True, eq=False)
class Patch(Excerpt):
    """Particles of which some are to be repaired: the labels of their groups are among their own numbers.

    `linked` says, for each linking length, which parts of groups have become one since, by their names in `joined`.
    """

    linked: Sequence[Renaming] = field(kw_only=True)

    @functools.cached_property
    def wanted(self) -> list[Groups]:
        """The pieces of the original groups that are here."""
        numbers = range(len(self.lengths))
        return [Groups(self._first(number).astype(np.int64), self.lengths[number]) for number in numbers]

    @functools.cached_property
    def group(self) -> Array:
        """For each linking length the label of every particle's group (int32); UNASKED in groups that are too small."""
        label = np.stack([self._first(number) for number in range(len(self.lengths))])
        for number, row in enumerate(label):
            row[self.columns[f"group{number}"] == UNASKED] = UNASKED
        return label

    def _first(self, number: int) -> np.ndarray:
        """For each particle the first one of its group (int32)."""
        label = self.columns[f"{self.named_by}{number}"]
        most = int(label.max(initial=0))
        if most >= FEW_LABELS * len(label):
            return Groups.from_labels(label, self.lengths[number]).labels.astype(np.int32)
        first = np.empty(most + 1, np.int32)
        first[label[::-1]] = np.arange(len(label) - 1, -1, -1, dtype=np.int32)
        found: np.ndarray = first[label]
        return found

    def joined(self, number: int) -> Array:
        """Pairs of particles whose parts, at one linking length, were connected elsewhere when the repair began."""
        if number not in self._joined:
            self._joined[number] = self.joined_among(number, np.arange(len(self)))
        return self._joined[number]

    @functools.cached_property
    def _joined(self) -> dict[int, np.ndarray]:
        return {}

    def joined_among(self, number: int, rows: np.ndarray) -> np.ndarray:
        """The same among the particles of whole groups, numbered among these: links between one particle of each piece."""
        if not len(rows):
            return np.empty((0, 2), np.int32)
        current = Particles(np.ascontiguousarray(self.columns["current"][rows]), self.original.box)
        spared = Exempt(np.ascontiguousarray(self.original.positions[rows]), self.lengths[number])
        group = np.ascontiguousarray(self.group[number][rows])
        cells = SortedCells.of(current, self.near(number))
        piece = parts_of(cells, group, self.near(number), self.far(number), spared).part
        heads = np.flatnonzero((piece == np.arange(len(rows))) & (group != UNASKED))
        joined = self.linked[number].applied(self.columns[f"joined{number}"][rows[heads]])
        order = np.argsort(joined, kind="stable")
        same = np.flatnonzero(joined[order][1:] == joined[order][:-1])
        return np.column_stack([heads[order[same]], heads[order[same + 1]]]).astype(np.int32)


class Vicinity(Region):
    """A part of a patch, of which nothing else is compared."""

    def joined(self, number: int, part: Array) -> Array:
        """The parts of groups, with those made one that are connected elsewhere."""
        assert isinstance(self.problem, Patch)
        rows = np.flatnonzero(self.whole[number])
        pairs = self.problem.joined_among(number, self.index[rows])
        return linked_labels(part, rows[pairs]) if len(pairs) else part


class PatchRepair(Attempts):
    """The repair of the constraints of a patch that only concern particles which may move.

    `suspects` are those near which a constraint may be violated after the latest attempt.
    """

    def __init__(self, patch: Patch, allowance: Allowance) -> None:
        super().__init__(patch.state(), None, allowance)
        self.movable = np.zeros(len(patch), bool)
        self.ends = self.suspects = np.empty(0, np.int32)
        self.listed: Surroundings | None = None   # of all ends, if none of them had been one before
        self._latest: Repair | None = None   # of the last attempt
        self._begun = Needs.none(self.state)

    def begin(self, needs: Needs, free: np.ndarray) -> np.ndarray:
        """Attempt to repair these constraints; returns which were treated. Those of their ends may move that are `free`."""
        self.ends = ends = needs.ends(self.state)
        self.movable[ends] = free[ends]
        if len(needs) and not self.state.tries[ends].any():   # so the repair will want the same lists
            self.listed = super()._around(needs)
        treated = self._treatable(needs)
        self._begun = needs.chosen(np.flatnonzero(treated))
        self._attempt_at(self._begun)
        return treated

    def joined_again(self) -> list[Renaming]:
        """At each linking length: which parts of groups, by their names in `joined`, the treated constraints join."""
        links = self._begun.chosen(np.flatnonzero(~self._begun.missed(self.state)))
        found = []
        for number in range(len(self.patch.lengths)):
            pairs = links.pairs[links.kind == 2 * number + MUST_LINK]
            found.append(Renaming.of(self.patch.columns[f"joined{number}"][pairs]))
        return found

    def follow(self, before: PatchRepair, here: np.ndarray, there: np.ndarray, movable: np.ndarray, left: Needs) -> None:
        """Go on from an attempt at other particles until no constraint near its suspects is violated.

        The particles `here` are those `there`, in its patch; all its suspects are among them. Constraints of `left`, and
        those that interact with these, belong to somebody else.
        """
        state, self.movable = self.state, movable
        for name in STATE:
            getattr(state, name)[here] = getattr(before.state, name)[there]
        state.most_tries = int(state.tries.max(initial=0))
        self.count, self.spent = before.count, before.spent
        suspect = np.zeros(len(before.movable), bool)
        suspect[before.suspects] = True
        self.suspects = here[suspect[there]].astype(np.int32)
        while len(self.suspects) and self.count < MOST_ATTEMPTS:
            view = region_around(state, self.suspects)
            found = self._look(None if view is None else Vicinity(view.problem, view.index, view.whole))
            needs = self._with_left(found, left)
            self._attempt_at(needs.chosen(np.flatnonzero(self._treatable(needs))))

    def _attempt_at(self, needs: Needs) -> None:
        """Attempt to repair these constraints, and find the suspects."""
        self.suspects, self._latest = self.suspects[:0], None
        if not len(needs):
            return
        exact = self.state.rank == PINNED
        self._attempt(needs)
        pinned = np.flatnonzero((self.state.rank == PINNED) & ~exact)
        # Moves alone violate no constraint. If not all groups count, small ones may have merged outside.
        if len(pinned) and self.patch.promise.min_members == 1:
            self.suspects = self._disturbed(pinned)

    def changes(self) -> dict[str, np.ndarray]:
        """What differs from the beginning: the index, position, move and number of tries of these particles."""
        state, before = self.state, self.patch.columns
        rows = np.flatnonzero(state.rank | state.tries)   # all others are as they were decoded
        differs = [getattr(state, name)[rows] != before[name][rows] for name in STATE]
        rows = rows[differs[0].any(axis=1) | differs[1] | differs[2]]
        index = before["index"][rows]
        return {"index": index, "current": state.current[rows], "rank": state.rank[rows], "tries": state.tries[rows]}

    def _disturbed(self, pinned: np.ndarray) -> np.ndarray:
        """Those that got their original coordinates, and those that see a violated constraint after they have moved."""
        suspect = np.zeros(len(self.patch), bool)
        suspect[pinned] = True
        if self._latest is not None:
            around, used = self._latest.around, np.zeros(len(self.patch), np.uint8)
            rows = np.flatnonzero(self.state.rank[around.candidates])
            moved = around.candidates[rows]
            lists = around.start[rows], around.end[rows], around.neighbours
            suspect[moved] |= disturbed(self.state, moved, *lists, used)
        return np.flatnonzero(suspect).astype(np.int32)

    def _repair(self, needs: Needs) -> Repair:
        self._latest = super()._repair(needs)
        return self._latest

    def _with_left(self, needs: Needs, left: Needs) -> Needs:
        """These constraints, and those of `left` that are still violated: nothing that interacts with them is treated."""
        still = np.flatnonzero(left.missed(self.state))
        pairs, kind = np.concatenate([needs.pairs, left.pairs[still]]), np.concatenate([needs.kind, left.kind[still]])
        code = (pairs[:, 0].astype(np.int64) * len(self.patch) + pairs[:, 1]) * len(self.patch.lengths) * 2 + kind
        once = np.unique(code, return_index=True)[1]
        return Needs(pairs[once], kind[once])

    def _around(self, needs: Needs) -> Surroundings:
        return super()._around(needs) if self.listed is None else self.listed.among(needs)

    @property
    def patch(self) -> Patch:
        """The particles."""
        assert isinstance(self.state.problem, Patch)
        return self.state.problem

    def _treatable(self, needs: Needs) -> np.ndarray:
        """Which constraints only have candidates that may move, with all candidates that interact with them."""
        if not len(needs) or bool(self.movable[needs.pairs.ravel()].all()):
            return np.ones(len(needs), bool)
        around = self._around(needs)
        component = around.components(self.patch)
        fixed = np.zeros(len(around), bool)
        fixed[component[~self.movable[around.candidates]]] = True
        free: np.ndarray = ~fixed[component[around.slot[needs.pairs[:, 0]]]]
        return free

    def _escalated(self, needs: Needs, ends: Array) -> Array:
        forced = super()._escalated(needs, ends)
        return forced[self.movable[forced]]


def around(patch: Patch, ends: np.ndarray) -> np.ndarray:
    """The particles of a patch near these ends: all others that they interact with are in the patch, too."""
    may = np.zeros(len(patch), bool)
    if not len(ends):
        return may
    candidates = ends[np.argsort(patch.decoded_places[ends], kind="stable")].astype(np.int32)
    reach = np.full(len(candidates), min(patch.terms.reach, patch.widest_reach))
    start, end, neighbours = neighbours_of(patch, candidates, reach, reach, MOST_LISTED)
    count = end - start
    owner = np.repeat(np.arange(len(start)), count)
    may[neighbours[start[owner] + np.arange(len(owner)) - (np.cumsum(count) - count)[owner]]] = True
    may[ends] = True
    return may


def columns_of(terms: Terms) -> list[str]:
    """The names of all columns of a patch."""
    return [*COLUMNS, *(f"{name}{number}" for number in range(len(terms.lengths)) for name in OF_LENGTH)]
