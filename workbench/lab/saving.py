"""Saving the archive that a panel shows: a name, a button, and a message."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path

import ipywidgets as widgets

from workbench.errors import WorkbenchError
from workbench.lab.controls import button


class SaveArchive:
    """A field for a name and a button; `save(path)` writes the archive, or raises with the reason."""

    def __init__(self, name: str, save: Callable[[str], Path]) -> None:
        self._save, self._proposed = save, name
        told = "a folder, or one file when it ends in .zip"
        narrow, natural = widgets.Layout(width="200px"), {"description_width": "initial"}
        self.name = widgets.Text(name, description="file", layout=narrow, style=natural, tooltip=told)
        self.said = widgets.HTML()
        self.widget = widgets.HBox([self.name, button("save archive", self.press), self.said])

    def propose(self, name: str) -> None:
        """Propose another name, unless the user has typed one; what was said of the earlier archive disappears.

        >>> saving = SaveArchive("snapshot.zip", Path)
        >>> saving.propose("snapshot-halos-kept.zip")
        >>> saving.name.value
        'snapshot-halos-kept.zip'
        """
        if name == self._proposed:
            return
        if self.name.value == self._proposed:
            self.name.value = name
        self._proposed, self.said.value = name, ""

    def press(self) -> None:
        """Write the archive."""
        try:
            self.said.value = f"saved as {html.escape(str(self._save(self.name.value)))}"
        except WorkbenchError as error:
            self.said.value = f'<span class="wb-error">{html.escape(str(error))}</span>'
