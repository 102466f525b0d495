"""Other files that an HDF5 file names: by external links, by virtual data sets, as the raw storage of a data set.

The HDF5 library follows all of these silently, and each may name any file of the machine. Virtual data sets and links are
common between the files of one snapshot, so files in the folder are accepted, after the same look at them. Names of raw
storage are relative to the working directory, so there is no folder that they could be expected in: they are refused. So
are patterns of names (with %), which stand for any number of files.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.data.readers.libraries import library
from workbench.data.readers.limits import refused
from workbench.data.readers.source import Source


def require_inside(source: Source) -> None:
    """Refuse an HDF5 file that names data outside of its folder, also by way of other files, unless this is allowed."""
    if source.limits.external:
        return
    known: set[Path] = set()
    to_do = [source.path]
    while to_do:
        path = to_do.pop()
        status = path.stat()
        for name, anywhere in _references(path, status.st_ino, status.st_size, status.st_mtime_ns):
            if anywhere:
                raise refused(name, path.name)
            if (named := _opened_for(name, path)) is not None and named not in known:
                source.limits.require_inside(named, source.path)
                known.add(named)
                to_do.append(named)


def _opened_for(name: str, path: Path) -> Path | None:
    """The file that the HDF5 library opens for a name in another file: beside it, else in the working directory."""
    places = (path.parent / name, path.resolve().parent / name, Path(name).absolute())
    return next((place for place in places if place.is_file()), None)


@functools.lru_cache(maxsize=4096)
def _references(path: Path, *state: int) -> tuple[tuple[str, bool], ...]:
    """The files that a file names, and whether they may be anywhere: raw storage, and patterns."""
    with library("h5py", "HDF5 files").File(path, "r") as file:
        return tuple(dict.fromkeys((*_by_links(file), *_by_data_sets(file))))


def _by_links(file: Any) -> Iterator[tuple[str, bool]]:
    h5py = library("h5py", "HDF5 files")
    found: list[bytes] = []

    def note(name: bytes, info: Any) -> None:
        if info.type == h5py.h5l.TYPE_EXTERNAL:
            found.append(name)

    file.id.links.visit(note, info=True)
    for link in found:
        yield file.id.links.get_val(link)[0].decode("utf-8", "surrogateescape"), False


def _by_data_sets(file: Any) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []

    def note(_: str, node: Any) -> None:
        if not hasattr(node, "is_virtual"):
            return
        found.extend((name, True) for name, _, _ in node.external or ())
        if node.is_virtual:
            names = (one.file_name for one in node.virtual_sources())
            found.extend((name, "%" in name) for name in names if name != ".")

    file.visititems(note)
    return found
