"""Snapshots written as several files, `name.0`, `name.1`, ... or `name.0.hdf5`, `name.1.hdf5`, ...: all or nothing."""

from __future__ import annotations

import re
from pathlib import Path

from workbench.errors import WorkbenchError


def members(path: Path, count: int) -> list[Path]:
    """The files of the set that `path` belongs to, in order; a missing one is an error that names it.

    >>> members(Path("snap_004.hdf5"), 1)
    [PosixPath('snap_004.hdf5')]
    """
    if count <= 1:
        return [path]
    parts = re.fullmatch(r"(.*\.)(\d+)((?:\.[A-Za-z]\w*)?)", path.name)
    if parts is None:
        raise WorkbenchError(
            f"{path.name} says that it is one of {count} files, but has no number in its name: "
            "expected a name like snap.0.hdf5 or snap.0"
        )
    _refuse_missing(path, parts[1], parts[3], count)
    return [path.with_name(f"{parts[1]}{number}{parts[3]}") for number in range(count)]


def _refuse_missing(path: Path, before: str, after: str, count: int) -> None:
    """Compare with the folder's listing: a damaged count must not make us look for billions of files."""
    present = {entry.name for entry in path.parent.iterdir()}
    missing: list[str] = []
    number = 0
    while number < count and len(missing) < 3:
        if (name := f"{before}{number}{after}") not in present:
            missing.append(name)
        number += 1
    if missing:
        raise WorkbenchError(
            f"{path.name} is one of {count} files of one snapshot, and its folder lacks some of them: missing "
            f"{', '.join(missing)}{'' if number == count else ', ...'}. Copy the whole set into one folder"
        )
