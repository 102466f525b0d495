"""Lets `wb.open` find archives among all the other formats."""

from __future__ import annotations

from workbench.archive.archive import Archive
from workbench.archive.recognition import is_archive
from workbench.data.readers.format import Format
from workbench.data.readers.source import Source


def read(source: Source, *, damaged: bool = False) -> Archive:
    """The archive, nothing of it decoded yet; when `damaged`, as much of it as can be read."""
    return Archive.open(source.path, damaged=damaged)


ARCHIVE = Format("archive", "Lossbench archive (folder or zip)", lambda source: is_archive(source.path), read)
