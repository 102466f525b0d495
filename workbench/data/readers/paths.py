"""What a caller may give as the files of a snapshot: a path, a pattern, a list, or the folder of a set of many files."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from workbench.data.readers.address import is_address
from workbench.errors import WorkbenchError

NUMBER = re.compile(r"(\d+)")
PATTERN = re.compile(r"[*?\[]")


def is_several(given: Any) -> bool:
    """Whether this may name several files: a list, or a pattern that is not the name of a file.

    >>> is_several(["a.npy", "b.npy"]), is_several("snap_099.*.hdf5"), is_several("snap_099.hdf5")
    (True, True, False)
    """
    if isinstance(given, list | tuple):
        return True
    if is_address(given):
        return False
    return isinstance(given, str | os.PathLike) and bool(PATTERN.search(os.fspath(given))) and not Path(given).exists()


def listed(given: Any) -> list[Path]:
    """The files: those of a list in its order, those of a pattern in the order of their numbers.

    >>> listed(["snap.10.hdf5", "snap.9.hdf5"])
    [PosixPath('snap.10.hdf5'), PosixPath('snap.9.hdf5')]
    >>> listed("no/such/*.hdf5")
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: no file matches the pattern no/such/*.hdf5: check the path
    """
    if isinstance(given, str | os.PathLike):
        found = sorted((Path(name) for name in glob.glob(os.path.expanduser(os.fspath(given)))), key=in_order)
        if not found:
            raise WorkbenchError(f"no file matches the pattern {given}: check the path")
        return found
    if not given or not all(isinstance(one, str | os.PathLike) for one in given):
        raise WorkbenchError(f"expected a list of paths, at least one; got {given!r:.100}")
    return [Path(one).expanduser() for one in given]


def nbytes_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else path.stat().st_size


def in_order(path: Path) -> list[Any]:
    """A key for sorting by the numbers in names.

    >>> sorted(map(Path, ["snap.10.hdf5", "snap.9.hdf5"]), key=in_order)
    [PosixPath('snap.9.hdf5'), PosixPath('snap.10.hdf5')]
    """
    pieces = NUMBER.split(str(path))
    return [(int(piece), piece) if number % 2 else (0, piece) for number, piece in enumerate(pieces)]


def alike(one: Path, other: Path) -> bool:
    """Whether two names differ in numbers only.

    >>> alike(Path("snap.10.hdf5"), Path("snap.9.hdf5")), alike(Path("snap.10.hdf5"), Path("done"))
    (True, False)
    """
    return NUMBER.sub("0", one.name) == NUMBER.sub("0", other.name)


def require_no_gap(paths: Sequence[Path]) -> None:
    """Refuse a set of files that lacks a number between those of the others: it was not copied completely.

    >>> require_no_gap([Path("slab000.asdf"), Path("slab001.asdf"), Path("slab003.asdf")])
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: slab002.asdf is missing between slab000.asdf and slab003.asdf: copy the whole set, ...
    """
    pieces = [NUMBER.split(str(path)) for path in paths]
    if len({len(one) for one in pieces}) != 1:
        return
    varying = [place for place, values in enumerate(zip(*pieces, strict=True)) if len(set(values)) > 1]
    if len(varying) != 1 or varying[0] % 2 == 0:
        return
    place = varying[0]
    there = {int(one[place]) for one in pieces}
    if missing := next((number for number in range(min(there), max(there)) if number not in there), None):
        width = len(pieces[0][place]) if pieces[0][place].startswith("0") else 1
        name = Path("".join([*pieces[0][:place], f"{missing:0{width}}", *pieces[0][place + 1 :]])).name
        raise WorkbenchError(
            f"{name} is missing between {paths[0].name} and {paths[-1].name}: copy the whole set, or list the files to read"
        )


def in_folder(folder: Path) -> list[Path]:
    """The files in a folder, in the order of their numbers; hidden ones are none of the data."""
    found = sorted((path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")), key=in_order)
    if not found:
        raise WorkbenchError(f"the folder {folder.name} has no known format, and no files: check the path")
    return found


def require_distinct(paths: Iterable[Path]) -> None:
    """Refuse a file that is given twice, also under another name."""
    seen: dict[Path, Path] = {}
    for path in paths:
        place = path.resolve()
        if place in seen:
            raise WorkbenchError(f"each file must be given once; {path} and {seen[place]} are the same")
        seen[place] = path
