"""One control in the browser, made of native elements: a slider, a field, a list or a check box, with its label.

Python owns the value. The browser sends only what the user asks for, never what it shows, so showing a value cannot change
it: sliders of ipywidgets round a value to their own steps and send that back. Positions of a slider are whole numbers for
the same reason. Native elements also bring names, keys and focus for readers who do not use a mouse.
"""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from workbench.lab.front_end import front_end, widget_script


class ControlView(anywidget.AnyWidget):
    """The browser's part of a control. `shown` holds all that changes with the value, so that it changes at once.

    >>> view = ControlView("choice", "codec", "the compressor")
    >>> view.texts = ["sz3", "zfp"]
    >>> view.show(position=1)
    >>> view.shown["position"]
    1
    """

    _esm = widget_script("control.js")
    _css = front_end("control.css")

    kind = traitlets.Enum(["slider", "choice", "text", "toggle"], "text").tag(sync=True)
    label = traitlets.Unicode().tag(sync=True)
    meaning = traitlets.Unicode().tag(sync=True)
    unit = traitlets.Unicode().tag(sync=True)                  # behind the field
    editable = traitlets.Bool(False).tag(sync=True)            # a slider with a field for any other value
    positions = traitlets.Int(1).tag(sync=True)                # of a slider
    least = traitlets.Int(0).tag(sync=True)                    # the number at the first position, where there are no texts
    texts: traitlets.List = traitlets.List([]).tag(sync=True)  # of the positions of a slider or a list
    shown = traitlets.Dict({}).tag(sync=True)

    def __init__(self, kind: str, label: str, meaning: str = "", **traits: Any) -> None:
        super().__init__(kind=kind, label=label, meaning=meaning, **traits)
        self.add_class("wb-control")
        self.add_class(f"wb-control-{kind}")

    def show(
        self, position: int = 0, text: str = "", unit: str = "", refused: str | None = None, answered: int = 0
    ) -> None:
        """Show a value: its position, its text, and the unit that is read aloud; `refused` stays in the field if given.

        `answered` is the number of the latest request that this takes into account.
        """
        self.shown = {"position": position, "text": text, "unit": unit, "refused": refused, "answered": answered}
