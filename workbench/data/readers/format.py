"""The definition of a reader: a name, a way to recognise its files by content, and a function that reads them.

The options of a format are the keyword arguments of its reading function. So they are declared once, and an unknown option
can be refused with the list of the known ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.data.readers.source import Source


@dataclass(frozen=True)
class Format:
    """One kind of file: `key` is its value of `format=`, `title` is for messages.

    Formats of particles that may be in several files, or are read in chunks, have a function `snapshot` of all the files.
    """

    key: str
    title: str
    recognises: Callable[[Source], bool]
    read: Callable[..., Any]
    snapshot: Callable[..., Any] | None = None
    files_stated: Callable[[Source], int] | None = None   # of the snapshot that a file belongs to
    reads_addresses: bool = False   # as https://..., too
    trajectory: Callable[..., Any] | None = None   # of formats with many frames: all of them, read when they are needed

    @property
    def options(self) -> tuple[str, ...]:
        """The options that reading such a file takes.

        >>> Format("tiny", "a tiny file", lambda source: True, lambda source, *, name=None: name).options
        ('name',)
        """
        return _keywords(self.read)

    @property
    def snapshot_options(self) -> tuple[str, ...]:
        """The options that apply to particles in chunks or in several files."""
        return (*_keywords(self.snapshot), "box", "wrap") if self.snapshot is not None else ()


def _keywords(function: Callable[..., Any]) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    return tuple(parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)
