"""Constraints on decoded positions: pairs that must be linked (TOUCH), and pairs that must not be linked (APART).

The must-link constraints of a split group are the minimum spanning tree of its parts: of all links that it lost, those with
the smallest violation. All linked pairs of different original groups are cannot-link constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.alike import Parts, parts_of
from workbench.clusters.broken import cheapest_links, distances, squared_distances
from workbench.clusters.discord import MOST_BETWEEN_CELLS, UNLABELLED, discords, torn_labels
from workbench.clusters.groups import Groups
from workbench.clusters.keep.scene import UNASKED, Scene
from workbench.clusters.sorted_cells import SortedCells
from workbench.data import Particles

TOUCH, APART = 0, 1


@dataclass(frozen=True, eq=False)
class Region:
    """Some particles (rising indices), and for each linking length the mask of those whose whole group is included."""

    index: Array
    whole: Array


@dataclass(frozen=True, eq=False)
class Needs:
    """Constraints: pairs (M, 2) of particles (int32), and kinds: twice a linking length's number, plus APART or TOUCH."""

    pairs: Array
    kind: Array

    def __len__(self) -> int:
        return len(self.kind)

    @classmethod
    def together(cls, parts: Sequence[Self]) -> Self:
        """The constraints of several linking lengths."""
        xp = backend.namespace(*[part.kind for part in parts])
        pairs, kind = (xp.concatenate([getattr(part, name) for part in parts]) for name in ("pairs", "kind"))
        return cls(pairs, kind)

    def chosen(self, which: Array) -> Needs:
        """Some of the constraints."""
        return Needs(self.pairs[which], self.kind[which])

    def ends(self, scene: Scene) -> Array:
        """The particles in these constraints (rising indices, int32)."""
        flags = scene.xp.zeros(len(scene), bool)
        flags[self.pairs.ravel()] = True
        return scene.xp.flatnonzero(flags).astype(np.int32)

    def missed(self, scene: Scene) -> Array:
        """Which constraints the current positions violate."""
        squared, (near, far) = self._squared_distances(scene), scene.thresholds
        number, apart = self.kind >> 1, (self.kind & 1).astype(bool)
        return scene.xp.where(apart, squared <= far[number], squared > near[number])

    def misses(self, scene: Scene) -> Array:
        """The violation of each constraint; zero where it is satisfied."""
        xp, distance = scene.xp, scene.xp.sqrt(self._squared_distances(scene))
        number, apart = self.kind >> 1, (self.kind & 1).astype(bool)
        near, far = map(xp.sqrt, scene.thresholds)
        return xp.maximum(xp.where(apart, far[number] - distance, distance - near[number]), 0)

    def _squared_distances(self, scene: Scene) -> Array:
        return squared_distances(scene.current, self.pairs, scene.original.box)


def find_needs(scene: Scene, region: Region | None = None) -> Needs:
    """The constraints that the current positions violate."""
    return Needs.together([_needs_at(scene, number, region) for number in range(len(scene.lengths))])


def groups_with_needs(scene: Scene, needs: Needs) -> list[Array]:
    """For each linking length, and each label, whether the original group of this label has constraints."""
    found = []
    for number, wanted in enumerate(scene.wanted):
        flags = scene.xp.zeros(len(scene), bool)
        flags[wanted.labels[needs.pairs[needs.kind >> 1 == number].ravel()]] = True
        found.append(flags)
    return found


def _needs_at(scene: Scene, number: int, region: Region | None) -> Needs:
    """The constraints at one linking length."""
    xp, length = scene.xp, scene.lengths[number]
    wanted, group = scene.wanted[number], scene.group[number]
    if region is not None:
        wanted, group = Groups.from_labels(wanted.labels[region.index], length), group[region.index]
        cells = SortedCells.of(scene.particles(region.index), scene.near(number))
    else:
        moved = bool(scene.rank.any())
        cells = SortedCells.of(scene.particles(), scene.near(number)) if moved else scene.decoded_cells[number]
    parts = _parts(scene, number, cells, group, wanted)
    lost, false = _lost_links(scene, number, region, wanted, parts.part), parts.unlike
    if region is not None:
        lost, false = region.index[lost], region.index[false]
    part = parts.part
    if region is not None:
        part = xp.zeros(len(scene), xp.int32)
        part[region.index] = parts.part
    links = lost[cheapest_links(lost, part, distances(scene.current, lost, scene.original.box))]
    pairs = xp.concatenate([links, false]).astype(xp.int32)
    kind = xp.concatenate([xp.full(len(links), 2 * number + TOUCH), xp.full(len(false), 2 * number + APART)])
    return Needs(pairs, kind.astype(xp.int32))


def _lost_links(scene: Scene, number: int, region: Region | None, wanted: Groups, part: Array) -> Array:
    """Pairs of friends in the original, of groups that are split, that are in different parts."""
    xp = scene.xp
    torn = torn_labels(wanted, part)
    torn[(scene.group[number] if region is None else scene.group[number][region.index]) == UNASKED] = UNLABELLED
    if region is not None:
        torn[~region.whole[number]] = UNLABELLED
    if not bool((torn != UNLABELLED).any()):
        return xp.empty((0, 2), xp.int32)
    if region is None:
        return discords(scene.original_cells[number], torn, scene.lengths[number])
    chosen = Particles(scene.original.positions[region.index], scene.original.box)
    return discords(SortedCells.of(chosen, scene.lengths[number]), torn, scene.lengths[number])


def _parts(scene: Scene, number: int, cells: SortedCells, group: Array, wanted: Groups) -> Parts:
    """The parts of groups, and pairs of particles of different groups that are too close.

    Small groups may merge as long as they stay below the minimum of members; otherwise they must be separated, too.
    """
    most = MOST_BETWEEN_CELLS * 4 ** min(scene.attempts, 5)   # overdense regions need more, if a few do not suffice
    near, far = scene.near(number), scene.far(number)
    if scene.promise.min_members > 1:
        parts = parts_of(cells, group, far, far, most)
        members = scene.xp.bincount(parts.part, minlength=len(group))
        grown = (group == UNASKED) & (members[parts.part] >= scene.promise.min_members)
        group = scene.xp.where(grown, wanted.labels.astype(group.dtype), group)
    return parts_of(cells, group, near, far, most)
