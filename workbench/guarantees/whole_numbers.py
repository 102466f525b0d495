"""The exact comparison of integers: |x - y| can be as large as 2^64 - 1, which neither int64 nor float64 holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.guarantees.bounds import Limit

LARGEST = 2**64 - 1


def distances(one: Array, other: Array) -> Array:
    """|x - y| of integers of one type, exactly, as uint64.

    >>> distances(np.array([-(2**63)]), np.array([2**63 - 1])).tolist()
    [18446744073709551615]
    """
    xp = backend.namespace(one, other)
    larger, smaller = xp.maximum(one, other), xp.minimum(one, other)
    return larger.astype(xp.uint64) - smaller.astype(xp.uint64)   # modulo 2^64, where the difference is below 2^64


def differences(one: Array, other: Array) -> Array:
    """The second minus the first, integers of one type, in float64: exact up to 2^53, rounded once beyond that.

    >>> differences(np.array([2**53, 5]), np.array([2**53 + 1, 3])).tolist()
    [1.0, -2.0]
    """
    size = distances(one, other).astype(np.float64)
    return backend.namespace(one, other).where(other < one, -size, size)


def most_allowed(bound: float) -> int:
    """The largest whole number of 64 bits within a bound.

    >>> most_allowed(2.5), most_allowed(1e30) == LARGEST
    (2, True)
    """
    return min(math.floor(bound), LARGEST)


def broken(original: Array, decoded: Array, limit: Limit, mask: Array | None = None) -> tuple[Any, float]:
    """The flat indices of integers that break a limit, or differ where masked; and the largest error."""
    if limit.relative and limit.value > 0:
        raise WorkbenchError("the limit of integers must be absolute; got a relative one: use wb.Absolute or wb.Relative")
    xp = backend.namespace(original, decoded)
    distance = distances(original.reshape(-1), decoded.reshape(-1))
    beyond = distance > xp.uint64(most_allowed(limit.value))
    if mask is None:
        return xp.flatnonzero(beyond), float(distance.max())
    changed = mask & (distance > 0)
    largest = math.inf if bool(changed.any()) else float(xp.where(mask, xp.uint64(0), distance).max())
    return xp.flatnonzero(changed | beyond), largest
