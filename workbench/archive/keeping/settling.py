"""One repair from beginning to end: an attempt near all constraints, and then where that has left something.

The first attempt moves ends of constraints alone, and looks no farther than their lists of neighbours: its patch is what
is near them. Hardly any constraint is left. What follows may move neighbours of ends, too, with all that these interact
with, and compares groups again: that patch is wider, but around suspects alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.archive.keeping.members import EVERY, Chosen, Table
from workbench.archive.keeping.moved import Changes
from workbench.archive.keeping.patch import Patch, PatchRepair, around
from workbench.archive.keeping.terms import Terms
from workbench.archive.keeping.vicinity import near
from workbench.clusters.keep.attempts import Allowance, TooExpensive
from workbench.clusters.keep.needs import Needs
from workbench.clusters.keep.surroundings import Surroundings
from workbench.subdomains.merging import Renaming, distinct


@dataclass(frozen=True, eq=False)
class Place:
    """The particles that may take part in a repair; `named_by` are the columns with a number for each group."""

    terms: Terms
    table: Table
    named_by: str = "label"

    def around(self, rows: np.ndarray) -> np.ndarray:
        """The particles (rows) that may interact with these."""
        original = self.table.take("original", EVERY)
        tags = np.zeros(len(rows), np.int64)
        return near(original, original[rows], tags, self.terms.interaction, self.terms.box)[0]

    def patch(self, rows: np.ndarray, linked: Sequence[Renaming]) -> Patch:
        """These particles, to be repaired."""
        return Patch.of(self.terms, Chosen(self.table, rows), named_by=self.named_by, linked=linked)


@dataclass(frozen=True, eq=False)
class Settled:
    """What has come of a repair: the constraints that it has treated, and all that it has changed.

    `listed` are the neighbours of all ends, by places among `rows`, if none of them had been an end before.
    """

    treated: np.ndarray
    changes: dict[str, np.ndarray]
    rows: np.ndarray
    listed: Surroundings | None
    evaluated: int
    attempts: int
    descent: int
    dear: bool   # more than the allowance


def settled(place: Place, needs: Needs, free: np.ndarray, allowance: Allowance) -> Settled:
    """Repair these constraints between rows of the place; those particles may move that are `free`.

    Constraints that others of their ends interact with are not treated.
    """
    unchanged = [Renaming.of(np.empty((0, 2), np.int64)) for _ in place.terms.lengths]
    rows = place.around(distinct(needs.pairs.ravel()))
    first = PatchRepair(place.patch(rows, unchanged), allowance)
    repairs, treated, dear = [first], np.ones(len(needs), bool), False
    try:
        treated = first.begin(_among(needs, rows), free[rows])
        if len(first.suspects):
            repairs.append(_wider(place, first, rows, needs.chosen(np.flatnonzero(~treated)), free, allowance))
    except TooExpensive:
        dear = True
    last = repairs[-1]
    changes = _together([repair.changes() for repair in repairs])
    descent = sum(len(repair.descent) for repair in repairs)
    return Settled(treated, changes, rows, first.listed, last.evaluated, last.count, descent, dear)


def _wider(
    place: Place, first: PatchRepair, rows: np.ndarray, left: Needs, free: np.ndarray, allowance: Allowance
) -> PatchRepair:
    """Repair what the first attempt, at these rows, has left."""
    inner = place.around(rows[first.suspects])
    wide = place.around(inner)   # with all that these interact with
    repair = PatchRepair(place.patch(wide, first.joined_again()), allowance)
    here, there = np.flatnonzero(np.isin(wide, rows)), np.flatnonzero(np.isin(rows, wide))
    ends = np.zeros(len(rows), bool)
    ends[first.ends] = True
    movable = around(repair.patch, here[ends[there]]) & free[wide] & np.isin(wide, inner)
    known = np.isin(left.pairs, wide).all(axis=1)
    repair.follow(first, here, there, movable, _among(left.chosen(np.flatnonzero(known)), wide))
    return repair


def _among(needs: Needs, rows: np.ndarray) -> Needs:
    """Constraints between rows of a place as those between particles of a patch."""
    return Needs(np.searchsorted(rows, needs.pairs).astype(np.int32).reshape(-1, 2), needs.kind)


def _together(changes: Sequence[Changes]) -> dict[str, np.ndarray]:
    """The changes of repairs that followed each other: the last one counts, for each particle."""
    every = {name: np.concatenate([one[name] for one in reversed(changes)]) for name in changes[0]}
    rows = np.unique(every["index"], return_index=True)[1]
    return {name: array[rows] for name, array in every.items()}
