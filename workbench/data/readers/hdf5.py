"""Shared by the readers of HDF5 files: opening, and telling snapshots, H5MD, NetCDF-4 and grids apart by structure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.data.readers.hdf5_references import require_inside
from workbench.data.readers.libraries import library
from workbench.data.readers.source import Source, plain
from workbench.errors import WorkbenchError

MAGIC = b"\x89HDF\r\n\x1a\n"
SCALES = {"_Netcdf4Dimid", "_Netcdf4Coordinates", "DIMENSION_LIST", "REFERENCE_LIST"}
MOST_ENTRIES = 1000   # of one attribute; longer ones are data, not a description


@contextmanager
def opened(source: Source) -> Iterator[Any]:
    """The file, open for reading, if it names no data elsewhere."""
    h5py = library("h5py", "HDF5 files")
    with source.read_by("h5py"):
        require_inside(source)
        with h5py.File(source.path, "r") as file:
            yield file


def kind(source: Source) -> str | None:
    """'h5md', 'snapshot', 'netcdf', 'grid', or None when this is not HDF5."""
    if not source.starts_with(MAGIC):
        return None
    with opened(source) as file:
        if "h5md" in file and any("position" in group for group in file.get("particles", {}).values()):
            return "h5md"
        if "Header" in file and ("NumPart_Total" in file["Header"].attrs or "PartType" in "".join(file)):
            return "snapshot"   # perhaps one of a set, with no particles of its own
        return "netcdf" if _is_netcdf(file) else "grid"


def _is_netcdf(file: Any) -> bool:
    """Whether a file has the marks of NetCDF-4, names its conventions, or has scales for the dimensions of its arrays.

    Other libraries write NetCDF-4 without the marks of the NetCDF library.
    """
    if {"_NCProperties", "_nc3_strict", "Conventions"} & set(file.attrs):
        return True

    def has_scale(_: str, node: Any) -> bool | None:
        scale = bytes(node.attrs["CLASS"]) == b"DIMENSION_SCALE" if isinstance(node.attrs.get("CLASS"), bytes) else False
        return scale or bool(SCALES & set(node.attrs)) or None   # None continues the visit

    return file.visititems(has_scale) is True


def attributes(node: Any) -> dict[str, Any]:
    """The attributes of a group or dataset in plain types."""
    h5py = library("h5py", "HDF5 files")
    entries = {key: node.attrs.get_id(key) for key in node.attrs}
    small = [key for key, entry in entries.items() if entry.get_storage_size() <= 8 * MOST_ENTRIES]
    values = {key: node.attrs[key] for key in small}
    return {key: None if isinstance(value, h5py.Empty) else plain(value) for key, value in values.items()}


def require_room(dataset: Any, name: str, source: Source) -> None:
    """Refuse a data set that takes implausibly much memory for the bytes of this file, and of those that it refers to."""
    names = {one.file_name for one in dataset.virtual_sources()} if dataset.is_virtual else set()
    named = [source.path.parent / name for name in names]
    stored = source.size + sum(path.stat().st_size for path in named if path.is_file())
    source.limits.require_room(dataset.nbytes, stored, f"{name} in {source.name}")


def refuse_missing_sources(dataset: Any, path: Path) -> None:
    """A virtual dataset shows zeros where the file that it refers to is missing: an error instead."""
    if not dataset.is_virtual:
        return
    names = {source.file_name for source in dataset.virtual_sources()} - {"."}
    missing = sorted(name for name in names if "%" not in name and not (path.parent / name).exists())   # %: a pattern
    if missing:
        raise WorkbenchError(
            f"{path.name} only refers to the data in {len(names)} other files; missing {', '.join(missing[:3])}: "
            "copy the whole set into one folder"
        )
