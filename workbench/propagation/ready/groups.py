"""Particles to friends-of-friends groups to the halo mass function, with a guaranteed interval of the counts.

Positions that move by at most d change distances by at most 2 d. So all links up to b - 2 d remain, and none beyond b + 2 d
appears: the groups are coarser than those at b - 2 d and finer than those at b + 2 d, which bounds the count of every size.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.arguments import whole_number
from workbench.backend import Array, to_host
from workbench.clusters import Groups, friends_of_friends
from workbench.clusters.friends import Unit, absolute_linking_length
from workbench.data import Particles
from workbench.propagation.enclosures import WIDER, Ball, Partitions, Range
from workbench.propagation.pipeline import Pipeline
from workbench.propagation.stage import Stage
from workbench.propagation.tolerance import poisson


def halos(
    particles: Particles, linking_length: float = 0.2, unit: Unit = "spacing", min_members: int = 20
) -> Pipeline:
    """The friends-of-friends mass function: sites `groups` (labels) and `mass_function` (counts in bins of doubling size).

    The counts are tolerated within their Poisson errors. Positions outside a periodic box are refused by the finder,
    which a campaign counts as detected.

    >>> import workbench as wb
    >>> snapshot = wb.synthetic.cosmic_web(n=16, seed=1)
    >>> halos(snapshot)(snapshot).tolist()[:4]
    [6, 5, 1, 1]
    """
    length = absolute_linking_length(particles, linking_length, unit)
    finder = _Finder(particles.box, length, whole_number("min_members", min_members, least=1), len(particles))
    stages = [
        Stage("groups", finder.groups, categorical=True, enclose=finder.groups_enclosure),
        Stage("mass_function", finder.mass_function, enclose=finder.counts_enclosure),
    ]
    boxes = {} if particles.box is None else {"input": particles.box}
    return Pipeline(stages, boxes=boxes, tolerance=poisson(), name="halos")


@dataclass(frozen=True)
class _Finder:
    """A linking length, and the bins of the mass function."""

    box: tuple[float, ...] | None
    length: float
    least: int
    count: int

    @property
    def edges(self) -> np.ndarray:
        """Each edge is twice the one before; the last bin holds all particles."""
        return self.least * 2 ** np.arange(max(self.count // self.least, 1).bit_length() + 1)

    def groups(self, positions: Array) -> Array:
        return friends_of_friends(Particles(positions, box=self.box), self.length, "length").labels

    def mass_function(self, labels: Array) -> np.ndarray:
        sizes = to_host(Groups.from_labels(labels, self.length).sizes)
        return np.histogram(sizes, self.edges)[0]

    def groups_enclosure(self, inputs: Sequence[Any], enclosures: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """The groups with all links that are possible, and with those that are certain."""
        ball, positions = enclosures[0], to_host(inputs[0])
        if not isinstance(ball, Ball):
            return None
        radius = np.broadcast_to(ball.radius, positions.shape)
        moved = np.sort(np.minimum(np.sqrt(np.sum(radius**2, axis=1)), ball.norm))[-2:].sum()   # of two particles
        rounded = 16 * float(np.finfo(np.float64).eps) * float(abs(positions).max(initial=0.0) + sum(self.box or (0.0,)))
        shift = WIDER * moved + rounded
        particles = Particles(positions, box=self.box)
        if not math.isfinite(shift) or shift > 1e6 * self.length:
            return None
        coarse = to_host(friends_of_friends(particles, self.length + shift, "length").labels)
        none = np.arange(len(positions))
        fine = none
        if shift < self.length * (1 - 1e-6):
            fine = to_host(friends_of_friends(particles, self.length - shift, "length").labels)
        return Partitions(fine, coarse)

    def counts_enclosure(self, inputs: Sequence[Any], enclosures: Sequence[Any], outputs: Sequence[Any]) -> Range | None:
        """How many groups of each size can be made of the fine groups without leaving the coarse ones."""
        if not isinstance(enclosures[0], Partitions):
            return None
        return count_range(enclosures[0].fine, enclosures[0].coarse, self.edges)


def count_range(fine: np.ndarray, coarse: np.ndarray, edges: np.ndarray) -> Range:
    """The least and the largest number of groups in each bin of sizes, of all partitions between fine and coarse.

    A coarse group that is one fine group is certain. In another, the groups of a bin that starts at m members are made
    either with a fine group of at least m, or of smaller ones alone, at least m members each.

    >>> found = count_range(np.array([0, 0, 2, 3]), np.array([0, 0, 0, 3]), np.array([1, 2, 4]))
    >>> found.low.tolist(), found.high.tolist()
    ([1, 0], [2, 1])
    """
    _, first, sizes = np.unique(fine, return_index=True, return_counts=True)
    _, parent = np.unique(coarse[first], return_inverse=True)
    pieces = np.bincount(parent)
    certain = pieces[parent] == 1
    low = np.histogram(sizes[certain], edges)[0]
    high = low.copy()
    loose, owner = sizes[~certain], parent[~certain]
    for place, (least, most) in enumerate(itertools.pairwise(edges)):
        last = place == len(edges) - 2   # a bin of numpy.histogram that includes its upper edge
        inside = (loose >= least) & ((loose <= most) if last else (loose < most))
        small = np.bincount(owner, np.where(loose < least, loose, 0), len(pieces)).astype(np.int64)
        high[place] += int(inside.sum()) + int((small // least).sum())
    return Range(low, high)
