"""The spectra of the regions: measured, fitted, and the water level that the distortion sets.

The chart shows reverse water-filling: components with more power than the level are coded with the level as their error,
and components below it are left out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.charts.chart import GREY
from workbench.lab.chart_library import hv
from workbench.lab.charts import colour, limits, marker, styled
from workbench.lab.legend import Entry
from workbench.lab.limits_panel.rate_chart import HEIGHT
from workbench.lab.limits_panel.theory import RadialSpectrum

AXES = ["frequency", "power"]


def spectra_chart(spectra: Sequence[RadialSpectrum], level: float) -> Any:
    """Measured power as marks, fits as lines, a colour and a mark for each region, and the level as a dashed line."""
    frequencies = np.concatenate([each.frequency for each in spectra] or [np.empty(0)])
    x = limits(frequencies, logarithmic=True)
    powers = [power for each in spectra for power in (each.measured, each.fitted)]
    y = limits(np.concatenate(powers or [np.empty(0)]), logarithmic=True, room=0.08)
    drawn = math.isfinite(level) and level > 0
    y = (min(y[0], level / 2), y[1]) if drawn else y
    fitted = hv.Segments(_segments(spectra), [*AXES, "to frequency", "to power"], ["colour"])
    measured = hv.Points(_points(spectra), AXES, ["region", "colour", "mark"])
    water = hv.HLines([level] if drawn else []).opts(color=GREY, line_dash="dashed", line_width=1.2)
    key = [Entry(f"region {each.region + 1}", colour(each.region), marker(each.region), "solid") for each in spectra]
    hover = [("region", "@region"), ("cycles per cell", "$x{0.0000}"), ("power", "$y")]
    layers = (
        water
        * fitted.opts(color="colour", line_width=1.8)
        * measured.opts(color="colour", marker="mark", size=5, tools=["hover"], hover_tooltips=hover)
    )
    return styled(
        layers, "Spectra, measured and fitted",
        [*key, Entry("water level", GREY, dash="dashed")] if drawn else key, logx=True, logy=True, xlim=x, ylim=y,
        xlabel="frequency [cycles per cell]", ylabel="power (white noise: variance)", height=HEIGHT,
    )


def _segments(spectra: Sequence[RadialSpectrum]) -> list[tuple[Any, ...]]:
    return [
        (*one, *other, colour(each.region))
        for each in spectra
        for one, other in itertools.pairwise(zip(each.frequency.tolist(), each.fitted.tolist(), strict=True))
    ]


def _points(spectra: Sequence[RadialSpectrum]) -> list[tuple[Any, ...]]:
    return [
        (frequency, power, f"{each.region + 1}", colour(each.region), marker(each.region))
        for each in spectra
        for frequency, power in zip(each.frequency.tolist(), each.measured.tolist(), strict=True) if power > 0
    ]
