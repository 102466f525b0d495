"""Snapshots written as several files, `name.0`, `name.1`, ... or `name.0.hdf5`, `name.1.hdf5`, ...: all or nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from workbench.data.readers.source import Source
from workbench.errors import WorkbenchError

NUMBERED = re.compile(r"(.*\.)(\d+)((?:\.[A-Za-z]\w*)?)")
PARTITION = re.compile(r"(.*)#\d+")


def map_of(path: Path) -> Path | None:
    """The map of ranks that a partition of GenericIO belongs to, by its name.

    >>> map_of(Path("m000.full.mpicosmo.50#3")), map_of(Path("m000.full.mpicosmo.50"))
    (PosixPath('m000.full.mpicosmo.50'), None)
    """
    found = PARTITION.fullmatch(path.name)
    return path.with_name(found[1]) if found else None


def stem_of(path: Path) -> tuple[Path, str, str]:
    """What the files of one set have in common: their folder, and their names before and after the number.

    >>> stem_of(Path("snap_004.7.hdf5"))
    (PosixPath('.'), 'snap_004.', '.hdf5')
    """
    found = NUMBERED.fullmatch(path.name)
    return (path.parent, found[1], found[3]) if found else (path.parent, path.name, "")


def completed(sources: Sequence[Source], files_stated: Callable[[Source], int]) -> list[Source]:
    """The files of one snapshot, in order: all that the first one states; those given must be just these.

    `files_stated` reads from the header of a file how many files the snapshot has.
    """
    first, count = sources[0], files_stated(sources[0])
    if len(sources) == 1:
        return [first if path == first.path else Source.at(path, first.limits) for path in members(first.path, count)]
    for other in sources:
        if (found := files_stated(other)) <= 1:
            raise WorkbenchError(
                f"{other.name} says that it is a whole snapshot: give it alone, or several as a series, by "
                "wb.open_series(...) or `workbench compress --series`"
            )
        if found != count:
            raise WorkbenchError(f"{first.name} says that it is one of {count} files, {other.name} one of {found}")
    given = {source.path.absolute(): source for source in sources}
    paths = [path.absolute() for path in members(first.path, count)]
    if missing := [path.name for path in paths if path not in given]:
        raise WorkbenchError(
            f"{first.name} is one of {count} files of one snapshot; these are not given: {', '.join(missing[:3])}"
            f"{', ...' if len(missing) > 3 else ''}"
        )
    if strangers := [source.name for path, source in given.items() if path not in paths]:
        raise WorkbenchError(f"{strangers[0]} belongs to another snapshot than {first.name}: open one of them")
    return [given[path] for path in paths]


def members(path: Path, count: int) -> list[Path]:
    """The files of the set that `path` belongs to, in order; a missing one is an error that names it.

    >>> members(Path("snap_004.hdf5"), 1)
    [PosixPath('snap_004.hdf5')]
    """
    if count <= 1:
        return [path]
    parts = NUMBERED.fullmatch(path.name)
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
