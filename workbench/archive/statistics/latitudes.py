"""The latitudes of a field, by which areas of its cells are weighted: a coordinate that it carries, or its dataset has.

By the conventions of CF, a latitude has the standard name `latitude`, or the unit degrees north; by custom, its name is
`lat` or `latitude`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.archive.statistics.selection import dimensions
from workbench.data import Field
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from workbench.archive.archive import Archive

NAMES = ("lat", "latitude")
UNITS = ("degrees_north", "degree_north", "degree_n", "degrees_n", "degreen", "degreesn")


def latitudes(archive: Archive) -> tuple[str, np.ndarray]:
    """The dimension along which latitudes are, and the latitudes in degrees."""
    names, shape = dimensions(archive) or [], archive.data.layout.shape
    known = list(_coordinates(archive))
    for name, dims, about, values in known:
        wanted = name.lower() in NAMES or about.get("standard_name") == "latitude" or (
            str(about.get("units", "")).lower() in UNITS
        )
        if wanted and len(dims) == 1 and dims[0] in names and values.shape == (shape[names.index(dims[0])],):
            degrees = np.asarray(values, np.float64)
            if np.isfinite(degrees).all() and np.abs(degrees).max() <= 90:
                return dims[0], degrees
    there = ", ".join(repr(name) for name, *_ in known) or "none"
    raise WorkbenchError(
        'weights="area" needs a coordinate of latitudes in degrees along one axis of the field; its coordinates are: '
        f'{there}: give weights={{axis: np.cos(np.deg2rad(latitudes))}}'
    )


def _coordinates(archive: Archive) -> Iterator[tuple[str, tuple[str, ...], dict[str, Any], np.ndarray]]:
    """The coordinates of a field with numbers along one axis: name, dimensions, attributes and values."""
    metadata, layout = archive.attributes.get("metadata", {}), archive.data.layout
    if metadata.get("coordinates"):
        shown = Field(np.broadcast_to(np.zeros((), layout.dtype), layout.shape), metadata=metadata).to_xarray()
        for name, one in shown.coords.items():
            if one.ndim == 1 and one.dtype.kind in "iuf":
                yield str(name), one.dims, one.attrs, one.values
    for name, member in archive.beside.items():
        about = member.attributes.get("metadata", {})
        dims = about.get("dimensions")
        if member.kind == "field" and isinstance(dims, list) and len(dims) == 1:
            yield name, tuple(dims), about.get("attributes", {}) | {"units": about.get("units")}, member.decompress().values
