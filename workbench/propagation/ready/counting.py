"""Values to a histogram: counts change by whole numbers, and only by values near an edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.arguments import whole_number
from workbench.backend import Array, to_host
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.propagation.enclosures import Ball, Range
from workbench.propagation.pipeline import Pipeline
from workbench.propagation.stage import Stage, Where
from workbench.propagation.tolerance import poisson


def histogram(field: Field | Array, bins: int = 64, span: tuple[float, float] | None = None) -> Pipeline:
    """The histogram of the values: site `counts`. Values outside of the span, by default that of the field, do not count.

    The counts are tolerated within their Poisson errors.

    >>> values = np.array([0.0, 0.1, 0.6, 1.0])
    >>> histogram(values, bins=2)(values).tolist()
    [2, 2]
    """
    values = to_host(Field.of(field).values)
    known = values[~np.isnan(values)]
    low, high = map(float, ((known.min(), known.max()) if known.size else (np.nan, np.nan)) if span is None else span)
    if not (np.isfinite([low, high]).all() and low < high):
        raise WorkbenchError(f"a histogram needs a span of two different finite numbers; got {low} and {high}: give span")
    bars = _Bars(np.linspace(low, high, whole_number("bins", bins, least=1) + 1))
    stage = Stage("counts", bars.counts, enclose=bars.enclosure, update=bars.update)
    return Pipeline([stage], tolerance=poisson(), name="histogram")


@dataclass(frozen=True, eq=False)
class _Bars:
    """The edges of a histogram."""

    edges: np.ndarray

    def counts(self, values: Array) -> Array:
        xp = backend.namespace(values)
        place = self._bars(values.reshape(-1))
        return xp.bincount(place, minlength=len(self.edges) + 1)[1:-1]

    def _bars(self, values: Array) -> Array:
        """The bar of each value, from 1; 0 and the last are outside, also for NaN."""
        xp = backend.namespace(values)
        place = xp.searchsorted(xp.asarray(self.edges), values.astype(np.float64), side="right")
        return xp.where(values == self.edges[-1], len(self.edges) - 1, place)

    def enclosure(self, inputs: Sequence[Any], enclosures: Sequence[Any], outputs: Sequence[Any]) -> Range | None:
        """A value is certainly in a bar if all of its interval is, and possibly if any of it is."""
        if not isinstance(enclosures[0], Ball):
            return None
        values = to_host(inputs[0]).astype(np.float64).ravel()
        radius = np.broadcast_to(np.minimum(enclosures[0].radius, enclosures[0].norm), inputs[0].shape).ravel()
        free = np.isinf(radius)   # nothing is known, even of infinities and NaN
        radius = radius * (1 + 1e-9) + (2 * np.spacing(abs(values)) if inputs[0].dtype.kind in "iu" else 0.0)
        lowest, highest = np.where(free, -np.inf, values - radius), np.where(free, np.inf, values + radius)
        first, last = self._bars(np.nextafter(lowest, -np.inf)), self._bars(np.nextafter(highest, np.inf))
        bars = len(self.edges) + 1
        low = np.bincount(first[first == last], minlength=bars)
        steps = np.bincount(first, minlength=bars + 1) - np.bincount(last + 1, minlength=bars + 1)[: bars + 1]
        return Range(low[1:-1], np.cumsum(steps)[1 : bars - 1])

    def update(self, inputs: Sequence[Any], before: Sequence[Any], outputs: Sequence[Any], where: Sequence[Where]) -> Any:
        """Move the changed values from bar to bar."""
        if where[0] is None:
            return None
        left, entered = (self.counts(given[0].reshape(-1)[where[0]]) for given in (before, inputs))
        return [(outputs[0] - left + entered, None)]
