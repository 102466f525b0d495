"""What may be given as a dataset: an object that is one, or the files of one; xarray opens most without reading values."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.archive.collection.dataset import Dataset
from workbench.archive.collection.files import opened_file
from workbench.archive.collection.joining import joined_files
from workbench.archive.collection.tables import is_table
from workbench.archive.collection.xarray_files import dataset_of_groups, opened_groups
from workbench.data.readers.paths import is_several, listed


def is_dataset(given: Any) -> bool:
    """Whether these are several arrays with names.

    >>> is_dataset({"T": [1.0]}), is_dataset([1.0])
    (True, False)
    """
    package, kind = type(given).__module__.partition(".")[0], type(given).__name__
    named = isinstance(given, Mapping | Dataset) or is_table(given)
    return named or (package == "xarray" and kind in ("Dataset", "DataTree"))


def is_files(given: Any) -> bool:
    """Whether this names files: a path, a pattern, or a list of paths.

    >>> is_files("era5-*.nc"), is_files(["a.nc", "b.nc"]), is_files([1.0])
    (True, True, False)
    """
    several = given if isinstance(given, list | tuple) and given else [given]
    return all(isinstance(one, str | os.PathLike) for one in several)


@contextmanager
def opened_dataset(given: Any) -> Iterator[Dataset]:
    """The dataset that is given, or that in files or a collection; files stay open meanwhile."""
    if getattr(given, "kind", None) == "collection":
        yield given.decompress()
        return
    if not is_files(given):
        yield Dataset.of(given)
        return
    if is_several(given) and len(paths := listed(given)) > 1:
        with joined_files(paths) as dataset:
            yield dataset
        return
    path = listed(given)[0] if is_several(given) else Path(given)
    with opened_file(path) as of_file:
        if of_file is not None:
            yield of_file
            return
    with opened_groups(path) as groups:
        yield dataset_of_groups(groups)


def first_chunked(dataset: Dataset) -> Any:
    """A member that tells where the steps run: one whose values Dask computes, if there is any."""
    return next((member for member in dataset.values() if getattr(member, "on_dask", False)), None)
