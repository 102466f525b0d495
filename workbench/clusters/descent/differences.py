"""Which links of a merger tree break when the positions change: counted by kind, and known for each link.

Halos of both are matched at each step by their members, as `wb.compare_groups` does. A link leads from a halo to its
descendant. It is kept if the counterparts of both halos have the same link, and if the halo is still the main progenitor
exactly if it was before.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.charts.table import html_table
from workbench.clusters.descent.step import NOBODY, StepHalos
from workbench.clusters.descent.succession import MERGES, Succession
from workbench.clusters.matching import Halos, Pairs, match
from workbench.data.ids import common
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from workbench.clusters.descent.result import Descent

KEPT, NO_HALO, ELSEWHERE, RANK, NO_LINK = 0, 1, 2, 3, 4
KINDS = ("kept", "no counterpart", "leads elsewhere", "other rank")


@dataclass(frozen=True, eq=False, repr=False)
class DescentDifferences:
    """What has become of the links of a descent in another one.

    `links` has for each step and each of its halos the kind of its link to the next step: kept; no counterpart, if one of
    its two halos matches none; leads elsewhere, if the counterpart has another descendant or none; other rank, if a main
    progenitor merges there, or the other way round. `counterparts` has the number of the halo of the other descent that
    matches each halo, `added` the number of its links that correspond to none, by step.
    """

    links: tuple[np.ndarray, ...]
    counterparts: tuple[np.ndarray, ...]
    added: tuple[int, ...]
    branches: int
    whole_branches: int
    equal: bool

    @property
    def counts(self) -> dict[str, int]:
        """The number of all links, of those of each kind, and of links that only the other descent has."""
        found = np.bincount(np.concatenate([[], *self.links]).astype(np.int64), minlength=NO_LINK + 1)
        return {
            "links": int(found[:NO_LINK].sum()), **dict(zip(KINDS, found.tolist(), strict=False)), "added": sum(self.added),
        }

    @property
    def broken(self) -> int:
        """The number of links that are not kept."""
        return self.counts["links"] - self.counts["kept"]

    @property
    def _title(self) -> str:
        counts = self.counts
        told = ", ".join(f"{counts[kind]:,} {kind}" for kind in (*KINDS, "added"))
        whole = f"{self.whole_branches:,} of {self.branches:,} main branches whole"
        return f"{counts['links']:,} links: {told}; {whole}{'; equal' if self.equal else ''}"

    def __repr__(self) -> str:
        return f"DescentDifferences({self._title})"

    def _repr_html_(self) -> str:
        """A table for notebooks: one row for each pair of steps."""
        rows = []
        for at, (kinds, added) in enumerate(zip(self.links, self.added, strict=True)):
            found = np.bincount(kinds, minlength=NO_LINK)[:NO_LINK]
            rows.append([f"{at} to {at + 1}", *(f"{n:,}" for n in (found.sum(), *found, added))])
        table = html_table(["steps", "links", *KINDS, "added"], rows)
        return f"<div><strong>{html.escape(self._title)}</strong>{table}</div>"


def differences(first: Descent, other: Descent) -> DescentDifferences:
    """What has become of the links of the first descent in the other one."""
    if len(first) != len(other):
        raise WorkbenchError(f"both descents must have the same steps; got {len(first)} and {len(other)} steps")
    counterparts = tuple(_counterparts(*steps) for steps in zip(first.steps, other.steps, strict=True))
    links, added = [], []
    for at, (one, two) in enumerate(zip(first.successions, other.successions, strict=True)):
        kinds = _kinds(one, two, counterparts[at], counterparts[at + 1 :])
        links.append(kinds)
        added.append(int((two.descendant != NOBODY).sum() - ((kinds == KEPT) | (kinds == RANK)).sum()))
    whole = _whole(first, other, links, counterparts)
    return DescentDifferences(tuple(links), counterparts, tuple(added), len(whole), int(whole.sum()), first.equals(other))


def _counterparts(one: StepHalos, other: StepHalos) -> np.ndarray:
    """The number of the halo of the other step that matches each halo, NOBODY for none."""
    if one.ids is None or other.ids is None:
        raise WorkbenchError("differences need the members of halos: make both descents with keep_members=True")
    if not len(one) or not len(other):
        return np.full(len(one), NOBODY)
    here, there = common(one.ids, other.ids)
    pairs = Pairs.counted(one.of_members()[here], other.of_members()[there])
    numbers = [np.arange(len(step)) for step in (one, other)]
    halos, others = Halos(numbers[0], one.members), Halos(numbers[1], other.members)
    found = match(halos, others, pairs, lambda wanted: other.members[wanted])
    return np.where(found.matched, found.counterpart, NOBODY)


def _kinds(one: Succession, two: Succession, before: np.ndarray, after: Sequence[np.ndarray]) -> np.ndarray:
    """The kind of the link of each halo; `after` has the counterparts at the steps that follow."""
    linked = np.flatnonzero(one.descendant != NOBODY)
    kinds = np.full(len(before), NO_LINK, np.uint8)
    start, end = before[linked], np.full(len(linked), NOBODY)
    for over in np.unique(one.over[linked]).tolist():
        these = one.over[linked] == over
        end[these] = after[over][one.descendant[linked[these]]]
    there = (start != NOBODY) & (end != NOBODY)
    kinds[linked] = NO_HALO
    linked, start, end = linked[there], start[there], end[there]
    merges = (one.fate[linked] == MERGES) != (two.fate[start] == MERGES)
    elsewhere = (two.descendant[start] != end) | (two.over[start] != one.over[linked])
    kinds[linked] = np.where(elsewhere, ELSEWHERE, np.where(merges, RANK, KEPT))
    return kinds


def _whole(
    first: Descent, other: Descent, links: list[np.ndarray], counterparts: tuple[np.ndarray, ...]
) -> np.ndarray:
    """Whether the main branch of each halo of the last step is the same in both, down to where it begins."""
    whole = [counterparts[0] != NOBODY]
    for at, (one, two) in enumerate(zip(first.successions, other.successions, strict=True)):
        ends = counterparts[at + 1] == NOBODY
        main, begins = one.main, one.main == NOBODY
        both_begin = begins & ~ends & (two.main[counterparts[at + 1]] == NOBODY) if len(two.main) else begins & ~ends
        goes_on = np.zeros(len(main), bool)
        for over in np.unique(one.main_over[~begins]).tolist():
            these = np.flatnonzero(~begins & (one.main_over == over))
            goes_on[these] = (links[at - over][main[these]] == KEPT) & whole[at - over][main[these]]
        whole.append((goes_on | both_begin) & ~ends)
    return whole[-1]
