"""Who repairs what: subdomains what lies inside them, and one owner each cluster of constraints near a border.

A subdomain moves only particles so deep inside it that no other subdomain's moves can affect them. Constraints that reach
others are left over. These are gathered: constraints near each other form a cluster, which is repaired as a whole, after
all subdomains are done, by one worker to whom every subdomain sends its particles around it. Clusters are far enough apart
to be independent, so it does not matter which are repaired together.

A cluster is never divided. One that is larger than a subdomain takes as much memory as its particles need, on one worker;
this happens where the bound is not small against the linking length, so that nearly all particles interact.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

import numpy as np

from workbench.archive.keeping.constraints import constraints
from workbench.archive.keeping.labels import ORIGINAL, constrained, kept_labels, named
from workbench.archive.keeping.members import Members, Subdomains
from workbench.archive.keeping.moved import STATE, Moved
from workbench.archive.keeping.near import near
from workbench.archive.keeping.partial import Excerpt, PartialRepair
from workbench.clusters import friends_of_friends
from workbench.clusters.keep.needs import Needs
from workbench.clusters.keep.partition import TOO_SMALL
from workbench.clusters.keep.problem import UNASKED
from workbench.data import Particles
from workbench.guarantees.guarantee import Allowance, TooExpensive
from workbench.run.executors import Executor
from workbench.run.scratch_files import load_together, make_folder, save_together
from workbench.subdomains.decomposition import WithGhosts
from workbench.subdomains.joint import Named
from workbench.subdomains.merging import distinct, places_of

ENDS = 2**13   # the ends of constraints that one worker repairs at a time; a cluster is not divided


@dataclass(frozen=True)
class Effort:
    """What an attempt took, and whether that is more than the allowance."""

    evaluated: int = 0
    descent: int = 0
    exceeded: bool = False


@dataclass(frozen=True, eq=False)
class Left:
    """What a subdomain leaves to others: the ends of constraints by index, and where they are in the original."""

    effort: Effort
    index: np.ndarray
    places: np.ndarray
    opened: list[np.ndarray]   # at each linking length: the groups with constraints that other subdomains know,
    alone: int                 # and how many others there are


@dataclass(frozen=True)
class Applied:
    """Of one subdomain after a round: whether anything has changed, and its particles with original coordinates."""

    changed: bool
    exact: int


@dataclass(frozen=True)
class Repaired:
    """A round of repairs: what it took, how many groups had constraints, and what has come of it in each subdomain."""

    efforts: list[Effort]
    opened: int
    applied: list[Applied]


def repair(subdomains: Subdomains, allowance: Allowance, executor: Executor) -> Repaired:
    """Attempt to repair all violated constraints once; every subdomain then knows what has moved, as `subdomains.next`.

    Raises TooExpensive where one attempt takes more than the allowance.
    """
    make_folder(subdomains.of_round)
    left = subdomains.run(executor, "repair-inside", functools.partial(_inside, allowance))
    efforts = [one.effort for one in left]
    _require_affordable(efforts)
    ends = _batches(left, subdomains.terms.apart, subdomains.terms.box)
    save_together(_ends(subdomains), ends)
    around = _parts_near(subdomains, ends["places"])
    sent = zip(around, subdomains.run(executor, "send-surroundings", _send, around), strict=True)
    pairs = np.array([(part, batch) for part, batches in sent for batch in batches], np.int64).reshape(-1, 2)
    save_together(_senders(subdomains), {"part": pairs[:, 0], "batch": pairs[:, 1]})
    batches = range(int(ends["batch"].max(initial=-1)) + 1)
    efforts += subdomains.run(executor, "repair-across", functools.partial(_across, allowance), batches)
    _require_affordable(efforts)
    applied = subdomains.run(executor, "apply-moves", _apply)
    rmtree(subdomains.of_round)
    shared = sum(len(distinct(np.concatenate(some))) for some in zip(*[one.opened for one in left], strict=True))
    return Repaired(efforts, shared + sum(one.alone for one in left), applied)


def _require_affordable(efforts: list[Effort]) -> None:
    if any(one.exceeded for one in efforts):
        raise TooExpensive


def _batches(left: Sequence[Left], apart: float, box: tuple[float, ...] | None) -> dict[str, np.ndarray]:
    """The ends of all constraints that are left over (rising), their places, and the batch that each belongs to.

    Ends that are near each other form a cluster; a batch has some clusters, as many as one worker should repair.
    """
    index, first = np.unique(np.concatenate([one.index for one in left]), return_index=True)
    places, batch = np.ascontiguousarray(np.concatenate([one.places for one in left])[first]), np.empty(0, np.int64)
    if len(index):
        label = friends_of_friends(Particles(places, box), apart, unit="length").labels
        _, cluster, size = np.unique(label, return_inverse=True, return_counts=True)
        before = np.cumsum(size) - size
        batch = np.unique((before // ENDS)[cluster.ravel()], return_inverse=True)[1].ravel()
    return {"index": index, "places": places, "batch": batch}


def _parts_near(subdomains: Subdomains, places: np.ndarray) -> list[int]:
    """The subdomains with particles near these places: those that own them, or would get ghosts of them."""
    destinations = WithGhosts(subdomains.decomposition, subdomains.terms.interaction).destinations(places)
    return np.union1d(destinations.owner, destinations.parts).tolist()


def _inside(allowance: Allowance, subdomains: Subdomains, part: int) -> Left:
    """Repair what lies inside a subdomain."""
    members, terms = subdomains.of(part), subdomains.terms
    needs, lengths = constraints(members), len(terms.lengths)
    if not len(needs):
        nothing, state = np.empty(0, np.int64), Moved.none(terms.dtype, terms.dimensions).state
        save_together(_changes(members), {"index": nothing, **state})
        save_together(_left_over(members), {"pairs": nothing.reshape(0, 2), "kind": needs.kind})
        return Left(Effort(), nothing, state["current"], [nothing] * lengths, 0)
    columns = _columns(members)
    groups = [named(members, ORIGINAL, number) for number in range(lengths)]
    excerpt = Excerpt.of(terms, columns, np.stack([constrained(members, one) for one in groups]))
    repair = PartialRepair(excerpt, columns, functools.partial(members.deep, columns["original"]), allowance)
    effort, treated = _attempted(repair, needs)
    mine = members.owned[needs.pairs[:, 0]]
    rest = needs.chosen(np.flatnonzero(mine & ~treated))
    save_together(_changes(members), repair.changes(members.index))
    save_together(_left_over(members), {"pairs": members.index[rest.pairs], "kind": rest.kind})
    ends = distinct(rest.pairs.ravel())
    return Left(effort, members.index[ends], columns["original"][ends], *_opened(members, groups, needs.chosen(mine)))


def _columns(members: Members) -> dict[str, np.ndarray]:
    """What a repair must know of each particle, but for its group."""
    decoded, context, forward = members.decoded()
    count, moved = len(members), members.moved
    return {
        "original": members.original(), "decoded": decoded, "context": context, "forward": forward,
        "current": moved.over("current", decoded.copy()), "rank": moved.over("rank", np.zeros(count, np.int32)),
        "tries": moved.over("tries", np.zeros(count, np.int32)),
    }


def _attempted(repair: PartialRepair, needs: Needs) -> tuple[Effort, np.ndarray]:
    """What an attempt took, and which constraints it has treated: none if it took too much."""
    try:
        treated, exceeded = repair.attempt(needs), False
    except TooExpensive:
        treated, exceeded = np.zeros(len(needs), bool), True
    return Effort(repair.evaluated, len(repair.descent), exceeded), treated


def _opened(members: Members, groups: Sequence[Named], needs: Needs) -> tuple[list[np.ndarray], int]:
    """The groups with constraints: those that other subdomains know, and the number of the others."""
    known, alone = [], 0
    for number, one in enumerate(groups):
        heads = distinct(one.head[needs.pairs[needs.kind >> 1 == number].ravel()])
        shared = one.names.known(heads)
        known.append(one.names.labels(heads[shared], members.index))
        alone += int((~shared).sum())
    return known, alone


def _send(subdomains: Subdomains, part: int) -> list[int]:
    """Write the own particles near each batch of ends, and the constraints that are left over; returns the batches."""
    members, terms = subdomains.of(part), subdomains.terms
    ends, left = load_together(_ends(subdomains)), load_together(_left_over(members))
    columns, own = _columns(members), np.flatnonzero(members.owned)
    rows, batch = near(columns["original"][own], ends["places"], ends["batch"], terms.interaction, terms.box)
    chosen = own[distinct(rows)]   # of which few are near ends of several batches
    sent = {name: array[chosen] for name, array in {"index": members.index, **columns}.items()}
    sent["labels"] = np.stack([kept_labels(members, number)[chosen] for number in range(len(terms.lengths))], axis=1)
    changes = load_together(_changes(members))
    place, here = places_of(changes["index"], sent["index"])
    for name in STATE:
        sent[name][place] = changes[name][here]
    of_pair = ends["batch"][np.searchsorted(ends["index"], left["pairs"][:, 0])]
    for one in (batches := distinct(batch).tolist()):
        some, pairs = np.searchsorted(chosen, own[rows[batch == one]]), of_pair == one
        particles = {name: array[some] for name, array in sent.items()}
        needs = {"pairs": left["pairs"][pairs], "kind": left["kind"][pairs]}
        save_together(_surroundings(subdomains, part, one), {**needs, **particles})
    return batches


def _across(allowance: Allowance, subdomains: Subdomains, batch: int) -> Effort:
    """Repair the clusters of one batch."""
    sent = load_together(_senders(subdomains))
    senders = sent["part"][sent["batch"] == batch].tolist()
    pieces = [load_together(_surroundings(subdomains, part, batch)) for part in senders]
    columns = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    pairs, kind = columns.pop("pairs"), columns.pop("kind")
    order = np.argsort(columns["index"])
    columns = {name: array[order] for name, array in columns.items()}
    pairs = np.searchsorted(columns["index"], pairs)
    sort = np.lexsort((kind, pairs[:, 1], pairs[:, 0]))
    needs = Needs(pairs[sort].astype(np.int32), kind[sort])
    labels = columns["labels"].T
    group = np.stack([np.unique(one, return_inverse=True)[1].ravel().astype(np.int32) for one in labels])
    group[labels == TOO_SMALL] = UNASKED
    repair = PartialRepair(Excerpt.of(subdomains.terms, columns, group), columns, _every, allowance)
    effort = _attempted(repair, needs)[0]
    save_together(_moved(subdomains, batch), repair.changes(columns["index"]))
    return effort


def _every(rows: np.ndarray) -> np.ndarray:
    return np.ones(len(rows), bool)


def _apply(subdomains: Subdomains, part: int) -> Applied:
    """Write the state of a subdomain after all moves of its particles, its own and others."""
    members, sent = subdomains.of(part), load_together(_senders(subdomains))
    around = [part, *distinct(members.owner).tolist()]
    batches = distinct(sent["batch"][np.isin(sent["part"], around)]).tolist()
    files = [_changes(subdomains.of(one)) for one in around] + [_moved(subdomains, batch) for batch in batches]
    moved, changed = members.moved.after(map(load_together, files), members.index)
    moved.save(subdomains.next.of(part).moves)
    return Applied(changed, moved.exact(members.owned))


def _changes(members: Members) -> Path:
    return members.subdomains.of_round / f"changes-{members.part}.npz"


def _left_over(members: Members) -> Path:
    return members.subdomains.of_round / f"left-{members.part}.npz"


def _ends(subdomains: Subdomains) -> Path:
    return subdomains.of_round / "ends.npz"


def _senders(subdomains: Subdomains) -> Path:
    """Which subdomains have sent particles to which batches."""
    return subdomains.of_round / "senders.npz"


def _surroundings(subdomains: Subdomains, part: int, batch: int) -> Path:
    return subdomains.of_round / f"surroundings-{part}-{batch}.npz"


def _moved(subdomains: Subdomains, batch: int) -> Path:
    return subdomains.of_round / f"moved-{batch}.npz"
