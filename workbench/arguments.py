"""Checks of arguments that many functions share: numbers, words out of a few, flags, functions, grid shapes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.errors import WorkbenchError, briefly

MOST_POINTS = 2**48   # of a grid: more fit into no memory


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


def share_of_one(name: str, value: Any) -> float:
    """A share or a probability, neither none nor all.

    >>> share_of_one("confidence", 0.9)
    0.9
    """
    result = _float(value)
    if not 0 < result < 1:
        raise WorkbenchError(f"{name} must be a number between 0 and 1, both excluded; got {value!r}")
    return result


def _float(value: Any) -> float:
    """The value as a float, NaN when it is none: NaN passes no limit."""
    if value is np.ma.masked:
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of these words.

    >>> one_of("order", "keep", ("keep", "free"))
    'keep'
    """
    if not isinstance(value, str) or value not in choices:
        raise WorkbenchError(f"{name} must be one of {', '.join(choices)}; got {briefly(value)}")
    return value


def flag(name: str, value: Any) -> bool:
    """True or False, also of NumPy."""
    if not isinstance(value, bool | np.bool_):
        raise WorkbenchError(f"{name} must be True or False; got {briefly(value)}")
    return bool(value)


def function(name: str, value: Any) -> None:
    """Refuse what cannot be called; None is no function, and allowed."""
    if value is not None and not callable(value):
        raise WorkbenchError(f"{name} must be a function, or None; got {briefly(value)}")


def grid_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    """A shape of one to four axes; one number is a line."""
    if isinstance(shape, np.ndarray) and shape.ndim == 1:
        shape = list(shape)
    axes = tuple(shape) if isinstance(shape, Sequence) and not isinstance(shape, bytes) else (shape,)
    if not 1 <= len(axes) <= 4:
        raise WorkbenchError(f"shape must have 1 to 4 axes; got {shape!r}")
    checked = tuple(whole_number("each axis of shape", points, least=1) for points in axes)
    if math.prod(checked) > MOST_POINTS:
        raise WorkbenchError(f"a grid must have at most {MOST_POINTS:,} points; got shape {checked}")
    return checked
