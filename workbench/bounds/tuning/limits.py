"""The errors that make sense for some data: where a search for a bound begins and ends."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workbench.archive.documents import Outline
from workbench.archive.plausibility import spread_of
from workbench.bounds.sources import FieldInParts, Measured
from workbench.data import Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, PointwiseRelative, Relative

DIGITS = 5            # of a bound that is tried


@dataclass(frozen=True)
class Limits:
    """The smallest and largest error that make sense for some data, and how a limit becomes a bound."""

    kind: type[Bound]
    low: float
    high: float
    peak: float      # the range of the values, or the longest side
    unit: float      # of the bound, in the unit of the limits: the range for a relative bound, a typical size for others

    @classmethod
    def of(cls, data: Measured, kind: type[Bound]) -> Limits:
        """The limits for these data; refused if no bound can matter."""
        if isinstance(data, Particles):
            if kind is PointwiseRelative:
                raise WorkbenchError("kind must be 'absolute' or 'relative' for particles; got 'pointwise-relative'")
            ends = max(abs(float(np.max(data.upper))), abs(float(np.min(data.lower))))
            peak, spread = max(data.lengths), float(np.max(data.upper)) - float(np.min(data.lower))
            if not spread > 0:
                raise WorkbenchError(f"find_bound needs positions that differ; got {data!r}, all at one place")
            unit = spread if kind is Relative else 1.0
            return cls(kind, _finest(ends, data.positions.dtype, peak), peak, peak, unit)
        field = data.field if isinstance(data, FieldInParts) else data
        field.require_floats("find_bound")
        found = data.survey.statistics.spread if isinstance(data, FieldInParts) else spread_of(data.values, data.mask)
        if found is None:
            raise WorkbenchError(f"find_bound needs values; all of {data!r} are masked or not finite")
        if not 0 < found.range < math.inf:
            raise WorkbenchError(
                f"find_bound needs values that differ, by a finite number; all of {data!r} lie between {found.lower:g} and "
                f"{found.upper:g}: wb.compress(data, wb.Absolute(0)) keeps them exactly"
            )
        ends = max(abs(found.lower), abs(found.upper))
        unit = {Relative: found.range, PointwiseRelative: max(found.deviation, ends * 1e-6)}.get(kind, 1.0)
        high = min(found.range, 0.99 * unit) if kind is PointwiseRelative else found.range
        return cls(kind, _finest(ends, Outline.of(field).dtype, high), high, found.range, unit)

    def bound(self, limit: float) -> Bound:
        """The bound with about this limit, in few digits."""
        return self.kind(float(f"{limit / self.unit:.{DIGITS}g}"))


def _finest(largest: float, dtype: np.dtype, high: float) -> float:
    """The limit below which rounded values hardly change."""
    return min(max(largest * float(np.finfo(dtype).eps) / 8, float(np.finfo(dtype).tiny)), high / 2)
