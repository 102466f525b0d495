"""The error of the last step: a decoded value is rounded to the type of the data, and that is part of its error.

It is negligible until the tolerance comes near the spacing of the numbers; then codecs that quantise break their own
bound.
"""

from __future__ import annotations

import numpy as np


def largest_magnitude(values: np.ndarray) -> float:
    """The largest absolute value, without a copy.

    >>> largest_magnitude(np.array([1.0, -3.0]))
    3.0
    """
    return max(abs(float(values.max())), abs(float(values.min())))


def before_rounding(tolerance: float, largest: float, dtype: np.dtype) -> float:
    """The largest error of a result in float64 that is within the tolerance after rounding to the type.

    Half of the tolerance is always safe: where numbers lie closer than the tolerance, rounding adds at most the other half,
    and elsewhere it returns exactly the original number. For values up to `largest`, more may be allowed.

    >>> before_rounding(1.0, 2.0**24, np.dtype(np.float32)), before_rounding(1.0, 100.0, np.dtype(np.float32)) > 0.99999
    (0.5, True)
    """
    few_operations = 4 * float(np.finfo(np.float64).eps) * largest
    with np.errstate(over="ignore"):   # the largest number has no next one
        spacing = float(np.spacing(dtype.type(largest)))
    return max(tolerance / 2, tolerance - spacing / 2 - few_operations)
