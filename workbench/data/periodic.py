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
