"""A slider over the bits of a number, each told with the field that it belongs to."""

from __future__ import annotations

from workbench.lab.controls import Slider
from workbench.propagation.number_format import NumberFormat


class BitSlider(Slider):
    """The bits of a format, the least significant on the left.

    >>> import numpy as np
    >>> slider = BitSlider("bit", "bit", NumberFormat.of(np.float32))
    >>> slider.connect(lambda **fields: print(fields))
    >>> slider.moved(30); slider.content["texts"][30]
    {'bit': 30}
    '30 · exponent'
    """

    def __init__(self, field: str, label: str, numbers: NumberFormat, about: str = "") -> None:
        super().__init__(field, label, about, editable=False, least=0)
        self.offer(numbers)

    def offer(self, numbers: NumberFormat) -> None:
        """Change the format."""
        self.set(texts=[f"{bit} · {numbers.field_of(bit)}" for bit in range(numbers.bits)], positions=numbers.bits)
        self._answer()

    def _place(self, value: int) -> tuple[int, str]:
        position = min(value, len(self.content["texts"]) - 1)
        return position, self.content["texts"][position]
