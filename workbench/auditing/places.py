"""Places in an array: the index, and the coordinates of its dataset there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.auditing.sides import Side
from workbench.data import Field
from workbench.data.variable import Variable
from workbench.run.chunked_field import ChunkedField


def axes_of(member: Any, shape: Sequence[int]) -> tuple[str, ...]:
    """The names of the axes: those of the file, or axis_0 and so on.

    >>> axes_of(Field([1.0], metadata={"dimensions": ["time"]}), (1,)), axes_of(Field([1.0]), (1,))
    (('time',), ('axis_0',))
    """
    given = getattr(member, "metadata", {}).get("dimensions")
    if isinstance(given, list | tuple) and len(given) == len(shape):
        return tuple(map(str, given))
    return tuple(f"axis_{number}" for number in range(len(shape)))


def place_of(index: Sequence[int] | None, name: str, axes: Sequence[str], side: Side) -> dict[str, Any]:
    """The index and, for each axis that has a coordinate, its value there."""
    if index is None:
        return {}
    found: dict[str, Any] = {"index": [int(one) for one in index]}
    for axis, at in zip(axes, index, strict=False):
        if (value := _value(side.members, name, axis, int(at))) is not None:
            found[axis] = value
        elif not axis.startswith("axis_"):
            found.setdefault(axis, int(at))
    return found


def _value(members: Mapping[str, Any], name: str, axis: str, at: int) -> Any:
    """The value of the coordinate of an axis in the group of a member, or in the nearest one around it."""
    group = name
    while group:
        group = group.rpartition("/")[0]
        if (value := _at(members, f"{group}/{axis}" if group else axis, at)) is not None:
            return value
    return None


def _at(members: Mapping[str, Any], name: str, at: int) -> Any:
    """The value of a coordinate of one axis."""
    member = members.get(name)
    if isinstance(member, Variable) and member.values.ndim == 1 and at < len(member.values):
        value = member.values[at]
        return np.datetime_as_string(value, "s") if member.values.dtype.kind == "M" else str(value)
    if isinstance(member, Field | ChunkedField) and len(member.shape) == 1 and at < member.shape[0]:
        return float(ChunkedField.of(member).part((slice(at, at + 1),)).values[0])
    return None
