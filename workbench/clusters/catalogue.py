"""Positions and sizes of groups: the usual catalogue of a halo finder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.clusters.groups import Groups
from workbench.data import Particles
from workbench.data.periodic import nearest_image
from workbench.errors import WorkbenchError


@dataclass(frozen=True, eq=False, repr=False)
class Catalogue:
    """One entry per group, the largest first (the smaller label first among equals), in NumPy.

    `centres` are mean positions, inside the box if there is one; `radii` are root mean square distances from them.
    """

    labels: np.ndarray
    members: np.ndarray
    centres: np.ndarray
    radii: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        """How many groups there are, and how large.

        >>> Catalogue(np.array([4, 0]), np.array([30, 20]), np.zeros((2, 3)), np.ones(2))
        Catalogue(2 groups of 20 to 30 members)
        """
        if not len(self):
            return "Catalogue(0 groups)"
        return f"Catalogue({len(self):,} groups of {int(self.members.min()):,} to {int(self.members.max()):,} members)"


def catalogue(particles: Particles, groups: Groups, min_members: int = 20) -> Catalogue:
    """The groups with at least `min_members`, with their centres and radii.

    Members are measured from their group's first one, by nearest image: in a periodic box, a group wider than half of
    the box has no meaningful centre.

    >>> particles = Particles([[0.1, 0.5], [0.9, 0.5], [0.5, 0.5]], box=1.0)
    >>> pair = catalogue(particles, Groups.from_labels([0, 0, 2], 0.2), min_members=2)
    >>> pair.members.tolist(), pair.centres.round(6).tolist(), pair.radii.round(6).tolist()
    ([2], [[0.0, 0.5]], [0.1])
    """
    labels = backend.to_host(groups.labels)
    if len(labels) != len(particles):
        raise WorkbenchError(f"groups must be of these {len(particles):,} particles; got labels of {len(labels):,}")
    sizes = np.bincount(labels, minlength=len(labels))
    chosen = np.flatnonzero(sizes[labels] >= min_members)
    chosen = chosen[np.argsort(labels[chosen], kind="stable")]
    if not len(chosen):
        empty = np.empty(0, np.int64)
        return Catalogue(empty, empty, np.empty((0, particles.dimensions)), np.empty(0))
    start = np.flatnonzero(np.diff(labels[chosen], prepend=-1))
    members = np.diff(start, append=len(chosen))
    positions = backend.to_host(particles.positions)[chosen].astype(np.float64)
    first = np.repeat(positions[start], members, axis=0)
    offset = nearest_image(positions - first, particles.box)
    mean = np.add.reduceat(offset, start) / members[:, None]
    spread = np.add.reduceat(((offset - np.repeat(mean, members, axis=0)) ** 2).sum(axis=1), start) / members
    centres = positions[start] + mean
    if particles.box is not None:
        centres = Particles.wrapped(centres, particles.box).positions
    order = np.argsort(-members, kind="stable")
    return Catalogue(labels[chosen][start][order], members[order], centres[order], np.sqrt(spread[order]))
