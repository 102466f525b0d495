"""The spectra of the regions: measured, fitted, and the water level that the distortion sets.

The chart shows reverse water-filling: components with more power than the level are coded with the level as their error,
and components below it are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from workbench.charts.description import Axis, Chart, Rule, Series
from workbench.charts.looks import area_colour, marker
from workbench.lab.limits_panel.theory import RadialSpectrum

HEIGHT = 260   # pixels


def spectra_chart(spectra: Sequence[RadialSpectrum], level: float) -> Chart:
    """Measured power as marks, fits as lines, a colour and a mark for each region, and the level as a dashed line."""
    drawn = math.isfinite(level) and level > 0
    powers = [power for each in spectra for power in (each.measured, each.fitted)]
    x = Axis.around("frequency [cycles per cell]", np.concatenate([each.frequency for each in spectra]), True)
    y = Axis.around("power", np.concatenate(powers), True, 0.08)
    return Chart(
        "Spectra, measured and fitted", x, replace(y, low=min(y.low, level / 2)) if drawn else y,
        (*([Rule("water level", "y", level)] if drawn else []), *(part for each in spectra for part in _of(each))),
        height=HEIGHT,
    )


def _of(each: RadialSpectrum) -> tuple[Series, Series]:
    """The fit and the measured powers, of which those above zero have a place."""
    name, look = f"region {each.region + 1}", area_colour(each.region)
    kept = each.measured > 0
    tooltips = [
        f"{name}: power {power:.4g} at {where:.4f} cycles per cell"
        for where, power in zip(each.frequency[kept], each.measured[kept], strict=True)
    ]
    return Series(name, each.frequency, each.fitted, look), Series(
        name, each.frequency[kept], each.measured[kept], look, None, marker(each.region), size=5, tooltips=tooltips
    )
