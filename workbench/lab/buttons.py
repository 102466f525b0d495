"""Buttons whose work is done in the browser: copying a text, and saving a file there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.errors import WorkbenchError
from workbench.lab.part import Part

Said = Callable[[str], object]
When = Callable[[Said], object]   # calls back when all is there, with the reason if it will not be


def at_once(then: Said) -> None:
    """All is there.

    >>> at_once(print)
    <BLANKLINE>
    """
    then("")


class CopyButton(Part):
    """A button that copies a text to the clipboard of the browser's machine."""

    kind = "copy"

    def __init__(self) -> None:
        super().__init__(label="copy code", text="")


class DownloadButton(Part):
    """A button that has the browser save a file, whatever machine the kernel runs on.

    `make` returns the name and the bytes of the file, and is called `when` there is something to make it of; if it raises
    `WorkbenchError`, `failed` receives the sentence.

    >>> made = DownloadButton("download", lambda: ("notes.txt", b"words"), print)
    >>> made.content["label"]
    'download'
    """

    kind = "download"

    def __init__(self, label: str, make: Callable[[], tuple[str, bytes]], failed: Said, when: When = at_once) -> None:
        super().__init__(label=label)
        self._make, self._failed, self._when = make, failed, when

    def heard(self, content: Mapping[str, Any]) -> None:
        """A view asks for the file; the answer carries the view's number, as there may be several views."""
        answer = {"view": content.get("view")}

        def then(reason: str) -> None:
            try:
                if reason:
                    raise WorkbenchError(reason)
                name, data = self._make()
            except WorkbenchError as error:
                self._failed(str(error))
                self.tell({**answer, "failed": True})
                return
            self.tell({**answer, "name": name}, [data])

        self._when(then)
