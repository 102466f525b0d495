"""Lets `wb.open` find archives among all the other formats."""

from __future__ import annotations

from workbench.archive.archive import Archive
from workbench.archive.layout import is_archive
from workbench.data.readers.format import Format
from workbench.data.readers.source import Source


def read(source: Source) -> Archive:
    """The archive, nothing of it decoded yet."""
    return Archive.open(source.path)


ARCHIVE = Format("archive", "Lossbench archive (folder or zip)", lambda source: is_archive(source.path), read)
