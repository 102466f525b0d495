"""Kinds of values that cannot be compared as numbers: counts of days are no dates, and pairs of numbers no complex ones.

The audit compares all of them as plain numbers. Equal numbers of different kinds, or of dates whose unit is too fine for
the years of the other side, would pass as the same values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

KINDS = {"M": "dates", "m": "durations", "c": "complex numbers", **dict.fromkeys("biufV", "numbers")}


def unlike(original: Any, lossy: Any) -> str | None:
    """Why the values of two members are not of one kind; None if they are.

    >>> unlike(np.array(["2001-01-01"], "M8[D]"), np.array([11323]))
    'its values are numbers (int64) in place of dates (datetime64[D])'
    """
    own, other = (np.dtype(getattr(one, "dtype", None) or one.values.dtype) for one in (original, lossy))
    kinds = [KINDS.get(one.kind, "text") for one in (own, other)]
    if kinds[0] != kinds[1]:
        return f"its values are {kinds[1]} ({other}) in place of {kinds[0]} ({own})"
    if own.kind in "Mm" and not _share_a_unit(own, other, original, lossy):
        return f"its values are {other} in place of {own}, and not all of one side have a value in the unit of the other"
    return None


def _share_a_unit(own: np.dtype, other: np.dtype, *members: Any) -> bool:
    """Whether all dates or durations can be counted in one unit: none is beyond its 64 bits."""
    if (np.datetime_data(own)[0] == "generic") != (np.datetime_data(other)[0] == "generic"):
        return False
    try:
        common = np.promote_types(own, other)
    except TypeError:   # months have no number of days
        return False
    arrays = [np.asarray(getattr(one, "values", one)) for one in members]
    return all(np.array_equal(array.astype(common).astype(array.dtype), array, equal_nan=True) for array in arrays)
