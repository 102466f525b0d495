"""What a labelled array (xarray.DataArray) says of its values: name, distances between points, axes, units."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.archive.provenance import plain

EVEN = 1e-5   # relative difference between steps of coordinates, which may be rounded to single precision


def is_labelled(array: Any) -> bool:
    """Whether this is a labelled array; xarray is not imported to find out."""
    return type(array).__module__.partition(".")[0] == "xarray" and hasattr(array, "dims") and hasattr(array, "data")


def name_of(array: Any) -> str | None:
    """The name, if there is one."""
    return None if array.name is None else str(array.name)


def spacing_of(array: Any) -> tuple[float, ...] | None:
    """The distance between points along each axis; None unless all coordinates are numbers at even distances."""
    steps = [_step(array.coords[axis].values) if axis in array.coords else None for axis in array.dims]
    return None if None in steps else tuple(float(step) for step in steps if step is not None)


def metadata_of(array: Any) -> dict[str, Any]:
    """Units, names of axes and attributes, as those of a file."""
    attributes = plain(array.attrs)
    return {
        "units": attributes.get("units", "not stated"), "dimensions": [str(axis) for axis in array.dims],
        "attributes": attributes,
    }


def _step(coordinates: np.ndarray) -> float | None:
    if coordinates.ndim != 1 or coordinates.dtype.kind not in "iuf" or len(coordinates) < 2:
        return None
    steps = np.diff(coordinates.astype(np.float64))
    even = np.isfinite(steps).all() and steps[0] != 0 and np.allclose(steps, steps.mean(), rtol=EVEN, atol=0)
    return float(abs(steps.mean())) if even else None
