"""Where the values of a site can be when an error has a known size: guaranteed, with the round-off of both runs included.

A stage turns enclosures of its inputs into enclosures of its outputs. Each says whether a changed array lies in it, and
how much a value can change at most. Bounds are computed in float64 and widened by more than their own rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from workbench.backend import Array, to_host
from workbench.propagation.error_sizes import change_of
from workbench.propagation.error_sizes import norm as norm_of

WIDER = 1 + 1e-9   # more than the rounding of the bounds themselves


class Enclosure(Protocol):
    """A set of arrays, given the unperturbed one."""

    def holds(self, original: Array, changed: Array) -> bool:
        """Whether the changed array is in the set."""

    def most(self, original: Array) -> Any:
        """The largest possible change of a value: one number, or one for each value; None where changes have no size."""


@dataclass(frozen=True, eq=False)
class Ball:
    """No value is further than `radius` (a number, or one for each) from the original; the whole is within `norm` of it.

    NaN, which bounds computed from values that are not finite are, limits nothing.

    >>> Ball(0.5).holds(np.zeros(3), np.array([0.5, -0.5, 0.0])), Ball(0.5, norm=0.6).holds(np.zeros(2), np.full(2, 0.5))
    (True, False)
    """

    radius: Any
    norm: float = math.inf

    def __post_init__(self) -> None:
        _forget_nan(self)

    @classmethod
    def around(cls, values: Array, radius: Any) -> Ball:
        """All arrays with changes up to the radius."""
        full = np.broadcast_to(np.asarray(to_host(radius), np.float64), values.shape)
        return cls(radius, WIDER * norm_of(full))

    def holds(self, original: Array, changed: Array) -> bool:
        """Whether every change is small enough."""
        change = change_of(original, changed)
        return bool(np.all(change <= self.radius)) and norm_of(change) <= self.norm * WIDER

    def most(self, original: Array) -> Any:
        """The radius, or the norm where it is smaller."""
        return np.minimum(self.radius, self.norm)


@dataclass(frozen=True, eq=False)
class Squares:
    """Squared amplitudes: the amplitudes are within `radius` of the original ones, the whole of them within `norm`.

    >>> Squares(0.5, 1.0).holds(np.array([4.0]), np.array([6.25]))
    True
    """

    radius: Any
    norm: float

    def __post_init__(self) -> None:
        _forget_nan(self)

    def holds(self, original: Array, changed: Array) -> bool:
        """Whether the change of every amplitude is small enough."""
        one, other = (np.sqrt(to_host(values).astype(np.float64)) for values in (original, changed))
        return Ball(self.radius, self.norm).holds(one, other)

    def most(self, original: Array) -> Any:
        """The largest change of a square."""
        radius = np.minimum(self.radius, self.norm)
        return _or_any(WIDER * radius * (2 * np.sqrt(to_host(original)) + radius))


@dataclass(frozen=True, eq=False)
class Range:
    """Every value lies between `low` and `high`; an end that is NaN limits nothing.

    >>> Range(np.array([1, 0]), np.array([2, 0])).holds(np.array([1, 0]), np.array([2, 0]))
    True
    """

    low: np.ndarray
    high: np.ndarray

    def holds(self, original: Array, changed: Array) -> bool:
        """Whether every value is between its ends; where it has none, it may also be NaN."""
        values = to_host(changed)
        free = ~((self.low > -np.inf) | (self.high < np.inf))
        return bool(np.all(free | ~((values < self.low) | (values > self.high) | np.isnan(values))))

    def most(self, original: Array) -> Any:
        """The distance to the further end."""
        values = to_host(original).astype(np.float64)
        return _or_any(np.maximum(self.high - values, values - self.low))


@dataclass(frozen=True, eq=False)
class Partitions:
    """Labels of groups: what is together in `fine` stays together, what is apart in `coarse` stays apart.

    >>> Partitions(np.array([0, 0, 2]), np.array([0, 0, 0])).holds(np.array([0, 0, 2]), np.array([0, 0, 0]))
    True
    """

    fine: np.ndarray
    coarse: np.ndarray

    def holds(self, original: Array, changed: Array) -> bool:
        """Whether the labels are coarser than `fine` and finer than `coarse`."""
        labels = to_host(changed)
        return refines(self.fine, labels) and refines(labels, self.coarse)

    def most(self, original: Array) -> Any:
        """Labels have no size."""
        return None


def unless_overflowing(radius: Any, largest: Any, dtype: Any) -> np.ndarray:
    """The radius, infinite where numbers up to `largest`, on the way to a value, may exceed the range of their type.

    >>> unless_overflowing([0.5, 0.5], [1.0, 3e38], np.float32).tolist()
    [0.5, inf]
    """
    return np.where(np.asarray(largest) < float(np.finfo(dtype).max) / 2, radius, np.inf)


def _or_any(sizes: Any) -> Any:
    return np.where(np.isnan(sizes), np.inf, sizes)


def _forget_nan(ball: Ball | Squares) -> None:
    """Replace bounds that are NaN by infinity."""
    if np.isnan(ball.radius).any():
        object.__setattr__(ball, "radius", _or_any(ball.radius))
    if math.isnan(ball.norm):
        object.__setattr__(ball, "norm", math.inf)


def refines(fine: np.ndarray, coarse: np.ndarray) -> bool:
    """Whether all members of a group of `fine` are in one group of `coarse`.

    >>> refines(np.array([0, 0, 2]), np.array([5, 5, 5])), refines(np.array([5, 5, 5]), np.array([0, 0, 2]))
    (True, False)
    """
    _, first, group = np.unique(fine, return_index=True, return_inverse=True)
    return bool((coarse == coarse[first][group]).all())


def rounding(operations: float, dtype: Any) -> float:
    """The relative error of so many rounded operations in a row (Higham's gamma)."""
    unit = float(np.finfo(dtype).eps) / 2
    return operations * unit / (1 - operations * unit) if operations * unit < 1 else math.inf


UNCHANGED = Ball(0.0, 0.0)
