"""What becomes of the halos of a step in the next one, and where those of the next one come from.

The descendant of a halo is the halo of the next step that has most of its members; of several with equally many, the larger
one, and then the one with the smaller name. The progenitors of a halo are those whose descendant it is, and the main one of
them shares most particles with it, with ties as above. A halo merges if it has a descendant of which it is not the main
progenitor, and dissolves if it has none. A halo without progenitors has split off if more than half of its members were in
one halo before, whose descendant is another one; otherwise, it has formed.
"""

from __future__ import annotations

from dataclasses import dataclass

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

    Of each halo before: its `descendant`, the number of particles `passed` on to it, and its `fate`. Of each halo after:
    its `main` progenitor, the number of `progenitors`, its `origin`, and the halo that it was `split_from`.
    """

    pairs: Pairs
    descendant: np.ndarray
    passed: np.ndarray
    fate: np.ndarray
    main: np.ndarray
    progenitors: np.ndarray
    origin: np.ndarray
    split_from: np.ndarray

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
        return cls(pairs, descendant, passed, fate.astype(np.uint8), main, progenitors, origin.astype(np.uint8), split_from)

    def progenitors_of(self, number: int) -> np.ndarray:
        """The progenitors of a halo after: the main one first, then those that share most."""
        found = np.flatnonzero(self.descendant == number)
        return found[np.lexsort((found, -self.passed[found]))]
