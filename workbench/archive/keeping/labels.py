"""The groups of particles over all subdomains: each names those that it sees, and names are made the same for all.

There are labels of several kinds: of the groups of the original, of their parts that are still connected, and of the
groups that the finder sees in the end. Each subdomain writes, for each linking length, the first row of each particle's
group there; what all call a group follows from that and from what `subdomains/joint.py` says.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

import numpy as np

from workbench.archive.keeping.members import Members, Subdomains
from workbench.clusters.friends import link
from workbench.clusters.keep.partition import TOO_SMALL
from workbench.clusters.keep.problem import UNASKED
from workbench.clusters.sorted_cells import SortedCells
from workbench.errors import WorkbenchError
from workbench.run.executors import Executor
from workbench.run.scratch_files import load, make_folder, save
from workbench.subdomains.joint import JointLabels, Named
from workbench.subdomains.merging import places_of

MOST_MEMBERS = 2**27   # particles of a subdomain: rows have 32 bits, and pairs of rows with their kind 63
ORIGINAL, UNSEPARATED, PARTS, FINAL = "original", "unseparated", "part", "final"


@dataclass(frozen=True)
class Sizes:
    """Of the groups at one linking length: how many have enough members, and the members of the largest."""

    count: int
    largest: int


def find_original_groups(subdomains: Subdomains, executor: Executor) -> list[Sizes]:
    """Find the groups of the original particles over all subdomains; returns their sizes at each linking length."""
    subdomains.run(executor, "find-groups", _enter)
    join(subdomains, ORIGINAL, executor)
    of_lengths = zip(*subdomains.run(executor, "measure-groups", _sizes), strict=True)
    return [Sizes(sum(one.count for one in parts), max(one.largest for one in parts)) for parts in of_lengths]


def groups_differ(subdomains: Subdomains, executor: Executor) -> bool:
    """Whether the finder, which knows of no constraint, sees any particle in another group than in the original.

    The parts of groups are deleted first, so that scratch need not hold labels of three kinds.
    """
    rmtree(_folder(subdomains, PARTS), ignore_errors=True)
    subdomains.run(executor, "find-groups-again", _find_again)
    join(subdomains, FINAL, executor)
    differ = subdomains.run(executor, "compare-groups", _differ)
    rmtree(_folder(subdomains, FINAL), ignore_errors=True)
    return any(differ)


def write(members: Members, kind: str, number: int, first: np.ndarray) -> None:
    """Write labels of one kind of a subdomain, at one linking length: the first row of each particle's group there."""
    make_folder(_folder(members.subdomains, kind))
    save(_file(members, kind, number), first.astype(np.int32, copy=False))
    joint = _joint(members.subdomains, kind, number)
    joint.lend(members.part, members.index, first, members.owned, members.owner)


def join(subdomains: Subdomains, kind: str, executor: Executor) -> None:
    """Make the labels of one kind the same for all subdomains, at each linking length."""
    subdomains.run(executor, f"compare-{kind}", functools.partial(_compare, kind))
    for number in range(len(subdomains.terms.lengths)):
        _joint(subdomains, kind, number).merge(executor, again=kind == PARTS)


def named(members: Members, kind: str, number: int) -> Named:
    """The labels of one kind, with the names that all subdomains agree on."""
    head = load(_file(members, kind, number))
    return _joint(members.subdomains, kind, number).named(members.part, head, members.index)


def counting(members: Members, groups: Named) -> np.ndarray:
    """Which particles are in a group that has enough members to count."""
    least = members.subdomains.terms.promise.min_members
    if least == 1:
        return np.ones(len(groups.head), bool)
    is_large = groups.sizes(members.owned) >= least
    counts: np.ndarray = is_large[groups.head]
    return counts


def constrained(members: Members, groups: Named) -> np.ndarray:
    """For each particle the first row of its original group, or UNASKED in a group that is too small to count."""
    if members.subdomains.terms.promise.min_members == 1:
        return groups.head
    return np.where(counting(members, groups), groups.head, UNASKED).astype(np.int32)


def kept_labels(members: Members, number: int) -> np.ndarray:
    """The label of each particle's original group; TOO_SMALL in groups that do not count."""
    groups = named(members, ORIGINAL, number)
    return np.where(counting(members, groups), groups.names.labels(groups.head, members.index), TOO_SMALL)


def _enter(subdomains: Subdomains, part: int) -> None:
    """Find the groups of the original in a subdomain."""
    members = subdomains.of(part)
    if len(members) > MOST_MEMBERS:
        raise WorkbenchError(
            f"subdomain {part} must have at most {MOST_MEMBERS:,} particles, ghosts included; it has {len(members):,}: "
            "give more parts"
        )
    original = members.original()
    members.write_owners(original)
    _find(members, ORIGINAL, original)


def _find_again(subdomains: Subdomains, part: int) -> None:
    members = subdomains.of(part)
    _find(members, FINAL, members.current())


def _find(members: Members, kind: str, positions: np.ndarray) -> None:
    for number, length in enumerate(members.subdomains.terms.lengths):
        first = np.empty(0, np.int64)
        if len(positions):
            first = link(SortedCells.of(members.inside(positions), length)).labels
        write(members, kind, number, first)


def _compare(kind: str, subdomains: Subdomains, part: int) -> None:
    """What others call the particles of a subdomain; and the members, here, of groups that others know."""
    members = subdomains.of(part)
    for number in range(len(subdomains.terms.lengths)):
        first = load(_file(members, kind, number))
        label_of, members_of = (functools.partial(of, members, first) for of in (_labels_of, _members_of))
        _joint(subdomains, kind, number).compare(part, members.neighbours, label_of, members_of)


def _labels_of(members: Members, first: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The labels, as a subdomain gives them, of particles of these indices."""
    labels: np.ndarray = members.index[first[np.searchsorted(members.index, wanted)]]
    return labels


def _members_of(members: Members, first: np.ndarray, label: np.ndarray) -> np.ndarray:
    """How many particles that a subdomain owns have each of these labels."""
    here, counts = np.bincount(first[members.owned], minlength=len(first)), np.zeros(len(label), np.int64)
    row, known = places_of(label, members.index)
    counts[known] = here[row]
    return counts


def _sizes(subdomains: Subdomains, part: int) -> list[Sizes]:
    """The sizes of the groups of which a subdomain owns the particle with the smallest index."""
    members, least, of_lengths = subdomains.of(part), subdomains.terms.promise.min_members, []
    for number in range(len(subdomains.terms.lengths)):
        groups = named(members, ORIGINAL, number)
        sizes = groups.sizes(members.owned)
        row = groups.names.row
        sizes[row[(groups.names.label != members.index[row]) | ~members.owned[row]]] = 0
        of_lengths.append(Sizes(int((sizes >= least).sum()), int(sizes.max(initial=0))))
    return of_lengths


def _differ(subdomains: Subdomains, part: int) -> bool:
    """Whether a particle of a subdomain is in another group now than in the original; groups too small do not count."""
    members = subdomains.of(part)
    return any(_labels_differ(members, number) for number in range(len(subdomains.terms.lengths)))


def _labels_differ(members: Members, number: int) -> bool:
    """Whether groups at one linking length differ: in their particles here or, if others know them, in their names."""
    before, after = (named(members, kind, number) for kind in (ORIGINAL, FINAL))
    counted, counts = (counting(members, groups) for groups in (before, after))
    if bool((counted != counts).any() or (before.head != after.head)[counted].any()):
        return True
    one, other = (
        np.stack([groups.names.row, groups.names.label])[:, counted[groups.names.row]] for groups in (before, after)
    )
    return not np.array_equal(one, other)


def _joint(subdomains: Subdomains, kind: str, number: int) -> JointLabels:
    return JointLabels(_folder(subdomains, kind), str(number), subdomains.decomposition.parts)


def _file(members: Members, kind: str, number: int) -> Path:
    return _folder(members.subdomains, kind) / f"{number}-{members.part}.npy"


def _folder(subdomains: Subdomains, kind: str) -> Path:
    return subdomains.labels / kind
