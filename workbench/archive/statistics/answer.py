"""What all answers of archives have: the same order of fields, a dictionary for JSON, and a table for notebooks.

First comes what the answer is of, then values, their bounds or ends, what was read for them, and how much counts. Bounds in
print are rounded up, so that the printed interval, too, contains the figure of the original.
"""

from __future__ import annotations

import dataclasses
import math
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

import numpy as np

from workbench.data.summary_html import summary
from workbench.json_values import json_value

DIGITS = 3        # of a bound beside its value
MOST_ZEROS = 15   # that are written out
MOST_DIGITS = 20  # of a value, which a much smaller bound does not lengthen


class Answer:
    """The base of the dataclasses that the statistics of an archive return."""

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON: arrays are lists, and NaN and infinities are None."""
        stated: dict[str, Any] = json_value(self._stated())
        return stated

    def _repr_html_(self) -> str:
        rows = {name.replace("_", " "): _in_table(name, value) for name, value in self._stated().items()}
        return summary(self._line, rows)

    @property
    def _line(self) -> str:
        """What a notebook shows before it is opened."""
        return repr(self)

    def _stated(self) -> dict[str, Any]:
        """The fields by name; after a bound, the ends that follow from it."""
        assert dataclasses.is_dataclass(self)
        names = [one.name for one in dataclasses.fields(self)]
        if hasattr(type(self), "low"):   # a property, and no field
            after = names.index("bound") + 1
            names[after:after] = ["low", "high"]
        return {name: getattr(self, name) for name in names}


def bound_in_words(bound: float | np.ndarray, digits: int = 4) -> str:
    """A bound, or the least and the largest of several, rounded up: as a float, none is below that which it is of.

    >>> bound_in_words(0.1), bound_in_words(0.10001), bound_in_words(np.array([0.5, np.nan, 1.00001]))
    ('0.1', '0.1001', '0.5 to 1.001')
    """
    if isinstance(bound, np.ndarray) and bound.ndim:
        known = bound[~np.isnan(bound)]
        ends = [bound_in_words(float(end), digits) for end in (known.min(), known.max())] if known.size else ["nan"]
        return " to ".join(dict.fromkeys(ends))
    up = Context(prec=digits, rounding=ROUND_CEILING)
    return f"{float(up.create_decimal(Decimal(repr(float(bound))))):.{digits}g}"


def in_digits(value: float, bound: float) -> str:
    """A value and its bound with as many digits as the bound has, which is rounded up.

    >>> in_digits(1.23456, 0.0123)
    '1.2346 ± 0.0124'
    """
    if bound == 0 or not math.isfinite(bound):
        return f"{value!r} ± {bound:g}"
    exact, up = Context(prec=2000, rounding=ROUND_HALF_EVEN), Context(prec=2000, rounding=ROUND_CEILING)
    given, width = Decimal(value), Decimal(bound)
    last = width.adjusted() - DIGITS + 1
    quantum = Decimal((0, (1,), max(last, given.adjusted() - MOST_DIGITS) if given else last))
    shown = given.quantize(quantum, context=exact)
    shown = shown if shown else exact.abs(shown)   # no sign before zero
    wider = up.add(width, exact.abs(exact.subtract(given, shown))).quantize(quantum, context=up)
    large = max(shown.adjusted(), wider.adjusted())
    form = "f" if wider.adjusted() > -MOST_ZEROS and large < MOST_ZEROS else ""
    return f"{shown:{form}} ± {wider:{form}}"


def _in_table(name: str, value: Any) -> str:
    if isinstance(value, np.ndarray):
        shape = f"{' x '.join(map(str, value.shape))}, {value.dtype}"
        return f"{bound_in_words(value)} ({shape})" if name == "bound" else shape
    if isinstance(value, tuple):
        return "; ".join(_in_table(name, one) for one in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
