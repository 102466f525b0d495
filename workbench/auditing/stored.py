"""How many bytes each member takes in a file: of archives, HDF5 files and Zarr groups; others do not say."""

from __future__ import annotations

from pathlib import Path

from workbench.archive.collection.collection import Collection
from workbench.auditing.sides import Side
from workbench.data.readers import hdf5


def stored_bytes(side: Side) -> dict[str, int]:
    """The bytes of members in the file of a side, by name."""
    if isinstance(side.archive, Collection):
        return {row.name: row.nbytes for row in side.archive.rows()}
    if side.path is None or side.archive is not None:
        return {}
    return _in_folder(side.path) if side.path.is_dir() else _in_hdf5(side.path)


def _in_hdf5(path: Path) -> dict[str, int]:
    with path.open("rb") as file:
        if file.read(len(hdf5.MAGIC)) != hdf5.MAGIC:
            return {}
    import h5py

    found: dict[str, int] = {}

    def look(name: str, node: object) -> None:
        if isinstance(node, h5py.Dataset):
            found[name] = int(node.id.get_storage_size())

    with h5py.File(path, "r") as file:
        file.visititems(look)
    return found


def _in_folder(path: Path) -> dict[str, int]:
    """The bytes of the chunks and documents of each array of Zarr."""
    marks = [*path.rglob("zarr.json"), *path.rglob(".zarray")]
    found = {}
    for mark in marks:
        files = (file for file in mark.parent.rglob("*") if file.is_file())
        found[str(mark.parent.relative_to(path))] = sum(file.stat().st_size for file in files)
    return found
