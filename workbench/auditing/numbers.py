"""Arrays of any type as numbers on a grid of one to four axes: dates, flags, complex numbers, halves."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.data.field import DTYPES, Field
from workbench.run.chunked_field import ChunkedField

EXACT = 2**53   # integers up to here are exact in float64


def as_field(member: Any, other: Any) -> ChunkedField | None:
    """The numbers of a member as a field, for a comparison with another member; None of text."""
    if isinstance(member, Field | ChunkedField):
        return ChunkedField.of(member)
    numbers = _numbers(member.values, getattr(other, "dtype", None) or getattr(other.values, "dtype", None))
    if numbers is None or not numbers.size:
        return None
    on_grid = numbers.reshape(1) if numbers.ndim == 0 else numbers if numbers.ndim <= 4 else numbers.reshape(-1)
    return ChunkedField.of(Field(on_grid, name=member.name, metadata=member.metadata))


def _numbers(values: np.ndarray, other: Any) -> np.ndarray | None:
    """Numbers of an array; dates count the finer unit of both."""
    kind = values.dtype.kind
    if kind in "Mm":
        if other is not None and np.dtype(other).kind == kind:
            values = values.astype(np.promote_types(values.dtype, other))
        return values.astype(np.int64)
    if kind == "b":
        return values.astype(np.uint8)
    if kind == "c":
        return np.stack([values.real, values.imag], -1)
    if values.dtype.name in DTYPES:
        return values
    return values.astype(np.float32) if kind in "fV" and values.dtype.itemsize <= 2 else None


def alike(original: np.ndarray, lossy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both arrays in one type that holds either exactly; integers beyond 2^53 beside floats are rounded there.

    >>> [array.dtype.name for array in alike(np.zeros(2, np.float32), np.zeros(2))]
    ['float64', 'float64']
    """
    if original.dtype == lossy.dtype:
        return original, lossy
    if original.dtype.kind in "iu" and lossy.dtype.kind in "iu":
        common = np.promote_types(original.dtype, lossy.dtype)
        if common.kind in "iu":
            return original.astype(common), lossy.astype(common)
    return original.astype(np.float64), lossy.astype(np.float64)


def missing_in(field: Field) -> np.ndarray:
    """Where a value is masked or NaN."""
    nan = np.isnan(field.values) if field.values.dtype.kind == "f" else np.zeros(field.values.shape, bool)
    return nan if field.mask is None else nan | np.asarray(field.mask)
