"""Taking over arrays of the caller, so that checked values cannot change later.

A writeable NumPy array is copied: a later write by the caller could otherwise put a NaN into particles that were checked to
be finite. A read-only array is taken without a copy; this is the way to hand over 10^9 particles, or arrays that were just
created here. CuPy arrays have no such flag, and a second copy may not fit on the card: they are taken without a copy, and
must not be written to.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.errors import WorkbenchError, briefly


def taken(array: Array) -> Array:
    """The array as kernels need it (native byte order, C-contiguous, aligned), and read-only.

    >>> mine = np.zeros(2)
    >>> kept = taken(mine)
    >>> mine[0] = 7
    >>> kept.tolist(), kept.flags.writeable
    ([0.0, 0.0], False)
    """
    native = array.dtype.newbyteorder("=")
    if backend.on_device(array):
        return backend.namespace(array).ascontiguousarray(array, dtype=native)
    fitting = np.require(array, native, ["C", "A"])
    if fitting.flags.writeable and np.may_share_memory(fitting, array):
        fitting = fitting.copy()
    return backend.read_only(fitting)


def as_array(name: str, given: Any) -> Array:
    """The array that was given, on its device; a sequence as a NumPy array.

    >>> as_array("ids", [[1], [2, 3]])
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: ids must be an array of numbers; got setting an array element with a sequence. ...
    """
    found = _with_mask(name, given)
    return found if backend.on_device(found) else np.asarray(found)


def _with_mask(name: str, given: Any) -> Array:
    """The array that was given; that of Dask, netCDF4 or astropy as one of NumPy, masked where they mask it."""
    if hasattr(given, "decompress"):
        raise WorkbenchError(f"{name} must be an array of numbers; got {briefly(given)}: give archive.decompress()")
    try:
        if hasattr(given, "unmasked") and hasattr(given, "mask"):
            return np.ma.MaskedArray(np.asarray(given.unmasked), np.asarray(given.mask))
        if hasattr(given, "__dask_graph__"):   # which drops masks where it is asked for an array
            given = given.compute()
        return given if backend.on_device(given) else np.asanyarray(given)
    except (ValueError, TypeError) as error:
        raise WorkbenchError(f"{name} must be an array of numbers; got {error}") from None


def conversion(dtype: np.dtype) -> str:
    """How an array of a type that is not taken becomes one that is, and what that loses.

    >>> conversion(np.dtype("complex64"))
    'take the real and the imaginary part, array.real and array.imag, as two arrays'
    """
    if dtype.names is not None:
        return f"take its columns one by one, such as array[{dtype.names[0]!r}]"
    if dtype.kind == "f":
        return "convert with .astype('float32'), which is exact" if dtype.itemsize == 2 else "round with .astype('float64')"
    return {
        "b": "convert with .astype('uint8'), which is exact",
        "c": "take the real and the imaginary part, array.real and array.imag, as two arrays",
        "M": "take the time since a date of your choice, as in (array - array[0]).astype('int64')",
        "m": "convert with .astype('int64'), which keeps its unit of time",
        "O": "convert it to numbers with .astype('float64'); missing ones become NaN",
    }.get(dtype.kind, "it must be an array of numbers")


def lengths(given: Any, axes: int) -> tuple[float, ...] | None:
    """One length for each axis from a number or several; None if it is neither. They may still be negative or NaN."""
    try:
        found = np.asarray(given)
        if found.dtype.kind in "fiuO":   # objects such as fractions become numbers, dates and text do not
            return tuple(np.broadcast_to(found.astype(np.float64), axes).tolist())
    except (ValueError, TypeError):
        pass
    return None


def described(given: Any) -> Mapping[str, Any]:
    """Metadata as a mapping that cannot be changed; nothing is an empty one."""
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise WorkbenchError(f"metadata must be a dictionary, or None; got {briefly(given)}")
    return MappingProxyType(dict(given))


def unmasked(what: str, given: Any, advice: str) -> Any:
    """The array itself, or the data of a masked array; masked entries are refused."""
    values, mask = masked_parts(what, given)
    if mask is not None:
        raise WorkbenchError(f"{what} must have no masked entries; got {int(mask.sum()):,} of them: {advice}")
    return values


def masked_parts(name: str, given: Any) -> tuple[Any, np.ndarray | None]:
    """The values of a masked array and its mask, or None if nothing is masked.

    >>> masked_parts("values", np.ma.masked_equal([1, 9], 9))[1].tolist()
    [False, True]
    """
    found = _with_mask(name, given)
    if not isinstance(found, np.ma.MaskedArray):
        return found, None
    mask = np.ma.getmaskarray(found)
    return found.data, mask if mask.any() else None
