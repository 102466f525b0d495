"""Some slices of an array along one axis, such as the tokens of a text: where a run may differ from the one before.

Stages that treat each slice by itself compute these alone. Those that are equal bit for bit are left out, so an error that
rounding has swallowed is not followed further.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array

FIRST = 64   # values of a slice that are compared before all of it: most that differ do so everywhere


@dataclass(frozen=True, eq=False)
class Rows:
    """Slices of an array of this shape, by their indices in rising order."""

    shape: tuple[int, ...]
    axis: int
    indices: np.ndarray

    @classmethod
    def of(cls, where: Any, shape: tuple[int, ...], axis: int) -> Rows:
        """The slices that hold what may have changed: flat indices, slices along this or another axis, or None for any.

        >>> Rows.of(np.array([1, 7]), (2, 5), 1).indices.tolist(), Rows.of(None, (2, 5), 0).indices.tolist()
        ([1, 2], [0, 1])
        """
        if isinstance(where, Rows) and where.axis == axis:
            return where
        if where is None or isinstance(where, Rows):
            return cls(shape, axis, np.arange(shape[axis] if where is None or len(where) else 0))
        return cls(shape, axis, np.unique(np.unravel_index(backend.to_host(where), shape)[axis]))

    def __len__(self) -> int:
        return len(self.indices)

    def joined(self, other: Any) -> Rows:
        """These slices, and those of another place where the same array may have changed."""
        found = Rows.of(other, self.shape, self.axis)
        return Rows(self.shape, self.axis, np.union1d(self.indices, found.indices))

    def differing(self, old: Array, new: Array) -> Rows:
        """Those of the slices whose bits differ."""
        one, other = first_axis(old, self.axis), first_axis(new, self.axis)
        xp = backend.namespace(old, new)
        start = (xp.asarray(self.indices), *(slice(1),) * (one.ndim - 2), slice(FIRST))
        same = _equal(one[start], other[start])
        if not same.any():
            return self
        unclear = xp.asarray(self.indices[same])
        same[same] = _equal(one[unclear], other[unclear])
        return Rows(self.shape, self.axis, self.indices[~same])


def first_axis(array: Array, axis: int) -> Array:
    """The array with this axis before the others."""
    return array.transpose(axis, *(each for each in range(array.ndim) if each != axis)) if axis else array


def _equal(one: Array, other: Array) -> np.ndarray:
    """Which rows are equal bit for bit."""
    xp = backend.namespace(one, other)
    shape, word = (len(one), math.prod(one.shape[1:])), f"u{min(one.dtype.itemsize, 8)}"
    words = [xp.ascontiguousarray(each).reshape(shape).view(word) for each in (one, other)]
    return np.array(backend.to_host((words[0] == words[1]).all(axis=1)))
