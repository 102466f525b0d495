"""Smooth values in place of NaN, infinities and masked values, which disturb codecs.

A NaN makes some codecs crash and others lose its neighbours; a fill value of 1e35 makes most spend all their bits on the
coast. The value before a gap is the cheapest guess. The inserted values never reach a reader: those places are corrected,
bit for bit, from the original.
"""

from __future__ import annotations

from workbench import backend
from workbench.backend import Array


def filled(values: Array, valid: Array) -> Array:
    """The values, each invalid one replaced by the last valid one before it (at the start: by the first; or by zero).

    >>> import numpy as np
    >>> filled(np.array([np.nan, 1.0, np.inf, 3.0]), np.array([False, True, False, True])).tolist()
    [1.0, 1.0, 1.0, 3.0]
    """
    xp = backend.namespace(values, valid)
    present = xp.ascontiguousarray(values).reshape(-1)[valid.reshape(-1)]
    if present.size == 0:
        return xp.zeros(values.shape, values.dtype)
    before = xp.cumsum(valid.reshape(-1)) - 1   # the index of the last valid value up to here
    return present[xp.maximum(before, 0)].reshape(values.shape)
