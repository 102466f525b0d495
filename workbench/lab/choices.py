"""Checks of a user's choices, in the words of the panels: what was typed into a field is quoted as it was typed."""

from __future__ import annotations

import dataclasses
import difflib
import math
import numbers
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import numpy as np

from workbench.errors import WorkbenchError, briefly

State = TypeVar("State")


def told_how_to_change(state: type[State]) -> type[State]:
    """A frozen class of choices as it is, but for what is said to those who assign to one.

    >>> @told_how_to_change
    ... @dataclasses.dataclass(frozen=True)
    ... class Choices:
    ...     eb: float = 0.1
    >>> Choices().eb = 0.5
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: choices are changed by panel.change(eb=0.5); a state stays as it is
    """

    def refuse(self: State, name: str, value: Any) -> None:
        raise WorkbenchError(f"choices are changed by panel.change({name}={briefly(value)}); a state stays as it is")

    state.__setattr__ = refuse   # type: ignore[assignment, method-assign]
    return state


def plain(value: Any) -> Any:
    """A value that can be compared: an array, which answers with another array, becomes numbers in lists.

    >>> import numpy as np
    >>> plain(np.array(3)), plain(np.zeros(2)), plain("sz3")
    (3, [0.0, 0.0], 'sz3')
    """
    return value.tolist() if isinstance(value, np.ndarray) else value


def finite(name: str, value: Any) -> float:
    """A finite number; any other value is refused.

    >>> finite("the number of the target", float("nan"))
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: the number of the target must be a finite number; nan is not one
    """
    number = _number(value)
    if not math.isfinite(number):
        raise WorkbenchError(f"{name} must be a finite number; {_said(value)} is not one")
    return number


def positive(name: str, value: Any) -> float:
    """A positive, finite number; any other value is refused.

    >>> positive("the error bound", "abc")
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: the error bound must be a positive number; 'abc' is not one
    """
    number = _number(value)
    if not 0 < number < math.inf:
        raise WorkbenchError(f"{name} must be a positive number; {_said(value)} is not one")
    return number


def whole(name: str, value: Any, least: int, most: int = 2**63 - 1) -> int:
    """A whole number, at least `least`; any other value is refused.

    >>> whole("the slice", -1, least=0)
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: the slice must be a whole number, at least 0; -1 is not one
    """
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise WorkbenchError(f"{name} must be a whole number, at least {least}; {_said(value)} is not one")
    if int(value) > most:
        raise WorkbenchError(f"{name} must be at most {most}; got {_said(value)}")
    return int(value)


def one_of(name: str, value: Any, allowed: Collection[Any]) -> Any:
    """One of these values; any other is refused.

    >>> one_of("the order", "random", ("keep", "free"))
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: the order must be one of keep, free; got 'random'
    """
    if isinstance(value, bool | np.bool_) or value not in allowed:
        raise WorkbenchError(f"{name} must be one of {', '.join(map(str, allowed))}; got {briefly(value)}")
    return value


def within(name: str, value: int, count: int) -> None:
    """Refuse a place beyond the last of so many.

    >>> within("the slice", 192, 192)
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: the slice must be from 0 to 191; got 192
    """
    if value >= count:
        raise WorkbenchError(f"{name} must be from 0 to {count - 1}; got {value}")


def with_choices(state: State, fields: Mapping[str, Any]) -> State:
    """The state with these choices; names that it does not have are refused.

    >>> from workbench.lab.clusters_panel.state import ClustersState
    >>> with_choices(ClustersState(0.1), {"codec": "sz3"}).codec
    'sz3'
    >>> with_choices(ClustersState(0.1), {"eb": 0.2})   # doctest: +ELLIPSIS
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: a clusters panel has no choice 'eb'; its choices are axis, bound, chosen, codec, ...
    """
    names = sorted(field.name for field in dataclasses.fields(state))   # type: ignore[arg-type]
    for unknown in sorted(fields.keys() - set(names)):
        panel = type(state).__name__.removesuffix("State").lower()
        near = difflib.get_close_matches(unknown, names, 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise WorkbenchError(f"a {panel} panel has no choice {unknown!r}{meant}; its choices are {', '.join(names)}")
    return dataclasses.replace(state, **{name: plain(value) for name, value in fields.items()})   # type: ignore[type-var]


def _number(value: Any) -> float:
    """The number; NaN for what is none."""
    try:
        return float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.inf


def _said(value: Any) -> str:
    """A value as the user wrote it."""
    return f"{_number(value):g}" if isinstance(value, numbers.Real) and not isinstance(value, bool) else briefly(value)
