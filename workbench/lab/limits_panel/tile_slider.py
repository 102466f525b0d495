"""A slider over a few sides of tiles; the last choice is no tiles, the field as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.lab.controls import Control

WHOLE = "whole field"


class TileSlider(Control):
    """The side of a tile; to the right, tiles grow up to the whole field.

    >>> slider = TileSlider("tile", "tiles of", [4, 8])
    >>> slider.connect(lambda **fields: print(fields))
    >>> slider.moved(2); slider.widget.texts[2]
    {'tile': None}
    'whole field'
    """

    def __init__(self, field: str, label: str, sides: Sequence[int], about: str = "") -> None:
        super().__init__(field, label, "slider", about)
        self._offer(sides or [1])

    def _offer(self, sides: Sequence[int]) -> None:
        self._sides = [*sorted(sides), None]
        self.widget.texts = [WHOLE if side is None else str(side) for side in self._sides]
        self.widget.positions = len(self._sides)

    def _value_at(self, position: int) -> int | None:
        return self._sides[position]

    def _place(self, value: int | None) -> tuple[int, str]:
        if value not in self._sides:
            self._offer([side for side in [*self._sides, value] if side is not None])
        position = self._sides.index(value)
        return position, self.widget.texts[position]
