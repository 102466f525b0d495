"""The centre update of k-means: sums of coordinates as whole numbers.

A coordinate is rounded to a multiple of a power of two, the finest with which the sum of all points fits into 64 bits. Sums
of whole numbers do not depend on order, and points can leave a sum without a trace. So only points whose label has changed
are added to one cluster and subtracted from another, and two sums of the same points are equal or one of them is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench import backend
from workbench.backend import Array
from workbench.clusters.kmeans_faults import SumFlip

_ROOM = 1 << 25   # bytes for a copy of the sums per CPU thread; beyond it, threads share one


class Sums:
    """The sum of the coordinates of each cluster, and its number of points."""

    def __init__(self, points: Array, k: int) -> None:
        xp, (count, axes) = backend.namespace(points), points.shape
        largest = max(abs(float(points.min())), abs(float(points.max())))
        self.scale = 2.0 ** min(62 - count.bit_length() - math.frexp(largest)[1], 1000)
        self._points = points
        chunks = backend.chunks(count, points)
        alone = not backend.on_device(points) and 8 * chunks * k * (axes + 1) <= _ROOM
        self._chunks, self._copies = chunks, chunks if alone else 1
        self.sums, self.counts = xp.zeros((k, axes), xp.int64), xp.zeros(k, xp.int64)

    def move(self, old: Array, new: Array) -> None:
        """Take points out of the clusters `old` (-1: in none) and put them into the clusters `new`."""
        xp, (k, axes) = backend.namespace(new), self.sums.shape
        sums, counts = xp.zeros((self._copies, k, axes), xp.int64), xp.zeros((self._copies, k), xp.int64)
        backend.kernel("kmeans_centres", "move_points", self._points.dtype)(
            self._chunks, n=len(new), axes=axes, clusters=k, copies=self._copies, point=self._points, scale=self.scale,
            old_label=old, label=new, sum=sums, count=counts,
        )
        self.sums += sums.sum(axis=0)
        self.counts += counts.sum(axis=0)

    def restart(self, labels: Array) -> None:
        """All sums from nothing."""
        xp = backend.namespace(labels)
        self.sums[...] = 0
        self.counts[...] = 0
        self.move(xp.full_like(labels, -1), labels)

    def equals(self, other: Sums) -> bool:
        """Whether both hold the same sums and numbers."""
        xp = backend.namespace(self.sums)
        return bool(xp.array_equal(self.sums, other.sums)) and bool(xp.array_equal(self.counts, other.counts))

    def means(self, centres: Array) -> Array:
        """The mean of each cluster; the centre that it had where it is empty."""
        xp = backend.namespace(self.sums)
        some = self.counts[:, None] > 0
        mean = self.sums.astype(xp.float64) / xp.maximum(self.counts, 1)[:, None] / self.scale
        return xp.where(some, mean, centres).astype(self._points.dtype)


class Update:
    """The centre update; protected, it keeps two independent sums and starts again where they differ."""

    def __init__(self, points: Array, k: int, protect: bool) -> None:
        self._sums = [Sums(points, k) for _ in range(1 + protect)]
        self.recomputed = 0

    @property
    def counts(self) -> Array:
        """The number of points in each cluster."""
        return self._sums[0].counts

    def run(self, old: Array, new: Array, centres: Array, flips: Sequence[SumFlip] = ()) -> Array:
        """The means of the clusters, after points have moved from `old` to `new`."""
        for sums in self._sums:
            sums.move(old, new)
        for flip in flips:
            flip.strike(self._sums[0].sums)
        if not all(sums.equals(self._sums[0]) for sums in self._sums[1:]):
            self.recomputed += 1
            for sums in self._sums:
                sums.restart(new)
        return self._sums[0].means(centres)


def own_distances(points: Array, centres: Array, labels: Array) -> Array:
    """The squared distance of each point from its centre."""
    xp, (count, axes) = backend.namespace(points), points.shape
    distance = xp.empty(count)
    backend.kernel("kmeans_centres", "own_distances", points.dtype)(
        count, axes=axes, clusters=len(centres), point=points, centre=centres, label=labels, distance=distance
    )
    return distance


def with_empty_moved(points: Array, centres: Array, labels: Array, counts: Array) -> Array:
    """Centres, with those of empty clusters at the points farthest from theirs, the first of equals.

    A point on its own centre attracts none.
    """
    xp = backend.namespace(points)
    empty = xp.flatnonzero(counts == 0)
    if not len(empty):
        return centres
    distance = own_distances(points, centres, labels)
    farthest = xp.argsort(-distance, kind="stable")[: len(empty)]
    farthest = farthest[distance[farthest] > 0]
    moved = centres.copy()
    moved[empty[: len(farthest)]] = points[farthest]
    return moved
