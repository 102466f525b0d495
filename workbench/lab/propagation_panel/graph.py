"""The graph of a pipeline with the error at every site, and the buttons to see the error travel from site to site.

Sites are buttons of HTML over arrows of SVG, so that they have names, focus and keys, and follow the theme of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from workbench.lab.front_end import front_end, widget_script


class StageGraph(anywidget.AnyWidget):
    """The drawing; `look(site, playing)` is called when a site is pressed, and for each step of *play*.

    >>> graph = StageGraph(lambda site, playing: print(site), [("input", "sum")])
    >>> graph.arrows
    [['input', 'sum']]
    """

    _esm = widget_script("propagation_panel/graph.js")
    _css = front_end("propagation_panel/graph.css")

    nodes: traitlets.List = traitlets.List([]).tag(sync=True)
    arrows: traitlets.List = traitlets.List([]).tag(sync=True)
    path: traitlets.List = traitlets.List([]).tag(sync=True)     # the sites that the error reaches, in order
    ends: traitlets.List = traitlets.List([]).tag(sync=True)     # of the bars, as texts
    key = traitlets.Unicode("").tag(sync=True)                   # the signs in words
    stale = traitlets.Bool(False).tag(sync=True)

    def __init__(self, look: Callable[[str, bool], object], arrows: Sequence[tuple[str, str]]) -> None:
        super().__init__(arrows=[list(pair) for pair in arrows], layout=widgets.Layout(flex="1 1 100%", min_width="0"))
        self._look = look
        self.add_class("wb-graph")
        self.on_msg(self._asked)

    def _asked(self, _: Any, content: dict[str, Any], buffers: Any) -> None:
        sites = {node["site"] for node in self.nodes}
        if content.get("look") in sites:
            self._look(content["look"], bool(content.get("playing")))
