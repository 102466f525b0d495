"""A slider over a few sides of tiles; the last choice is no tiles, the field as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import ipywidgets as widgets

from workbench.lab.controls import NATURAL, Control

WHOLE = "whole field"


class TileSlider(Control):
    """The side of a tile; to the right, tiles grow up to the whole field.

    >>> slider = TileSlider("tile", "tiles of", [4, 8])
    >>> slider.connect(lambda **fields: print(fields))
    >>> slider.widget.index = 2; slider.widget.label
    {'tile': None}
    'whole field'
    """

    def __init__(self, field: str, label: str, sides: Sequence[int]) -> None:
        super().__init__(field)
        self.widget = widgets.SelectionSlider(
            options=_options(sides or [1]), description=label, style=NATURAL,
            layout=widgets.Layout(flex="1 1 260px", min_width="220px"),
        )
        self.widget.add_class(f"wb-control-{field}")
        self.widget.observe(lambda change: self.ask(self.widget.value or None), "value")

    def _show(self, value: int | None) -> None:
        known = [side for _, side in self.widget.options if side]
        if value is not None and value not in known:
            self.widget.options = _options(sorted([*known, value]))
        self.widget.value = value or 0


def _options(sides: Sequence[int]) -> list[tuple[str, int]]:
    return [*((f"{side}", side) for side in sides), (WHOLE, 0)]   # the widget does not accept None as a choice
