"""One widget for a whole panel. It sends what differs as one numbered message; the browser asks when it misses one.

A widget for every control, picture and chart would be more than a hundred, which find each other only through the page and
whose changes arrive one by one. Here, each part of a panel is plain content with a key; a message has the fields that
changed, with pixels as buffers. The whole content is the state of the widget: it is there when the widget is made, when a
page is loaded again, and when the browser asks for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from workbench.lab.front_end import FrontEnd, front_end, loader
from workbench.lab.part import Part
from workbench.lab.turns import in_turn

REPEATED = 1.0, 3.0, 9.0   # seconds after the last change: its number is sent again, since the last messages may be lost


class Page(anywidget.AnyWidget):
    """Parts by key. `settings` are those of the view by part: the browser owns them, and Python keeps them for others.

    >>> page = Page({"note": Part(text="one")})
    >>> page["note"].set(text="two")
    >>> page.number, page.get_state("content")["content"]["parts"]["note"]["text"]
    (1, 'two')
    >>> page.close()
    """

    _esm = loader()
    draws = traitlets.Unicode("panel").tag(sync=True)   # what the loaded modules are to draw
    own_id = traitlets.Unicode().tag(sync=True)
    front = traitlets.Instance(FrontEnd).tag(sync=True, **widgets.widget_serialization)
    settings = traitlets.Dict().tag(sync=True)
    content = traitlets.Bool(True).tag(sync=True, to_json=lambda _, page: page._whole())

    def __init__(self, parts: Mapping[str, Part], draws: str = "panel") -> None:
        self.number = 0
        self._parts: dict[str, Part] = {}
        self._sent: dict[str, dict[str, Any]] = {}
        self._removed: list[str] = []
        self._held: dict[str, Part] | None = {}   # parts that have changed, until they are sent together
        self._named = 0
        self._repeating: asyncio.TimerHandle | None = None
        for key, part in parts.items():
            self.add(part, key)
        for part in self._held.values():
            self._differing(part)   # which goes with the state
        self._held = None
        identity = secrets.token_hex(16)
        super().__init__(model_id=identity, own_id=identity, front=front_end(), draws=draws)
        self.on_msg(self._heard)

    def __getitem__(self, key: str) -> Part:
        return self._parts[key]

    @in_turn
    def add(self, part: Part, key: str = "") -> str:
        """Put a part on the page; returns its key. A part that is there already stays."""
        if part.page is not self:
            self._named += 1
            part.key = key or f"{part.kind}-{self._named}"
            part.page = self
            self._parts[part.key] = part
            self.changed(part)
        return part.key

    @in_turn
    def remove(self, part: Part) -> None:
        """Take a part off the page."""
        del self._parts[part.key]
        self._sent.pop(part.key, None)
        self._removed.append(part.key)
        part.page = None
        if self._held is None:
            self._send_fields({})

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Send all that changes within this context as one message."""
        if self._held is not None:
            yield
            return
        self._held = {}
        try:
            yield
        finally:
            held, self._held = self._held, None
            self._send_fields(held)

    @in_turn
    def changed(self, part: Part) -> None:
        """Send what has changed in the content of a part."""
        if self._held is not None:
            self._held[part.key] = part
        else:
            self._send_fields({part.key: part})

    def tell(self, part: Part, content: Mapping[str, Any], buffers: Sequence[bytes] = ()) -> None:
        """Send a message to a part in the browser."""
        self.send({"part": part.key, "message": dict(content)}, list(buffers))

    def bundle(self) -> dict[str, Any]:
        """What displays the page in a notebook."""
        view = {"version_major": 2, "version_minor": 0, "model_id": self.own_id}
        return {"application/vnd.jupyter.widget-view+json": view}

    def close(self) -> None:
        """Remove the page, and release its content."""
        if self._repeating is not None:
            self._repeating.cancel()
        for part in self._parts.values():
            part.page = None
        self._parts.clear()
        self._sent.clear()
        self.layout.close()
        super().close()

    def _send_fields(self, parts: Mapping[str, Part]) -> None:
        """Send the fields of these parts that differ from what was sent before, as one message, if there are any."""
        news = {key: fields for key, part in parts.items() if key in self._parts and (fields := self._differing(part))}
        if not news and not self._removed:
            return
        self.number += 1
        buffers: list[bytes] = []
        self.send({"number": self.number, "parts": packed(news, buffers), "removed": self._removed}, buffers)
        self._removed = []
        self._repeat_when_quiet()

    def _differing(self, part: Part) -> dict[str, Any]:
        sent = self._sent.setdefault(part.key, {})
        fields = {name: value for name, value in part.content.items() if name not in sent or not _same(sent[name], value)}
        sent.update(fields)
        return fields

    def _whole(self) -> dict[str, Any]:
        return {"number": self.number, "parts": {key: part.whole() for key, part in self._parts.items()}}

    @in_turn
    def _heard(self, _: Any, content: Mapping[str, Any], buffers: Any) -> None:
        if "number" in content:   # of what the browser shows
            if content["number"] == self.number:
                self.send({"number": self.number})
            else:
                self.send_state("content")
        elif content.get("part") in self._parts:   # else the part has gone meanwhile
            self._parts[content["part"]].heard(content["message"])

    def _repeat_when_quiet(self, times: int = 0) -> None:
        """Send the number of the newest message again, a few times."""
        if self._repeating is not None:
            self._repeating.cancel()
        with contextlib.suppress(RuntimeError):   # no event loop: a script or a test, without a browser
            self._repeating = asyncio.get_running_loop().call_later(REPEATED[times], self._repeat, times)

    def _repeat(self, times: int) -> None:
        self.send({"number": self.number})
        if times + 1 < len(REPEATED):
            self._repeat_when_quiet(times + 1)


def packed(value: Any, buffers: list[bytes]) -> Any:
    """A value for a message: bytes move to `buffers`, and their number takes their place.

    >>> moved = []
    >>> packed({"pixels": b"123", "sizes": [1, 2]}, moved), moved
    ({'pixels': {'buffer': 0}, 'sizes': [1, 2]}, [b'123'])
    """
    if isinstance(value, bytes):
        buffers.append(value)
        return {"buffer": len(buffers) - 1}
    if isinstance(value, Mapping):
        return {name: packed(each, buffers) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [packed(each, buffers) for each in value]
    return value


def _same(one: Any, other: Any) -> bool:
    """Whether values are equal and of one type, since 0 and False are not the same for the browser."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
