"""The canvas: large pictures, side by side and linked, that follow the pointer without calls to Python.

Bokeh draws a plot of a million pixels too slowly for a slider, so pictures are levels that are coloured in the browser, and
only pictures that changed are sent. Colour map, limits and layers are settings of the view, which the browser keeps.

Levels are too coarse for values under the pointer, so the browser asks for those when the pointer rests.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench.lab import colours
from workbench.lab.description import Marks, Picture, Reading, Window
from workbench.lab.glossary import meaning
from workbench.lab.part import Part

PANES = 4
WORDS = ("blink", "colour limits", "colour map", "layer", "locked limits", "opacity")


class Canvas(Part):
    """Up to four pictures. `window` is the visible part (empty: everything).

    `reader` is asked for the content of a place: the number of the picture, x and y, in the unit of the data. `zoom` is
    called with another window, `fit` with the number of pixels that the screen has for a picture, `pick` with the label and
    the number of a mark that was clicked, and `turn_to` with the number of the picture that was chosen to be in front.

    >>> import numpy as np
    >>> canvas = Canvas()
    >>> canvas.show([Picture("waves", np.zeros((4, 8), np.uint8), (0, 8, 0, 4))], home=(0, 8, 0, 4))
    >>> canvas.content["pane_0"]["width"], canvas.content["pane_1"]
    (8, {})
    """

    kind = "canvas"

    def __init__(self) -> None:
        empty: dict[str, Any] = {f"pane_{number}": {} for number in range(PANES)}
        empty |= {f"marks_{number}": [] for number in range(PANES)}
        words = {word: meaning(word) for word in WORDS}
        home = [0.0, 1.0, 0.0, 1.0]
        super().__init__(tables=colours.tables(), words=words, home=home, window=[], front=None, **empty)
        self._shown: list[Picture | None] = [None] * PANES
        self.reader: Callable[[int, float, float], Reading | None] = lambda picture, x, y: None
        self.zoom: Callable[[Window | None], object] = lambda window: None
        self.fit: Callable[[int], object] = lambda pixels: None
        self.pick: Callable[[str, int], object] = lambda label, chosen: None
        self.turn_to: Callable[[int], object] = lambda picture: None

    def show(
        self, pictures: Sequence[Picture], home: Window | None = None, window: Window | None = None,
        front: int | None = None,
    ) -> None:
        """Show these pictures; one that is the same object as before is not described again. No window is the home.

        With a number in `front`, this picture alone is visible, and the reader can choose another.
        """
        fields: dict[str, Any] = {"front": front, "window": [] if window is None else list(map(float, window))}
        if home is not None:
            fields["home"] = list(map(float, home))
        for number in range(PANES):
            picture = pictures[number] if number < len(pictures) else None
            if picture is not self._shown[number]:
                fields |= self._described(number, picture)
        self.set(**fields)

    def heard(self, content: Mapping[str, Any]) -> None:
        """Answer what the content of a place is, with the token of the question, or take what the reader has done."""
        match content.get("does"):
            case "read":
                reading = self.reader(int(content["picture"]), float(content["x"]), float(content["y"]))
                if reading is not None:
                    self.tell({"token": content["token"], **dataclasses.asdict(reading)})
            case "zoom":
                window = content["window"]
                self.zoom((window[0], window[1], window[2], window[3]) if window else None)
            case "fit":
                self.fit(int(content["pixels"]))
            case "pick":
                self.pick(str(content["label"]), int(content["id"]))
            case "turn":
                self.turn_to(int(content["picture"]))

    def _described(self, number: int, picture: Picture | None) -> dict[str, Any]:
        before, self._shown[number] = self._shown[number], picture
        if picture is None:
            return {f"pane_{number}": {}, f"marks_{number}": []}
        fields: dict[str, Any] = {f"marks_{number}": [_marks(marks) for marks in picture.marks]}
        if before is None or not _same_but_marks(before, picture):
            fields[f"pane_{number}"] = _pane(picture)
        return fields


def _same_but_marks(one: Picture, other: Picture) -> bool:
    """Whether the pixels are the same object and their descriptions are equal, marks aside."""
    names = (field.name for field in dataclasses.fields(Picture) if field.name not in ("pixels", "marks"))
    return one.pixels is other.pixels and all(getattr(one, name) == getattr(other, name) for name in names)


def _pane(picture: Picture) -> dict[str, Any]:
    height, width = picture.pixels.shape
    deep = picture.pixels.dtype == np.uint16
    pixels = picture.pixels.astype("<u2", copy=False) if deep else picture.pixels
    return {
        "title": picture.title, "pixels": pixels.tobytes(), "deep": deep, "width": width, "height": height,
        "window": list(map(float, picture.window)), "colours": picture.colours, "limits": picture.limits,
        "low": float(picture.low), "high": float(picture.high), "logarithmic": picture.logarithmic,
        "quantity": picture.quantity, "unit": picture.unit, "empty": picture.empty, "palette": list(picture.palette),
        "axes": dataclasses.asdict(picture.axes),
    }


def _marks(marks: Marks) -> dict[str, Any]:
    ids = {} if marks.ids is None else {"ids": marks.ids.astype("<i4").tobytes()}
    titles = {} if marks.titles is None else {"titles": list(marks.titles)}
    return {
        "shape": marks.shape, "places": marks.places.astype("<f4").tobytes(), "colour": marks.colour, "label": marks.label,
        "width": marks.width, "dash": marks.dash, "opacity": marks.opacity, "near": marks.near, **ids, **titles,
    }
