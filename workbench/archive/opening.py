"""Lets `wb.open` find archives among all the other formats."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from workbench.archive.archive import Archive
from workbench.archive.recognition import is_archive
from workbench.data.readers.format import Format
from workbench.data.readers.options import Cell
from workbench.data.readers.snapshots import Snapshot
from workbench.data.readers.source import Source
from workbench.errors import WorkbenchError


def read(
    source: Source,
    *,
    codecs: Collection[str] | None = None,
    most_bytes: int | None = None,
    isolate: bool = True,
    patience: float | None = None,
    damaged: bool = False,
) -> Archive:
    """The archive, with nothing decoded yet; when `damaged`, its readable part."""
    trust: dict[str, Any] = {"codecs": codecs, "most_bytes": most_bytes, "isolate": isolate, "patience": patience}
    return Archive.open(source.path, **trust, damaged=damaged)


def snapshot(
    sources: Sequence[Source],
    *,
    codecs: Collection[str] | None = None,
    most_bytes: int | None = None,
    isolate: bool = True,
    patience: float | None = None,
) -> Snapshot:
    """The particles of an archive, to be decoded chunk by chunk."""
    first = sources[0]
    if len(sources) > 1:
        raise WorkbenchError(f"{sources[1].name}: an archive is a whole snapshot; open several by wb.open_series(...)")
    allowed = None if codecs is None else tuple(codecs)
    trust: dict[str, Any] = {"codecs": allowed, "most_bytes": most_bytes, "isolate": isolate, "patience": patience}
    archive = Archive.open(first.path, **trust)
    table = archive.content.table(archive, first.path.absolute(), trust)
    cell = None if archive.box is None else Cell(archive.box)
    metadata = archive.attributes.get("metadata", {})
    return Snapshot.of(first.name, [table], cell, metadata)


ARCHIVE = Format("archive", "Lossbench archive (folder or zip)", lambda source: is_archive(source.path), read, snapshot)
