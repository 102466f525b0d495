"""Datasets as files: NetCDF-4 and Zarr, written by xarray, with names, attributes and encodings as in the source."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive.collection.dataset import Dataset, dataset_of, in_group, variable_of
from workbench.archive.collection.repacking import packed_within
from workbench.errors import WorkbenchError

NETCDF, ZARR = (".nc", ".nc4"), ".zarr"
SUFFIXES = (*NETCDF, ZARR)
NEEDED = {**dict.fromkeys(NETCDF, "netCDF4"), ZARR: "zarr"}


def require_library(suffix: str) -> None:
    """Refuse a kind of file for which a library is missing."""
    import importlib.util

    for library in ("xarray", NEEDED[suffix]):
        if importlib.util.find_spec(library) is None:
            raise WorkbenchError(f"a {suffix} file needs {library}, which is not installed: pip install {library}")


def write_dataset(dataset: Dataset, path: Path, suffix: str, room: Mapping[str, float]) -> list[str]:
    """Write a file of the kind that the suffix says; `room` is how much more the values of members may change.

    Returns what is not as it was in the source, in sentences.
    """
    notes: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")   # of encodings that one kind of file has and the other lacks
        for number, (group, content) in enumerate(_by_group(dataset, suffix, room, notes)):
            mode: Any = "a" if number else "w"
            try:
                if suffix == ZARR:
                    content.to_zarr(path, group=group or None, mode=mode)
                else:
                    content.to_netcdf(path, group=group or None, mode=mode, engine="netcdf4", format="NETCDF4")
            except OSError:
                raise
            except Exception as error:   # of xarray and its libraries, for what such a file cannot hold
                raise WorkbenchError(f"a file that ends in {suffix} cannot hold the dataset: {error}") from error
    return notes


def _by_group(dataset: Dataset, suffix: str, room: Mapping[str, float], notes: list[str]) -> Iterator[tuple[str, Any]]:
    """The dataset of xarray of each group, by its name."""
    import xarray

    held = [name.rpartition("/")[0] for name in dataset]
    for group in sorted({"", *dataset.groups, *held}):
        variables = {}
        for own, name in in_group(dataset, {**dataset.groups, group: {}}, group).items():
            variable = _that_fits(name, variable_of(own, dataset[name]), suffix, notes)
            variables[own], said = packed_within(name, variable, room.get(name, 0.0))
            notes += said
        yield group, _with_own_dimensions(dataset_of(xarray, variables, dataset.groups.get(group, {})))


def _with_own_dimensions(part: Any) -> Any:
    """The dataset, where its dimensions without a limit are among those that it has; a part may lack some."""
    if unlimited := part.encoding.get("unlimited_dims"):
        part.encoding = {**part.encoding, "unlimited_dims": [name for name in unlimited if name in part.dims]}
    return part


def _that_fits(name: str, variable: Any, suffix: str, notes: list[str]) -> Any:
    """The variable with values of a type that the file can hold, if that loses nothing."""
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
