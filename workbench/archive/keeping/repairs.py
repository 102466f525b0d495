"""Who repairs what: subdomains what lies inside them, and one owner each cluster of constraints near a border.

A subdomain moves only particles so deep inside it that no other subdomain's moves can affect them. Constraints that reach
others are left over. These are gathered: constraints near each other form a cluster, which is repaired as a whole, after
all subdomains are done, by one worker to whom every subdomain lends the particles around it. Clusters are far enough apart
to be independent, so it does not matter which are repaired together.

A cluster is never divided. One that is larger than a subdomain takes as much memory as its particles need, on one worker;
this happens where the bound is not small against the linking length, so that nearly all particles interact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from workbench.archive.keeping.look import Pairs, constraints
from workbench.archive.keeping.members import Cast, Rows
from workbench.archive.keeping.moved import STATE, update
from workbench.archive.keeping.patch import columns_of
from workbench.archive.keeping.proof import remember
from workbench.archive.keeping.settling import Place, Settled, settled
from workbench.archive.keeping.vicinity import near
from workbench.clusters import friends_of_friends
from workbench.clusters.keep.attempts import Allowance
from workbench.clusters.keep.needs import Needs
from workbench.data import Particles
from workbench.run.executors import Executor
from workbench.run.scratch_files import load_together, save_together
from workbench.subdomains.decomposition import WithGhosts
from workbench.subdomains.merging import distinct

ENDS = 2**13   # the ends of constraints that one worker repairs at a time; a cluster is not divided


@dataclass(frozen=True)
class Repaired:
    """What one repair took; None for what exceeded the allowance."""

    evaluated: int = 0
    attempts: int = 0
    descent: int = 0
    dear: bool = False

    @classmethod
    def of(cls, done: Settled) -> Self:
        """The figures of a repair."""
        return cls(done.evaluated, done.attempts, done.descent, done.dear)


@dataclass(frozen=True, eq=False)
class Left:
    """What a subdomain leaves to others: the ends of constraints by index, and where they are in the original."""

    repaired: Repaired
    index: np.ndarray
    places: np.ndarray
    opened: list[np.ndarray]   # at each linking length: the groups with constraints that other subdomains know,
    alone: int                 # and how many others there are


@dataclass(frozen=True, eq=False)
class Ends:
    """The ends of all constraints that are left over (rising), their places, and the batch that each belongs to."""

    index: np.ndarray
    places: np.ndarray
    batch: np.ndarray

    @classmethod
    def of(cls, left: Sequence[Left], apart: float, box: tuple[float, ...] | None) -> Ends | None:
        """Clusters of ends, in batches of about as many as one worker should repair; None if nothing is left."""
        index, first = np.unique(np.concatenate([one.index for one in left]), return_index=True)
        if not len(index):
            return None
        places = np.ascontiguousarray(np.concatenate([one.places for one in left])[first])
        label = friends_of_friends(Particles(places, box), apart, unit="length").labels
        _, cluster, size = np.unique(label, return_inverse=True, return_counts=True)
        before = np.cumsum(size) - size
        return cls(index, places, np.unique((before // ENDS)[cluster.ravel()], return_inverse=True)[1].ravel())


def repair(
    cast: Cast, links: list[Pairs], allowance: Allowance, executor: Executor
) -> tuple[list[Repaired], list[Left], list[bool]]:
    """Repair all violated constraints once; every subdomain then knows what has moved, as `cast.next`.

    It also returns in which subdomains anything has changed.
    """
    left = executor.map("repair-inside", _inside, cast.parts, shared=(cast, links, allowance))
    repaired = [one.repaired for one in left]
    ends = None if any(one.dear for one in repaired) else Ends.of(left, cast.terms.apart, cast.terms.box)
    lent: list[list[int]] = [[] for _ in cast.parts]
    if ends is not None:
        names = cast.folder / f"ends-{cast.round}.npz"
        save_together(names, {"index": ends.index, "places": ends.places, "batch": ends.batch})
        lenders = _lenders(cast, ends.places)
        given = executor.map("lend-particles", _lend, lenders, shared=(cast, names))
        for part, of_part in zip(lenders, given, strict=True):
            lent[part] = of_part
        batches = range(int(ends.batch.max()) + 1)
        of_batch = [[part for part in cast.parts if batch in lent[part]] for batch in batches]
        repaired += executor.map("repair-across", _across, batches, shared=(cast, allowance, of_batch))
    return repaired, left, executor.map("apply-moves", _apply, cast.parts, shared=(cast, lent))


@dataclass(frozen=True, eq=False)
class Lent:
    """The particles that subdomains have lent, by rising index."""

    columns: Mapping[str, np.ndarray]

    def take(self, name: str, rows: Rows, /) -> np.ndarray:
        """Some rows of one of the arrays."""
        return self.columns[name][rows]


def _lenders(cast: Cast, places: np.ndarray) -> list[int]:
    """The subdomains with particles near these places: those that own them, or would get ghosts of them."""
    destinations = WithGhosts(cast.exchange.division.decomposition, cast.terms.context).destinations(places)   # type: ignore[attr-defined]
    return np.union1d(destinations.owner, destinations.parts).tolist()


def _inside(shared: tuple[Cast, list[Pairs], Allowance], part: int) -> Left:
    """Repair what lies inside a subdomain."""
    cast, links, allowance = shared
    members, terms = cast.of(part), cast.terms
    pairs, kind = constraints(cast, links, part)
    if not len(pairs):
        return _untouched(cast, part)
    done = settled(Place(terms, members, named_by="head"), Needs(pairs, kind), members["deep"], allowance)
    if not cast.round:
        remember(members, done.rows, done.listed, pairs, kind)
    save_together(_changed(cast, part), done.changes)
    index, owned = members.mapped("index"), members["owned"]
    mine = ~done.treated & owned[pairs[:, 0]]
    save_together(_left_over(cast, part), {"pairs": index[pairs[mine]], "kind": kind[mine]})
    rest = distinct(pairs[mine].ravel())
    opened, alone = _opened(cast, part, pairs[owned[pairs[:, 0]]], kind[owned[pairs[:, 0]]])
    return Left(Repaired.of(done), index[rest], members.take("original", rest), opened, alone)


def _untouched(cast: Cast, part: int) -> Left:
    """What a subdomain without constraints writes."""
    members, nothing = cast.of(part), np.empty(0, np.int64)
    if not cast.round:
        remember(members, nothing, None, nothing.reshape(0, 2), nothing.astype(np.int32))
    save_together(_changed(cast, part), {name: members.take(name, nothing) for name in ("index", *STATE)})
    save_together(_left_over(cast, part), {"pairs": nothing.reshape(0, 2), "kind": nothing.astype(np.int32)})
    return Left(Repaired(), nothing, members["original"][:0], [nothing] * len(cast.terms.lengths), 0)


def _opened(cast: Cast, part: int, pairs: np.ndarray, kind: np.ndarray) -> tuple[list[np.ndarray], int]:
    """The groups with constraints: those that other subdomains know, and the number of the others."""
    members, known, alone = cast.of(part), [], 0
    for number in range(len(cast.terms.lengths)):
        ends = distinct(pairs[kind >> 1 == number].ravel())
        shared, label = members.take(f"shared{number}", ends), members.take(f"label{number}", ends)
        known.append(distinct(label[shared]))
        alone += len(distinct(label[~shared]))
    return known, alone


def _lend(shared: tuple[Cast, Path], part: int) -> list[int]:
    """Write the own particles near each batch of ends, and the constraints that are left over; returns the batches."""
    cast, names = shared
    members, terms, ends, left = cast.of(part), cast.terms, load_together(names), load_together(_left_over(cast, part))
    own = np.flatnonzero(members["owned"])
    rows, batch = near(members["original"][own], ends["places"], ends["batch"], terms.context, terms.box)
    of_pair = ends["batch"][np.searchsorted(ends["index"], left["pairs"][:, 0])]
    batches = np.unique(batch).tolist()
    changes = load_together(_changed(cast, part))
    for one in batches:
        chosen, mine = own[rows[batch == one]], of_pair == one
        lent = {name: members.take(name, chosen) for name in columns_of(terms)}
        update(lent, changes)
        save_together(_lent(cast, part, one), {"pairs": left["pairs"][mine], "kind": left["kind"][mine], **lent})
    return batches


def _across(shared: tuple[Cast, Allowance, list[list[int]]], batch: int) -> Repaired:
    """Repair the clusters of one batch."""
    cast, allowance, lenders = shared
    pieces = [load_together(_lent(cast, part, batch)) for part in lenders[batch]]
    given, kind, index = (np.concatenate([piece[name] for piece in pieces]) for name in ("pairs", "kind", "index"))
    order = np.argsort(index)
    lent = Lent({name: np.concatenate([piece[name] for piece in pieces])[order] for name in columns_of(cast.terms)})
    pairs = np.searchsorted(index[order], given)
    sort = np.lexsort((kind, pairs[:, 1], pairs[:, 0]))
    needs = Needs(pairs[sort].astype(np.int32), kind[sort])
    done = settled(Place(cast.terms, lent), needs, np.ones(len(order), bool), allowance)
    save_together(_moved(cast, batch), done.changes)
    return Repaired.of(done)


def _apply(shared: tuple[Cast, list[list[int]]], part: int) -> bool:
    """Write the state of a subdomain after all moves of its particles, its own and others; returns whether any moved."""
    cast, lent = shared
    members = cast.of(part)
    owners = np.unique(members["owner"]).tolist()
    batches = sorted({batch for one in [part, *owners] for batch in lent[one]})
    files = [_changed(cast, one) for one in [part, *owners]] + [_moved(cast, batch) for batch in batches]
    moved, changed = members.moved.after((load_together(file) for file in files), members.mapped("index"))
    moved.save(cast.next.of(part).moves)
    return changed


def _changed(cast: Cast, part: int) -> Path:
    return cast.folder / f"changes-{cast.round}-{part}.npz"


def _left_over(cast: Cast, part: int) -> Path:
    return cast.folder / f"left-{cast.round}-{part}.npz"


def _lent(cast: Cast, part: int, batch: int) -> Path:
    return cast.folder / f"lent-{cast.round}-{part}-{batch}.npz"


def _moved(cast: Cast, batch: int) -> Path:
    return cast.folder / f"moved-{cast.round}-{batch}.npz"
