"""A merger tree as branches with a place each, so that no branch crosses another one.

A branch is a halo with its main progenitors; it ends where it merges into its parent. On either side of its parent, a
branch that merges earlier lies nearer, so that a later one passes where the earlier one is no more. At steps that a link
passes over, a branch has the number NOBODY, and as many members as before.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from workbench.clusters.descent.result import Descent
from workbench.clusters.descent.step import NOBODY

GAP = 0.14   # between branches, in widths of the widest


@dataclass(eq=False)
class Branch:
    """Halos from the first step to the last one, by number; `place` is across the tree, on one `side` of the parent."""

    first: int
    numbers: list[int]
    members: np.ndarray
    parent: Branch | None
    place: float = 0.0
    side: int = 0
    children: list[Branch] = field(default_factory=list)

    @property
    def last(self) -> int:
        """The last step before it is its parent, or ends."""
        return self.first + len(self.numbers) - 1

    def width(self, widest: int) -> np.ndarray:
        """The width at each step: areas of marks would be as the members."""
        return np.sqrt(self.members / widest)


def branches_of(descent: Descent, at: int, number: int, most: int) -> tuple[list[Branch], int]:
    """The main branch of a halo and the largest that merge, each after its parent; and how many others there are."""
    trunk = _branch(descent, at, number, None, at)
    found, grown, seen = [trunk], trunk, 0
    waiting: list[tuple[int, int, Branch]] = []   # those with most members first
    while True:
        for one in _joining(descent, grown):
            seen += 1
            heapq.heappush(waiting, (-int(one.members.max()), seen, one))
        if not waiting or len(found) > most:
            break
        grown = heapq.heappop(waiting)[2]
        if grown.parent is not None:
            grown.parent.children.append(grown)
        found.append(grown)
    return found, sum((1 + _below(descent, one) for _, _, one in waiting), 0)


def spread(trunk: Branch, widest: int, sides: Mapping[tuple[int, int], int]) -> tuple[float, float]:
    """Give each branch its place, the trunk at zero; the ends of the tree across.

    `sides` has the side of some branches, by the last step and halo; others go where there is more room.
    """
    down, up = _extents(trunk, widest, sides)
    waiting = [trunk]
    while waiting:
        for child in (one := waiting.pop()).children:
            child.place += one.place
            waiting.append(child)
    return -down, up


def _branch(descent: Descent, at: int, number: int, parent: Branch | None, until: int) -> Branch:
    """The main branch of a halo up to the step `until`, at which it may not be found."""
    numbers, members = [NOBODY] * (until - at), [int(descent.steps[at].members[number])] * (until - at + 1)
    numbers.insert(0, number)
    for place, each in descent.main_progenitors(at, number):
        own = int(descent.steps[place].members[each])
        numbers[:0], members[:0] = [each, *[NOBODY] * (at - place - 1)], [own] * (at - place)
        at = place
    return Branch(at, numbers, np.array(members), parent)


def _joining(descent: Descent, branch: Branch) -> list[Branch]:
    """The branches that merge into this one."""
    return [
        _branch(descent, place, each, branch, at - 1)
        for at, number in enumerate(branch.numbers, branch.first) if number != NOBODY
        for place, each in descent.progenitors_of(at, number)[1:]
    ]


def _below(descent: Descent, branch: Branch) -> int:
    """How many branches merge into this one, and into those."""
    count, waiting = 0, [branch]
    while waiting:
        joining = _joining(descent, waiting.pop())
        count += len(joining)
        waiting += joining
    return count


def _extents(branch: Branch, widest: int, sides: Mapping[tuple[int, int], int]) -> tuple[float, float]:
    """How far a branch and its children reach below and above its own place, which their places count from."""
    reach = [(float(branch.width(widest).max()) + GAP) / 2] * 2
    for child in sorted(branch.children, key=lambda one: (one.last, -int(one.members[-1]))):
        below, above = _extents(child, widest, sides)
        child.side = sides.get((child.last, child.numbers[-1])) or (1 if reach[1] <= reach[0] else -1)
        if child.side > 0:
            child.place = reach[1] + below
            reach[1] += below + above
        else:
            child.place = -reach[0] - above
            reach[0] += below + above
    return reach[0], reach[1]
