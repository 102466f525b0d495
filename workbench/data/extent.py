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
    xp = backend.namespace(positions)
    count, dimensions = positions.shape
    chunks = backend.chunks(count, positions)
    lower = xp.empty((chunks, dimensions), positions.dtype)
    upper = xp.empty_like(lower)
    backend.kernel("extent", "extent", positions.dtype, dimensions)(chunks, count, positions, lower, upper)
    ends = backend.to_host(lower.min(axis=0)), backend.to_host(upper.max(axis=0))
    return ends[0].astype(np.float64), ends[1].astype(np.float64)


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
