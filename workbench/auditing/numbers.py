"""Arrays of any type as numbers on a grid of one to four axes: dates, flags, complex numbers, halves."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.data.field import DTYPES, Field
from workbench.errors import WorkbenchError
from workbench.run.chunked_field import ChunkedField

MOST_AXES = 4    # of a field
EXACT = 2**53   # integers up to here are exact in float64


def as_field(member: Any, other: Any) -> ChunkedField | None:
    """The numbers of a member as a field, for a comparison with another member; None of text."""
    if isinstance(member, Field | ChunkedField):
        return ChunkedField.of(member)
    numbers = _numbers(member.values, getattr(other, "dtype", None) or getattr(other.values, "dtype", None))
    if numbers is None or not numbers.size:
        return None
    on_grid = numbers.reshape(1) if numbers.ndim == 0 else numbers if numbers.ndim <= MOST_AXES else numbers.reshape(-1)
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
        common = _type_of_both(original, lossy)
        if common is not None:
            return original.astype(common), lossy.astype(common)
        words = "integers must be within int64 or within uint64 to be compared"
        raise WorkbenchError(f"{words}; got {original.dtype} and {lossy.dtype}, with values below 0 and beyond 2^63")
    for whole, other in ((original, lossy), (lossy, original)):
        if whole.dtype.kind in "iu" and other.dtype.kind == "f" and (found := _as_whole(other, whole.dtype)) is not None:
            return (whole, found) if whole is original else (found, whole)
    for one in (original, lossy):
        if one.dtype.kind in "iu" and one.size and max(-int(one.min()), int(one.max())) > EXACT:
            raise WorkbenchError("integers beyond 2^53 must be compared with integers; got floats that are not whole")
    return original.astype(np.float64), lossy.astype(np.float64)


def _type_of_both(*integers: np.ndarray) -> np.dtype | None:
    """A type of integers that holds all of these; None if there is none.

    >>> str(_type_of_both(np.array([2**63], np.uint64), np.array([5])))
    'uint64'
    """
    common = np.promote_types(*(one.dtype for one in integers))
    if common.kind in "iu":
        return common
    if all(int(one.min(initial=0)) >= 0 for one in integers):
        return np.dtype(np.uint64)
    return np.dtype(np.int64) if all(int(one.max(initial=0)) < 2**63 for one in integers) else None


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
