"""Arrays of any type as numbers on a grid of one to four axes: dates, flags, complex numbers, halves."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.data.field import DTYPES, Field
from workbench.errors import WorkbenchError
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
    """Both arrays in one type that holds either exactly: of integers and floats, integers where all floats are whole.

    >>> [array.dtype.name for array in alike(np.zeros(2, np.float32), np.zeros(2))]
    ['float64', 'float64']
    >>> alike(np.array([2**60 + 1]), np.array([2.0**60]))[1].tolist() == [2**60]
    True
    """
    if original.dtype == lossy.dtype:
        return original, lossy
    if original.dtype.kind in "iu" and lossy.dtype.kind in "iu":
        common = np.promote_types(original.dtype, lossy.dtype)
        if common.kind in "iu":
            return original.astype(common), lossy.astype(common)
    for whole, other in ((original, lossy), (lossy, original)):
        if whole.dtype.kind in "iu" and other.dtype.kind == "f" and (found := _as_whole(other, whole.dtype)) is not None:
            return (whole, found) if whole is original else (found, whole)
    for one in (original, lossy):
        if one.dtype.kind in "iu" and one.size and max(-int(one.min()), int(one.max())) > EXACT:
            raise WorkbenchError("integers beyond 2^53 must be compared with integers; got floats that are not whole")
    return original.astype(np.float64), lossy.astype(np.float64)


def _as_whole(values: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Floats as integers; None if one is none of this type. NaN, which counts as missing, becomes 0."""
    known = np.where(np.isnan(values), 0, values)
    ends = np.iinfo(dtype)
    if not ((known == np.rint(known)) & (known >= float(ends.min)) & (known < float(ends.max))).all():
        return None
    return known.astype(dtype)


def missing_in(field: Field) -> np.ndarray:
    """Where a value is masked or NaN."""
    nan = np.isnan(field.values) if field.values.dtype.kind == "f" else np.zeros(field.values.shape, bool)
    return nan if field.mask is None else nan | np.asarray(field.mask)
