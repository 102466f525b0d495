"""The graph of a pipeline with the error at every site, and the button to see the error travel from site to site.

Sites are buttons of HTML over arrows of SVG, so that they have names, focus and keys, and follow the theme of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.lab.part import Part


class StageGraph(Part):
    """The drawing; `look(site, playing)` is called when a site is pressed, and for each step of *play*.

    Its content: `nodes` and `arrows`; the `path` of sites that the error reaches, in order; the `ends` of the axis of
    errors as texts; `key`, the signs in words; and whether all is `stale`.

    >>> graph = StageGraph(lambda site, playing: print(site), [("input", "sum")])
    >>> graph.content["arrows"]
    [['input', 'sum']]
    """

    kind = "graph"

    def __init__(self, look: Callable[[str, bool], object], arrows: Sequence[tuple[str, str]]) -> None:
        super().__init__(nodes=[], arrows=[list(pair) for pair in arrows], path=[], ends=[], key="", stale=False)
        self._look = look

    def heard(self, content: Mapping[str, Any]) -> None:
        """A site was pressed."""
        if content.get("look") in {node["site"] for node in self.content["nodes"]}:
            self._look(content["look"], bool(content.get("playing")))
