"""Whether a path holds an archive of ours: for those who open it, and for those who would replace it.

A damaged archive counts, so that opening it says what can be done, and so that it may be overwritten.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from workbench.archive import document
from workbench.archive.frame import MAGIC
from workbench.archive.key import COPY, ROOT
from workbench.archive.members import LOCAL_HEADER, LOCAL_SIGNATURE
from workbench.archive.root import document_of

_MOST = document.MOST_BYTES + 1
_LONGEST_NAME = 600


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether there is an archive of ours at this path, perhaps a damaged one.

    >>> is_archive("no/such.zarr")
    False
    """
    place = Path(path)
    try:
        return _folder(place) if place.is_dir() else _zip_file(place)
    except Exception:   # whatever a foreign file makes the standard library raise, it is not ours
        return False


def _folder(place: Path) -> bool:
    for found in (place / ROOT, *place.glob(f"*/{COPY}")):
        if found.is_file():
            with found.open("rb") as file:
                if _is_root(file.read(_MOST), found.name):
                    return True
    return False


def _zip_file(place: Path) -> bool:
    """By its root or, where the directory of the zip file is damaged, by the first part."""
    try:
        with zipfile.ZipFile(place) as opened:
            for name in (ROOT, *(name for name in opened.namelist() if name.count("/") == 1 and name.endswith(f"/{COPY}"))):
                if name in opened.namelist() and _is_root(opened.open(name).read(_MOST), name):
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
