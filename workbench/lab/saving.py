"""Taking the archive that a panel shows: saved where the kernel runs, or downloaded by the browser."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from workbench.archive.recognition import is_archive
from workbench.errors import WorkbenchError
from workbench.lab.buttons import DownloadButton, Said, When, at_once
from workbench.lab.part import Part

Save = Callable[..., Path]   # of a path and `overwrite`; raises `WorkbenchError` with the reason if it cannot
Written = Callable[[Path | None, str], object]   # gets the path, or the reason why there is none
Begin = Callable[[str | Path, bool, Written], object]   # begins to write, and calls back


class SaveArchive(Part):
    """A field for a name, buttons to save and to download, and a message.

    The message stands as long as the panel shows what was saved. A file is replaced only after a question. Nobody waits
    while the archive is being computed: `when` calls back. One that takes long to write is written by `begin`.

    >>> asked = SaveArchive("snapshot.zip", lambda path, overwrite=False: Path("/data") / path)
    >>> asked.press(); asked.content["message"]
    'saved as /data/snapshot.zip'
    >>> asked.shows("another archive"); asked.content["message"]
    ''
    """

    kind = "saving"

    def __init__(self, name: str, save: Save, when: When = at_once, begin: Begin | None = None) -> None:
        self._save, self._proposed, self._when, self._begin = save, name, when, begin or self._save_now
        self._shown = self._message_of = ""
        self._bytes = b""   # of the archive that is about to be downloaded
        super().__init__(name=name, message="", failed=False, asks=False)
        self.download = DownloadButton("download archive", self._packed, self._refuse, self._pack)

    @property
    def name(self) -> str:
        """The name in the field."""
        return str(self.content["name"])

    def heard(self, content: Mapping[str, Any]) -> None:
        """A name was typed, or a button pressed."""
        if "name" in content:
            self.set(name=str(content["name"]).strip())
        actions = {"save": self.press, "replace": self._replace, "keep": self._leave}
        if content.get("does") in actions:
            actions[content["does"]]()

    def propose(self, name: str) -> None:
        """Propose another name, unless the user has typed one; what was said of the earlier archive is withdrawn.

        >>> saving = SaveArchive("snapshot.zip", lambda path, overwrite=False: Path(path))
        >>> saving.propose("snapshot-halos-kept.zip")
        >>> saving.name
        'snapshot-halos-kept.zip'
        """
        if name == self._proposed:
            return
        if self.name == self._proposed:
            self.set(name=name)
        self._proposed = name
        self._say("")

    def press(self) -> None:
        """Write the archive when it is there; if the name is taken, ask first."""
        if not self.name:
            self._refuse("give the archive a name")
            return
        self._say("waiting for the archive …")
        self._when(lambda reason: self._refuse(reason) if reason else self._ask_or_write())

    def _ask_or_write(self) -> None:
        try:
            path = Path(self.name).expanduser()
            taken = bool(self.name) and path.exists()
        except (OSError, RuntimeError) as error:
            self._refuse(str(error))
            return
        if taken and is_archive(path):
            self._say(f"{self.name} exists: replace it?", asks=True)
        else:
            self._write(overwrite=taken)   # which says that only archives are replaced

    def shows(self, archive: str) -> None:
        """The panel now shows this archive, as told by its code: a message about another one is withdrawn."""
        self._shown = archive
        if self._message_of != archive:
            self._leave()

    def _replace(self) -> None:
        self._when(lambda reason: self._refuse(reason) if reason else self._write(overwrite=True))

    def _leave(self) -> None:
        self._say("")

    def _write(self, overwrite: bool) -> None:
        self._say("writing the archive …")
        self._begin(self.name, overwrite, self._written)

    def _written(self, path: Path | None, reason: str) -> None:
        if reason:
            self._refuse(reason)
        else:
            self._say(f"saved as {path}")

    def _save_now(self, path: str | Path, overwrite: bool, written: Written) -> None:
        try:
            saved = self._save(path, overwrite=overwrite)
        except WorkbenchError as error:
            written(None, str(error))
        else:
            written(saved, "")

    def _pack(self, then: Said) -> None:
        """Write the archive as one file, and call `then` when its bytes are there."""
        folder = tempfile.TemporaryDirectory()

        def written(path: Path | None, reason: str) -> None:
            with folder:
                self._bytes = b"" if path is None else path.read_bytes()
            then(reason)

        def begin(reason: str) -> None:
            if reason:
                written(None, reason)
            else:
                self._begin(Path(folder.name) / "archive.zip", False, written)

        self._when(begin)

    def _packed(self) -> tuple[str, bytes]:
        """The name of the file, and its bytes."""
        name = Path(self.name or "archive").name
        made, self._bytes = self._bytes, b""
        return name if name.endswith(".zip") else f"{name}.zip", made

    def _refuse(self, reason: str) -> None:
        self._say(reason, failed=True)

    def _say(self, text: str, failed: bool = False, asks: bool = False) -> None:
        self._message_of = self._shown
        self.set(message=text, failed=failed, asks=asks)
