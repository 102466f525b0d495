"""The first centres of k-means: k-means++ (Arthur and Vassilvitskii, 2007), the same on every machine.

Each next centre is a point, drawn with a probability in proportion to its squared distance from the centres so far. Weights
are whole numbers, so their sums do not depend on order; random numbers are counted by (seed, centre), so no draw depends on
another. Points that the triangle inequality excludes are not compared.
"""

from __future__ import annotations

import math

import numpy as np

from workbench import backend
from workbench.backend import Array


def seeded_centres(points: Array, k: int, seed: int) -> Array:
    """`k` points, as far apart as chance has it; (k, D)."""
    xp, (count, axes) = backend.namespace(points), points.shape
    centres = xp.empty((k, axes), points.dtype)
    distance, owner = xp.zeros(count), xp.zeros(count, xp.int32)
    for number in range(k):
        draw = np.random.Generator(np.random.Philox(key=[seed, number]))
        largest = _approach(points, centres, number - 1, distance, owner) if number else 0.0
        chosen = _drawn(distance, largest, draw) if largest > 0 else int(draw.integers(count))
        centres[number] = points[chosen]
    return centres


def _approach(points: Array, centres: Array, added: int, distance: Array, owner: Array) -> float:
    """Update the squared distances to the nearest centre; the largest is returned."""
    xp, (count, axes) = backend.namespace(points), points.shape
    apart = ((centres[:added].astype(xp.float64) - centres[added].astype(xp.float64)) ** 2).sum(axis=1)
    chunks = backend.chunks(count, points)
    largest = xp.empty(chunks)
    backend.kernel("kmeans_centres", "approach", points.dtype)(
        chunks, n=count, axes=axes, added=added, point=points, centre=centres, apart=apart, slack=1 + 1e-12 * (axes + 8),
        distance=distance, owner=owner, largest=largest,
    )
    return float(largest.max())


def _drawn(distance: Array, largest: float, draw: np.random.Generator) -> int:
    """A point, with a probability in proportion to its distance."""
    xp, count = backend.namespace(distance), len(distance)
    scale = 2.0 ** min(62 - count.bit_length() - math.frexp(largest)[1], 1000)
    chunks = backend.chunks(count, distance)
    total = xp.empty(chunks, xp.int64)
    backend.kernel("kmeans_centres", "weigh")(chunks, n=count, distance=distance, scale=scale, total=total)
    running = xp.cumsum(total)
    if not int(running[-1]):   # distances so small that no weight is a whole number
        return int(draw.integers(count))
    target = int(draw.integers(int(running[-1])))
    chunk = int(xp.searchsorted(running, xp.asarray([target]), side="right")[0])
    begin, end = (count * c // chunks for c in (chunk, chunk + 1))
    before = int(running[chunk - 1]) if chunk else 0
    picked = xp.empty(1, xp.int64)
    backend.kernel("kmeans_centres", "pick")(
        1, begin=begin, end=end, n=count, distance=distance, scale=scale, target=target - before, picked=picked
    )
    return int(picked[0])
