"""All constraints that the current positions violate, found subdomain by subdomain.

It is the search of `clusters/keep/needs.py`: the parts into which groups have split, and the pairs of particles of
different groups that are too near. Parts extend over subdomains, so they are joined as the groups are. A split group that
several subdomains know has one minimum spanning forest: each subdomain offers the forest of the lost links that it knows,
and the forest of these is found in one place. What a subdomain leaves out cannot be in it.

Each pair is counted by the subdomain that owns its smaller index. No pair left means that the groups are kept. A subdomain
in which nothing has changed since it was searched is not searched again.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.archive.keeping import labels
from workbench.archive.keeping.labels import ORIGINAL, PARTS, UNSEPARATED, constrained, counting, join, named
from workbench.archive.keeping.members import Members, Subdomains
from workbench.clusters.alike import Exempt, Parts, parts_of
from workbench.clusters.broken import cheapest_links, spanning_links, squared_distances
from workbench.clusters.keep.needs import CANNOT_LINK, MUST_LINK, Needs
from workbench.clusters.keep.problem import UNASKED
from workbench.clusters.sorted_cells import SortedCells
from workbench.run.executors import Executor
from workbench.run.scratch_files import load, save
from workbench.subdomains.joint import Named
from workbench.subdomains.merging import distinct, places_of


@dataclass(frozen=True)
class Searched:
    """Of one subdomain: how many conflicts it counts, and whether original distances have decided about some pairs."""

    conflicts: int
    exempted: bool


@dataclass(frozen=True)
class Violated:
    """The violated constraints of all subdomains, which are in their files: how many, and what each search saw."""

    count: int
    searched: Sequence[Searched]


@dataclass(frozen=True)
class Lost:
    """Lost links of one subdomain at one linking length: how many are decided, and those of groups that others know.

    These are rows of three: the indices of both ends, and the label of the group. `parts` are those at both ends.
    """

    decided: int
    links: np.ndarray
    parts: np.ndarray
    squared: np.ndarray   # distances


def search(
    subdomains: Subdomains, executor: Executor, before: Violated | None = None, changed: Sequence[int] = (),
    exempt: bool = True,
) -> Violated:
    """Find all violated constraints; if it is known what was seen `before`, only subdomains that have changed are searched.

    Without exemptions, deciding pairs within the margin count, too.
    """
    if subdomains.terms.promise.min_members > 1:
        before = None   # the sizes of small groups that merge elsewhere decide, too
        subdomains.run(executor, "find-unseparated", functools.partial(_unseparated, exempt))
        join(subdomains, UNSEPARATED, executor)
    again = subdomains.parts if before is None else changed
    seen = subdomains.run(executor, "find-parts", functools.partial(_search, exempt), again)
    searched = ({} if before is None else dict(enumerate(before.searched))) | dict(zip(again, seen, strict=True))
    join(subdomains, PARTS, executor)
    count = sum(one.conflicts for one in searched.values())
    for number, lost in enumerate(zip(*subdomains.run(executor, "find-lost-links", _lost), strict=True)):
        links = _forest(lost)
        save(_of_all(subdomains, "links", number), links)
        count += len(links) + sum(one.decided for one in lost)
    return Violated(count, [searched[part] for part in subdomains.parts])


def constraints(members: Members) -> Needs:
    """The constraints that a subdomain knows, between its rows; sorted, so that no cut changes their order."""
    pairs, kinds = [np.empty((0, 2), np.int64)], [np.empty(0, np.int32)]
    lengths = len(members.subdomains.terms.lengths)
    for number in range(lengths):
        own = [load(_of_one(members, kind, number)) for kind in ("links", "near")]
        for kind, some in zip((MUST_LINK, CANNOT_LINK, MUST_LINK), (*own, _shared_links(members, number)), strict=True):
            pairs.append(some)
            kinds.append(np.full(len(some), 2 * number + kind, np.int32))
    every = np.concatenate(pairs)
    if not len(every):
        return Needs(np.empty((0, 2), np.int32), np.empty(0, np.int32))
    code = distinct((every[:, 0] * len(members) + every[:, 1]) * 2 * lengths + np.concatenate(kinds))
    ends = np.divmod(code // (2 * lengths), len(members))
    return Needs(np.stack(ends, axis=1).astype(np.int32), (code % (2 * lengths)).astype(np.int32))


def _shared_links(members: Members, number: int) -> np.ndarray:
    """The lost links of groups that others know, too, as far as both ends are among the rows of a subdomain."""
    links = load(_of_all(members.subdomains, "links", number))
    if not len(links):
        return np.empty((0, 2), np.int64)
    here = places_of(links[:, :2], members.index)[1].all(axis=1)
    return np.searchsorted(members.index, links[here, :2])


def _unseparated(exempt: bool, subdomains: Subdomains, part: int) -> None:
    """Groups too small to count must not grow: link all of them that are not safely apart."""
    members = subdomains.of(part)
    current, original = members.current(), members.original()
    for number in range(len(subdomains.terms.lengths)):
        group = constrained(members, named(members, ORIGINAL, number))
        first = np.empty(0, np.int32)
        if len(members):
            first = _parts(members, number, group, current, original if exempt else None, link_up_to_far=True).part
        labels.write(members, UNSEPARATED, number, first)


def _search(exempt: bool, subdomains: Subdomains, part: int) -> Searched:
    """The parts of groups and the conflicts of one subdomain."""
    members, conflicts, exempted = subdomains.of(part), 0, False
    current, original = members.current(), members.original() if exempt else None
    for number in range(len(subdomains.terms.lengths)):
        first, pairs = np.empty(0, np.int32), np.empty((0, 2), np.int32)
        if len(members):
            parts = _parts(members, number, _labels(members, number), current, original)
            first, exempted = parts.part, exempted or parts.exempted
            code = distinct(parts.unlike[:, 0] * np.int64(2**32) + parts.unlike[:, 1])
            pairs = np.stack(np.divmod(code, 2**32), axis=1).astype(np.int32)
        save(_of_one(members, "near", number), pairs)
        conflicts += int(members.owned[pairs[:, 0]].sum())
        labels.write(members, PARTS, number, first)
    return Searched(conflicts, exempted)


def _parts(
    members: Members, number: int, group: np.ndarray, current: np.ndarray, original: np.ndarray | None,
    link_up_to_far: bool = False,
) -> Parts:
    """The parts of groups, and conflicts; with `link_up_to_far`, all that are not safely apart are linked."""
    terms, length = members.subdomains.terms, members.subdomains.terms.lengths[number]
    near, far, spared = length - terms.margin, length + terms.margin, None if original is None else Exempt(original, length)
    return parts_of(SortedCells.of(members.inside(current), near), group, near, far, spared, link_up_to_far)


def _labels(members: Members, number: int) -> np.ndarray:
    """What distinguishes groups: small ones have no label, unless they might have grown until they count."""
    groups = named(members, ORIGINAL, number)
    label = constrained(members, groups)
    if members.subdomains.terms.promise.min_members == 1:
        return label
    grown = counting(members, named(members, UNSEPARATED, number))
    return np.where((label == UNASKED) & grown, groups.head, label).astype(np.int32)


def _lost(subdomains: Subdomains, part: int) -> list[Lost]:
    """The minimum spanning forests of the split groups of one subdomain, from the lost links that it knows."""
    members = subdomains.of(part)
    return [_lost_at(members, number) for number in range(len(subdomains.terms.lengths))]


def _lost_at(members: Members, number: int) -> Lost:
    """The forest at one linking length. Links of groups that nobody else knows are decided, and go to a file."""
    groups, parts = named(members, ORIGINAL, number), named(members, PARTS, number)
    rows = np.flatnonzero(_is_split(members, groups, parts)[groups.head])
    pairs, current = np.empty((0, 2), np.int64), np.empty(0)
    if len(rows):
        current = members.current()
        pairs = rows[_spanning(members, number, rows, parts.head[rows], current)]
        pairs = pairs[members.owned[pairs[:, 0]]]
    shared = groups.names.known(groups.head[pairs[:, 0]])
    save(_of_one(members, "links", number), pairs[~shared])
    decided, pairs = int((~shared).sum()), pairs[shared]
    if not len(pairs):
        return Lost(decided, np.empty((0, 3), np.int64), np.empty((0, 2), np.int64), np.empty(0))
    label = groups.names.labels(groups.head[pairs[:, 0]], members.index)
    squared = squared_distances(current, pairs, members.subdomains.terms.box)
    links = np.column_stack([members.index[pairs], label])
    return Lost(decided, links, parts.names.labels(parts.head[pairs], members.index), squared)


def _is_split(members: Members, groups: Named, parts: Named) -> np.ndarray:
    """At the first row of each group that counts, whether it has several parts, here or elsewhere.

    The label of a group and that of a part are both the smallest index, so a group is one part if all of it that is here
    has its label, and this part has as many members as the group.
    """
    counts, row = counting(members, groups), groups.names.row
    is_split = np.zeros(len(members), bool)
    is_split[groups.head[(parts.head != groups.head) & counts]] = True
    elsewhere = parts.names.labels(row, members.index) != groups.names.label
    elsewhere |= parts.sizes(members.owned)[row] != groups.members
    is_split[row] |= elsewhere & counts[row]
    return is_split


def _spanning(members: Members, number: int, rows: np.ndarray, part: np.ndarray, current: np.ndarray) -> np.ndarray:
    """The forest among these rows, of which the parts are given, as pairs of places among them."""
    if not len(rows):
        return np.empty((0, 2), np.int64)
    present = np.zeros(int(part.max()) + 1, bool)
    present[part] = True
    numbered = (np.cumsum(present, dtype=np.int32) - np.int32(1))[part]
    length, box = members.subdomains.terms.lengths[number], members.subdomains.terms.box
    cells = SortedCells.of(members.inside(members.original()[rows]), length)
    return spanning_links(cells, numbered, length, np.ascontiguousarray(current[rows]), box)


def _forest(lost: Sequence[Lost]) -> np.ndarray:
    """The minimum spanning forest of what all subdomains offer; equally short links are taken by index."""
    links, parts, squared = (np.concatenate([getattr(one, name) for one in lost]) for name in ("links", "parts", "squared"))
    if not len(links):
        return links
    order = np.lexsort((links[:, 1], links[:, 0]))
    name, node = np.unique(parts[order], return_inverse=True)
    chosen = cheapest_links(node.reshape(-1, 2), np.arange(len(name)), squared[order])
    forest: np.ndarray = links[order][chosen]
    return forest


def _of_one(members: Members, kind: str, number: int) -> Path:
    """A file of one subdomain."""
    return members.subdomains.labels / f"{kind}-{number}-{members.part}.npy"


def _of_all(subdomains: Subdomains, kind: str, number: int) -> Path:
    """A file that all subdomains read."""
    return subdomains.labels / f"{kind}-{number}.npy"
