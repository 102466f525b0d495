"""The groups of the original particles over all subdomains, and how large they are."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.clusters.keep.problem import UNASKED
from workbench.distributed.executors import Executor
from workbench.distributed.joint import Compared, Joined, starts_of
from workbench.distributed.keeping.members import Cast


@dataclass(frozen=True)
class Sizes:
    """Of the groups at one linking length: how many have enough members, and the members of the largest."""

    count: int
    largest: int


def enter(cast: Cast, executor: Executor) -> np.ndarray:
    """Find the groups in each subdomain; returns where the ghosts of each owner begin."""
    return starts_of(executor.map("find-groups", cast.enter, cast.parts))


def joined(
    cast: Cast, kind: str, starts: Sequence[np.ndarray], executor: Executor, everything: bool = True
) -> list[Joined]:
    """Make the labels of one kind the same for all subdomains, at each linking length; parts of groups are not counted.

    `starts` says for each linking length where the ghosts of each owner begin; unless `everything` is labelled, among those
    that are.
    """
    compared = executor.map(f"compare-{kind}", functools.partial(_compare, cast, kind, starts, everything), cast.parts)
    return [Joined.of(of_length) for of_length in zip(*compared, strict=True)]


def name_groups(cast: Cast, groups: list[Joined], executor: Executor) -> list[Sizes]:
    """Give every particle the label of its group, or none if the group is too small to count."""
    found = executor.map("name-groups", functools.partial(_name, cast, groups), cast.parts)
    least, sizes = cast.terms.promise.min_members, []
    for number, shared in enumerate(groups):
        here = [part[number] for part in found]
        count = sum(one.count for one in here) + int((shared.members >= least).sum())
        sizes.append(Sizes(count, max([one.largest for one in here] + [int(shared.members.max(initial=0))])))
    return sizes


def _compare(cast: Cast, kind: str, starts: Sequence[np.ndarray], everything: bool, part: int) -> list[Compared]:
    members, compared = cast.of(part), []
    for number, of_length in enumerate(starts):
        rows = members.labelled(kind, number, everything)
        index = members.take("index", rows)[members.take("owned", rows)]
        compared.append(cast.labels(kind, number).compare(of_length, part, index, counted=kind != "part"))
    return compared


def _name(cast: Cast, groups: list[Joined], part: int) -> list[Sizes]:
    """Returns the sizes of the groups that no other subdomain knows."""
    members, found = cast.of(part), []
    owned, least = members["owned"], cast.terms.promise.min_members
    for number, joint in enumerate(groups):
        named = cast.named(part, "original", number, joint)
        size = named.sizes(owned)
        members.save(**{
            f"label{number}": named.label,
            f"group{number}": np.where(size >= least, named.head, UNASKED).astype(np.int32),
            f"head{number}": named.head,
            f"shared{number}": named.shared,
        })
        sizes = np.bincount(named.head[owned & ~named.shared])
        found.append(Sizes(int((sizes[sizes > 0] >= least).sum()), int(sizes.max(initial=0))))
    return found


def same_groups(cast: Cast, groups: list[Joined], part: int) -> int:
    """How many particles of a subdomain are in another group now than in the original; groups too small do not count."""
    members, differ = cast.of(part), 0
    owned, least = members["owned"], cast.terms.promise.min_members
    for number, joint in enumerate(groups):
        named = cast.named(part, "now", number, joint)
        now = np.where(named.sizes(owned) >= least, named.label, -1)
        before = np.where(members[f"group{number}"] != UNASKED, members[f"label{number}"], -1)
        differ += int((now != before)[owned].sum())
    return differ
