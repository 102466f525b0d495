"""The order of the particles of a series: that of its first step, found again by their ids.

Particles that are there at two steps keep their places relative to each other; new ones come last. So a step stores which
rows of the one before it vanished, and the ids of those that appeared, and nothing where all stayed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.data import Particles
from workbench.data.ids import common
from workbench.errors import WorkbenchError


@dataclass(frozen=True, eq=False)
class Matched:
    """Particles in the order of the step before, which are new, and which rows of that step vanished.

    `order` are their places as they were given; None if these are in order already.
    """

    order: np.ndarray | None
    vanished: np.ndarray
    appeared: np.ndarray   # ids

    @property
    def changed(self) -> bool:
        """Whether any appeared or vanished."""
        return bool(len(self.vanished) or len(self.appeared))

    @classmethod
    def of(cls, ids: Array, before: np.ndarray) -> Matched:
        """The order of particles with these ids after others, of which no two are the same; refused if two of these are.

        >>> found = Matched.of(np.array([5, 9, 7]), np.array([7, 6, 5]))
        >>> found.order.tolist(), found.vanished.tolist(), found.appeared.tolist()
        ([2, 0, 1], [1], [9])
        """
        given, none = backend.to_host(ids), np.empty(0, np.int64)
        if np.array_equal(given, before):
            return cls(None, none, given[:0])
        here, there = common(before, given, ("the series", "a step of a series"))
        place, new = np.full(len(before), -1), np.ones(len(given), bool)
        place[here], new[there] = there, False
        stays = place >= 0
        order = np.concatenate([place[stays], np.flatnonzero(new)])
        appeared = given[order[stays.sum() :]]
        same = np.array_equal(order, np.arange(len(order)))
        return cls(None if same else order, np.flatnonzero(~stays), appeared)


def ordered(particles: Particles, order: np.ndarray | None) -> Particles:
    """The particles in this order."""
    if order is None:
        return particles
    index = order if backend.namespace(particles.positions) is np else backend.namespace(particles.positions).asarray(order)
    return particles.select(index)


def without_ids(particles: Particles) -> Particles:
    """The same particles without their ids, which another step of the series has stored."""
    return replace(particles, ids=None)


def order_of(archive_ids: np.ndarray, ids: Array) -> np.ndarray | None:
    """The place of each particle of a step in an original with these ids; None if they are in its order."""
    found = Matched.of(ids, archive_ids)
    if found.changed:
        raise WorkbenchError(
            f"the original must have the ids of the step; {len(found.vanished):,} of {len(archive_ids):,} are not in it, "
            f"and {len(found.appeared):,} of it are not in the step"
        )
    return found.order
