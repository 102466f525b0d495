"""Buttons whose work is done in the browser: copying a text, downloading a file, folding controls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from workbench.errors import WorkbenchError
from workbench.lab.front_end import widget_script

Said = Callable[[str], object]
When = Callable[[Said], object]   # calls back when all is there, with the reason if it will not be


def at_once(then: Said) -> None:
    """All is there.

    >>> at_once(print)
    <BLANKLINE>
    """
    then("")


class CopyButton(anywidget.AnyWidget):
    """A button that copies a text to the clipboard of the browser's machine."""

    _esm = widget_script("copy.js")
    text = traitlets.Unicode("").tag(sync=True)
    label = traitlets.Unicode("copy code").tag(sync=True)
    copied = traitlets.Int(0).tag(sync=True)


class DownloadButton(anywidget.AnyWidget):
    """A button that has the browser save a file, whatever machine the kernel runs on.

    `make` returns the name and the bytes of the file, and is called `when` there is something to make it of; if it raises
    `WorkbenchError`, `failed` receives the sentence.

    >>> made = DownloadButton("download", lambda: ("notes.txt", b"words"), print)
    >>> made.label
    'download'
    """

    _esm = widget_script("download.js")
    label = traitlets.Unicode("download").tag(sync=True)

    def __init__(self, label: str, make: Callable[[], tuple[str, bytes]], failed: Said, when: When = at_once) -> None:
        super().__init__(label=label)
        self._make, self._failed, self._when = make, failed, when
        self.on_msg(self._asked)

    def _asked(self, _: Any, content: dict[str, Any], buffers: list[Any]) -> None:
        """A view asks for the file; the answer carries the view's number, as there may be several views."""
        answer = {"view": content.get("view")}

        def then(reason: str) -> None:
            try:
                if reason:
                    raise WorkbenchError(reason)
                name, data = self._make()
            except WorkbenchError as error:
                self._failed(str(error))
                self.send({**answer, "failed": True})
                return
            self.send({**answer, "name": name}, [data])

        self._when(then)


class Disclosure(anywidget.AnyWidget):
    """A button that unfolds what belongs to it; the browser remembers for each `key` whether it was unfolded.

    >>> Disclosure("Bounds", "more").unfolded
    False
    """

    _esm = widget_script("disclosure.js")
    key = traitlets.Unicode("").tag(sync=True)
    label = traitlets.Unicode("more").tag(sync=True)
    unfolded = traitlets.Bool(False).tag(sync=True)

    def __init__(self, key: str, label: str) -> None:
        super().__init__(key=key, label=label)
