"""What `decompress` and `salvage` write into NetCDF and Zarr: datasets of xarray by group, decoded while they are written.

With Dask, a variable is an array of it whose blocks are the chunks of the archive, so memory holds few chunks. Without, it
holds one variable.
"""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.archive import Archive, Collection
from workbench.archive.collection.dataset import dataset_of
from workbench.archive.region import slices_of
from workbench.cli.regions import Region, along_axes, chosen_members, of_dimensions
from workbench.cli.single_field import as_dataset, name_of
from workbench.data import Field
from workbench.errors import WorkbenchError

SMALL, LARGE = 2**20, 2**27              # bytes: of an array that is one part, and of the most that one block may have
OF_FILE = ("chunksizes", "shards", "chunks")   # of an encoding: the shape of the chunks of NetCDF, and of Zarr
NUMBERS = "fiubM"   # types of which parts are stored like the whole


def groups_of_members(
    collection: Collection, member: str | None = None, region: Region | None = None,
    left: Mapping[str, np.dtype | None] | None = None,
) -> dict[str, Any]:
    """The dataset of each group: of all members, of those in a region, or of one member and its coordinates.

    `left` are the members of a damaged archive of which something is left, with the type of that where values are lost.
    """
    import xarray

    ends: Mapping[str, Any] = of_dimensions(region) if member is None else _ends(collection[member], member, region)
    inside: dict[str, dict[str, Any]] = {group: {} for group in collection.groups}
    for name in chosen_members(collection, member, region) if left is None else left:
        group, _, own = name.rpartition("/")
        inside[group][own] = _part(_of_member(collection, name, (left or {}).get(name)), ends)
    return {group: dataset_of(xarray, variables, collection.groups[group]) for group, variables in inside.items()}


def dataset_of_one(archive: Archive, region: Region | None) -> tuple[str, Any]:
    """The name of the array in an archive of one, and the dataset of it and of the coordinates that it carries."""
    import xarray

    from workbench.xarray.decoding import ArchivedValues, lazy_variable

    name, metadata = name_of(archive), archive.attributes.get("metadata")
    if archive.kind == "field":
        values = ArchivedValues(archive)
        blank = np.broadcast_to(np.zeros((), values.dtype), values.shape)
        whole = as_dataset(name, Field(blank, archive.spacing, name, metadata=metadata))
        lazy = lazy_variable(name, archive, values)
        lazy.attrs, encoding = whole.variables[name].attrs, whole.variables[name].encoding
        lazy.encoding = {**encoding, "preferred_chunks": lazy.encoding["preferred_chunks"]}
    else:
        lazy = lazy_variable(name, archive, packed=True)
        whole = xarray.Dataset({name: lazy})
    ends = _ends(archive, name, region)
    variables = {one: _part(lazy if one == name else variable, ends) for one, variable in whole.variables.items()}
    beside = {one: variables[one] for one in whole.coords}
    return name, xarray.Dataset({one: variables[one] for one in whole.data_vars}, beside, whole.attrs)


def _of_member(collection: Collection, name: str, of_rest: np.dtype | None) -> Any:
    """A member, decoded where it is used; the rest of it, if some of its values are lost."""
    from workbench.xarray.decoding import ArchivedValues, SalvagedValues, lazy_variable

    archive = collection[name]
    if archive.kind == "particles":
        raise WorkbenchError(f"{name!r} must be one array, to become one of xarray; it holds particles: choose others")
    whole = ArchivedValues(archive, functools.partial(collection.naming_damage, name))
    values = whole if of_rest is None else SalvagedValues(archive, of_rest)
    return lazy_variable(name.rpartition("/")[2], archive, values, packed=True)


def _ends(archive: Archive, name: str, region: Region | None) -> dict[str, slice]:
    """The region of one array, by the names of its axes in a file."""
    from workbench.xarray.decoding import lazy_variable

    if region is None:
        return {}
    variable: Any = lazy_variable(name.rpartition("/")[2], archive)
    return dict(zip(variable.dims, slices_of(along_axes(archive, region), variable.shape), strict=True))


def _part(variable: Any, ends: Mapping[str, Any]) -> Any:
    """The part of a variable in a region, which Dask reads in parts if there is Dask, and if these are like the whole."""
    if set(ends) & set(variable.dims):
        variable = variable[slices_of([ends.get(axis) for axis in variable.dims], variable.shape)]
    chunks = variable.encoding.pop("preferred_chunks", None)
    small = variable.dtype.itemsize * math.prod(variable.shape) <= SMALL
    if chunks is None or small or variable.dtype.kind not in NUMBERS or importlib.util.find_spec("dask") is None:
        return variable
    blocks = _blocks(variable, [chunks[axis] for axis in variable.dims])
    return variable.chunk(dict(zip(variable.dims, blocks, strict=True)))


def _blocks(variable: Any, chunks: list[int]) -> list[int]:
    """The shape of the blocks: whole chunks of the archive and of the file, which would be packed again for each part."""
    stated = [tuple(variable.encoding.get(key) or ()) for key in OF_FILE]
    of_file = next((shape for shape in stated if len(shape) == variable.ndim), (1,) * variable.ndim)
    whole = [-(-chunk // own) * own for chunk, own in zip(chunks, of_file, strict=True)]
    fits = variable.dtype.itemsize * math.prod(whole) <= LARGE
    return [min(chunk, size) for chunk, size in zip(whole if fits else chunks, variable.shape, strict=True)]
