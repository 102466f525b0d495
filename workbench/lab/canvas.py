"""The canvas: large pictures, side by side and linked, that follow the pointer without calls to Python.

Bokeh draws a plot of a million pixels too slowly for a slider, so pictures are levels that are coloured in the browser.
Each pane is a separate trait, and only panes that changed are sent. Colour map, limits and layers are settings of the view:
they are traits too, so that a page that is loaded again keeps them, but no part of a panel's state.

Levels are too coarse for values under the pointer, so the browser asks for those when the pointer rests.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import anywidget
import numpy as np
import traitlets

from workbench.lab import colours
from workbench.lab.description import Marks, Picture, Reading, Window
from workbench.lab.front_end import front_end, widget_script
from workbench.lab.glossary import meaning

PANES = 4
WORDS = ("colour limits", "colour map", "layer", "locked limits", "opacity")
LIMITS = ("full", "1-99", "0.1-99.9", "typed")   # of the colours: the whole scale, percentiles, or numbers


class Canvas(anywidget.AnyWidget):
    """Up to four pictures. `window` is the visible part (empty: everything); `picked` the mark clicked last.

    `reader` is asked for the content of a place: the number of the picture, x and y, in the unit of the data.

    >>> import numpy as np
    >>> canvas = Canvas()
    >>> canvas.show([Picture("waves", np.zeros((4, 8), np.uint8), (0, 8, 0, 4))], home=(0, 8, 0, 4))
    >>> canvas.pane_0["width"], canvas.pane_1
    (8, {})
    """

    _esm = widget_script("canvas.js")
    _css = front_end("canvas.css")

    tables = traitlets.Dict().tag(sync=True)
    words = traitlets.Dict().tag(sync=True)   # explanations of the controls
    home: traitlets.List = traitlets.List([0.0, 1.0, 0.0, 1.0]).tag(sync=True)
    window: traitlets.List = traitlets.List([]).tag(sync=True)
    picked = traitlets.Dict({}).tag(sync=True)
    blink = traitlets.Bool(False).tag(sync=True)
    pixels = traitlets.Int(512).tag(sync=True)   # of the screen along the longer side of a pane
    tall = traitlets.Int(420).tag(sync=True)   # the largest height of a pane in pixels

    colour_map = traitlets.Unicode("").tag(sync=True)   # of all pictures but differences; empty: as each picture says
    limits = traitlets.Enum(LIMITS, "full").tag(sync=True)
    typed: traitlets.List = traitlets.List([0.0, 1.0]).tag(sync=True)
    locked = traitlets.Bool(True).tag(sync=True)   # pictures on one scale have the percentiles of the first
    hidden: traitlets.List = traitlets.List([]).tag(sync=True)   # labels of marks
    opacity = traitlets.Float(1.0).tag(sync=True)   # of marks

    pane_0 = traitlets.Dict({}).tag(sync=True)
    pane_1 = traitlets.Dict({}).tag(sync=True)
    pane_2 = traitlets.Dict({}).tag(sync=True)
    pane_3 = traitlets.Dict({}).tag(sync=True)
    marks_0: traitlets.List = traitlets.List([]).tag(sync=True)
    marks_1: traitlets.List = traitlets.List([]).tag(sync=True)
    marks_2: traitlets.List = traitlets.List([]).tag(sync=True)
    marks_3: traitlets.List = traitlets.List([]).tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(tables=colours.tables(), words={word: meaning(word) for word in WORDS}, **traits)
        self._shown: list[Picture | None] = [None] * PANES
        self.reader: Callable[[int, float, float], Reading | None] | None = None
        self.on_msg(self._answer)

    def show(self, pictures: Sequence[Picture], home: Window | None = None) -> None:
        """Show these pictures; one that is the same object as before is not sent again. Another home resets the window."""
        with self.hold_sync():
            if home is not None and list(map(float, home)) != self.home:
                self.home, self.window = list(map(float, home)), []
            for number in range(PANES):
                picture = pictures[number] if number < len(pictures) else None
                if picture is not self._shown[number]:
                    self._send_pane(number, picture)

    def _answer(self, widget: object, content: dict[str, Any], buffers: object) -> None:
        """Send the content of a place; the token tells the browser which question this answers."""
        if content.get("ask") != "reading" or self.reader is None:
            return
        found = self.reader(int(content["picture"]), float(content["x"]), float(content["y"]))
        if found is not None:
            told = {"values": list(found.values), "place": found.place, "lines": list(found.lines)}
            self.send({"token": content["token"], **told})

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
    said = (field.name for field in dataclasses.fields(Picture) if field.name not in ("pixels", "marks"))
    return one.pixels is other.pixels and all(getattr(one, name) == getattr(other, name) for name in said)


def _described(picture: Picture) -> dict[str, Any]:
    height, width = picture.pixels.shape
    deep = picture.pixels.dtype == np.uint16
    pixels = picture.pixels.astype("<u2", copy=False) if deep else picture.pixels
    return {
        "title": picture.title, "pixels": pixels.tobytes(), "deep": deep, "width": width, "height": height,
        "window": list(map(float, picture.window)), "colours": picture.colours,
        "low": float(picture.low), "high": float(picture.high), "logarithmic": picture.logarithmic,
        "quantity": picture.quantity, "unit": picture.unit, "empty": picture.empty, "palette": list(picture.palette),
        "axes": dataclasses.asdict(picture.axes),
    }


def _marks(marks: Marks) -> dict[str, Any]:
    ids = {} if marks.ids is None else {"ids": marks.ids.astype("<i4").tobytes()}
    titles = {} if marks.titles is None else {"titles": list(marks.titles)}
    return {
        "shape": marks.shape, "places": marks.places.astype("<f4").tobytes(), "colour": marks.colour, "label": marks.label,
        "width": marks.width, "dash": marks.dash, **ids, **titles,
    }
