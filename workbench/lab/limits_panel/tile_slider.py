"""A slider over a few sides of tiles; the last choice is no tiles, the field as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.lab.controls import Slider

WHOLE = "whole field"


class TileSlider(Slider):
    """The side of a tile; to the right, tiles grow up to the whole field.

    >>> slider = TileSlider("tile", "tiles of", [4, 8])
    >>> slider.connect(lambda **fields: print(fields))
    >>> slider.moved(2); slider.content["texts"][2]
    {'tile': None}
    'whole field'
    """

    def __init__(self, field: str, label: str, sides: Sequence[int], about: str = "") -> None:
        super().__init__(field, label, about, editable=False, least=0)
        self._offer(sides or [1])

    def _offer(self, sides: Sequence[int]) -> None:
        self._sides = [*sorted(sides), None]
        self.set(texts=[WHOLE if side is None else str(side) for side in self._sides], positions=len(self._sides))

    def _value_at(self, position: int) -> int | None:
        return self._sides[position]

    def _place(self, value: int | None) -> tuple[int, str]:
        if value not in self._sides:
            self._offer([side for side in [*self._sides, value] if side is not None])
        position = self._sides.index(value)
        return position, self.content["texts"][position]
