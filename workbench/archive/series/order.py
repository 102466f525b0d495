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
        places, earlier = np.argsort(given, kind="stable"), np.argsort(before, kind="stable")
        rising = given[places]
        _require_rising(rising)
        there = np.empty(len(before), np.int64)
        there[earlier] = places[np.minimum(np.searchsorted(rising, before[earlier]), len(rising) - 1)]   # near each other
        stays = given[there] == before
        new = np.ones(len(given), bool)
        new[there[stays]] = False
        order = np.concatenate([there[stays], np.flatnonzero(new)])
        appeared = given[order[stays.sum() :]]
        same = np.array_equal(order, np.arange(len(order)))
        return cls(None if same else order, np.flatnonzero(~stays), appeared)


def require_different(ids: Array) -> None:
    """Refuse ids of which two are the same: they could not be told apart at the next step."""
    _require_rising(np.sort(backend.to_host(ids)))


def _require_rising(ids: np.ndarray) -> None:
    """Refuse sorted ids of which two are the same."""
    twice = ids[1:][ids[1:] == ids[:-1]]
    if len(twice):
        raise WorkbenchError(
            f"each particle of a series must have an id of its own; got {twice[0]} twice ({len(twice):,} of {len(ids):,} "
            "ids are repeated): give particles without ids, whose order is then that of the rows, or other ids"
        )


def ordered(particles: Particles, order: np.ndarray | None) -> Particles:
    """The particles in this order."""
    if order is None:
        return particles
    index = order if backend.namespace(particles.positions) is np else backend.namespace(particles.positions).asarray(order)
    return particles.select(index)


def without_ids(particles: Particles) -> Particles:
    """The same particles without their ids, which another step of the series has stored."""
    return replace(particles, ids=None)


def in_order_of(archive_ids: np.ndarray, original: Particles) -> Particles:
    """An original in the order of a step with these ids; refused if it has others."""
    return original if original.ids is None else ordered(original, order_of(archive_ids, original.ids))


def order_of(archive_ids: np.ndarray, ids: Array) -> np.ndarray | None:
    """The place of each particle of a step in an original with these ids; None if they are in its order."""
    found = Matched.of(ids, archive_ids)
    if found.changed:
        raise WorkbenchError(
            f"the original must have the ids of the step; {len(found.vanished):,} of {len(archive_ids):,} are not in it, "
            f"and {len(found.appeared):,} of it are not in the step"
        )
    return found.order
