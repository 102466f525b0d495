"""Single answers of a check, for tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.guarantees import Limit, check


def broken(original: Any, decoded: Any, limit: Limit, period: Any = None) -> Any:
    """The flat indices of the values that break the promise."""
    return check(original, decoded, limit, period).broken


def holds(original: Any, decoded: Any, limit: Limit, period: Any = None) -> bool:
    """Whether every value keeps the promise."""
    return check(original, decoded, limit, period).holds


def largest_error(original: Any, decoded: Any, period: Any = None, relative: bool = False) -> float:
    """The largest |x - y| or, when `relative`, the largest |x - y| / |x|, under a limit that says nothing else."""
    limit = Limit("relative", math.nextafter(1.0, 0.0)) if relative else Limit("absolute", np.finfo(np.float64).max)
    return check(original, decoded, limit, period).largest_error
