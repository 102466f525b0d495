"""The result of a cluster search: which particles belong together."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench import backend
from workbench.arguments import whole_number
from workbench.backend import Array
from workbench.data.summary_html import summary
from workbench.errors import WorkbenchError, briefly


@dataclass(frozen=True, eq=False, repr=False)
class Groups:
    """A partition of particles into groups; a particle without friends is a group of its own.

    `labels[i]` is the smallest particle index in the group of particle i, so equal partitions have equal labels.
    `linking_length` is absolute, in the unit of the positions.

    >>> groups = Groups.from_labels([5, 5, 3, 5], linking_length=0.1)
    >>> groups
    Groups(4 particles in 2 groups; 3 in groups of two or more; largest 3; 0 with at least 20 members; linking length 0.1)
    >>> groups.labels.tolist(), groups.ids.tolist(), groups.sizes.tolist()
    ([0, 0, 2, 0], [0, 2], [3, 1])
    """

    labels: Array
    linking_length: float

    @classmethod
    def from_labels(cls, labels: Any, linking_length: float) -> Groups:
        """Groups from any integer labels, for instance those of another finder; equal labels mean the same group."""
        xp = backend.namespace(labels)
        given = xp.asarray(labels)
        if given.ndim != 1 or given.dtype.kind not in "iu" or len(given) == 0:
            raise WorkbenchError(f"labels must be a non-empty row of integers; got {given.dtype} of shape {given.shape}")
        _, smallest, group = xp.unique(given, return_index=True, return_inverse=True)
        return cls(smallest[group].astype(xp.int64), float(linking_length))

    @functools.cached_property
    def _members(self) -> Array:
        """The number of particles under each possible label."""
        return backend.namespace(self.labels).bincount(self.labels, minlength=len(self.labels))

    @functools.cached_property
    def ids(self) -> Array:
        """The label of every group, rising."""
        return backend.namespace(self.labels).flatnonzero(self._members > 0)

    @functools.cached_property
    def sizes(self) -> Array:
        """The number of members of every group, in the order of `ids`."""
        return self._members[self.ids]

    @property
    def largest_size(self) -> int:
        """The number of members of the largest group."""
        return int(self._members.max())

    def sizes_of(self, labels: Array) -> Array:
        """The number of members of the groups with these labels."""
        return self._members[labels]

    def __len__(self) -> int:
        return len(self.ids)

    def count(self, min_members: int = 20) -> int:
        """The number of groups with at least this many members.

        >>> Groups.from_labels([0, 0, 1], 0.1).count(min_members=2)
        1
        """
        return int((self._members >= max(whole_number("min_members", min_members, least=0), 1)).sum())

    def largest(self, most: int = 10) -> Array:
        """The labels of the largest groups, largest first (the smaller label first among equals).

        >>> Groups.from_labels([0, 1, 1, 3], 0.1).largest(2).tolist()
        [1, 0]
        """
        xp = backend.namespace(self.labels)
        return self.ids[xp.argsort(-self.sizes, kind="stable")[:most]]

    def members(self, label: int) -> Array:
        """The indices of the particles in one group.

        >>> Groups.from_labels([0, 1, 0], 0.1).members(0).tolist()
        [0, 2]
        """
        return backend.namespace(self.labels).flatnonzero(self.labels == label)

    def equals(self, other: Groups) -> bool:
        """Whether both are the same partition of the particles.

        >>> Groups.from_labels([7, 7, 9], 0.1).equals(Groups.from_labels([1, 1, 0], 0.2))
        True
        """
        if not isinstance(other, Groups):
            raise WorkbenchError(f"equals compares groups with groups; got {briefly(other)}")
        xp = backend.namespace(self.labels, other.labels)
        return len(self.labels) == len(other.labels) and bool(xp.array_equal(self.labels, other.labels))

    def __reduce__(self) -> tuple[Callable[..., Groups], tuple[Any, ...]]:
        return Groups, (self.labels, self.linking_length)   # arrays derived from the labels are not pickled

    def __repr__(self) -> str:
        joined = int(self.sizes[self.sizes > 1].sum())
        return (
            f"Groups({len(self.labels):,} particles in {len(self):,} groups; {joined:,} in groups of two or more; "
            f"largest {self.largest_size:,}; {self.count():,} with at least 20 members; "
            f"linking length {self.linking_length:.6g})"
        )

    def _repr_html_(self) -> str:
        several = self.sizes[self.sizes > 1]
        rows = {
            "particles": f"{len(self.labels):,}",
            "groups of two or more": f"{len(several):,}, with {int(several.sum()):,} particles",
            "with at least 20 members": f"{self.count():,}",
            "largest": f"{self.largest_size:,} members",
            "single particles": f"{len(self) - len(several):,}",
            "linking length": f"{self.linking_length:.6g}, in the unit of the positions",
        }
        return summary(repr(self), rows)
