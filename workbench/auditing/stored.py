"""How many bytes each member takes in a file: of archives, HDF5 files and Zarr groups; others do not say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.archive.collection.collection import Collection
from workbench.auditing.sides import Side
from workbench.data.readers import hdf5
from workbench.data.readers.paths import nbytes_of
from workbench.data.readers.source import Source


def stored_bytes(side: Side) -> dict[str, int]:
    """The bytes of members in the file of a side, by name."""
    if isinstance(side.archive, Collection):
        return {row.name: row.nbytes for row in side.archive.rows()}
    if side.path is None or side.archive is not None:
        return {}
    return _in_folder(side.path) if side.path.is_dir() else _in_hdf5(side.path)


def _in_hdf5(path: Path) -> dict[str, int]:
    source, sizes = Source.at(path), dict[str, int]()
    if not source.starts_with(hdf5.MAGIC):
        return sizes

    def add(name: str, node: Any) -> None:
        if hasattr(node, "shape"):
            sizes[name] = int(node.id.get_storage_size())

    with hdf5.opened(source) as file:
        file.visititems(add)
    return sizes


def _in_folder(path: Path) -> dict[str, int]:
    """The bytes of the chunks and documents of each array of Zarr."""
    folders = (document.parent for name in ("zarr.json", ".zarray") for document in path.rglob(name))
    return {str(folder.relative_to(path)): nbytes_of(folder) for folder in folders}
