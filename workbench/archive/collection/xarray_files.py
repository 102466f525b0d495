"""Files that xarray opens, here or by the library of their field: datasets by the names of their groups."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from workbench.archive.collection.dataset import Dataset
from workbench.archive.collection.geotiff import MAGICS, opened_geotiff
from workbench.archive.collection.grib import is_grib, opened_grib
from workbench.archive.collection.plugin_filters import with_plugin_filters
from workbench.archive.recognition import is_archive
from workbench.data.readers import hdf5
from workbench.data.readers.source import Source
from workbench.errors import WorkbenchError

INSTALLED_BY = {"cfgrib": "grib", "eccodes": "grib", "rasterio": "geotiff", "rioxarray": "geotiff"}   # extras


@contextmanager
def opened_groups(path: Path) -> Iterator[dict[str, Any]]:
    """The datasets of xarray in a file, by the names of their groups: "" is the whole. Values are read where used."""
    try:
        with _reader_of(path)(path) as groups:
            yield groups
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        install = f"'lossbench[{INSTALLED_BY[package]}]'" if package in INSTALLED_BY else package
        raise WorkbenchError(f"{path.name} needs {package}, which is not installed: pip install {install}") from None


def dataset_of_groups(groups: Mapping[str, Any]) -> Dataset:
    """The dataset of all groups."""
    if list(groups) == [""]:
        return Dataset.of(groups[""])
    import xarray

    return Dataset.of(xarray.DataTree.from_dict({f"/{name}": dataset for name, dataset in groups.items()}))


def _reader_of(path: Path) -> Callable[[Path], AbstractContextManager[dict[str, Any]]]:
    """What reads a file, by its first bytes."""
    if os.path.isfile(path):
        source = Source.at(path)
        if source.starts_with(*MAGICS):
            return opened_geotiff
        if is_grib(source.head):
            return opened_grib
        hdf5.kind(source)   # refuses data outside of the folder, which the library of xarray would read, too
    return _opened


@contextmanager
def _opened(path: Path) -> Iterator[dict[str, Any]]:
    """What xarray opens by itself, with or without groups."""
    import xarray

    how: Any = {} if is_archive(path) else {"decode_timedelta": False}   # archives hold what they were made from
    try:
        try:
            tree = xarray.open_datatree(path, **how)
        except NotImplementedError:   # formats without groups
            tree = xarray.DataTree(xarray.open_dataset(path, **how))
    except Exception as error:   # xarray and its libraries raise errors of many kinds for files that they cannot read
        first = next(iter(str(error).splitlines()), type(error).__name__)
        reason = first.partition(". Consider")[0]   # advice of xarray, which goes on for several lines
        raise WorkbenchError(f"{path} must be a file that xarray opens as a dataset: {reason}") from error
    with tree:
        groups = {node.path.strip("/"): node.to_dataset(inherit=False) for node in tree.subtree}
        yield with_plugin_filters(path, groups)
