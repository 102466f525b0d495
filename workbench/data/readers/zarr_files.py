"""Shared by the readers of Zarr stores: recognising and opening them, in a folder or in a zip file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from workbench.data.readers.libraries import library
from workbench.data.readers.source import Source

MARKS = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")


@contextmanager
def opened(source: Source) -> Iterator[tuple[Any, Any]]:
    """The module `zarr` and the group or array at the root, open for reading."""
    zarr = library("zarr", "Zarr stores")
    with source.read_by("zarr"):
        if source.is_folder:
            yield zarr, zarr.open(source.path, mode="r")
        else:
            with zarr.storage.ZipStore(source.path, mode="r") as store:
                yield zarr, zarr.open(store, mode="r")


def is_store(source: Source) -> bool:
    """Whether this is a folder or a zip file with the documents of Zarr."""
    if source.is_folder:
        return any((source.path / mark).is_file() for mark in MARKS)
    if not source.starts_with(b"PK\x03\x04"):
        return False
    try:
        with zipfile.ZipFile(source.path) as archive:
            return bool(set(MARKS) & set(archive.namelist()))
    except (zipfile.BadZipFile, OSError, ValueError):
        return source.path.suffixes[-2:] == [".zarr", ".zip"]
