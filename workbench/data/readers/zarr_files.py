"""Shared by the readers of Zarr stores: recognising and opening them, in a folder or in a zip file."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.data.readers.libraries import library
from workbench.data.readers.limits import FREE_BYTES
from workbench.data.readers.source import Source

FREE_CHUNKS = 2**16     # that an array may have without a look at how many are there
CHUNKS_PER_PART = 64    # beyond, for each part of the store
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


def require_inside(source: Source) -> None:
    """Refuse a store in a folder that has links to files elsewhere, unless this is allowed."""
    folders = [source.path] if source.is_folder and not source.limits.external else []
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    source.limits.require_inside(Path(entry.path), source.path)
                elif entry.is_dir():
                    folders.append(Path(entry.path))


def is_store(source: Source) -> bool:
    """Whether this is a folder or a zip file with the documents of Zarr."""
    if source.is_folder:
        return any((source.path / mark).is_file() for mark in MARKS)
    if not source.starts_with(b"PK\x03\x04"):
        return False
    try:
        with zipfile.ZipFile(source.path) as archive:
            return bool(set(MARKS) & set(archive.namelist()))
    except Exception:   # a forged zip file can make the standard library raise anything
        return source.path.suffixes[-2:] == [".zarr", ".zip"]


def require_room(array: Any, name: str, source: Source) -> None:
    """Refuse an array that takes implausibly much memory for the bytes of the store, or has implausibly many chunks."""
    if array.nbytes <= FREE_BYTES and array.nchunks <= FREE_CHUNKS and source.limits.most_bytes is None:
        return
    parts, stored = _stored(source)
    source.limits.require_room(array.nbytes, stored, f"{name} in {source.name}")
    if source.limits.most_bytes is None and array.nchunks > FREE_CHUNKS + CHUNKS_PER_PART * parts:
        raise source.damaged(f"{name} has {array.nchunks:,} chunks, of which {parts:,} can be there at most")


def _stored(source: Source) -> tuple[int, int]:
    """How many parts a store has, and how many bytes."""
    if not source.is_folder:
        with zipfile.ZipFile(source.path) as archive:
            return len(archive.namelist()), source.size
    sizes = [os.stat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(source.path) for name in names]
    return len(sizes), sum(sizes)
