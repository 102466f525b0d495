"""Statistics of datasets that xarray has opened from archives: from the archive, with bounds beside the values.

The result is a Dataset: of each variable `T`, the figure, and `T_bound`, how far that of the original can be from it. CF
names such a companion among the `ancillary_variables`. Bounds are values of their own, not attributes, as they differ from
place to place and are computed with like any others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xarray
from xarray.core import indexing

from workbench.archive.archive import Archive
from workbench.archive.statistics import FieldStatistic
from workbench.errors import WorkbenchError
from workbench.xarray.decoding import ArchivedValues

Dims = str | Iterable[str] | None


def statistic_of(variables: Mapping[str, xarray.DataArray], name: str, dim: Dims) -> xarray.Dataset:
    """A statistic of each variable, over all values or along dimensions that it has."""
    asked = None if dim is None else [dim] if isinstance(dim, str) else list(dim)
    if asked is not None and (strangers := set(asked) - {axis for one in variables.values() for axis in one.dims}):
        there = sorted({str(axis) for one in variables.values() for axis in one.dims})
        raise WorkbenchError(f"expected dimensions out of {', '.join(there)}; got {sorted(strangers)[0]!r}")
    results: dict[str, xarray.Variable] = {}
    for own, array in variables.items():
        archive, region, kept = _source(own, array)
        dims = list(array.dims)
        along = dims if asked is None else [axis for axis in asked if axis in dims]
        values, bounds, stage = _answer(archive, name, region, kept, dims, along)
        rest = [axis for axis in dims if axis not in along]
        units = {key: value for key, value in array.attrs.items() if key == "units"}
        bound_name = f"{own}_bound"
        results[own] = xarray.Variable(rest, values, {**units, "ancillary_variables": bound_name, "stage": stage})
        text = f"the {name} of the original {own} is at most this far away"
        results[bound_name] = xarray.Variable(rest, bounds, {**units, "long_name": text})
    return xarray.Dataset(results)


def _answer(
    archive: Archive, name: str, region: list[tuple[int, int]], kept: list[int], dims: list[Any], along: list[Any]
) -> tuple[np.ndarray, np.ndarray, str]:
    """Values and bounds in the shape of the other dimensions; `kept` are the axes of the archive that dimensions are."""
    single = [axis for axis in range(len(region)) if axis not in kept]   # where one index was chosen
    axes = sorted({*(kept[dims.index(axis)] for axis in along), *single})
    method = getattr(archive, name)
    if not axes:
        raise WorkbenchError(f"the {name} along no dimension is each value itself; got dimensions that it does not have")
    found = method(region) if len(axes) == len(region) else method(region, axis=axes)
    if isinstance(found, FieldStatistic):
        return found.values, np.broadcast_to(found.bound, found.values.shape), found.stage
    return np.array(found.value), np.array(found.bound), found.stage


def _source(name: str, array: xarray.DataArray) -> tuple[Archive, list[tuple[int, int]], list[int]]:
    """The archive of a variable, the region that was selected, and the axes that it still has."""
    data, key = array.variable._data, None
    while not isinstance(data, ArchivedValues) and hasattr(data, "array"):
        if isinstance(data, indexing.LazilyIndexedArray):
            key = data.key.tuple
        data = data.array
    if not isinstance(data, ArchivedValues) or type(data) is not ArchivedValues:
        raise WorkbenchError(
            f"{name!r} is not read from an archive (any more): statistics need a dataset that xarray.open_dataset opened "
            "from one, without chunks, and whose values were not loaded or computed with"
        )
    region, kept = [], []
    for axis, (part, size) in enumerate(zip(key or (slice(None),) * len(data.shape), data.shape, strict=True)):
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            if step != 1:
                raise WorkbenchError(f"statistics of archives take selections in steps of 1; {name!r} has steps of {step}")
            kept.append(axis)
        elif isinstance(part, int | np.integer):
            start = int(part) % size
            stop = start + 1
        else:
            raise WorkbenchError(f"statistics of archives take slices; {name!r} was selected by an array")
        region.append((start, stop))
    return data.archive, region, kept
