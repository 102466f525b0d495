"""The canvas: large pictures, side by side and linked, that follow the pointer without calls to Python.

Bokeh draws a plot of a million pixels too slowly for a slider, so pictures are bytes that are coloured in the browser.
Each pane is a separate trait, and only panes that changed are sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anywidget
import traitlets

from workbench.lab import colours
from workbench.lab.description import Marks, Picture, Window
from workbench.lab.front_end import front_end, widget_script

PANES = 4


class Canvas(anywidget.AnyWidget):
    """Up to four pictures. `window` is the visible part (empty: everything); `picked` the mark clicked last.

    >>> import numpy as np
    >>> canvas = Canvas()
    >>> canvas.show([Picture("waves", np.zeros((4, 8), np.uint8), (0, 8, 0, 4))], home=(0, 8, 0, 4))
    >>> canvas.pane_0["width"], canvas.pane_1
    (8, {})
    """

    _esm = widget_script("canvas.js")
    _css = front_end("canvas.css")

    tables = traitlets.Dict().tag(sync=True)
    home: traitlets.List = traitlets.List([0.0, 1.0, 0.0, 1.0]).tag(sync=True)
    window: traitlets.List = traitlets.List([]).tag(sync=True)
    picked = traitlets.Dict({}).tag(sync=True)
    blink = traitlets.Bool(False).tag(sync=True)
    pixels = traitlets.Int(512).tag(sync=True)   # of the screen along the longer side of a pane
    tall = traitlets.Int(420).tag(sync=True)   # the largest height of a pane in pixels

    pane_0 = traitlets.Dict({}).tag(sync=True)
    pane_1 = traitlets.Dict({}).tag(sync=True)
    pane_2 = traitlets.Dict({}).tag(sync=True)
    pane_3 = traitlets.Dict({}).tag(sync=True)
    marks_0: traitlets.List = traitlets.List([]).tag(sync=True)
    marks_1: traitlets.List = traitlets.List([]).tag(sync=True)
    marks_2: traitlets.List = traitlets.List([]).tag(sync=True)
    marks_3: traitlets.List = traitlets.List([]).tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(tables=colours.tables(), **traits)
        self._shown: list[Picture | None] = [None] * PANES

    def show(self, pictures: Sequence[Picture], home: Window | None = None) -> None:
        """Show these pictures; a picture that is the same object as before is not sent again."""
        with self.hold_sync():
            if home is not None:
                self.home = list(map(float, home))
            for number in range(PANES):
                picture = pictures[number] if number < len(pictures) else None
                if picture is not self._shown[number]:
                    self._send_pane(number, picture)

    def _send_pane(self, number: int, picture: Picture | None) -> None:
        before = self._shown[number]
        if picture is None:
            self.set_trait(f"pane_{number}", {})
            self.set_trait(f"marks_{number}", [])
        else:
            if before is None or not _same_but_marks(before, picture):
                self.set_trait(f"pane_{number}", _described(picture))
            self.set_trait(f"marks_{number}", [_marks(marks) for marks in picture.marks])
        self._shown[number] = picture


def _same_but_marks(one: Picture, other: Picture) -> bool:
    """Whether the pixels are the same object and their descriptions are equal, marks aside."""
    said = ("title", "window", "colours", "low", "high", "logarithmic", "unit", "empty")
    return one.pixels is other.pixels and all(getattr(one, name) == getattr(other, name) for name in said)


def _described(picture: Picture) -> dict[str, Any]:
    height, width = picture.pixels.shape
    return {
        "title": picture.title, "pixels": picture.pixels.tobytes(), "width": width, "height": height,
        "window": list(map(float, picture.window)), "colours": picture.colours, "low": float(picture.low),
        "high": float(picture.high), "logarithmic": picture.logarithmic, "unit": picture.unit, "empty": picture.empty,
    }


def _marks(marks: Marks) -> dict[str, Any]:
    ids = {} if marks.ids is None else {"ids": marks.ids.astype("<i4").tobytes()}
    return {
        "shape": marks.shape, "places": marks.places.astype("<f4").tobytes(), "colour": marks.colour, "label": marks.label,
        "width": marks.width, "dashed": marks.dashed, **ids,
    }
