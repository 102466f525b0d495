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
    """One kind of file: `key` is its value of `format=`, `title` is for messages."""

    key: str
    title: str
    recognises: Callable[[Source], bool]
    read: Callable[..., Any]

    @property
    def options(self) -> tuple[str, ...]:
        """The options that reading such a file takes.

        >>> Format("tiny", "a tiny file", lambda source: True, lambda source, *, name=None: name).options
        ('name',)
        """
        parameters = inspect.signature(self.read).parameters.values()
        return tuple(parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)
