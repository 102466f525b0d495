"""The smallest and the largest number of data."""

from __future__ import annotations

from workbench import backend
from workbench.data import Field, Particles
from workbench.lab.remembered import remembered


def extremes(data: Particles | Field) -> tuple[float, float]:
    """The smallest and largest of the valid values, or of all coordinates; zeros when there are none."""
    if isinstance(data, Particles):
        return float(data.lower.min()), float(data.upper.max())

    def found() -> tuple[float, float]:
        shown = backend.to_host(data.values)[backend.to_host(data.valid)]
        return (float(shown.min()), float(shown.max())) if shown.size else (0.0, 0.0)

    return remembered(data, "extremes", "", found)
