"""Checks of arguments that many functions share: whole numbers, positive numbers, numbers within limits, grid shapes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.errors import WorkbenchError


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """An integer of any integer type within limits.

    >>> whole_number("n", np.int16(8), least=4)
    8
    """
    span = f"at least {least}" if most is None else f"between {least} and {most:,}"
    try:
        number = None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or (most is not None and number > most):
        raise WorkbenchError(f"{name} must be a whole number, {span}; got {value!r}")
    return number


def positive(name: str, value: Any) -> float:
    """A positive, finite number."""
    result = _float(value)
    if not 0 < result < math.inf:
        raise WorkbenchError(f"{name} must be positive and finite; got {value!r}")
    return result


def number(name: str, value: Any, low: float, high: float) -> float:
    """A number within limits, both included."""
    result = _float(value)
    if not low <= result <= high:
        raise WorkbenchError(f"{name} must be a number in [{low:g}, {high:g}]; got {value!r}")
    return result


def _float(value: Any) -> float:
    """The value as a float, NaN when it is none: NaN passes no limit."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def grid_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    """A shape of one to four axes; one number is a line."""
    axes = tuple(shape) if isinstance(shape, Sequence | np.ndarray) else (shape,)
    if not 1 <= len(axes) <= 4:
        raise WorkbenchError(f"shape must have 1 to 4 axes; got {shape!r}")
    return tuple(whole_number("each axis of shape", points, least=1) for points in axes)
