"""The extent of positions along each axis, and the positions inside given cuboids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array


def extent(positions: Array) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and largest coordinate along each axis, in float64 on the host; NaN where one is not finite.

    >>> low, high = extent(np.array([[0.5, 3.0], [2.0, 1.0]]))
    >>> low.tolist(), high.tolist()
    ([0.5, 1.0], [2.0, 3.0])
    """
    ends = extents(positions, max(len(positions), 1))
    return ends[0, 0], ends[0, 1]


def extents(positions: Array, rows: int) -> np.ndarray:
    """The extent of each piece of so many positions (the last may have fewer), of shape (pieces, 2, D).

    >>> extents(np.array([[0.5, 3.0], [2.0, 1.0], [7.0, 7.0]]), 2).tolist()
    [[[0.5, 1.0], [2.0, 3.0]], [[7.0, 7.0], [7.0, 7.0]]]
    """
    xp = backend.namespace(positions)
    count, dimensions = positions.shape
    parts, pieces = backend.chunks(-(-min(rows, count) // 4), positions), -(-count // rows)   # long ones: few results
    found = xp.empty((2, pieces, parts, dimensions))
    kernel = backend.kernel("extent", "extent", positions.dtype, dimensions)
    kernel(pieces * parts, parts, count, rows, positions, found[0], found[1])
    lower, upper = found[0].min(axis=1), found[1].max(axis=1)
    return backend.to_host(xp.stack([lower, upper], axis=1))


def inside(positions: Array, cuboids: Sequence[tuple[Any, Any]]) -> Array:
    """Which positions lie in one of these cuboids: lower <= x < upper along each axis, compared in float64.

    >>> inside(np.array([[0.5, 3.0], [2.0, 1.0]]), [((0, 0), (1, 4)), ((5, 5), (6, 6))]).tolist()
    [True, False]
    """
    xp = backend.namespace(positions)
    marks = xp.zeros(len(positions), xp.uint8)
    kernel = backend.kernel("extent", "mark_inside", positions.dtype, positions.shape[1])
    for lower, upper in cuboids:
        kernel(len(positions), positions, *(xp.asarray(end, dtype=xp.float64) for end in (lower, upper)), marks)
    return marks.view(xp.bool_)
