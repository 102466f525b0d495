"""Distinguish a damaged archive (exit status 1) from a file that is not an archive (status 2).

A truncated zip file or a damaged root document no longer identifies itself as an archive, so opening it fails as for any
foreign file. A script that runs `verify` on many archives must distinguish the two cases.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.archive.document import from_bytes, unsealed
from workbench.archive.key import ROOT
from workbench.archive.store import open_store
from workbench.errors import GuaranteeBroken, WorkbenchError

_HEADER = struct.Struct("<4s22xHH")   # of the first member of a zip file
_MEMBER = re.compile(rb"\w+/(c/[0-9/]+|zarr\.json|root\.json\.z)|zarr\.json")
_OURS = b"lossbench"
_MOST_BYTES = 2**24


@contextmanager
def damage_told_apart(path: str) -> Iterator[None]:
    """Raise `GuaranteeBroken` instead if the file that cannot be opened is a damaged archive."""
    try:
        yield
    except WorkbenchError as error:
        if not isinstance(error, GuaranteeBroken) and was_archive(Path(path)) and (reason := _what_is_wrong(path)):
            raise GuaranteeBroken(f"{path} is a damaged archive: {reason}") from error
        raise


def was_archive(path: Path) -> bool:
    """Whether a file begins like an archive of Lossbench, or a folder has its layout."""
    try:
        return _has_our_documents(path) if path.is_dir() else _begins_like_ours(path)
    except (OSError, ValueError):
        return False


def _begins_like_ours(path: Path) -> bool:
    with path.open("rb") as file:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size or not header.startswith(b"PK\x03\x04"):
            return False
        name = file.read(_HEADER.unpack(header)[1])
    return _MEMBER.fullmatch(name) is not None


def _has_our_documents(folder: Path) -> bool:
    documents = [folder / ROOT, *folder.glob(f"*/{ROOT}")]
    return any(_OURS in document.read_bytes() for document in documents if _is_small_file(document))


def _is_small_file(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= _MOST_BYTES


def _what_is_wrong(path: str) -> str | None:
    """Why its documents cannot be read; None when they are intact, whatever their content."""
    try:
        store = open_store(path)
    except WorkbenchError as error:
        if Path(path).is_dir():
            return str(error)
        return "the zip file is cut or damaged: run `workbench salvage` to get the undamaged part"
    try:
        documents = [key for key in store.keys() if key == ROOT or key.endswith(f"/{ROOT}")]   # noqa: SIM118
        for key in documents:
            unsealed(from_bytes(store.read(key), key), key)
    except WorkbenchError as error:
        return str(error)
    return None if ROOT in documents else f"it has no {ROOT}"
