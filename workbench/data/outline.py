"""What is known about particles without their positions: number, type, box and extent.

Linking lengths, lattices and notes on unusual requests depend on these alone, so they are the same for particles in memory
and for particles in files on many machines.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np


class Outlined:
    """The measures that follow from the extent (`lower`, `upper`), the box and the number of particles."""

    box: tuple[float, ...] | None

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest coordinate along each axis."""

    @property
    def lower(self) -> np.ndarray:
        """The smallest coordinate along each axis."""
        return self.ends()[0]

    @property
    def upper(self) -> np.ndarray:
        """The largest coordinate along each axis."""
        return self.ends()[1]

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return len(self.lower)

    @property
    def lengths(self) -> tuple[float, ...]:
        """The periods of the box or, in an open space, the extent of the positions along each axis."""
        return self.box if self.box is not None else tuple((self.upper - self.lower).tolist())

    @property
    def volume(self) -> float:
        """The volume (area) of the box or, in an open space, of the smallest box around the positions."""
        return math.prod(self.lengths)

    @property
    def spacing(self) -> float:
        """The mean spacing: (volume / N) ** (1 / D)."""
        root = np.cbrt if self.dimensions == 3 else np.sqrt   # exact for cubes and squares; a power of 1/3 is not
        return float(root(self.volume / len(self)))


class Placed(Outlined):
    """What has positions, too."""

    positions: Any


class Outline(Outlined):
    """The outline of particles that are not here.

    >>> Outline(8, np.dtype("float32"), np.zeros(3), np.ones(3), (2.0, 2.0, 2.0)).spacing
    1.0
    """

    def __init__(
        self, count: int, dtype: np.dtype, lower: np.ndarray, upper: np.ndarray, box: tuple[float, ...] | None = None
    ) -> None:
        self.count, self.dtype, self.box = count, dtype, box
        self._ends = lower, upper

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest coordinate along each axis."""
        return self._ends

    @classmethod
    def around(cls, ends: Sequence[tuple[np.ndarray, np.ndarray]], count: int, dtype: Any, box: Any) -> Outline:
        """The outline of particles in parts with these extents."""
        lower, upper = (np.stack([end[number] for end in ends]) for number in (0, 1))
        return cls(count, np.dtype(dtype), lower.min(axis=0), upper.max(axis=0), box)

    @property
    def corners(self) -> np.ndarray:
        """The lower and the upper corner (2, D), in the type of the positions."""
        return np.stack([self.lower, self.upper]).astype(self.dtype)

    def __len__(self) -> int:
        return self.count
