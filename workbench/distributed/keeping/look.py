"""All constraints that the current positions violate, found subdomain by subdomain.

It is the global check of `clusters/keep/needs.py`: the parts into which groups have split and the pairs of particles of
different groups that are too near. Parts extend over subdomains, so they are joined as the groups are. A torn group that
several subdomains know has one minimum spanning forest: each subdomain offers the forest of the lost links that it knows,
and the forest of these is found in one place. What a subdomain leaves out cannot be in it.

Each pair is counted by the subdomain that owns its smaller index. No pair left means that the groups are kept.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.clusters.alike import Exempt, Parts, parts_of
from workbench.clusters.broken import cheapest_links, spanning_links, squared_distances
from workbench.clusters.keep.needs import CANNOT_LINK, MUST_LINK
from workbench.clusters.keep.problem import UNASKED
from workbench.clusters.keep.state import PINNED
from workbench.clusters.sorted_cells import SortedCells
from workbench.data import Particles
from workbench.distributed.executors import Executor
from workbench.distributed.joint import Joined
from workbench.distributed.keeping.members import Cast, Members
from workbench.distributed.keeping.original import joined
from workbench.distributed.merging import distinct

Pairs = np.ndarray   # (M, 2) indices in the archive, int64


@dataclass(frozen=True)
class Seen:
    """Of one subdomain: its share of the parts of groups that others know, and counts."""

    torn: list[np.ndarray]   # at each linking length the pairs of a group and a part of it
    conflicts: int
    exempted: bool
    exact: int


@dataclass(frozen=True)
class Lost:
    """Lost links of one subdomain: how many are decided, and those of groups that others know, with what decides."""

    decided: int
    pairs: list[Pairs]
    ends: list[np.ndarray]      # the parts at both ends
    squared: list[np.ndarray]   # the squared distance


@dataclass(frozen=True)
class Violated:
    """What a look at all particles has found."""

    count: int
    exempted: bool
    exact: int             # particles with their original coordinates
    links: list[Pairs]     # the must-link constraints of groups that several subdomains know


def look(cast: Cast, starts: np.ndarray, executor: Executor, exempt: bool = True) -> Violated:
    """Find all violated constraints; those of each subdomain are in its files."""
    if cast.terms.promise.min_members > 1:
        executor.map("find-loose-parts", functools.partial(_loose, cast, exempt), cast.parts)
        loose = joined(cast, "loose", starts, executor)
    else:
        loose = []
    seen = executor.map("find-parts", functools.partial(_parts, cast, loose, exempt), cast.parts)
    parts = joined(cast, "part", starts, executor)
    torn = [_torn(joint, [one.torn[number] for one in seen]) for number, joint in enumerate(parts)]
    lost = executor.map("find-lost-links", functools.partial(_lost, cast, parts, torn), cast.parts)
    links = [_forest(number, lost) for number in range(len(parts))]
    count = sum(one.conflicts for one in seen) + sum(one.decided for one in lost) + sum(map(len, links))
    return Violated(count, any(one.exempted for one in seen), sum(one.exact for one in seen), links)


def constraints(cast: Cast, links: Sequence[Pairs], part: int) -> tuple[np.ndarray, np.ndarray]:
    """The constraints that a subdomain knows: pairs of its rows, and kinds; sorted, so that no cut changes their order."""
    members, pairs, kinds = cast.of(part), [np.empty((0, 2), np.int64)], [np.empty(0, np.int32)]
    index = members["index"]
    for number, joint in enumerate(links):
        place = np.minimum(np.searchsorted(index, joint), max(len(index) - 1, 0))
        here = place[(index[place] == joint).all(axis=1)] if len(index) else place[:0]
        lost, near = members[f"links{number}"], members[f"near{number}"]
        for kind, found in ((MUST_LINK, lost), (MUST_LINK, here), (CANNOT_LINK, near)):
            pairs.append(found)
            kinds.append(np.full(len(found), 2 * number + kind, np.int32))
    every, most = np.concatenate(pairs), 2 * len(links)   # kinds
    code = distinct((every[:, 0].astype(np.int64) * len(index) + every[:, 1]) * most + np.concatenate(kinds))
    ends = np.divmod(code // most, max(len(index), 1))
    return np.stack(ends, axis=1).astype(np.int32), (code % most).astype(np.int32)


def _loose(cast: Cast, exempt: bool, part: int) -> None:
    """Groups too small to count must not grow: link all of them that are not safely apart."""
    members, terms = cast.of(part), cast.terms
    for number in range(len(terms.lengths)):
        label = np.empty(0, np.int32)
        if len(members):
            label = _split(cast, members, number, members[f"group{number}"], exempt, loose=True).part
        cast.name(part, "loose", number, label)


def _split(cast: Cast, members: Members, number: int, group: np.ndarray, exempt: bool, loose: bool = False) -> Parts:
    terms, length = cast.terms, cast.terms.lengths[number]
    cells = SortedCells.of(Particles(members["current"], terms.box), length - terms.margin)
    spared = Exempt(members["original"], length) if exempt else None
    return parts_of(cells, group, length - terms.margin, length + terms.margin, spared, loose)


def _parts(cast: Cast, loose: list[Joined], exempt: bool, part: int) -> Seen:
    """The parts of groups and the conflicts of one subdomain."""
    members, terms, torn, conflicts, exempted = cast.of(part), cast.terms, [], 0, False
    owned, index = members["owned"], members["index"]
    for number in range(len(terms.lengths)):
        asked = members[f"group{number}"]
        group, label, near = asked, np.empty(0, np.int32), np.empty((0, 2), np.int32)
        if loose:
            grown = cast.named(part, "loose", number, loose[number]).sizes(owned) >= terms.promise.min_members
            group = np.where((asked == UNASKED) & grown, members[f"head{number}"], asked)
        if len(members):
            found = _split(cast, members, number, group, exempt)
            label, near, exempted = found.part, found.unlike, exempted or found.exempted
        ends = np.divmod(distinct(near[:, 0] * np.int64(2**32) + near[:, 1]), 2**32)
        near = np.stack(ends, axis=1).astype(np.int32)
        members.save(**{f"near{number}": near})
        conflicts += int(owned[near[:, 0]].sum())
        cast.name(part, "part", number, label)
        known = owned & members[f"shared{number}"] & (asked != UNASKED)
        is_head = np.zeros(len(members), bool)
        is_head[label[known]] = True
        heads = np.flatnonzero(is_head)   # all particles of a part are in one group
        torn.append(np.column_stack([members.mapped(f"label{number}")[heads], index[heads]]))
    return Seen(torn, conflicts, exempted, int((members["rank"][owned] == PINNED).sum()))


def _torn(joint: Joined, pairs: Sequence[np.ndarray]) -> np.ndarray:
    """The labels (rising) of the groups, of those that several subdomains know, that have several parts."""
    every = np.concatenate(pairs)
    every[:, 1] = joint.renaming.applied(every[:, 1])
    label, parts = np.unique(np.unique(every, axis=0)[:, 0], return_counts=True)
    return label[parts > 1]


def _lost(cast: Cast, parts: list[Joined], torn: list[np.ndarray], part: int) -> Lost:
    """The minimum spanning forest of the torn groups of one subdomain, from the lost links that it knows."""
    members, terms = cast.of(part), cast.terms
    owned, index, result, decided = members["owned"], members["index"], Lost(0, [], [], []), 0
    for number, joint in enumerate(parts):
        split = cast.named(part, "part", number, joint)
        members.save(**{f"joined{number}": split.label})
        known, asked = members[f"shared{number}"], members[f"group{number}"] != UNASKED
        rows = np.flatnonzero(asked & (_is_torn(members[f"head{number}"], split.head) & ~known))
        others = np.flatnonzero(asked & known) if len(torn[number]) else rows[:0]
        others = others[np.isin(members[f"label{number}"][others], torn[number])]
        pairs = _spanning(terms.box, terms.lengths[number], members, np.sort(np.concatenate([rows, others])), split.head)
        pairs = pairs[owned[pairs[:, 0]]]
        offered = pairs[known[pairs[:, 0]]]
        members.save(**{f"links{number}": pairs[~known[pairs[:, 0]]]})
        decided += len(pairs) - len(offered)
        result.pairs.append(index[offered])
        result.ends.append(split.label[offered])
        result.squared.append(squared_distances(members["current"], offered, terms.box))
    return Lost(decided, result.pairs, result.ends, result.squared)


def _is_torn(group: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Whether the group of each particle has several parts; both are given by a row."""
    of_group = np.empty(len(group), part.dtype)
    of_group[group] = part
    torn = np.zeros(len(group), bool)
    torn[group[part != of_group[group]]] = True
    found: np.ndarray = torn[group]
    return found


def _spanning(
    box: tuple[float, ...] | None, length: float, members: Members, rows: np.ndarray, split: np.ndarray
) -> np.ndarray:
    """The forest among these rows, as pairs of rows."""
    if not len(rows):
        return np.empty((0, 2), np.int64)
    torn = np.unique(split[rows], return_inverse=True)[1].ravel().astype(np.int32)
    cells = SortedCells.of(Particles(members["original"][rows], box), length)
    current = np.ascontiguousarray(members["current"][rows])
    return rows[spanning_links(cells, torn, length, current, box)]


def _forest(number: int, lost: Sequence[Lost]) -> Pairs:
    """The minimum spanning forest of what all subdomains offer; equally short links are taken by index."""
    pairs, ends, squared = (
        np.concatenate([getattr(one, name)[number] for one in lost]) for name in ("pairs", "ends", "squared")
    )
    if not len(pairs):
        return pairs.reshape(0, 2)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    name, node = np.unique(ends[order], return_inverse=True)
    chosen = cheapest_links(node.reshape(-1, 2), np.arange(len(name)), squared[order])
    found: np.ndarray = pairs[order][chosen]
    return found
