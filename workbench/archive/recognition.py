"""The paths of archives: whether there is one, for opening it and before overwriting it, and how one may be named.

A damaged archive counts, so that opening it gives advice, and so that it may be overwritten.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from workbench.archive import document
from workbench.archive.content.registry import copy_keys
from workbench.archive.frame import MAGIC
from workbench.archive.key import COPY, ROOT
from workbench.archive.members import LOCAL_HEADER, LOCAL_SIGNATURE
from workbench.archive.root import document_of
from workbench.errors import WorkbenchError

SUFFIXES = (".zip", ".zarr", "")   # one file, or a folder
_MOST = document.MOST_BYTES + 1
_LONGEST_NAME = 600


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether there is a Lossbench archive at this path, perhaps a damaged one.

    >>> is_archive("no/such.zarr")
    False
    """
    place = Path(path)
    try:
        return _folder(place) if place.is_dir() else _zip_file(place)
    except Exception:   # a foreign file can make the standard library raise anything
        return False


def require_suffix(target: Path) -> Path:
    """The target itself, if its suffix fits an archive: a folder named `x.hdf5` would mislead.

    >>> require_suffix(Path("snapshot.hdf5"))
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: an archive must end in .zip (one file), or in .zarr or without a suffix (a folder); ...
    """
    if target.suffix not in SUFFIXES:
        raise WorkbenchError(
            f"an archive must end in .zip (one file), or in .zarr or without a suffix (a folder); got {target.name}"
        )
    return target


def _folder(place: Path) -> bool:
    for document_at in (place / key for key in (ROOT, *copy_keys())):
        if document_at.is_file():
            with document_at.open("rb") as file:
                if _is_root(file.read(_MOST), document_at.name):
                    return True
    return False


def _zip_file(place: Path) -> bool:
    """Recognise a zip file by its root or, if its directory is damaged, by its first part."""
    try:
        with zipfile.ZipFile(place) as opened:
            names = set(opened.namelist())
            for name in (ROOT, *copy_keys()):
                if name in names and _is_root(opened.open(name).read(_MOST), name):
                    return True
    except Exception:   # the central directory or a member is damaged
        return _begins_with_part(place)
    return False


def _begins_with_part(place: Path) -> bool:
    with place.open("rb") as file:
        start = file.read(LOCAL_HEADER.size + _LONGEST_NAME)
    if not start.startswith(LOCAL_SIGNATURE) or len(start) < LOCAL_HEADER.size:
        return False
    *_, name_length, extra_length = LOCAL_HEADER.unpack_from(start)
    name = start[LOCAL_HEADER.size :][:name_length]
    return name.endswith(f"/{COPY}".encode()) or start[LOCAL_HEADER.size + name_length + extra_length :].startswith(MAGIC)


def _is_root(data: bytes, name: str) -> bool:
    try:
        return document.is_sealed(document_of(data, name))
    except ValueError:   # no JSON at all
        return False
