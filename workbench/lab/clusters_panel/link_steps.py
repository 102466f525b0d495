"""Going through broken links one by one: two buttons, two keys, and the number of the link that is shown.

Keys are heard in the whole panel, which buttons of ipywidgets cannot do; so this is a widget of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import numpy as np
import traitlets

from workbench.lab.clusters_panel.breakage import Halos, Outcome
from workbench.lab.clusters_panel.chosen import name_of_link
from workbench.lab.clusters_panel.state import Chosen
from workbench.lab.front_end import widget_script


class LinkSteps(anywidget.AnyWidget):
    """The buttons and keys; `step(1)` or `step(-1)` is called for each press."""

    _esm = widget_script("clusters_panel/link_steps.js")
    place = traitlets.Unicode("").tag(sync=True)
    count = traitlets.Int(0).tag(sync=True)

    def __init__(self, step: Callable[[int], object]) -> None:
        super().__init__()
        self._step = step
        self.on_msg(self._pressed)

    def show(self, outcome: Outcome | None, chosen: Chosen | None) -> None:
        """Show which link is chosen, or how many there are; without an outcome, what was shown stays."""
        if outcome is None:
            return
        count = len(outcome.missing) + len(outcome.false)
        self.count, self.place = count, name_of_link(outcome, chosen) or f"{count:,} broken links"

    def _pressed(self, _: Any, content: dict[str, Any], buffers: list[Any]) -> None:
        if content.get("step") in (1, -1):
            self._step(content["step"])


def link_after(
    halos: Halos, outcome: Outcome, chosen: Chosen | None, last: int | None, step: int
) -> tuple[int, Chosen] | None:
    """The number of the next or the previous broken link, and the link; None if there is none.

    All missing links come before all false ones, and those of the largest groups first. After a link comes its neighbour,
    after a halo its own first or last link, else the neighbour of link `last`, and without it the first or the last of all.
    """
    pairs = np.concatenate([outcome.missing.pairs, outcome.false.pairs])
    if not len(pairs):
        return None
    first = 0 if step > 0 else -1
    if chosen is not None and chosen.kind == "halo":
        labels = halos.groups.labels
        own = np.flatnonzero((labels[pairs] == labels[chosen.particles[0]]).any(axis=1))
        number = int(own[first]) if len(own) else first % len(pairs)
    else:
        ends = (-1, -1) if chosen is None else chosen.particles
        here = np.flatnonzero((pairs == np.array(ends)).all(axis=1))
        before = int(here[0]) if len(here) else last
        number = (first if before is None else before + step) % len(pairs)
    return number, Chosen.link(*pairs[number].tolist())
