"""What has to change in decoded positions: pairs that must come apart, and pairs that must touch again.

Of all links that an original group has lost, only as many are needed as join its parts: those that miss least, as in a
minimal spanning tree. Pairs of several original groups that touch must come apart, all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench import backend
from workbench.backend import Array

TOUCH, APART = 0, 1


@dataclass(frozen=True, eq=False)
class Needs:
    """Pairs (M, 2) of particles, int32, and of each its kind: twice the number of its linking length, plus APART or TOUCH."""

    pairs: Array
    kind: Array

    def __len__(self) -> int:
        return len(self.kind)

    @classmethod
    def together(cls, parts: list[Self]) -> Self:
        """The needs of several linking lengths, each pair once."""
        xp = backend.namespace(*[part.kind for part in parts])
        pairs, kind = (xp.concatenate([getattr(part, name) for part in parts]) for name in ("pairs", "kind"))
        return cls(pairs, kind)

    def by_candidate(self) -> tuple[Array, Array, Array, Array]:
        """The particles that may move (int32), where the needs of each begin, and of each need the partner and the kind."""
        xp = backend.namespace(self.kind)
        one, other = xp.ascontiguousarray(self.pairs.T)
        end, partner, kind = xp.concatenate([one, other]), xp.concatenate([other, one]), xp.concatenate([self.kind] * 2)
        order = xp.argsort(end, kind="stable")
        end = end[order]
        first = xp.flatnonzero(xp.concatenate([xp.ones(min(len(end), 1), bool), end[1:] != end[:-1]]))
        start = xp.concatenate([first, xp.full(1, len(end), first.dtype)])
        return end[first], start, partner[order], kind[order]


def cheapest_links(pairs: Array, part: Array, distance: Array) -> Array:
    """Which of these pairs (indices, rising) join the parts that they connect, with the least distances: Boruvka's trees.

    `part` is a label (int32) of every particle.

    >>> pairs = np.array([[0, 1], [0, 2], [1, 2]], np.int32)
    >>> cheapest_links(pairs, np.array([5, 6, 7], np.int32), np.array([3.0, 1.0, 2.0])).tolist()
    [1, 2]
    """
    xp = backend.namespace(pairs, part, distance)
    order = xp.argsort(distance, kind="stable")
    labels, ends = xp.unique(part[pairs[order]], return_inverse=True)
    ends = ends.reshape(-1, 2)
    tree = xp.arange(len(labels))
    chosen = xp.zeros(len(pairs), bool)
    while True:
        sides = tree[ends]
        open_ = xp.flatnonzero(sides[:, 0] != sides[:, 1])
        if not len(open_):
            return xp.sort(order[chosen])
        node, edge = sides[open_].ravel(), xp.repeat(open_, 2)
        at, first = xp.unique(node, return_index=True)
        best = xp.full(len(labels), -1, xp.int64)
        best[at] = edge[first]
        chosen[best[at]] = True
        joined = sides[best[at]]
        parent = xp.arange(len(labels))
        parent[at] = joined.sum(axis=1) - at
        mutual = parent[parent] == xp.arange(len(labels))
        parent = xp.where(mutual, xp.minimum(parent, xp.arange(len(labels))), parent)
        while True:
            above = parent[parent]
            if bool((above == parent).all()):
                break
            parent = above
        tree = parent[tree]
