"""Lets `wb.open` find series among all the other formats."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from workbench.archive import document
from workbench.archive.series.recovering import name_in_steps
from workbench.archive.series.requested import DOCUMENT
from workbench.archive.series.series import Series
from workbench.data.readers.format import Format
from workbench.data.readers.source import Source


def is_series(path: str | os.PathLike[str]) -> bool:
    """Whether there is a series at this path, perhaps a damaged one.

    >>> is_series("no/such/folder")
    False
    """
    try:
        with (Path(path).expanduser() / DOCUMENT).open("rb") as file:
            if document.SEAL.encode() in file.read(document.MOST_BYTES):
                return True
    except (OSError, ValueError):
        pass
    return bool(name_in_steps(Path(path).expanduser()))


def read(
    source: Source, *, codecs: Collection[str] | None = None, most_bytes: int | None = None, isolate: bool = True,
    patience: float | None = None,
) -> Series:
    """The series, with nothing decoded yet."""
    return Series(source.path, codecs=codecs, most_bytes=most_bytes, isolate=isolate, patience=patience)


def _is_series(source: Source) -> bool:
    return source.address is None and source.is_folder and is_series(source.path)


SERIES = Format("series", "Lossbench series (folder)", _is_series, read)
