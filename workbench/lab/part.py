"""A part of a page: what the browser draws of it, as plain values, and what the user does with it.

Controls, buttons, pictures, charts and tables are parts. A part has a `kind`, for which the browser has a class
(`front/page.js`), and `content`, which that class draws. Parts know nothing of widgets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol


class Home(Protocol):
    """What a part needs of its page; `settings` are those of the view, by the key of their part."""

    settings: dict[str, Any]

    def changed(self, part: Part) -> None:
        """Send what has changed in the content of a part."""

    def tell(self, part: Part, content: Mapping[str, Any], buffers: Sequence[bytes]) -> None:
        """Send a message to the part in the browser."""


class Part:
    """One part. Content consists of texts, numbers, lists, mappings and bytes; values are replaced, never changed in place.

    >>> part = Part(label="codec")
    >>> part.set(label="compressor")
    >>> part.content
    {'kind': '', 'label': 'compressor', 'hidden': False}
    """

    kind: ClassVar[str] = ""

    def __init__(self, **content: Any) -> None:
        self.content: dict[str, Any] = {"kind": self.kind, **content, "hidden": False}
        self.page: Home | None = None
        self.key = ""   # on the page

    def set(self, **content: Any) -> None:
        """Change the content; the page sends what differs."""
        self.content.update(content)
        if self.page is not None:
            self.page.changed(self)

    def tell(self, content: Mapping[str, Any], buffers: Sequence[bytes] = ()) -> None:
        """Send a message that is no content, such as an answer; nothing if there is no page."""
        if self.page is not None:
            self.page.tell(self, content, buffers)

    def whole(self) -> dict[str, Any]:
        """All content, for a page that has none or has missed something."""
        return dict(self.content)

    def heard(self, content: Mapping[str, Any]) -> None:
        """The user did something with this part."""
