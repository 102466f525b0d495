"""The entry for the limit of what is tolerated, with its unit: it stands behind the answer, which depends on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.lab.controls import Number
from workbench.lab.propagation_panel.travel import tolerance_of
from workbench.propagation import Pipeline, Tolerance, each_within, poisson, shares_equal, within

UNITS: Mapping[Callable[[float], Tolerance] | None, str] = {
    within: "of the size of {}", each_within: "of each value of {}", poisson: "Poisson errors of {}",
    shares_equal: "of the values of {}", None: "x the own tolerance of {}",
}


class ToleranceEntry(Number):
    """The limit; None is that of the pipeline itself, to which an empty entry returns.

    >>> from workbench.propagation import Pipeline
    >>> entry = ToleranceEntry(Pipeline([("mean", lambda x: x.mean())]))
    >>> entry.content["unit"], entry._place(None), entry._read("")
    ('of the size of mean', (0, '0.01'), None)
    """

    def __init__(self, pipeline: Pipeline) -> None:
        own = tolerance_of(pipeline)
        self._own = own.limit
        super().__init__("tolerance", "tolerated", unit=tolerated_unit(pipeline, own))

    def _place(self, value: float | None) -> tuple[int, str]:
        return super()._place(self._own if value is None else value)

    def _read(self, text: str) -> Any:
        return super()._read(text) if text else None


def tolerated_unit(pipeline: Pipeline, tolerance: Tolerance) -> str:
    """What the limit of a tolerance is a share or a multiple of."""
    outputs = pipeline.outputs
    return UNITS[tolerance.made].format(outputs[0] if len(outputs) == 1 else "each result")
