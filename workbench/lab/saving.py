"""Taking the archive that a panel shows: saved where the kernel runs, or downloaded by the browser."""

from __future__ import annotations

import html
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import ipywidgets as widgets

from workbench.archive.recognition import is_archive
from workbench.errors import WorkbenchError
from workbench.lab.buttons import DownloadButton, Said, When, at_once
from workbench.lab.controls import button


class Save(Protocol):
    """Writes the archive; raises `WorkbenchError` with the reason if it cannot."""

    def __call__(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write the archive that is shown; returns its path."""


Written = Callable[[Path | None, str], object]


class Begin(Protocol):
    """Begins to write the archive, and calls back with its path, or with the reason why there is none."""

    def __call__(self, path: str | Path, overwrite: bool, written: Written) -> None:
        """Begin."""


class SaveArchive:
    """A field for a name, buttons to save and to download, and a message.

    The message stands as long as the panel shows what was saved. A file is replaced only after a question. Nobody waits
    while the archive is being computed: `when` calls back. One that takes long to write is written by `begin`.

    >>> asked = SaveArchive("snapshot.zip", lambda path, overwrite=False: Path("/data") / path)
    >>> asked.press(); asked.said.value
    'saved as /data/snapshot.zip'
    >>> asked.shows("another archive"); asked.said.value
    ''
    """

    def __init__(self, name: str, save: Save, when: When = at_once, begin: Begin | None = None) -> None:
        self._save, self._proposed, self._when, self._begin = save, name, when, begin or self._save_now
        self._shown = self._said_of = ""
        self._bytes = b""   # of the archive that is about to be downloaded
        self.name = widgets.Text(
            name, description="file name", tooltip="a folder, or one file when it ends in .zip",
            layout=widgets.Layout(width="220px"), style={"description_width": "initial"},
        )
        self.said = widgets.HTML()
        self.replace = button("replace it", self._replace, "replace the archive of this name")
        self.leave = button("keep it", self._leave, "leave the archive of this name as it is")
        self.question = widgets.HBox([self.replace, self.leave], layout=widgets.Layout(display="none"))
        self.download = DownloadButton("download archive", self._packed, self._refuse, self._pack)
        self.widget = widgets.HBox(
            [self.name, button("save archive", self.press, "write the archive where the kernel runs"), self.download,
             self.said, self.question],
            layout=widgets.Layout(flex_flow="row wrap", align_items="center", overflow="visible"),
        )

    def propose(self, name: str) -> None:
        """Propose another name, unless the user has typed one; what was said of the earlier archive is withdrawn.

        >>> saving = SaveArchive("snapshot.zip", lambda path, overwrite=False: Path(path))
        >>> saving.propose("snapshot-halos-kept.zip")
        >>> saving.name.value
        'snapshot-halos-kept.zip'
        """
        if name == self._proposed:
            return
        if self.name.value == self._proposed:
            self.name.value = name
        self._proposed = name
        self._say("")

    def press(self) -> None:
        """Write the archive when it is there; if the name is taken, ask first."""
        self._say("waiting for the archive …")
        self._when(lambda reason: self._refuse(reason) if reason else self._ask_or_write())

    def _ask_or_write(self) -> None:
        try:
            path = Path(self.name.value).expanduser()
            taken = bool(self.name.value.strip()) and path.exists()
        except (OSError, RuntimeError) as error:
            self._refuse(str(error))
            return
        if taken and is_archive(path):
            self._say(f"{html.escape(self.name.value)} exists: replace it?")
            self.question.layout.display = ""
        else:
            self._write(overwrite=taken)   # which says that only archives are replaced

    def shows(self, archive: str) -> None:
        """The panel now shows this archive, as told by its code: a message about another one is withdrawn."""
        self._shown = archive
        if self._said_of != archive:
            self._leave()

    def _replace(self) -> None:
        self._when(lambda reason: self._refuse(reason) if reason else self._write(overwrite=True))

    def _leave(self) -> None:
        self._say("")

    def _write(self, overwrite: bool) -> None:
        self._say("writing the archive …")
        self._begin(self.name.value, overwrite, self._written)

    def _written(self, path: Path | None, reason: str) -> None:
        if reason:
            self._refuse(reason)
        else:
            self._say(f"saved as {html.escape(str(path))}")

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
        name = Path(self.name.value.strip() or "archive").name
        made, self._bytes = self._bytes, b""
        return name if name.endswith(".zip") else f"{name}.zip", made

    def _refuse(self, reason: str) -> None:
        self._say(f'<span class="wb-error" role="alert">{html.escape(reason)}</span>')

    def _say(self, text: str) -> None:
        self.question.layout.display = "none"
        self._said_of = self._shown
        self.said.value = text
