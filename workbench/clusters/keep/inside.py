"""Positions that need no check: those of a repair, which keeps each particle within its bound and inside the box."""

from __future__ import annotations

import functools

import numpy as np

from workbench.backend import Array
from workbench.data.extent import extent
from workbench.data.outline import Placed


class Inside(Placed):
    """Valid positions; their extent is found when somebody asks, as a periodic box needs none.

    >>> Inside(np.array([[0.5, 3.0], [2.0, 1.0]]), None).upper.tolist()
    [2.0, 3.0]
    """

    def __init__(self, positions: Array, box: tuple[float, ...] | None) -> None:
        self.positions, self.box = positions, box

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return int(self.positions.shape[1])

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest coordinate along each axis."""
        return self._ends

    @functools.cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        return extent(self.positions)
