"""A part of the particles, to be searched by itself; by default all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.alike import Doubt
from workbench.clusters.groups import Groups
from workbench.clusters.keep.inside import Inside
from workbench.clusters.keep.problem import Problem
from workbench.clusters.keep.state import State
from workbench.clusters.sorted_cells import SortedCells


@dataclass(frozen=True, eq=False)
class View:
    """All particles of a problem; `Region` is a part of them. Numbers of particles in a view count its own particles."""

    problem: Problem

    def __len__(self) -> int:
        return len(self.problem)

    def of(self, values: Array) -> Array:
        """The entries of the view's particles."""
        return values

    def back(self, index: Array) -> Array:
        """The indices, among all particles, of these particles of the view."""
        return index

    def mark(self, flags: Array, own: Array) -> None:
        """Set those flags of all particles (uint8) that are set for the view's particles."""
        flags |= own

    @property
    def asks_for_split_groups(self) -> bool:
        """Whether it saves time to find out first if any group is split; a GPU searches sorted particles in less."""
        return not backend.on_device(self.problem.decoded)

    def wanted(self, number: int) -> Groups:
        """The original groups, at one linking length."""
        return self.problem.wanted[number]

    def of_whole_groups(self, number: int, labels: Array) -> Array:
        """Labels of parts of groups (-1: none), of those groups that the view holds whole."""
        return labels

    def original_cells(self, number: int) -> SortedCells:
        """The original particles in cells for one linking length."""
        return self.problem.original_cells[number]

    def cells(self, state: State, number: int) -> SortedCells:
        """The current particles in cells for one linking length less the margin."""
        return SortedCells.of(state.particles(), self.problem.near(number))

    def doubt(self, state: State, number: int) -> Doubt | None:
        """What may differ from what is known; None if nothing is known."""
        return None


@dataclass(frozen=True, eq=False)
class AsDecoded(View):
    """All particles before any has moved."""

    def cells(self, state: State, number: int) -> SortedCells:
        """The decoded particles in cells, which later searches use, too."""
        return self.problem.decoded_cells[number]


@dataclass(frozen=True, eq=False)
class Again(View):
    """All particles, searched before any had moved; `ends` are those of the constraints that were violated then.

    Two particles that have not moved and were no ends had no conflict, and have none. A group without ends was connected,
    and is, unless a member has moved.
    """

    ends: Array

    def doubt(self, state: State, number: int) -> Doubt | None:
        """Particles that have moved or were ends, and their groups."""
        xp = self.problem.xp
        moved, settled = (state.rank != 0).view(xp.uint8), xp.ones(len(state.rank), xp.uint8)
        moved[self.ends] = 1
        settled[self.problem.group[number][xp.flatnonzero(moved)]] = 0
        return Doubt(moved, settled)


@dataclass(frozen=True, eq=False)
class Region(View):
    """Some particles (rising indices), and for each linking length the mask of those whose whole group is included."""

    index: Array
    whole: Array

    def __len__(self) -> int:
        return len(self.index)

    def of(self, values: Array) -> Array:
        """The entries of the view's particles."""
        return values[self.index]

    def back(self, index: Array) -> Array:
        """The indices, among all particles, of these particles of the view."""
        return self.index[index].astype(np.int32)

    def mark(self, flags: Array, own: Array) -> None:
        """Set those flags of all particles (uint8) that are set for the view's particles."""
        flags[self.index] |= own

    @property
    def asks_for_split_groups(self) -> bool:
        """Original positions of a region are not sorted yet."""
        return True

    def wanted(self, number: int) -> Groups:
        """The groups that the view holds whole, numbered within the view; other particles are by themselves."""
        xp = self.problem.xp
        own, place = xp.arange(len(self.index)), xp.empty(len(self.problem), np.int64)
        place[self.index] = own
        labels = xp.where(self.whole[number], self.of(self.problem.wanted[number].labels), self.index)
        return Groups(place[labels], self.problem.lengths[number])

    def of_whole_groups(self, number: int, labels: Array) -> Array:
        """Labels of parts of groups, of whole groups alone."""
        return self.problem.xp.where(self.whole[number], labels, -1)

    def original_cells(self, number: int) -> SortedCells:
        """The original particles of the view in cells."""
        chosen = Inside(self.of(self.problem.original.positions), self.problem.original.box)
        return SortedCells.of(chosen, self.problem.lengths[number])

    def cells(self, state: State, number: int) -> SortedCells:
        """The current particles of the view in cells."""
        return SortedCells.of(state.particles(self.index), self.problem.near(number))
