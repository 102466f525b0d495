"""The CF conventions that change what numbers mean: values that stand for "missing", and numbers packed into integers.

Missing values become a mask and stay in the array as they are on disk. Packing is undone where numbers are stored as
integers, because there the integers are only a code. Floats with a scale factor are left as they are unless asked
for: they are what a compressor sees, an error bound is about them, and scaling would double them to float64.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.errors import WorkbenchError

PACKING = ("scale_factor", "add_offset")


def missing(values: np.ndarray, attributes: Mapping[str, Any], default_fill: Any = None) -> np.ndarray | None:
    """True where a value on disk is a fill value or outside the valid range; None when there is no such value.

    >>> missing(np.array([1.0, -999.0]), {"missing_value": -999.0}).tolist()
    [False, True]
    """
    fills = [attributes.get("_FillValue", default_fill), attributes.get("missing_value")]
    mask = np.zeros(values.shape, bool)
    for fill in _numbers(values, *fills):
        mask |= np.isnan(values) if np.isnan(fill) else values == fill
    low, high = _valid_range(attributes)
    for limit in _numbers(values, low):
        mask |= values < limit
    for limit in _numbers(values, high):
        mask |= values > limit
    return mask if mask.any() else None


def unpacked(values: np.ndarray, attributes: Mapping[str, Any], scaled: bool | None) -> np.ndarray:
    """Values times scale_factor plus add_offset: when `scaled`, or, when it is None, if they are stored as integers.

    >>> unpacked(np.array([1, 2], np.int16), {"scale_factor": 0.5}, None).tolist()
    [0.5, 1.0]
    >>> unpacked(np.array([1, 2], np.float32), {"scale_factor": 0.5}, None).tolist()
    [1.0, 2.0]
    """
    if scaled not in (None, True, False):
        raise WorkbenchError(f"scaled must be True, False, or None (integers only); got {scaled!r}")
    packing = {key: attributes[key] for key in PACKING if key in attributes}
    wanted = values.dtype.kind in "iu" if scaled is None else scaled
    if not packing or not wanted:
        return values
    single = values.dtype.kind in "iu" and values.dtype.itemsize <= 2
    single = single and all(getattr(number, "dtype", None) == np.float32 for number in packing.values())
    factor, offset = (np.float64(packing.get(key, default)) for key, default in zip(PACKING, (1, 0), strict=True))
    return (values * factor + offset).astype(np.float32 if single else np.float64)


def _valid_range(attributes: Mapping[str, Any]) -> tuple[Any, Any]:
    pair = attributes.get("valid_range")
    if pair is not None and np.size(pair) == 2:
        return pair[0], pair[1]
    return attributes.get("valid_min"), attributes.get("valid_max")


def _numbers(values: np.ndarray, *given: Any) -> list[Any]:
    """Attributes as numbers in the type of the values; what is no number is no fill value either."""
    found = []
    for entry in given:
        array = np.atleast_1d(np.asarray(entry))
        if entry is not None and array.dtype.kind in "fiu":
            with np.errstate(over="ignore", invalid="ignore"):
                found += list(array.astype(values.dtype) if values.dtype.kind == "f" else array)
    return found
