"""The frame of a panel: it fits the pictures to the screen, and dims what belongs to earlier settings.

Only the browser knows how much of the screen is left below the controls and figures, so it sets the height of the pictures,
without a message to Python.
"""

from __future__ import annotations

from collections.abc import Sequence

import anywidget
import ipywidgets as widgets
import traitlets

from workbench.lab.front_end import front_end, widget_script


class Frame(anywidget.AnyWidget):
    """An invisible part of a panel. While `stale`, the content is dimmed and has the text `mark`.

    `pictures` are widgets with a trait `tall`, their greatest height in pixels.
    """

    _esm = widget_script("frame.js")
    _css = front_end("frame.css")
    pictures: traitlets.List = traitlets.List().tag(sync=True, **widgets.widget_serialization)
    stale = traitlets.Bool(False).tag(sync=True)
    mark = traitlets.Unicode("").tag(sync=True)

    def __init__(self, pictures: Sequence[widgets.Widget]) -> None:
        super().__init__(pictures=list(pictures))
        self.add_class("wb-fitting")

    def dim(self, stale: bool, mark: str = "") -> None:
        """Dim the content, with a reason, or show it as it is.

        >>> frame = Frame([])
        >>> frame.dim(True, "computing")
        >>> frame.stale, frame.mark
        (True, 'computing')
        """
        with self.hold_sync():
            self.stale, self.mark = stale, mark if stale else ""
