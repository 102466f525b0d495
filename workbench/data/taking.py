"""Taking over arrays of the caller, so that checked values cannot change later.

A writeable NumPy array is copied: a later write by the caller could otherwise put a NaN into particles that were checked to
be finite. A read-only array is taken without a copy; this is the way to hand over 10^9 particles, or arrays that were just
created here. CuPy arrays have no such flag, and a second copy may not fit on the card: they are taken without a copy, and
must not be written to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.errors import WorkbenchError


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


def unmasked(what: str, given: Any, advice: str) -> Any:
    """The array itself, or the data of a NumPy masked array; masked entries are refused."""
    if not isinstance(given, np.ma.MaskedArray):
        return given
    if count := int(np.ma.getmaskarray(given).sum()):
        raise WorkbenchError(f"{what} must have no masked entries; got {count:,} of them: {advice}")
    return given.data


def masked_parts(given: Any) -> tuple[Any, np.ndarray | None]:
    """The values of a NumPy masked array and its mask, or None if nothing is masked.

    >>> masked_parts(np.ma.masked_equal([1, 9], 9))[1].tolist()
    [False, True]
    """
    if not isinstance(given, np.ma.MaskedArray):
        return given, None
    mask = np.ma.getmaskarray(given)
    return given.data, mask if mask.any() else None
