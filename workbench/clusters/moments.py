"""Sums over the members of groups, which add up wherever the members are: what a catalogue is made of.

Parts of a group are combined by the parallel axis theorem. Positions are measured from the first member of a part, by
nearest image, so that sums lose no digits far from the origin, and groups may lie across a face of the box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from workbench.data.periodic import nearest_image

BLOCK = 2**16   # members whose sums are formed together: a few megabytes

Box = tuple[float, ...] | None


@dataclass(frozen=True, eq=False)
class Moments:
    """Of groups, or parts of them, by rising label: means are weighted by mass, or by number where masses are unknown.

    `spread` is the sum of weighted squared distances from the mean position, `motion` that of the velocities from the mean
    velocity; without velocities, these have no columns.

    >>> places = np.array([[0.9, 0.5], [0.1, 0.5], [0.5, 0.5]])
    >>> parts = [Moments.of(np.array([0]), places[row : row + 1], (1.0, 1.0)) for row in (0, 1)]
    >>> whole = Moments.combined(parts, (1.0, 1.0))
    >>> whole.members.tolist(), whole.mean.round(6).tolist(), whole.spread.round(6).tolist()
    ([2], [[1.0, 0.5]], [0.02])
    """

    label: np.ndarray
    members: np.ndarray
    weight: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    velocity: np.ndarray
    motion: np.ndarray

    @classmethod
    def of(
        cls, label: np.ndarray, positions: np.ndarray, box: Box, masses: np.ndarray | float | None = None,
        velocities: np.ndarray | None = None, order: np.ndarray | None = None,
    ) -> Self:
        """Of particles with these labels, which rise; `order` says which rows of the other arrays they are."""
        rows = np.arange(len(label)) if order is None else order
        weights = np.broadcast_to(1.0 if masses is None else masses, len(positions))
        blocks = []
        for start in range(0, len(label), BLOCK) or (0,):
            here = rows[start : start + BLOCK]
            count, none = len(here), np.zeros(len(here))
            weight = weights[here].astype(np.float64)
            velocity = np.empty((count, 0)) if velocities is None else velocities[here].astype(np.float64)
            mean = positions[here].astype(np.float64)
            part = cls(label[start : start + BLOCK], np.ones(count, np.int64), weight, mean, none, velocity, none)
            blocks.append(part._added(box))
        return cls._joined(blocks)._added(box)

    @classmethod
    def combined(cls, parts: Sequence[Moments], box: Box) -> Self:
        """Whole groups from their parts."""
        every = cls._joined(parts)
        return every.chosen(np.argsort(every.label, kind="stable"))._added(box)

    def chosen(self, rows: np.ndarray) -> Self:
        """Some of the groups."""
        return type(self)(*(getattr(self, field.name)[rows] for field in fields(self)))

    @classmethod
    def _joined(cls, parts: Sequence[Moments]) -> Self:
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def _added(self, box: Box) -> Self:
        """Sums over runs of equal labels."""
        label = self.label
        start = np.flatnonzero(np.diff(label, prepend=label[:1] - 1))
        if len(start) == len(label):
            return self
        run = np.repeat(np.arange(len(start)), np.diff(start, append=len(label)))
        weight = np.add.reduceat(self.weight, start)
        mean, spread = _means(self.mean, self.spread, self.weight, weight, start, run, box)
        velocity, motion = _means(self.velocity, self.motion, self.weight, weight, start, run, None)
        return type(self)(label[start], np.add.reduceat(self.members, start), weight, mean, spread, velocity, motion)


def _means(
    place: np.ndarray, spread: np.ndarray, weight: np.ndarray, total: np.ndarray, start: np.ndarray, run: np.ndarray,
    box: Box,
) -> tuple[np.ndarray, np.ndarray]:
    """The weighted mean place of each run, and the sum of weighted squares around it; without weight, its first place."""
    offset = nearest_image(place - place[start][run], box)
    middle = np.add.reduceat(offset * weight[:, None], start) / np.where(total > 0, total, 1.0)[:, None]
    apart = ((offset - middle[run]) ** 2).sum(axis=1)
    return place[start] + middle, np.add.reduceat(spread + weight * apart, start)
