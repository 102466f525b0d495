"""`wb.descent`: halos followed through the steps of a series by the particles that they share.

The links of a merger tree follow from memberships alone. So where memberships are kept at each step (`wb.KeepClusters`),
the descent is kept, too: it is the same from decoded particles as from the originals, integer by integer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from workbench.arguments import flag, whole_number
from workbench.clusters.descent.differences import DescentDifferences
from workbench.clusters.descent.following import Following
from workbench.clusters.descent.result import Descent
from workbench.clusters.descent.step import checked_ids, checked_times
from workbench.clusters.groups import Groups
from workbench.errors import WorkbenchError, briefly

MOST_GAP = 16   # steps passed over, each of which is one more in memory

__all__ = ["Descent", "DescentDifferences", "Following", "descent", "followed"]


def descent(
    groups: Iterable[Groups], ids: Iterable[Any] | None = None, times: Sequence[float] | None = None, min_members: int = 20,
    *, keep_members: bool = True, gap: int = 0,
) -> Descent:
    """Which halos of each step become which halos of the next, by the particles that they share.

    `groups` has the groups of each step, from `wb.friends_of_friends`, and `ids` the ids of the particles of each step, or
    the `Particles` themselves; particles may be in another order at each step, and appear and vanish. Without `ids`,
    particle i is the same one at all steps. Both may be iterators: two steps are in memory at a time, and the ids of the
    members of all halos, unless `keep_members` is false. `times` rise; by default, they are the numbers of the steps.

    Links join successive steps: a halo that has fewer than `min_members` at one step dissolves, and forms again. With a
    `gap`, links pass over up to so many steps at which a halo is not found, and one more step is in memory for each.

    >>> early, late = Groups.from_labels([0, 0, 0, 1, 1, 2], 0.2), Groups.from_labels([0, 0, 0, 0, 0, 1], 0.2)
    >>> found = descent([early, late], times=[0.5, 1.0], min_members=2)
    >>> found
    Descent(2 steps, halos of at least 2: 2 at first, 1 at last; 1 continue, 1 merge, 0 dissolve; 0 split off, 0 form)
    >>> [(row["halo"], row["members"], row["shared"]) for row in found.progenitors(0)]
    [(0, 3, 3), (3, 2, 2)]
    """
    return followed(_together(groups, ids), times, min_members, keep_members, gap)


def followed(
    steps: Iterable[tuple[Groups, Any]], times: Sequence[float] | None, min_members: int, keep_members: bool, gap: int = 0
) -> Descent:
    """The descent from the groups of each step, each with the ids of its particles, or None."""
    following = Following(
        whole_number("min_members", min_members, least=1), flag("keep_members", keep_members),
        whole_number("gap", gap, least=0, most=MOST_GAP),
    )
    known = None if times is None else checked_times(times)
    count = particles = 0
    for step, (found, given) in enumerate(steps):
        if not isinstance(found, Groups):
            raise WorkbenchError(
                f"the groups of step {step} must be wb.Groups; got {briefly(found)}: search them with "
                "wb.friends_of_friends, and gather those of a cluster with .gathered()"
            )
        if given is None and count and len(found.labels) != particles:
            raise WorkbenchError(
                f"without ids, all steps must have the same particles in one order; step {step} has {len(found.labels):,}, "
                f"the one before {particles:,}: give the ids of each step"
            )
        particles = len(found.labels)
        time = float(step) if known is None else known[step] if step < len(known) else 0.0   # refused below
        following.add(found, checked_ids(given, particles, step), time)
        count += 1
    if not count:
        raise WorkbenchError("a descent needs the groups of at least one step; got none")
    if known is not None and len(known) != count:
        raise WorkbenchError(f"times must have one number for each of {count} step{'s' * (count > 1)}; got {len(known)}")
    return following.descent()


def _together(groups: Any, ids: Any) -> Iterator[tuple[Any, Any]]:
    """The groups of each step with the ids that belong to them."""
    for name, given in (("groups", groups), ("ids", ids)):
        if isinstance(given, Groups | str) or not (given is None or isinstance(given, Iterable)):
            raise WorkbenchError(f"{name} must have one entry for each step, in order of time; got {briefly(given)}")
    if ids is None:
        yield from ((found, None) for found in groups)
        return
    for found, given in itertools.zip_longest(groups, ids, fillvalue=_NOTHING):
        if found is _NOTHING or given is _NOTHING:
            fewer, more = ("groups", "ids") if found is _NOTHING else ("ids", "groups")
            raise WorkbenchError(f"groups and ids must have one entry for each step; got fewer {fewer} than {more}")
        yield found, given


_NOTHING = object()
