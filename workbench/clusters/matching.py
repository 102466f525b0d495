"""Halos of two sets of groups, matched by their members: which are the same, and which are split, merged, lost or new.

This is the one definition, for decoded particles, for two runs of a simulation and for two finders. Only pairs of groups
that share particles are counted, by one sort, so the time is that of sorting the particles, whatever the groups look like.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from workbench import backend, ordering
from workbench.clusters.groups import Groups

NONE = -1   # the label of no group: no member of a halo is in the other set
INTACT, SPLIT, MERGED = 0, 1, 2   # the status of a halo


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of groups of two sets that share particles, each once, by rising labels, and how many they share.

    >>> pairs = Pairs.counted(np.array([0, 0, 2]), np.array([1, 1, 0]))
    >>> pairs.first.tolist(), pairs.second.tolist(), pairs.shared.tolist()
    ([0, 2], [1, 0], [2, 1])
    """

    first: np.ndarray
    second: np.ndarray
    shared: np.ndarray

    @classmethod
    def counted(cls, first: np.ndarray, second: np.ndarray) -> Self:
        """The pairs of labels that these particles have, one label in either set."""
        return cls(*_added(first, second))

    @classmethod
    def together(cls, parts: Sequence[Pairs]) -> Self:
        """The pairs of all particles, from those of parts of them."""
        names = ("first", "second", "shared")
        return cls(*_added(*(np.concatenate([getattr(part, name) for part in parts]) for name in names)))

    def chosen(self, which: np.ndarray) -> Pairs:
        """Some of the pairs."""
        return Pairs(self.first[which], self.second[which], self.shared[which])

    def reversed(self) -> Pairs:
        """The same pairs, with the sets exchanged."""
        order = np.lexsort((self.first, self.second))
        return Pairs(self.second, self.first, self.shared).chosen(order)


@dataclass(frozen=True, eq=False)
class Match:
    """The halos of one set, the largest first, and their counterparts among the groups of another set.

    The `counterpart` of a halo is the label of the group with most of its members (-1: none of them is in the other set).
    It has `counterpart_members`, of which `shared` are among the halo's `members`. A halo is `matched` if its counterpart
    is a halo, too, to which no other halo contributes more members. `absent` members are not in the other set.
    """

    labels: np.ndarray
    members: np.ndarray
    counterpart: np.ndarray
    counterpart_members: np.ndarray
    shared: np.ndarray
    matched: np.ndarray
    absent: np.ndarray

    def __len__(self) -> int:
        return len(self.members)

    @property
    def recall(self) -> np.ndarray:
        """The share of each halo's members that are still together."""
        return self.shared / self.members

    @property
    def identical(self) -> np.ndarray:
        """Which halos have exactly the same members as their counterpart."""
        return (self.shared == self.members) & (self.shared == self.counterpart_members)

    @property
    def split(self) -> np.ndarray:
        """Which halos lost members."""
        return self.shared < self.members

    @property
    def merged(self) -> np.ndarray:
        """Which halos lost no members, but gained some."""
        return ~self.identical & ~self.split

    @property
    def status(self) -> np.ndarray:
        """Of each halo: INTACT (identical), SPLIT or MERGED (uint8)."""
        return np.where(self.split, SPLIT, np.where(self.identical, INTACT, MERGED)).astype(np.uint8)

    @property
    def broken(self) -> np.ndarray:
        """Which halos lost or gained members: those that are split, and those that are merged."""
        return ~self.identical

    @property
    def lost(self) -> np.ndarray:
        """Which halos match none of the other set."""
        return ~self.matched

    @property
    def different(self) -> np.ndarray:
        """How many particles are in a halo or in its counterpart, but not in both."""
        return self.members + self.counterpart_members - 2 * self.shared


@dataclass(frozen=True, eq=False)
class Halos:
    """The groups of a set that count as halos, the largest first."""

    labels: np.ndarray
    members: np.ndarray

    @classmethod
    def of(cls, groups: Groups, min_members: int) -> Self:
        """The groups with at least so many members (the smaller label first among equals)."""
        sizes, ids = backend.to_host(groups.sizes), backend.to_host(groups.ids)
        large = np.flatnonzero(sizes >= min_members)
        order = large[np.argsort(-sizes[large], kind="stable")]
        return cls(ids[order], sizes[order])

    def has(self, labels: np.ndarray) -> np.ndarray:
        """Which of these labels are those of halos."""
        return np.isin(labels, self.labels)


def match(halos: Halos, others: Halos, pairs: Pairs, sizes: Any) -> Match:
    """The halos with their counterparts; `pairs` has all pairs of these halos, `sizes` returns the members of groups.

    Of counterparts that share equally many members, the smaller label is taken.
    """
    mine = pairs.chosen(halos.has(pairs.first))
    there = np.unique(mine.first)
    best = most_shared(mine.first, mine.second, mine.shared)
    place = np.searchsorted(there, halos.labels)
    known = np.isin(halos.labels, there)
    at = best[np.minimum(place, max(len(there) - 1, 0))] if len(there) else np.zeros(len(halos.labels), np.int64)
    counterpart, shared = np.full(len(halos.labels), NONE, np.int64), np.zeros(len(halos.labels), np.int64)
    counterpart[known], shared[known] = mine.second[at[known]], mine.shared[at[known]]
    members = np.zeros(len(counterpart), np.int64)
    members[known] = sizes(counterpart[known])
    return Match(
        halos.labels, halos.members, counterpart, members, shared,
        matched=known & others.has(counterpart) & (_owner(mine, counterpart) == halos.labels),
        absent=halos.members - _sums(mine.first, mine.shared, halos.labels),
    )


def match_groups(halos: Halos, labels: np.ndarray, others: Groups, min_members: int) -> Match:
    """The halos with their counterparts in other groups of the same particles, of which these are the labels before.

    >>> before, after = Groups.from_labels([0, 0, 0, 0, 4], 0.1), Groups.from_labels([0, 1, 1, 1, 1], 0.1)
    >>> found = match_groups(Halos.of(before, 2), before.labels, after, 2)
    >>> found.status.tolist() == [SPLIT], found.counterpart.tolist(), found.counterpart_members.tolist()
    (True, [1], [4])
    """
    is_halo = np.zeros(len(labels), bool)
    is_halo[halos.labels] = True
    members = np.flatnonzero(is_halo[labels])
    pairs = Pairs.counted(labels[members], others.labels[members])
    return match(halos, Halos.of(others, min_members), pairs, others.sizes_of)


def _added(
    first: np.ndarray, second: np.ndarray, shared: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct pairs by rising labels, with the sums of what they share: by default, one each."""
    if not len(first):
        return tuple(np.empty(0, np.int64) for _ in range(3))   # type: ignore[return-value]
    width = int(second.max()) + 1
    if (int(first.max()) + 1) * width < 2**63:
        key = (first.astype(np.int64) * width + second).astype(np.uint64)
        order = ordering.sort_by_key(key, int(key.max()).bit_length())
        start = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    else:
        order = np.lexsort((second, first))
        one, other = first[order], second[order]
        start = np.flatnonzero(np.append(True, (one[1:] != one[:-1]) | (other[1:] != other[:-1])))
    at = order[start]
    sums = np.diff(start, append=len(first)) if shared is None else np.add.reduceat(shared[order], start)
    return first[at].astype(np.int64), second[at].astype(np.int64), sums


def most_shared(owner: np.ndarray, other: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Which pair of each owner, by rising label, shares most members; of equals, that with the smaller other label."""
    ranked = np.lexsort((other, -shared, owner))
    return ranked[np.flatnonzero(np.diff(owner[ranked], prepend=NONE))]


def _owner(pairs: Pairs, groups: np.ndarray) -> np.ndarray:
    """The halo that contributes most members to each of these groups."""
    best = most_shared(pairs.second, pairs.first, pairs.shared)
    if not len(best):
        return np.full(len(groups), NONE)
    place = np.minimum(np.searchsorted(pairs.second[best], groups), len(best) - 1)
    return np.where(pairs.second[best[place]] == groups, pairs.first[best[place]], NONE)


def _sums(labels: np.ndarray, counts: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The sum of the counts of each wanted label."""
    known, group = np.unique(labels, return_inverse=True)
    found = np.zeros(len(wanted), np.int64)
    if len(known):
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        sums = np.bincount(group, weights=counts).astype(np.int64)
        found[:] = np.where(known[place] == wanted, sums[place], 0)
    return found
