"""Guards: what is known of a correct array, applied to one that may not be.

A range is learned from clean runs (Ranger, arXiv 2003.13874): a value beyond it is brought back, so that a flip of a high
bit does the damage of a small error. That is cheap, one pass, but it corrects nothing within the range.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from workbench import backend
from workbench.arguments import number
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.propagation.protection.findings import Findings


class Guard(Protocol):
    """Anything that inspects an array, and returns it as it should be, with what was found."""

    def __call__(self, values: Array) -> tuple[Array, Findings]:
        """The values as they should be."""


@dataclass(frozen=True)
class Range:
    """Values lie between two limits; those beyond are set to the nearest limit, and NaN to the middle.

    >>> import numpy as np
    >>> Range(0.0, 1.0)(np.array([0.5, 7.0, np.nan]))
    (array([0.5, 1. , 0.5]), Findings(checks=3, detected=2, corrected=2, recomputed=0, unchecked=0))
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise WorkbenchError(f"a range needs finite limits, low <= high; got {self.low} and {self.high}")

    def __call__(self, values: Array) -> tuple[Array, Findings]:
        """The values within the range; the same array where all are."""
        xp = backend.namespace(values)
        if values.dtype.kind != "f":
            raise WorkbenchError(f"a range guards floating-point values; got {values.dtype}")
        if not values.size or (float(values.min()) >= self.low and float(values.max()) <= self.high):
            return values, Findings(checks=values.size)
        inside = (values >= self.low) & (values <= self.high)
        wrong = values.size - int(inside.sum())
        middle = values.dtype.type(self.low / 2 + self.high / 2)
        limited = xp.clip(xp.where(xp.isnan(values), middle, values), self.low, self.high).astype(values.dtype)
        return limited, Findings(checks=values.size, detected=wrong, corrected=wrong)


@dataclass(frozen=True)
class Finite:
    """Values are neither NaN nor infinite; those that are become `instead`.

    >>> import numpy as np
    >>> Finite()(np.array([1.0, -np.inf]))
    (array([1., 0.]), Findings(checks=2, detected=1, corrected=1, recomputed=0, unchecked=0))
    """

    instead: float = 0.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.instead):
            raise WorkbenchError(f"instead must be finite; got {self.instead}")

    def __call__(self, values: Array) -> tuple[Array, Findings]:
        """The values, with all that are not finite replaced; the same array where all are."""
        xp = backend.namespace(values)
        if values.dtype.kind not in "fc":
            return values, Findings(checks=values.size)
        good = xp.isfinite(values)
        wrong = values.size - int(good.sum())
        if not wrong:
            return values, Findings(checks=values.size)
        replaced = xp.where(good, values, values.dtype.type(self.instead))
        return replaced, Findings(checks=values.size, detected=wrong, corrected=wrong)


def learn_ranges(runs: Iterable[Mapping[str, Any]], margin: float = 0.2) -> dict[str, Range]:
    """The range of every named array over clean runs, widened on both sides by a share of its width.

    A run is a mapping of names to arrays, such as the sites of a pipeline's run. Arrays of other than floating-point values
    get no range. With few runs a range is too narrow, and correct values are changed: measure false alarms on other data.

    >>> import numpy as np
    >>> learn_ranges([{"power": np.array([0.0, 1.0])}, {"power": np.array([2.0])}], margin=0.5)
    {'power': Range(low=-1.0, high=3.0)}
    """
    margin = number("margin", margin, 0.0, math.inf)
    limits: dict[str, tuple[float, float]] = {}
    for run in runs:
        for name, values in run.items():
            if getattr(getattr(values, "dtype", None), "kind", "") != "f" or not values.size:
                continue
            low, high = float(values.min()), float(values.max())
            if not (math.isfinite(low) and math.isfinite(high)):
                raise WorkbenchError(f"ranges are learned from clean runs; {name!r} has NaN or infinite values")
            known = limits.get(name, (low, high))
            limits[name] = min(low, known[0]), max(high, known[1])
    if not limits:
        raise WorkbenchError("ranges are learned from arrays of floating-point values; got none")
    return {name: Range(low - margin * (high - low), high + margin * (high - low)) for name, (low, high) in limits.items()}
