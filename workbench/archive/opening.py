"""Lets `wb.open` find archives among all the other formats."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from workbench.archive.archive import Archive
from workbench.archive.collection.collection import Collection as CollectionOfArchives
from workbench.archive.collection.description import is_collection
from workbench.archive.collection.model import ModelArchive, is_model
from workbench.archive.recognition import is_archive
from workbench.archive.root import intact_root
from workbench.archive.store import open_store
from workbench.archive.trust import Trust
from workbench.data.readers.format import Format
from workbench.data.readers.options import Cell
from workbench.data.readers.snapshots import Snapshot
from workbench.data.readers.source import Source
from workbench.data.trajectory import Trajectory
from workbench.errors import WorkbenchError


def read(
    source: Source,
    *,
    codecs: Collection[str] | None = None,
    most_bytes: int | None = None,
    isolate: bool = True,
    patience: float | None = None,
    damaged: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Archive | CollectionOfArchives:
    """The archive, with nothing decoded yet; when `damaged`, its readable part."""
    trust: dict[str, Any] = {"codecs": codecs, "most_bytes": most_bytes, "isolate": isolate, "patience": patience}
    return opened(source.place, damaged, storage_options, **trust)


def opened(
    path: str | os.PathLike[str], damaged: bool = False, storage_options: Mapping[str, Any] | None = None, **trust: Any
) -> Archive | CollectionOfArchives:
    """The archive at a path or an address, of one array or of many members."""
    store = open_store(path, damaged, storage_options)
    known = intact_root(store, damaged)
    several = ModelArchive if is_model(known.root) else CollectionOfArchives
    kind = several if is_collection(known.root) else Archive
    return kind(store, Trust(**trust), damaged, known)


def snapshot(
    sources: Sequence[Source],
    *,
    codecs: Collection[str] | None = None,
    most_bytes: int | None = None,
    isolate: bool = True,
    patience: float | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Snapshot:
    """The particles of an archive, to be decoded chunk by chunk."""
    first = sources[0]
    if len(sources) > 1:
        raise WorkbenchError(f"{sources[1].name}: an archive is a whole snapshot; open several by wb.open_series(...)")
    allowed = None if codecs is None else tuple(codecs)
    trust: dict[str, Any] = {"codecs": allowed, "most_bytes": most_bytes, "isolate": isolate, "patience": patience}
    archive = opened(first.place, storage_options=storage_options, **trust)
    if isinstance(archive, CollectionOfArchives):
        raise WorkbenchError(f"{first.name} holds {len(archive)} members: open it by wb.open(...), and choose one by name")
    table = archive.content.table(archive, first, {**trust, "storage_options": storage_options})
    cell = None if archive.box is None else Cell(archive.box)
    metadata = archive.attributes.get("metadata", {})
    return Snapshot.of(first.name, [table], cell, metadata)


def _is_archive(source: Source) -> bool:
    return source.address is not None or is_archive(source.path)


def trajectory(source: Source) -> Trajectory:
    """The frames of an archive, decoded where they are read."""
    archive = opened(source.place)
    if isinstance(archive, CollectionOfArchives) or archive.kind != "trajectory":
        raise WorkbenchError(f"{source.name} is an archive of another kind: open it by wb.open(...)")
    found: Trajectory = archive.content.source(archive)
    return found


ARCHIVE = Format(
    "archive", "Lossbench archive (folder or zip)", _is_archive, read, snapshot, reads_addresses=True, trajectory=trajectory
)
