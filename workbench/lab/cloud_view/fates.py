"""What has become of each halo and of each particle: the colours of a cloud.

A halo of the original is continued by the decoded halo with which it is matched (`clusters/matching.py`): the group with
most of its members, unless it is too small for a halo, or another halo has more members there. So a halo keeps its colour
through changes, and particles that left their halo, or were joined to another, are known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.arguments import whole_number
from workbench.clusters import Catalogue, Groups, catalogue
from workbench.clusters.matching import Halos, match_groups
from workbench.data import Particles
from workbench.errors import WorkbenchError

LEFT, JOINED = 1, 2                           # what has become of a particle; 0: it stayed where it was
STATUS = "intact", "split", "merged"          # of a halo, by its number
HALO_BITS = MOST_HALOS = 2**14 - 1            # a tag has 14 bits for the number of a halo, and 2 for LEFT or JOINED


@dataclass(frozen=True, eq=False)
class Fates:
    """Halos numbered by size from 1, and the number of each particle's halo; 0 for particles in none.

    `before` are the numbers in the original, `after` in the decoded particles: those of the halo that continues in their
    group, or of the original halo for particles that left it. `change` is LEFT, JOINED or 0. `status` and `sizes` tell for
    each halo whether it is intact, split or merged, and how many members its continuation has (0: it has none). Without
    decoded particles all four are None.
    """

    halos: Catalogue
    before: np.ndarray
    after: np.ndarray | None = None
    change: np.ndarray | None = None
    status: np.ndarray | None = None
    sizes: np.ndarray | None = None

    @property
    def tags(self) -> tuple[np.ndarray, ...]:
        """For each side, halo number and change of every particle in 16 bits."""
        sides = [self.before] if self.after is None else [self.before, self.after]
        change = 0 if self.change is None else self.change.astype(np.uint16) << 14
        return tuple(side.astype(np.uint16) | change for side in sides)


def fates_of(particles: Particles, groups: Groups, other_groups: Groups | None = None, min_members: int = 20) -> Fates:
    """The fates of the halos with at least `min_members` (the largest 16,383), in decoded particles of the same order.

    >>> particles = Particles([[0.1, 0, 0], [0.2, 0, 0], [0.3, 0, 0], [0.8, 0, 0]], box=1.0)
    >>> before, after = Groups.from_labels([0, 0, 0, 3], 0.1), Groups.from_labels([0, 0, 2, 0], 0.1)
    >>> fates = fates_of(particles, before, after, min_members=2)
    >>> fates.after.tolist(), fates.change.tolist(), STATUS[fates.status[0]], fates.sizes.tolist()
    ([1, 1, 1, 1], [0, 0, 1, 2], 'split', [3])
    """
    for name, given in (("groups", groups), ("other_groups", other_groups)):
        if given is not None and len(given.labels) != len(particles):
            raise WorkbenchError(
                f"{name} must be of {len(particles):,} particles; got labels of {len(given.labels):,}: "
                "find them with wb.friends_of_friends"
            )
    min_members = whole_number("min_members", min_members, least=1)
    every = catalogue(particles, groups, min_members)
    shown = slice(0, MOST_HALOS)
    halos = Catalogue(every.labels[shown], every.members[shown], every.centres[shown], every.radii[shown])
    number = np.zeros(len(particles), np.int32)
    number[halos.labels] = np.arange(1, len(halos) + 1)
    before = number[groups.labels]
    if other_groups is None:
        return Fates(halos, before)
    match = match_groups(Halos(every.labels, every.members), groups.labels, other_groups, min_members)
    continued = match.matched[shown]
    kept = np.flatnonzero(continued)
    number[:] = 0
    number[match.counterpart[kept]] = kept + 1
    within = number[other_groups.labels]
    change = np.zeros(len(particles), np.uint8)
    change[(before > 0) & (within == 0)] = LEFT
    change[(within > 0) & (within != before)] = JOINED
    after = np.where(change == LEFT, before, within)
    sizes = np.where(continued, match.counterpart_members[shown], 0)
    return Fates(halos, before, after, change, match.status[shown], sizes)
