"""Lets `wb.open` find archives among all the other formats."""

from __future__ import annotations

from collections.abc import Collection

from workbench.archive.archive import Archive
from workbench.archive.recognition import is_archive
from workbench.data.readers.format import Format
from workbench.data.readers.source import Source


def read(
    source: Source,
    *,
    codecs: Collection[str] | None = None,
    most_bytes: int | None = None,
    isolate: bool = True,
    damaged: bool = False,
) -> Archive:
    """The archive, with nothing decoded yet; when `damaged`, its readable part."""
    return Archive.open(source.path, codecs=codecs, most_bytes=most_bytes, isolate=isolate, damaged=damaged)


ARCHIVE = Format("archive", "Lossbench archive (folder or zip)", lambda source: is_archive(source.path), read)
