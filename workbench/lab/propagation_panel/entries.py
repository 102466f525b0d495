"""Controls of the propagation panels: bits with their fields, entries that may be left empty, protected sites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.lab.controls import Choice, Number, Slider, Steps
from workbench.lab.propagation_panel.travel import tolerance_of
from workbench.propagation import Pipeline, Tolerance, each_within, poisson, shares_equal, within
from workbench.propagation.number_format import NumberFormat

UNITS: Mapping[Callable[[float], Tolerance] | None, str] = {
    within: "of the size of {}", each_within: "of each value of {}", poisson: "Poisson errors of {}",
    shares_equal: "of the values of {}", None: "x the own tolerance of {}",
}


class BitSlider(Slider):
    """The bits of a format, the least significant on the left, each with the field that it belongs to.

    >>> import numpy as np
    >>> slider = BitSlider("bit", "bit", NumberFormat.of(np.float32))
    >>> slider.connect(lambda **fields: print(fields))
    >>> slider.moved(30); slider.content["texts"][30]
    {'bit': 30}
    '30 · exponent'
    """

    def __init__(self, field: str, label: str, numbers: NumberFormat) -> None:
        super().__init__(field, label, editable=False, least=0)
        self.offer(numbers)

    def offer(self, numbers: NumberFormat) -> None:
        """Change the format."""
        self.set(texts=[f"{bit} · {numbers.field_of(bit)}" for bit in range(numbers.bits)], positions=numbers.bits)
        self._answer()

    def _place(self, value: int) -> tuple[int, str]:
        position = min(value, len(self.content["texts"]) - 1)
        return position, self.content["texts"][position]


class SliceSlider(Steps):
    """The number of a slice; None, an empty entry, is the one with the largest error.

    >>> slider = SliceSlider("index", "slice", 0, 9)
    >>> slider.show_largest(4)
    >>> slider._place(None), slider._read("")
    ((4, '4'), None)
    """

    largest = 0

    def show_largest(self, number: int) -> None:
        """Show this slice where none is chosen."""
        if number != self.largest:
            self.largest = number
            self._answer()

    def _place(self, value: int | None) -> tuple[int, str]:
        return super()._place(self.largest if value is None else value)

    def _read(self, text: str) -> Any:
        return super()._read(text) if text else None


class ToleranceEntry(Number):
    """The limit of what is tolerated, with its unit; None, an empty entry, is that of the pipeline itself.

    >>> entry = ToleranceEntry(Pipeline([("mean", lambda x: x.mean())]))
    >>> entry.content["unit"], entry._place(None), entry._read("")
    ('of the size of mean', (0, '0.01'), None)
    """

    def __init__(self, pipeline: Pipeline) -> None:
        own, outputs = tolerance_of(pipeline), pipeline.outputs
        self._own = own.limit
        unit = UNITS[own.made].format(outputs[0] if len(outputs) == 1 else "each result")
        super().__init__("tolerance", "tolerated", unit=unit)

    def _place(self, value: float | None) -> tuple[int, str]:
        return super()._place(self._own if value is None else value)

    def _read(self, text: str) -> Any:
        return super()._read(text) if text else None


class ProtectedSites(Choice):
    """All sites, or those that a campaign or a script has named so far.

    >>> sites = ProtectedSites("protect", "protect", {"all sites": None}, about="protected sites")
    >>> sites._place(("waves", "power"))
    (1, 'waves, power')
    """

    def _place(self, value: Any) -> tuple[int, str]:
        if value not in self._values:
            self._offer(", ".join(value), value)
        return super()._place(value)
