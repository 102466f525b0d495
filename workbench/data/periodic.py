"""Distances in a periodic box."""

from __future__ import annotations

from workbench import backend
from workbench.backend import Array


def nearest_image(difference: Array, box: tuple[float, ...] | None) -> Array:
    """The shortest of all differences between the images of two particles; the difference itself in an open space.

    >>> import numpy as np
    >>> nearest_image(np.array([[0.9, 0.1]]), (1.0, 1.0)).round(6).tolist()
    [[-0.1, 0.1]]
    """
    if box is None:
        return difference
    xp = backend.namespace(difference)
    period = xp.asarray(box, xp.float64)
    return difference - period * xp.rint(difference / period)


def squared_lengths(difference: Array, box: tuple[float, ...] | None) -> Array:
    """The squared lengths of differences (N, D) in float64, by nearest image, exactly as kernels/space.cuh computes them.

    Squares are added axis by axis, because another order would round differently and could contradict the kernels.
    The differences are between positions in the box.

    >>> import numpy as np
    >>> squared_lengths(np.array([[0.75, 0.25], [0.5, 0.0]]), (1.0, 1.0)).tolist()
    [0.125, 0.25]
    """
    xp = backend.namespace(difference)
    total = xp.zeros(len(difference))
    for axis in range(difference.shape[1]):
        along = difference[:, axis]
        if box is not None:
            period = box[axis]
            from_below = xp.where(along < -period / 2, along + period, along)
            along = xp.where(along > period / 2, along - period, from_below)
        total = total + along * along
    return total
