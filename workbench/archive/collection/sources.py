"""What may be given as a dataset: an object that is one, or the file of one; xarray opens most without reading values."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.archive.collection.dataset import Dataset
from workbench.archive.collection.files import opened_file
from workbench.archive.collection.tables import is_table
from workbench.data.readers import hdf5
from workbench.data.readers.source import Source
from workbench.errors import WorkbenchError


def is_dataset(given: Any) -> bool:
    """Whether these are several arrays with names.

    >>> is_dataset({"T": [1.0]}), is_dataset([1.0])
    (True, False)
    """
    package, kind = type(given).__module__.partition(".")[0], type(given).__name__
    named = isinstance(given, Mapping | Dataset) or is_table(given)
    return named or (package == "xarray" and kind in ("Dataset", "DataTree"))


@contextmanager
def opened_dataset(given: Any) -> Iterator[Dataset]:
    """The dataset that is given, or that in a file or a collection; a file stays open meanwhile."""
    if getattr(given, "kind", None) == "collection":
        yield given.decompress()
        return
    if not isinstance(given, str | os.PathLike):
        yield Dataset.of(given)
        return
    with opened_file(Path(given)) as dataset:
        if dataset is not None:
            yield dataset
            return
    _require_own_data(given)
    with _opened(given) as opened:
        yield Dataset.of(opened)


def _require_own_data(path: str | os.PathLike[str]) -> None:
    """Refuse an HDF5 file that names data outside of its folder, which the library of xarray would read, too."""
    if os.path.isfile(path):
        hdf5.kind(Source.at(path))   # looks for such names before it looks at anything else


def _opened(path: str | os.PathLike[str]) -> Any:
    """The file as a Dataset of xarray or, if it has groups, as a DataTree."""
    try:
        import xarray
    except ImportError:
        raise WorkbenchError("a file of several arrays needs xarray, which is not installed: pip install xarray") from None
    try:
        try:
            return xarray.open_datatree(path, decode_timedelta=False)
        except NotImplementedError:   # formats without groups
            return xarray.open_dataset(path, decode_timedelta=False)
    except Exception as error:   # xarray and its libraries raise errors of many kinds for files that they cannot read
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise WorkbenchError(f"{path} must be a file that xarray opens as a dataset: {reason}") from error


def first_chunked(dataset: Dataset) -> Any:
    """A member that tells where the steps run: one whose values Dask computes, if there is any."""
    return next((member for member in dataset.values() if getattr(member, "on_dask", False)), None)
