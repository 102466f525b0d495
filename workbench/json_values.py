"""Results as JSON: numbers of NumPy become Python's, and numbers that JSON lacks become null."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

PLAIN = (str, int, bool, type(None))


def json_value(value: Any) -> Any:
    """The value in JSON types: NaN and infinity become None, unknown types text.

    >>> json_value({"psnr": np.float32(8.5), "ratio": [math.inf, 2], "shape": (3, 4)})
    {'psnr': 8.5, 'ratio': [None, 2], 'shape': [3, 4]}
    """
    if type(value) in PLAIN:   # most values of large documents
        return value
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): json_value(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
