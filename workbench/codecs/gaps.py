"""Values in place of NaN, infinities and masked values, which disturb codecs.

A NaN makes some codecs crash and others lose its neighbours; a fill value of 1e35 makes most spend all their bits on the
coast. The inserted values never reach a reader: those places are corrected, bit for bit, from the original.

Codecs that interpolate or transform pay for each step at a coast, on both sides of it: with smooth gaps a sea surface that
is half land takes a quarter less. So gaps are filled from coarse grids to fine ones, by pull and push as for scattered
data, with relaxation on each grid (`kernels/gaps.cu`). Planes of the last two axes are filled by themselves, as values at
other levels are of other magnitudes. Codecs that code differences of integers, or repeats, pay for each new value, and
least where the last one is repeated.
"""

from __future__ import annotations

import math

import numpy as np

from workbench import backend
from workbench.backend import Array

RELAXED = 2       # steps on each grid: more take longer and save less than a hundredth of the bits
AT_ONCE = 2**22   # cells of planes that are filled together


def repeated(values: Array, valid: Array) -> Array:
    """The values, each invalid one replaced by the last valid one before it, in the order of memory.

    >>> import numpy as np
    >>> repeated(np.array([np.nan, 1.0, np.inf, 3.0]), np.array([False, True, False, True])).tolist()
    [1.0, 1.0, 1.0, 3.0]
    """
    xp = backend.namespace(values, valid)
    if not bool(valid.any()):
        return xp.zeros(values.shape, values.dtype)
    before = xp.cumsum(valid.reshape(-1)) - 1
    return values.reshape(-1)[valid.reshape(-1)][xp.maximum(before, 0)].reshape(values.shape)


def filled(values: Array, valid: Array) -> Array:
    """The values, each invalid one replaced by a guess between its valid neighbours; by zero where none is valid.

    >>> import numpy as np
    >>> filled(np.array([np.nan, 1.0, np.inf, 3.0]), np.array([False, True, False, True])).tolist()
    [1.0, 1.0, 2.125, 3.0]
    """
    xp = backend.namespace(values, valid)
    result = xp.ascontiguousarray(values).copy()
    if values.dtype.kind == "f":
        valid = valid & xp.isfinite(values)
    if not bool(valid.any()):
        return xp.zeros(values.shape, values.dtype)
    rows, columns = (1, 1, *values.shape)[-2:]
    planes, there = (array.reshape(-1, rows * columns) for array in (result, xp.ascontiguousarray(valid)))
    count = backend.to_host(there.sum(axis=1))
    gappy = np.flatnonzero((count > 0) & (count < rows * columns))
    each = max(AT_ONCE // (rows * columns), 1)
    for start in range(0, len(gappy), each):
        at = xp.asarray(gappy[start : start + each])
        known, own = there[at], planes[at]
        guess = _smooth(xp.where(known, own, values.dtype.type(0)).astype(xp.float64), known, rows, columns)
        planes[at] = xp.where(known, own, _as_type(guess, result[valid], values.dtype))
    if not count.all():   # planes without any valid value are as the one before, the first ones as the one after
        nearest = np.maximum.accumulate(np.where(count > 0, np.arange(len(count)), int((count > 0).argmax())))
        planes[xp.asarray(np.flatnonzero(count == 0))] = planes[xp.asarray(nearest[count == 0])]
    return result


def _smooth(values: Array, known: Array, rows: int, columns: int) -> Array:
    """Planes in rows of a table, with their gaps filled."""
    xp, planes = backend.namespace(values), len(values)
    grids = [(rows, columns, values.reshape(-1), known.reshape(-1).astype(xp.float64))]
    while max(rows, columns) > 1 and not bool((grids[-1][3] > 0).all()):
        half_rows, half_columns = -(-rows // 2), -(-columns // 2)
        mean, weight = (xp.empty(planes * half_rows * half_columns, xp.float64) for _ in range(2))
        backend.kernel("gaps", "halve_planes")(
            planes * half_rows, planes, rows, columns, *grids[-1][2:], mean, weight
        )
        rows, columns = half_rows, half_columns
        grids.append((rows, columns, mean, weight))
    _, _, half, _ = grids.pop()
    for rows, columns, mean, weight in reversed(grids):
        backend.kernel("gaps", "interpolate_gaps")(planes * rows, planes, rows, columns, half, weight, mean)
        half = mean
        for _ in range(RELAXED):
            relaxed = xp.empty(mean.size, xp.float64)
            backend.kernel("gaps", "relax_gaps")(planes * rows, rows, columns, weight, half, relaxed)
            half = relaxed
    return half.reshape(values.shape)


def _as_type(guess: Array, valid: Array, dtype: np.dtype) -> Array:
    """The guess as numbers of this type, between the smallest and the largest of the valid ones."""
    xp, low, high = backend.namespace(guess), float(valid.min()), float(valid.max())
    if dtype.kind in "iu":
        guess, high = xp.rint(guess), min(high, math.nextafter(float(np.iinfo(dtype).max), 0))   # float(2⁶³ - 1) is 2⁶³
    return xp.clip(guess, low, high).astype(dtype)
