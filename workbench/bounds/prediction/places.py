"""Places that are spread evenly, whatever part of them is taken: samples of them vary less than random ones.

The places are multiples of irrational numbers without their whole parts, one number for each axis (M. Roberts'
generalisation of the golden ratio), from a random start. A field differs from layer to layer; random places would hit some
too often.
"""

from __future__ import annotations

import functools

import numpy as np

SEED = 20_260
SHAPES = 4    # of fields, of which the places are remembered


def even_places(axes: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Places in the unit cube, one row for each axis.

    >>> found = even_places(2, 100, np.random.default_rng(0))
    >>> bool(np.abs(np.histogram(found[0], 10, (0, 1))[0] - 10).max() <= 1)
    True
    """
    found: np.ndarray = rng.random((axes, 1)) + _steps(axes)[:, None] * np.arange(count)
    return found - np.floor(found)


@functools.cache
def _steps(axes: int) -> np.ndarray:
    """Powers of the inverse root of x^(axes + 1) = x + 1."""
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / (axes + 1))
    steps: np.ndarray = (1 / root) ** np.arange(1, axes + 1)
    return steps
