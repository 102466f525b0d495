"""Datasets as files: NetCDF-4 and Zarr, written by xarray, with names, attributes and encodings as in the source."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive.archive import Archive
from workbench.archive.collection.loss_in_files import state_losses
from workbench.archive.collection.repacking import packed_within, room_of
from workbench.errors import WorkbenchError

NETCDF, ZARR = (".nc", ".nc4"), ".zarr"
SUFFIXES = (*NETCDF, ZARR)
FAILED = "NetCDF: HDF error"
DEFLATE = "deflate"
OF_NETCDF = ("zlib", "szip", "zstd", "bzip2", "blosc", "compression")   # what the encoding of a variable says of filters
FILTERS: Mapping[str, Mapping[str, Any]] = {
    DEFLATE: {"zlib": True, "complevel": 4, "shuffle": True},
    "zstd": {"compression": "zstd", "complevel": 9, "shuffle": True},
    "blosc": {"compression": "blosc_zstd", "complevel": 9, "blosc_shuffle": 1},
    "none": {},
}
NEEDED = {**dict.fromkeys(NETCDF, "netCDF4"), ZARR: "zarr"}


def require_library(suffix: str) -> None:
    """Refuse a kind of file for which a library is missing."""
    import importlib.util

    for library in ("xarray", NEEDED[suffix]):
        if importlib.util.find_spec(library) is None:
            raise WorkbenchError(f"a {suffix} file needs {library}, which is not installed: pip install {library}")


def write_dataset(
    groups: Mapping[str, Any], path: Path, suffix: str, archives: Mapping[str, Archive], compression: str | None = None
) -> list[str]:
    """Write a file of the kind that the suffix says: a dataset of xarray for each group, by its name; "" is the whole.

    `archives` are those of the members: how much more their values may change, and what the file says of their errors.
    `compression` is a filter of NetCDF-4 for all variables; without it, those that had none in the source are deflated.
    Arrays of Dask are computed block by block, one at a time, so that memory holds few of them, and no two write into one
    chunk. Returns what differs from the source, in sentences.
    """
    notes: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")   # of encodings that one kind of file has and the other lacks
        for number, group in enumerate(sorted({"", *groups})):
            how: dict[str, Any] = {"group": group or None, "mode": "a" if number else "w"}
            try:
                content = _as_stored(group, groups.get(group), suffix, archives, notes)
                if suffix != ZARR:
                    _compress(content, compression)
                lazy = any(variable.chunks for variable in content.variables.values())
                if suffix == ZARR:
                    writing = content.to_zarr(path, compute=not lazy, safe_chunks=False, **how)
                else:
                    writing = content.to_netcdf(path, compute=not lazy, engine="netcdf4", format="NETCDF4", **how)
                if lazy:
                    writing.compute(scheduler="synchronous")
            except (OSError, WorkbenchError):
                raise
            except Exception as error:   # of xarray and its libraries, for what such a file cannot hold
                if FAILED in str(error):   # all that NetCDF says of a full disk
                    raise OSError(f"{FAILED}: the disk may be full") from error
                raise WorkbenchError(f"a file that ends in {suffix} cannot hold the dataset: {error}") from error
    return notes


def _compress(content: Any, compression: str | None) -> None:
    """Let the variables of a NetCDF file be compressed; text of any length cannot be."""
    for variable in content.variables.values():
        stated = variable.encoding
        if not variable.ndim or variable.dtype.kind not in "fiubMm":
            continue
        if compression is None and any(stated.get(name) for name in OF_NETCDF):
            continue
        gone = (*OF_NETCDF, "contiguous", "complevel", "shuffle")
        kept = {key: entry for key, entry in stated.items() if key not in gone}
        if kept.get("chunksizes") is None:
            kept.pop("chunksizes", None)
        variable.encoding = {**kept, **FILTERS[compression or DEFLATE]}


def _as_stored(group: str, given: Any, suffix: str, archives: Mapping[str, Archive], notes: list[str]) -> Any:
    """The dataset of a group, each variable with as much of its encoding as leaves its values in their bound.

    Attributes of NetCDF are 0 and 1 where they are truth values.
    """
    import xarray

    dataset: Any = xarray.Dataset() if given is None else given
    variables, own_archives = {}, {}
    for own, variable in dataset.variables.items():
        name = f"{group}/{own}" if group else own
        archive = archives.get(name)
        room = 0.0 if archive is None else room_of(archive)
        variables[own], said = packed_within(name, _that_fits(name, variable, suffix, notes), room)
        notes += said
        if archive is not None:
            own_archives[own] = archive
    state_losses(variables, own_archives)
    if suffix != ZARR:
        for owner in (dataset, *variables.values()):
            owner.attrs = {key: np.int8(one) if isinstance(one, bool) else one for key, one in owner.attrs.items()}
    beside = {own: variables.pop(own) for own in dataset.coords}
    found: Any = xarray.Dataset(variables, beside, dataset.attrs)
    found.encoding = dataset.encoding
    return _with_own_dimensions(found)


def _with_own_dimensions(part: Any) -> Any:
    """The dataset, where its dimensions without a limit are among those that it has; a part may lack some."""
    if unlimited := part.encoding.get("unlimited_dims"):
        part.encoding = {**part.encoding, "unlimited_dims": [name for name in unlimited if name in part.dims]}
    return part


def _that_fits(name: str, variable: Any, suffix: str, notes: list[str]) -> Any:
    """The variable with values of a type that the file can hold, if that loses nothing."""
    variable = variable.copy(deep=False)
    for fill in ("_FillValue", "missing_value"):   # of values that are NaN now; xarray has them in the encoding
        variable.attrs.pop(fill, None)
    if variable.dtype.kind == "O" and any(one is None for one in variable.values.flat):
        notes.append(f"{name}: missing text is written as empty text")
        return variable.copy(data=np.array([one or "" for one in variable.values.flat], object).reshape(variable.shape))
    if suffix == ZARR:
        return variable
    if variable.dtype.kind == "c":
        raise WorkbenchError(f"{name!r} is complex, and NetCDF has no such numbers: write {ZARR}, or one member as .npy")
    if variable.dtype.itemsize <= 2 and variable.dtype.kind in "fV":
        wide = variable.astype(np.float32)
        wide.encoding = {key: entry for key, entry in variable.encoding.items() if key != "dtype"}
        return wide
    return variable
