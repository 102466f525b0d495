"""Halos followed from step to step, of which two are in memory at a time, and one more for each step passed over."""

from __future__ import annotations

from collections import deque

import numpy as np

from workbench.clusters.descent.result import Descent
from workbench.clusters.descent.step import NOBODY, Membership, StepHalos, step_of
from workbench.clusters.descent.succession import Succession, over_gap
from workbench.clusters.groups import Groups
from workbench.clusters.matching import Pairs
from workbench.data.ids import common


class Following:
    """Takes the groups of one step after the other, and keeps the halos and their links.

    >>> following = Following(min_members=2)
    >>> for labels in ([0, 0, 2, 2], [0, 0, 0, 0]):
    ...     following.add(Groups.from_labels(labels, 0.1), np.arange(4), time=0.0)
    >>> following.descent()
    Descent(2 steps, halos of at least 2: 2 at first, 1 at last; 1 continue, 1 merge, 0 dissolve; 0 split off, 0 form)
    """

    def __init__(self, min_members: int, keep_members: bool = True, gap: int = 0) -> None:
        self._min_members, self._keep_members, self._gap = min_members, keep_members, gap
        self._steps: list[StepHalos] = []
        self._successions: list[Succession] = []
        self._last: deque[Membership] = deque(maxlen=gap + 1)   # the latest first

    def add(self, groups: Groups, ids: np.ndarray, time: float) -> None:
        """Follow the halos into the groups of the next step; ids must be distinct."""
        step, particles = step_of(groups, ids, time, self._min_members, self._keep_members)
        if self._last:
            self._successions.append(Succession.of(self._steps[-1], step, _pairs(self._last[0], particles)))
        for over in range(1, len(self._last)):
            self._pass_over(over, self._last[over], particles)
        self._steps.append(step)
        self._last.appendleft(particles)

    def _pass_over(self, over: int, before: Membership, after: Membership) -> None:
        """Find the halos again that have dissolved so many steps ago."""
        early = self._successions[-1 - over]
        gone = np.append(early.descendant == NOBODY, False)   # the last entry is for particles in no halo
        inside = np.flatnonzero(gone[before.halo])
        if len(inside):
            pairs = _pairs(Membership(before.ids[inside], before.halo[inside]), after)
            self._successions[-1 - over], self._successions[-1] = over_gap(early, self._successions[-1], pairs, over)

    def descent(self) -> Descent:
        """The descent up to here."""
        return Descent(tuple(self._steps), tuple(self._successions), self._min_members, self._gap)


def _pairs(before: Membership, after: Membership) -> Pairs:
    """The halos of two steps that share particles."""
    first, second = before.halo, after.halo
    if before.ids.dtype != after.ids.dtype or not np.array_equal(before.ids, after.ids):
        one, other = common(before.ids, after.ids)
        first, second = first[one], second[other]
    inside = np.flatnonzero((first >= 0) & (second >= 0))
    return Pairs.counted(first[inside], second[inside])
