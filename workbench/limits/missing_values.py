"""Fill values that nobody declared.

Readers mask the fill values that a file declares. Arrays often come without declarations, and a single 1e20 or -999 among
temperatures would be taken for the signal. A fill value is an extreme of the field that occurs at many places and is far
from all other values. It is left out, and the user is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workbench.data import Field
from workbench.data.readers.cf import missing

FAR = 10.0      # ranges of the other values: nothing but a fill value is so far from all of them
APART = 0.5     # the same for a number that is a customary fill value
MOST = 4        # different fill values in one field
CUSTOMARY = frozenset(
    [sign * float(digits) for sign in (-1, 1) for digits in ("99", "999", "9999", "99999", "999999", "32767", "32768")]
    + [sign * 10.0**power for sign in (-1, 1) for power in (15, 20, 30, 33, 34, 35, 36)]
    + [9.969209968386869e36, 9.96921e36, -1.7976931348623157e308, 1.7976931348623157e308]
)


@dataclass(frozen=True)
class Fill:
    """A fill value, how often it occurs, and whether the field declares it."""

    value: float
    count: int
    declared: bool

    def __str__(self) -> str:
        if self.declared:
            return f"{self.count:,} values are left out: the attributes of the field declare them missing"
        return f"{self.count:,} values of {self.value:g}, far from all others, are left out: mask them to confirm"


def without_fills(field: Field) -> tuple[Field, tuple[Fill, ...]]:
    """The field with its fill values masked, and what was masked; the field itself if it has none.

    >>> land = np.array([14.0, 14.5, -999.0, -999.0, 15.0])
    >>> found, fills = without_fills(Field(land))
    >>> found.mask.tolist(), str(fills[0])
    ([False, False, True, True, False], '2 values of -999, far from all others, are left out: mask them to confirm')
    """
    values, valid = np.asarray(field.values), np.asarray(field.valid)
    fills: list[Fill] = []
    declared = _declared(field, values)
    if declared is not None and (valid & declared).any():
        fills.append(Fill(float("nan"), int(np.count_nonzero(valid & declared)), True))
        valid = valid & ~declared
    while len(fills) < MOST and (value := _outstanding(values, valid)) is not None:
        there = valid & (values == value)
        fills.append(Fill(float(value), int(np.count_nonzero(there)), False))
        valid &= ~there
    if not fills:
        return field, ()
    return Field(values, field.spacing, field.name, ~valid, field.metadata), tuple(fills)


def _declared(field: Field, values: np.ndarray) -> np.ndarray | None:
    """Where the attributes of the field declare a value missing."""
    attributes = field.metadata.get("attributes")
    every = {**(attributes if isinstance(attributes, Mapping) else {}), **field.metadata}
    said = {name: every[name] for name in ("_FillValue", "missing_value") if every.get(name) is not None}
    return missing(values, said) if said else None


def _outstanding(values: np.ndarray, valid: np.ndarray) -> float | None:
    """The largest or smallest valid value, if it is a fill value."""
    known = values[valid]
    if known.size < 2:
        return None
    for extreme in (known.max(), known.min()):
        others = known[known != extreme]
        if others.size == 0:
            return None
        low, high = float(others.min()), float(others.max())
        gap = max(float(extreme) - high, low - float(extreme))
        customary = _is_customary(extreme)
        often = known.size - others.size > 1 or customary
        if high > low and often and gap > (APART if customary else FAR) * (high - low):
            return float(extreme)
    return None


def _is_customary(value: np.floating) -> bool:
    """Whether programs write this number where there is no value, in the precision of the field."""
    return any(value == value.dtype.type(each) for each in CUSTOMARY if abs(each) <= float(np.finfo(value.dtype).max))
