"""The kinds of content, by name: a new one is a file in this folder and an entry in `workbench/archive/__init__.py`.

This file imports none of them, so that everything that reads archives can ask it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.archive.key import COPY, COPY_OF_COLLECTION

if TYPE_CHECKING:
    from workbench.archive.content.content import Content

KINDS: dict[str, Content] = {}


def enter(*contents: Content) -> None:
    """Make kinds of content known to all that reads and writes archives."""
    KINDS.update({content.kind: content for content in contents})


def is_content(data: Any) -> bool:
    """Whether these are data that an archive can hold."""
    return any(isinstance(data, content.classes) for content in KINDS.values())


def content_of(data: Any) -> Content:
    """The kind of content that these data are.

    >>> from workbench.data import Field
    >>> content_of(Field([1.0, 2.0])).words
    'a field'
    """
    return next(content for content in KINDS.values() if isinstance(data, content.classes))


def in_words() -> str:
    """All kinds, for messages.

    >>> in_words()
    'particles, a field, a variable or a trajectory'
    """
    *others, last = (content.words for content in KINDS.values())
    return f"{', '.join(others)} or {last}"


def copy_keys() -> list[str]:
    """Where the second copy of a root may be: beside the chunks of the data or, for many members, in a folder of its own.

    >>> copy_keys()
    ['positions/root.json.z', 'values/root.json.z', 'lossbench/root.json.z']
    """
    return list(dict.fromkeys([*(f"{content.data}/{COPY}" for content in KINDS.values()), COPY_OF_COLLECTION]))
