"""The groups of the original particles over all subdomains, and how large they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.archive.keeping.members import Cast
from workbench.clusters.keep.problem import UNASKED
from workbench.run.executors import Executor
from workbench.subdomains.joint import Compared, Joined


@dataclass(frozen=True)
class Sizes:
    """Of the groups at one linking length: how many have enough members, and the members of the largest."""

    count: int
    largest: int


def joined(cast: Cast, kind: str, executor: Executor, everything: bool = True) -> list[Joined]:
    """Make the labels of one kind the same for all subdomains, at each linking length; parts of groups are not counted."""
    compared = executor.map(f"compare-{kind}", _compare, cast.parts, shared=(cast, kind, everything))
    found = [Joined.of(of_length) for of_length in zip(*compared, strict=True)]
    for number, joint in enumerate(found):
        cast.labels(kind, number).tell(joint)
    return found


def name_groups(cast: Cast, groups: list[Joined], executor: Executor) -> list[Sizes]:
    """Give every particle the label of its group, or none if the group is too small to count."""
    found = executor.map("name-groups", _name, cast.parts, shared=cast)
    least, sizes = cast.terms.promise.min_members, []
    for number, shared in enumerate(groups):
        here = [part[number] for part in found]
        count = sum(one.count for one in here) + int((shared.members >= least).sum())
        sizes.append(Sizes(count, max([one.largest for one in here] + [int(shared.members.max(initial=0))])))
    return sizes


def _compare(shared: tuple[Cast, str, bool], part: int) -> list[Compared]:
    cast, kind, everything = shared
    return [cast.compare(part, kind, number, everything) for number in range(len(cast.terms.lengths))]


def _name(cast: Cast, part: int) -> list[Sizes]:
    """Returns the sizes of the groups that no other subdomain knows."""
    members, least, found = cast.of(part), cast.terms.promise.min_members, []
    owned = members["owned"]
    for number in range(len(cast.terms.lengths)):
        named = cast.named(part, "original", number)
        sizes = named.sizes(owned)
        members.save(**{f"head{number}": named.head})
        members.call(f"label{number}", named.names)
        if least > 1:
            group = np.where(sizes[named.head] >= least, named.head, UNASKED)
            members.save(**{f"group{number}": group.astype(np.int32)})
        sizes[named.names.row] = 0
        found.append(Sizes(int((sizes >= least).sum()), int(sizes.max(initial=0))))
    return found


def same_groups(cast: Cast, part: int) -> int:
    """How many particles of a subdomain are in another group now than in the original; groups too small do not count."""
    members, differ, least = cast.of(part), 0, cast.terms.promise.min_members
    owned, index = members["owned"], members["index"]
    for number in range(len(cast.terms.lengths)):
        named = cast.named(part, "now", number)
        now = np.where(named.sizes(owned)[named.head] >= least, named.names.labels(named.head, index), -1)
        before = np.where(members[f"group{number}"] != UNASKED, members[f"label{number}"], -1)
        differ += int((now != before)[owned].sum())
    return differ
