"""The halos of one step of a series: named so that their names depend on the particles alone.

Labels of groups are indices of particles, so they change with the order of the particles. A halo is named by the smallest
id of its members instead, and halos are numbered from the largest on. So the descent of particles in another order, as in
an archive in free order, is the same, down to how ties are broken.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.clusters.groups import Groups
from workbench.clusters.matching import Halos
from workbench.data.ids import are_rising, require_distinct, row_of_ids
from workbench.errors import WorkbenchError, briefly

NOBODY = -1   # the number of no halo


@dataclass(frozen=True, eq=False)
class StepHalos:
    """The halos of a step, from the largest on; among equals, the smaller name first.

    `halos` are the names of the halos, the smallest id of their members; `members` counts them; `labels` are those in the
    groups. `ids` are the ids of all members, halo by halo and rising in each, or None if they were not kept.
    """

    time: float
    halos: np.ndarray
    members: np.ndarray
    labels: np.ndarray
    ids: np.ndarray | None

    def __len__(self) -> int:
        return len(self.halos)

    @functools.cached_property
    def starts(self) -> np.ndarray:
        """Where the members of each halo begin in `ids`, and the end."""
        return np.concatenate([[0], np.cumsum(self.members)])

    def of_members(self) -> np.ndarray:
        """The number of the halo of each of `ids`."""
        return np.repeat(np.arange(len(self)), self.members)

    def number(self, halo: Any) -> int:
        """The number of the halo of this name."""
        found = np.flatnonzero(self.halos == halo) if isinstance(halo, int | np.integer) else np.zeros(0, np.int64)
        if len(found) != 1:
            known = ", ".join(str(name) for name in self.halos[:3].tolist()) or "there are none"
            raise WorkbenchError(
                f"halo must be the smallest id of the members of a halo of that step; got {briefly(halo)} (the largest "
                f"halos: {known}): descent.largest(10, step) lists them"
            )
        return int(found[0])


@dataclass(frozen=True, eq=False)
class Membership:
    """The ids of the particles of a step, and the number of the halo of each, or NOBODY."""

    ids: np.ndarray
    halo: np.ndarray


def step_of(
    groups: Groups, ids: np.ndarray, time: float, min_members: int, keep_members: bool
) -> tuple[StepHalos, Membership]:
    """The halos of a step, and which halo each particle belongs to."""
    labels = backend.to_host(groups.labels)
    found = Halos.of(groups, min_members)
    number = np.full(len(labels), NOBODY, np.int32)
    number[found.labels] = np.arange(len(found.labels), dtype=np.int32)
    number = number[labels]
    inside = np.flatnonzero(number >= 0)
    inside = inside[np.lexsort((ids[inside], number[inside]))] if not are_rising(ids) else inside[_stable(number[inside])]
    starts = np.concatenate([[0], np.cumsum(found.members)])[:-1]
    names = ids[inside[starts]]
    order = np.lexsort((names, -found.members))
    rank = np.append(np.empty(len(order), np.int32), np.int32(NOBODY))   # the last entry is for those in no halo
    rank[order] = np.arange(len(order), dtype=np.int32)
    halo = rank[number]
    members = None
    if keep_members:
        members = _frozen(ids[inside[_stable(halo[inside])]])
    step = StepHalos(time, _frozen(names[order]), _frozen(found.members[order]), _frozen(found.labels[order]), members)
    return step, Membership(ids, halo)


def checked_ids(given: Any, count: int, step: int) -> np.ndarray:
    """The ids of a step as a row of distinct integers; without any, the places of the particles."""
    if given is None:
        return np.arange(count)
    ids = getattr(given, "ids", given)
    if ids is None:
        raise WorkbenchError(f"the particles of step {step} have no ids: give ids=None if all steps have one order")
    ids = row_of_ids(ids, f"step {step}")
    if len(ids) != count:
        raise WorkbenchError(f"step {step} must have one id for each of its {count:,} particles; got {len(ids):,} ids")
    require_distinct(ids, f"step {step}")
    return ids


def checked_times(times: Any) -> Sequence[float]:
    """Times as numbers that rise."""
    try:
        values = np.asarray(times, np.float64)
    except (TypeError, ValueError):
        raise WorkbenchError(f"times must be a row of numbers, one for each step; got {briefly(times)}") from None
    if values.ndim != 1 or not np.isfinite(values).all() or (np.diff(values) <= 0).any():
        raise WorkbenchError(f"times must be finite numbers that rise, one for each step; got {briefly(times)}")
    return list(values.tolist())


def _stable(key: np.ndarray) -> np.ndarray:
    return np.argsort(key, kind="stable")


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
