"""A slider over the slices of a field; until one is chosen, the slice with the largest error is shown."""

from __future__ import annotations

from typing import Any

from workbench.lab.controls import Steps


class SliceSlider(Steps):
    """The number of the slice; None is the one with the largest error, which `found` names.

    >>> slider = SliceSlider("index", "slice", 9)
    >>> slider.show_found(4)
    >>> slider._place(None), slider._read("")
    ((4, '4'), None)
    """

    def __init__(self, field: str, label: str, high: int, about: str = "") -> None:
        self.found = 0
        super().__init__(field, label, 0, high, about)

    def show_found(self, found: int) -> None:
        """Show this slice where none is chosen."""
        if found != self.found:
            self.found = found
            self._answer()

    def _place(self, value: int | None) -> tuple[int, str]:
        return super()._place(self.found if value is None else value)

    def _read(self, text: str) -> Any:
        return super()._read(text) if text else None
