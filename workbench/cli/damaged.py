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

from workbench.archive.document import MOST_BYTES, from_bytes, unsealed
from workbench.archive.key import ROOT
from workbench.archive.store import open_store
from workbench.errors import GuaranteeBroken, WorkbenchError

_HEADER = struct.Struct("<4s22xHH")   # of the first member of a zip file
_MEMBER = re.compile(rb"\w+/(c/[0-9/]+|zarr\.json|root\.json\.z)|zarr\.json")


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
    """Whether a file begins like an archive of Lossbench, or a folder has a document of one."""
    try:
        return _has_our_root(path / ROOT) if path.is_dir() else _begins_like_ours(path)
    except (OSError, ValueError):
        return False


def _begins_like_ours(path: Path) -> bool:
    with path.open("rb") as file:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size or not header.startswith(b"PK\x03\x04"):
            return False
        name = file.read(_HEADER.unpack(header)[1])
    return _MEMBER.fullmatch(name) is not None


def _has_our_root(root: Path) -> bool:
    return root.is_file() and root.stat().st_size <= MOST_BYTES and b"lossbench" in root.read_bytes()


def _what_is_wrong(path: str) -> str | None:
    """Why its root cannot be read; None when it is intact, whatever its content."""
    try:
        store = open_store(path)
    except WorkbenchError as error:
        if Path(path).is_dir():
            return str(error)
        return "the zip file is cut or damaged: run `workbench salvage` to get the undamaged part"
    if ROOT not in set(store.keys()):
        return f"it has no {ROOT}"
    try:
        unsealed(from_bytes(store.read(ROOT), ROOT), ROOT)
    except WorkbenchError as error:
        return str(error)
    return None
