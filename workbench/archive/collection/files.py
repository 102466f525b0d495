"""Files of several arrays that xarray does not open, by the libraries of their fields: npz, Parquet, FITS, ASDF, tensors.

A table becomes its columns, an image a field, and a tensor what it is. Tensors stay in the file until they are encoded.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive.collection import asdf_trees
from workbench.archive.collection.dataset import Dataset
from workbench.data.readers.numpy_files import arrays_of, is_npz
from workbench.data.readers.source import Source
from workbench.errors import WorkbenchError

MOST_HEADER = 2**27   # bytes of the description of tensors
TENSORS = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
    "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
}

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
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(MOST_HEADER, size - 8):
            raise WorkbenchError(f"{path.name} must be a safetensors file; its header claims {length:,} of {size:,} bytes")
        try:
            header = json.loads(file.read(length))
        except ValueError as error:
            raise WorkbenchError(f"{path.name} must be a safetensors file; its header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise WorkbenchError(f"{path.name} must be a safetensors file; its header is a {type(header).__name__}")
    described = header.pop("__metadata__", {})
    tensors = {name: _tensor(path, name, stated, 8 + length, size) for name, stated in header.items()}
    yield Dataset(tensors, {"": {"attributes": {str(key): str(value) for key, value in dict(described or {}).items()}}})


def _tensor(path: Path, name: str, stated: Any, begin: int, size: int) -> np.ndarray:
    """A tensor, mapped from the file; refused if it leads out of that."""
    match stated:
        case {"dtype": str(kind), "shape": [*shape], "data_offsets": [int(low), int(high)]} if kind in TENSORS:
            dtype = _dtype(TENSORS[kind])
            whole = all(type(axis) is int and axis >= 0 for axis in shape)
            if whole and 0 <= low <= high <= size - begin and high - low == dtype.itemsize * math.prod(shape):
                if low == high:
                    return np.zeros(shape, dtype)
                return np.memmap(path, dtype, "r", begin + low, tuple(shape))
    raise WorkbenchError(f"{name!r} in {path.name} must be a tensor within the file; got {stated!r:.120}")


def _dtype(name: str) -> np.dtype:
    if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)
