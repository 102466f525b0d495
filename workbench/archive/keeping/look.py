"""All constraints that the current positions violate, found subdomain by subdomain.

It is the global check of `clusters/keep/needs.py`: the parts into which groups have split and the pairs of particles of
different groups that are too near. Parts extend over subdomains, so they are joined as the groups are. A torn group that
several subdomains know has one minimum spanning forest: each subdomain offers the forest of the lost links that it knows,
and the forest of these is found in one place. What a subdomain leaves out cannot be in it.

Each pair is counted by the subdomain that owns its smaller index. No pair left means that the groups are kept.

The first look is at all particles. After repairs, `proof.py` gives a scope: only its particles and groups are looked at.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.archive.keeping.members import EVERY, Cast, Members, Rows
from workbench.archive.keeping.original import joined
from workbench.archive.keeping.proof import LOOK, Scope, exempt_file
from workbench.archive.keeping.vicinity import near
from workbench.clusters.alike import Exempt, Parts, parts_of
from workbench.clusters.broken import cheapest_links, spanning_links, squared_distances
from workbench.clusters.keep.needs import CANNOT_LINK, MUST_LINK
from workbench.clusters.keep.problem import UNASKED
from workbench.clusters.sorted_cells import SortedCells
from workbench.data import Particles
from workbench.run.executors import Executor
from workbench.run.scratch_files import save
from workbench.subdomains.joint import Joined, Names
from workbench.subdomains.merging import distinct

Pairs = np.ndarray   # (M, 2) indices in the archive, int64


@dataclass(frozen=True)
class Seen:
    """Of one subdomain: its share of the parts of groups that others know, and counts."""

    torn: list[np.ndarray]   # at each linking length, the pairs of a group and a part of it
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


def look(cast: Cast, executor: Executor, exempt: bool = True, scope: Scope | None = None) -> Violated:
    """Find all violated constraints, all of which are in the scope; those of each subdomain are in its files."""
    if cast.terms.promise.min_members > 1:
        executor.map("find-loose-parts", functools.partial(_loose, exempt), cast.parts, shared=cast)
        joined(cast, "loose", executor)
    seen = executor.map("find-parts", _parts, cast.parts, shared=(cast, exempt, scope))
    parts = joined(cast, "part", executor, scope is None)
    torn = [_torn(joint, [one.torn[number] for one in seen]) for number, joint in enumerate(parts)]
    lost = executor.map("find-lost-links", _lost, cast.parts, shared=(cast, torn, scope))
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


def _loose(exempt: bool, cast: Cast, part: int) -> None:
    """Groups too small to count must not grow: link all of them that are not safely apart."""
    members, terms = cast.of(part), cast.terms
    for number in range(len(terms.lengths)):
        label = np.empty(0, np.int32)
        if len(members):
            label = _split(cast, members, number, members[f"group{number}"], exempt, loose=True).part
        cast.name(part, "loose", number, label)


def _split(
    cast: Cast, members: Members, number: int, group: np.ndarray, exempt: bool, loose: bool = False, rows: Rows = EVERY
) -> Parts:
    """The parts of groups among these rows, and the conflicts, both by their places there."""
    terms, length = cast.terms, cast.terms.lengths[number]
    cells = SortedCells.of(Particles(members.take("current", rows), terms.box), length - terms.margin)
    original = np.asarray(members.mapped("original")) if isinstance(rows, slice) else members.take("original", rows)
    spared = Exempt(original, length) if exempt else None   # few of all particles are exempt: only these are read
    return parts_of(cells, group, length - terms.margin, length + terms.margin, spared, loose)


def _parts(shared: tuple[Cast, bool, Scope | None], part: int) -> Seen:
    """The parts of groups and the conflicts of one subdomain."""
    cast, exempt, scope = shared
    members, torn, conflicts = cast.of(part), [], 0
    owned, used = members["owned"], np.zeros(len(members), bool)
    for number in range(len(cast.terms.lengths)):
        rows, whole = (EVERY, EVERY) if scope is None else _in_scope(cast, members, number, scope)
        group = members[f"group{number}"]
        if cast.terms.promise.min_members > 1:
            named = cast.named(part, "loose", number)
            grown = named.sizes(owned)[named.head] >= cast.terms.promise.min_members
            group = np.where((group == UNASKED) & grown, members[f"head{number}"], group)
        label, pairs = np.empty(0, np.int32), np.empty((0, 2), np.int32)
        if len(members.take("owned", rows)):
            found = _split(cast, members, number, np.ascontiguousarray(group[rows]), exempt, rows=rows)
            pairs = _back(found.unlike, rows)
            used[_back(np.flatnonzero(found.exempt), rows)] = True
            label = _named(found.part, rows, whole)
        pairs = np.stack(np.divmod(distinct(pairs[:, 0] * np.int64(2**32) + pairs[:, 1]), 2**32), axis=1).astype(np.int32)
        members.save(**{f"near{number}": pairs})
        conflicts += int(owned[pairs[:, 0]].sum())
        torn.append(_pieces(members, number, label, whole))
        cast.name(part, "part", number, label, whole)
    save(exempt_file(members, LOOK, cast.round), np.flatnonzero(used))
    exact = members.moved.exact(owned) if scope is None else 0
    return Seen(torn, conflicts, bool(used.any()), exact)


def _in_scope(cast: Cast, members: Members, number: int, scope: Scope) -> tuple[np.ndarray, np.ndarray]:
    """The particles of a subdomain to look at: all members of some groups with others near suspects; and these members."""
    suspects = scope.suspects(members)
    head, touched = members[f"head{number}"], np.zeros(len(members), bool)
    touched[head[suspects]] = True
    touched[members.names(f"label{number}").rows(scope.shared[number])] = True
    whole = np.flatnonzero(touched[head])
    if not len(suspects):
        return whole, whole
    original, width = members["original"], cast.terms.far + 2 * cast.terms.shift
    around = near(original, original[suspects], np.zeros(len(suspects), np.int64), width, cast.terms.box)[0]
    return np.union1d(whole, around), whole


def _back(places: np.ndarray, rows: Rows) -> np.ndarray:
    """The rows of particles of which the places among the chosen rows are given."""
    return places if isinstance(rows, slice) else rows[places]


def _named(part: np.ndarray, rows: Rows, whole: Rows) -> np.ndarray:
    """The parts of the members of whole groups, by places among these; `part` is by places among all rows."""
    if isinstance(rows, slice) or isinstance(whole, slice):
        return part
    found: np.ndarray = np.searchsorted(whole, rows[part[np.searchsorted(rows, whole)]]).astype(np.int32)
    return found


def _pieces(members: Members, number: int, label: np.ndarray, whole: Rows) -> np.ndarray:
    """Pairs of a group that others know, too, and a part of it; `label` names the parts of the members of whole groups."""
    owned, known, group = (members.take(name, whole) for name in ("owned", f"shared{number}", f"group{number}"))
    known &= owned & (group != UNASKED)
    is_head = np.zeros(len(label), bool)
    is_head[label[known]] = True
    heads = _back(np.flatnonzero(is_head), whole)   # all particles of a part are in one group
    return np.column_stack([members.take(f"label{number}", heads), members.mapped("index")[heads]])


def _torn(joint: Joined, pairs: Sequence[np.ndarray]) -> np.ndarray:
    """The labels (rising) of the groups, of those that several subdomains know, that have several parts."""
    every = np.concatenate(pairs)
    every[:, 1] = joint.renaming.applied(every[:, 1])
    label, parts = np.unique(np.unique(every, axis=0)[:, 0], return_counts=True)
    return label[parts > 1]


def _lost(given: tuple[Cast, list[np.ndarray], Scope | None], part: int) -> Lost:
    """The minimum spanning forest of the torn groups of one subdomain, from the lost links that it knows."""
    cast, torn, scope = given
    members, result, decided = cast.of(part), Lost(0, [], [], []), 0
    index = members.mapped("index")
    for number in range(len(cast.terms.lengths)):
        whole, names = members.labelled("part", number, scope is None), members.names(f"label{number}")
        split = cast.named(part, "part", number, whole)
        piece = _rows(split.head, whole)
        called = Names(_rows(split.names.row, whole), split.names.label)
        head = members.take(f"head{number}", whole)
        chosen = _torn_members(head, piece, names, torn[number], len(members))
        if cast.terms.promise.min_members > 1:
            chosen = chosen[members.take(f"group{number}", whole)[chosen] != UNASKED]
        pairs = _spanning(cast, number, members, _back(chosen, whole), piece[chosen])
        pairs = chosen[pairs]
        ends = _back(pairs, whole)
        own = members.mapped("owned")[ends[:, 0]]
        pairs, ends, shared = pairs[own], ends[own], names.known(head[pairs[own, 0]])
        members.save(**{f"links{number}": ends[~shared]})
        decided += int((~shared).sum())
        result.pairs.append(index[ends[shared]])
        result.ends.append(called.labels(piece[pairs[shared]], index))
        current = members.take("current", ends[shared].ravel())
        result.squared.append(squared_distances(current, np.arange(len(current)).reshape(-1, 2), cast.terms.box))
        _save_joined(members, number, piece, called, whole)
    return Lost(decided, result.pairs, result.ends, result.squared)


def _rows(places: np.ndarray, whole: Rows) -> np.ndarray:
    """The rows (int32) of which the places among the members of whole groups are given."""
    return places if isinstance(whole, slice) else whole[places].astype(np.int32)


def _torn_members(head: np.ndarray, piece: np.ndarray, names: Names, torn: np.ndarray, count: int) -> np.ndarray:
    """The places of the members of groups that have several parts: here or, if others know them, anywhere (`torn`)."""
    of_group, is_torn = np.empty(count, np.int32), np.zeros(count, bool)
    of_group[head] = piece
    is_torn[head[piece != of_group[head]]] = True
    is_torn[names.row] = False
    is_torn[names.rows(torn)] = True
    return np.flatnonzero(is_torn[head])


def _save_joined(members: Members, number: int, piece: np.ndarray, called: Names, whole: Rows) -> None:
    """Write what the part of each particle is called; a group of which nobody looked at the members is one part."""
    if isinstance(whole, np.ndarray):
        every, names = members[f"head{number}"], members.names(f"label{number}")
        others = ~np.isin(names.row, whole)
        row, label = (np.concatenate([getattr(names, of)[others], getattr(called, of)]) for of in ("row", "label"))
        order = np.argsort(row)
        every[whole], called = piece, Names(row[order], label[order])
        piece = every
    members.save(**{f"piece{number}": piece})
    members.call(f"joined{number}", called)


def _spanning(cast: Cast, number: int, members: Members, rows: np.ndarray, split: np.ndarray) -> np.ndarray:
    """The forest among these rows, of which the parts are given, as pairs of places among them."""
    if not len(rows):
        return np.empty((0, 2), np.int64)
    present = np.zeros(int(split.max()) + 1, bool)
    present[split] = True
    torn = (np.cumsum(present, dtype=np.int32) - np.int32(1))[split]
    cells = SortedCells.of(Particles(members.take("original", rows), cast.terms.box), cast.terms.lengths[number])
    current = np.ascontiguousarray(members.take("current", rows))
    return spanning_links(cells, torn, cast.terms.lengths[number], current, cast.terms.box)


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
