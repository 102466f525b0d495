"""What becomes of the halos of a step in the next one, and where those of the next one come from.

The descendant of a halo is the halo of the next step that has most of its members; of several with equally many, the larger
one, and then the one with the smaller name. The progenitors of a halo are those whose descendant it is, and the main one of
them shares most particles with it, with ties as above. A halo merges if it has a descendant of which it is not the main
progenitor, and dissolves if it has none. A halo without progenitors has split off if more than half of its members were in
one halo before, whose descendant is another one; otherwise, it has formed.

With a gap, a halo without a descendant in the next step is looked for in so many steps after it: its descendant is the
halo with most of its members in the first step where a halo has any. If that halo has no later progenitors, the one that
shares most with it is its main one, and it has continued; otherwise the halo that was not found merges into it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from workbench.clusters.descent.step import NOBODY, StepHalos
from workbench.clusters.matching import Pairs, most_shared

CONTINUES, MERGES, DISSOLVES = 0, 1, 2        # what becomes of a halo
CONTINUED, SPLIT_OFF, FORMED = 0, 1, 2        # where a halo comes from
FATES = ("continues", "merges", "dissolves")
ORIGINS = ("continued", "split off", "formed")


@dataclass(frozen=True, eq=False)
class Succession:
    """From one step to the next: numbers of halos, NOBODY for none.

    Of each halo before: its `descendant`, the number of particles `passed` on to it, its `fate`, and how many steps the
    link to the descendant passes `over`. Of each halo after: its `main` progenitor, the number of `progenitors`, its
    `origin`, the halo that it was `split_from`, and how many steps the link from the main progenitor passes over
    (`main_over`). Descendants and progenitors over a gap are numbers of the steps there.
    """

    pairs: Pairs
    descendant: np.ndarray
    passed: np.ndarray
    fate: np.ndarray
    main: np.ndarray
    progenitors: np.ndarray
    origin: np.ndarray
    split_from: np.ndarray
    over: np.ndarray
    main_over: np.ndarray

    @classmethod
    def of(cls, before: StepHalos, after: StepHalos, pairs: Pairs) -> Succession:
        """The succession that follows from all pairs of halos which share particles."""
        descendant, passed = np.full(len(before), NOBODY), np.zeros(len(before), np.int64)
        best = most_shared(pairs.first, pairs.second, pairs.shared)
        descendant[pairs.first[best]], passed[pairs.first[best]] = pairs.second[best], pairs.shared[best]
        main, split_from = np.full(len(after), NOBODY), np.full(len(after), NOBODY)
        links = pairs.chosen(best)
        first = most_shared(links.second, links.first, links.shared)
        main[links.second[first]] = links.first[first]
        most = most_shared(pairs.second, pairs.first, pairs.shared)
        halo, source, shared = pairs.second[most], pairs.first[most], pairs.shared[most]
        split = (main[halo] == NOBODY) & (2 * shared > after.members[halo])
        split_from[halo[split]] = source[split]
        goes_on = np.zeros(len(before), bool)
        goes_on[main[main != NOBODY]] = True
        fate = np.where(descendant == NOBODY, DISSOLVES, np.where(goes_on, CONTINUES, MERGES))
        origin = np.where(main != NOBODY, CONTINUED, np.where(split_from != NOBODY, SPLIT_OFF, FORMED))
        progenitors = np.bincount(links.second, minlength=len(after))
        return cls(
            pairs, descendant, passed, fate.astype(np.uint8), main, progenitors, origin.astype(np.uint8), split_from,
            over=np.zeros(len(before), np.uint8), main_over=np.zeros(len(after), np.uint8),
        )

    def progenitors_of(self, number: int) -> np.ndarray:
        """The progenitors of a halo after: the main one first, then those that share most."""
        return self.linked_to(number, 0)

    def linked_to(self, number: int, over: int) -> np.ndarray:
        """The halos before whose descendant is that halo, so many steps passed over: those that share most first."""
        found = np.flatnonzero((self.descendant == number) & (self.over == over))
        return found[np.lexsort((found, -self.passed[found]))]


def over_gap(early: Succession, late: Succession, pairs: Pairs, over: int) -> tuple[Succession, Succession]:
    """Both with links over a gap, from the halos that dissolve after the early step to those of the late one.

    `pairs` are those of these halos alone. `early` is from their step on, `late` is up to the step where they are again.
    """
    best = most_shared(pairs.first, pairs.second, pairs.shared)
    links = pairs.chosen(best)
    descendant, passed, fate, passes = (
        getattr(early, name).copy() for name in ("descendant", "passed", "fate", "over")
    )
    descendant[links.first], passed[links.first], passes[links.first] = links.second, links.shared, over
    fate[links.first] = MERGES
    main, origin, split_from, main_over = (
        getattr(late, name).copy() for name in ("main", "origin", "split_from", "main_over")
    )
    first = links.chosen(most_shared(links.second, links.first, links.shared))
    first = first.chosen(np.flatnonzero(main[first.second] == NOBODY))
    main[first.second], main_over[first.second] = first.first, over
    origin[first.second], split_from[first.second] = CONTINUED, NOBODY
    fate[first.first] = CONTINUES
    progenitors = late.progenitors + np.bincount(links.second, minlength=len(main))
    return (
        replace(early, descendant=descendant, passed=passed, fate=fate, over=passes),
        replace(late, main=main, origin=origin, split_from=split_from, main_over=main_over, progenitors=progenitors),
    )
