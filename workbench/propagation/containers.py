"""Arrays inside other objects: stages may pass labelled arrays (xarray), which are perturbed like their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.data import Field, Particles
from workbench.data.taking import unmasked
from workbench.errors import WorkbenchError

FILL = "fill them first with what the analysis is to see"


def is_labelled(value: Any) -> bool:
    """Whether this is an array with names and coordinates, such as an xarray.DataArray."""
    return hasattr(value, "dims") and hasattr(value, "coords") and hasattr(value, "data")


def array_of(value: Any) -> Array:
    """The numbers in a value, as an array of NumPy or CuPy; masked entries are refused, as stages know no masks.

    >>> array_of(Field([1.0, 2.0])).tolist(), array_of(3.5).shape
    ([1.0, 2.0], ())
    """
    if type(value) is np.ndarray:   # most are, and no subclass
        return value
    if isinstance(value, Field):
        if value.mask is not None and value.mask.any():
            raise WorkbenchError(f"a field must have no masked values here; got {int(value.mask.sum()):,} of them: {FILL}")
        return value.values
    if isinstance(value, Particles):
        return value.positions
    if is_labelled(value):
        return array_of(value.data)
    return value if backend.on_device(value) else np.asarray(unmasked("an array", value, FILL))


def with_array(value: Any, array: Array) -> Any:
    """A value like the given one with other numbers: labelled arrays keep their labels, others are the array itself."""
    return value.copy(data=array) if is_labelled(value) else array


def protected(value: Any) -> Any:
    """The value, which stages can read but not write, as far as its type knows such a thing."""
    if is_labelled(value):
        data = value.data
        return value.copy(data=backend.read_only(data)) if isinstance(data, np.ndarray) else value
    return backend.read_only(value)
