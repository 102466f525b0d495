"""Files of several arrays that xarray does not open, by the libraries of their fields: npz, Parquet, FITS, ASDF, tensors.

A table becomes its columns, an image a field, and a tensor what it is. Tensors stay in the file until they are encoded.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.archive.collection import asdf_trees
from workbench.archive.collection.dataset import Dataset
from workbench.data.readers.numpy_files import arrays_of, is_npz
from workbench.data.readers.source import Source
from workbench.data.safetensors import tensors_and_metadata
from workbench.errors import WorkbenchError

Reader = Callable[[Path], Any]


@contextmanager
def opened_file(path: Path) -> Iterator[Dataset | None]:
    """The dataset in a file of one of these formats; None if it is none of them."""
    reader = reader_of(path)
    if reader is None:
        yield None
        return
    try:
        with reader(path) as dataset:
            yield dataset
    except ImportError as error:
        raise WorkbenchError(f"{path.name} needs {error.name}, which is not installed: pip install {error.name}") from None


def reader_of(path: Path) -> Reader | None:
    """What reads a file of one of these formats, by its first bytes."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(16)
    if head.startswith(b"PAR1"):
        return _parquet
    if head.startswith(b"SIMPLE  ="):
        return _fits
    if head.startswith(asdf_trees.MAGIC):
        return asdf_trees.opened_asdf
    if is_npz(Source.at(path)):
        return _npz
    return _safetensors if head[8:10] == b'{"' else None


@contextmanager
def _npz(path: Path) -> Iterator[Dataset]:
    yield Dataset(arrays_of(Source.at(path)))


@contextmanager
def _parquet(path: Path) -> Iterator[Dataset]:
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise WorkbenchError(f"{path.name} must be a Parquet file; it cannot be read: {error}") from None
    yield Dataset.of(table)


@contextmanager
def _fits(path: Path) -> Iterator[Dataset]:
    from astropy.io import fits
    from astropy.table import Table

    members: dict[str, Any] = {}
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with fits.open(path, memmap=False) as units:
                for number, unit in enumerate(units):
                    name = unit.name if unit.name and unit.name not in members else f"HDU{number}"
                    table = isinstance(unit, fits.BinTableHDU | fits.TableHDU)
                    if unit.data is not None:
                        members[name] = Table.read(unit) if table else unit.data
                attributes = _cards(units[0].header)
        if cut := next((one for one in said if "truncated" in str(one.message)), None):
            raise ValueError(str(cut.message))
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise WorkbenchError(f"{path.name} must be a FITS file; it cannot be read: {error}") from None
    yield Dataset(members, {"": {"attributes": attributes}})


def _cards(header: Any) -> dict[str, Any]:
    """The entries of a header, without remarks."""
    kept = {key: header[key] for key in dict.fromkeys(header) if key not in ("", "COMMENT", "HISTORY")}
    return {key: value for key, value in kept.items() if isinstance(value, str | bool | int | float)}


@contextmanager
def _safetensors(path: Path) -> Iterator[Dataset]:
    tensors, attributes = tensors_and_metadata(path)
    yield Dataset(tensors, {"": {"attributes": attributes}})
