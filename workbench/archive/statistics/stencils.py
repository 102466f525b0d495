"""Differences of neighbouring values, by the kernel, and how far what it computes is from exact arithmetic.

With the unit roundoff u = 2^-53, values y of at most M, and the exact figure D of these values:

- A derivative is a difference, times a rounded factor: within 3u |D|.
- The length of a gradient has the squares, sums and the root beside: within 8u |D|. Squares below all numbers lose at most
  2^-1073 together, and their root 2^-536.
- A Laplacian cancels, so its rounding is no share of it: second differences of at most 4 M, each with two roundings, times
  factors with two, and their sum: within 32u times the sum of M / h² over the axes.
- The last rounding, to float32, is within 2^-24 |D|, or 2^-150.

`rounding` has at least twice these. Steps between points are so that no factor is rounded to 0 or infinity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.rounding import ABOVE
from workbench.slabs import Slices

AXES = backend.constant("stencils.cu", "AXES")
RUN = 4096              # cells that a thread of a CPU takes at a time
STEPS = 2.0**-500, 2.0**500   # between which spacings must be, as their squares are divided by


class Operation(IntEnum):
    """What the kernel computes, as in kernels/stencils.cu."""

    DERIVATIVE = backend.constant("stencils.cu", "DERIVATIVE")
    GRADIENT = backend.constant("stencils.cu", "GRADIENT")
    LAPLACIAN = backend.constant("stencils.cu", "LAPLACIAN")

    @property
    def points(self) -> int:
        """The least that an axis must have."""
        return 3 if self is Operation.LAPLACIAN else 2


def apply_stencil(
    operation: Operation, values: Array, inside: Slices, spacing: Sequence[float | None], sizes: bool = False,
    out: Array | None = None,
) -> Array:
    """The figure at the cells `inside` a window of values, in their type; axes without a spacing are left out.

    Cells that lie at an end of the window must lie at that end of the grid. `sizes`: for bounds of the errors of the
    values, a bound of the error of the figure.

    >>> apply_stencil(Operation.DERIVATIVE, np.array([0.0, 1.0, 4.0, 9.0]), (slice(0, 4),), (1.0,))
    array([1., 2., 4., 5.])
    """
    xp, extra = backend.namespace(values), AXES - values.ndim
    shape = tuple(part.stop - part.start for part in inside)
    area = np.array([
        *(1,) * extra, *values.shape, *(0,) * extra, *(part.start for part in inside), *(1,) * extra,
        *(part.stop for part in inside),
    ], np.int64)
    power = 2 if operation is Operation.LAPLACIAN else 1
    scale = np.array([*(0.0,) * extra, *(0.0 if step is None else 1 / step**power for step in spacing)])
    run = 1 if backend.on_device(values) else min(RUN, shape[-1])
    figures = xp.empty(shape, values.dtype) if out is None else out
    backend.kernel("stencils", "apply_stencil", values.dtype)(
        math.prod(shape[:-1]) * -(-shape[-1] // run), run=run, area=xp.asarray(area), scale=xp.asarray(scale),
        operation=int(operation), sizes=int(sizes), n=values.size, value=values.reshape(-1), m=figures.size,
        out=figures.reshape(-1),
    )
    return figures


def rounding(operation: Operation, largest: float, spacing: Sequence[float | None], dtype: np.dtype) -> tuple[float, float]:
    """How far a computed figure is from that of the same values: a share of itself, and an absolute part.

    `largest` is at least the size of each value.
    """
    share, least = (2.0**-23, 2.0**-148) if dtype == np.float32 else (2.0**-48, 2.0**-1070)
    if operation is Operation.GRADIENT:
        least = max(least, 2.0**-535)
    if operation is not Operation.LAPLACIAN:
        return share, least
    return share, least + 2.0**-47 * sum(largest / step**2 for step in spacing if step is not None) * ABOVE


def weights(
    operation: Operation, part: Slices, shape: Sequence[int], spacing: Sequence[float | None]
) -> np.ndarray:
    """At least the error of a figure for an error of 1 of each value, at the cells of a part, as far as it is not the same.

    A derivative at an end of an axis has twice the weight of others. The result has a length of 1 along an axis where that
    makes no difference.

    >>> weights(Operation.DERIVATIVE, (slice(0, 9), slice(0, 3)), (9, 3), (None, 0.5)).tolist()
    [[4.000000000003638, 2.000000000001819, 4.000000000003638]]
    """
    total = np.zeros((1,) * len(part))
    for axis, step in enumerate(spacing):
        if step is None:
            continue
        along = [1] * len(part)
        if operation is Operation.LAPLACIAN:
            total = total + 4 / step**2
            continue
        places = np.arange(part[axis].start, part[axis].stop)
        ends = (places == 0) | (places == shape[axis] - 1)
        if not ends.any():
            places, ends = places[:1], ends[:1]
        along[axis] = len(places)
        each = np.where(ends, 2.0, 1.0).reshape(along) / step
        total = total + (each if operation is Operation.DERIVATIVE else each * each)
    return (np.sqrt(total) if operation is Operation.GRADIENT else total) * ABOVE


def require_steps(spacing: Sequence[float | None]) -> None:
    """Refuse steps whose squares or inverses are no usual numbers.

    >>> require_steps((1.0, 1e-200))
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: differences need a spacing between 3.05494e-151 and 3.27339e+150; got 1e-200
    """
    low, high = STEPS
    for step in spacing:
        if step is not None and not low <= step <= high:
            raise WorkbenchError(f"differences need a spacing between {low:.6g} and {high:.6g}; got {step:.6g}")
