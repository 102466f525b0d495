"""The bits from the theoretical bound to a rate in practice, step by step: those of a codec, or those that are known.

Steps sum to the last rate exactly. A codec may be below the bound, by errors larger than uniform ones, or because the
Gaussian model does not describe the field: such steps go to the left. Rates are bars from 0, so that lengths compare.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from workbench.charts.description import Axis, Box, Cells, Chart, Series
from workbench.charts.looks import GREY
from workbench.lab.limits_panel.causes import CAUSES, MEANINGS, colour_of
from workbench.lab.limits_panel.measuring import limit_of
from workbench.lab.limits_panel.spectra_chart import HEIGHT
from workbench.lab.limits_panel.theory import Figures
from workbench.limits.operating_point import OperatingPoint
from workbench.limits.pointwise import uniform_mse
from workbench.limits.result import FieldLimits

THICK = 0.56     # of a row
VISIBLE = 5e-4   # bits per value: smaller costs are 0 in all figures
BOUND, BORDERS = "bound", "region borders"


@dataclass(frozen=True)
class Waterfall:
    """The bound, of which `borders` are due to borders of regions; steps by cause; the name of the rate at their end."""

    title: str
    bound: float
    borders: float
    steps: dict[str, float]
    end: str

    @property
    def rates(self) -> list[float]:
        """The bound, and the rate after each step."""
        return list(itertools.accumulate(self.steps.values(), initial=self.bound))


def of_theory(found: Figures) -> Waterfall:
    """What is added without regard to a codec; each cost is that of the bound with this one change."""
    adds = {
        "tiles": found.tiled - found.rate, "one variance": found.pooled, "each value": found.pointwise - found.rate,
        "model": found.description,
    }
    steps = {cause: bits for cause, bits in adds.items() if bits >= VISIBLE}
    return Waterfall("What practice adds", found.rate, found.borders, steps, "in practice")


def to_codec(limits: FieldLimits, point: OperatingPoint) -> Waterfall:
    """From the bound at uniform errors within the codec's error bound to its rate."""
    asked = uniform_mse(limit_of(point))
    rate = limits.rate(asked)
    tighter = point.rate - rate
    adds = {"smaller errors" if tighter >= 0 else "larger errors": tighter}
    adds |= {name: point.parts.get(cause, 0.0) for cause, name in CAUSES.items()}
    steps = {cause: bits for cause, bits in adds.items() if bits != 0}
    return Waterfall(f"From the bound to {point.run.label}", rate, limits.price_of_borders(asked), steps, point.run.label)


def waterfall_chart(fall: Waterfall) -> Chart:
    """A row for the bound, for each step and for the last rate, the first at the top; the axis begins at 0."""
    rates = fall.rates
    texts = [f"{fall.bound:.3f}", *(f"{bits:+.3f}" for bits in fall.steps.values()), f"{rates[-1]:.3f}"]
    named = [f"{name}  {text}" for name, text in zip([BOUND, *fall.steps, fall.end], texts, strict=True)]
    last = len(named) - 1
    steps = [
        _bar(last - row, low, high, colour_of(cause), f"{text} bits per value: {MEANINGS[cause]}")
        for row, (cause, (low, high), text) in enumerate(
            zip(fall.steps, itertools.pairwise(rates), texts[1:-1], strict=True), 1
        )
    ]
    totals = [_bar(last, 0.0, fall.bound, GREY, f"{texts[0]} bits per value")]
    totals += [_bar(0, 0.0, rates[-1], GREY, f"{texts[-1]} bits per value")]
    said = named
    if fall.borders >= VISIBLE:
        about = f"{fall.borders:.3f} bits per value: {MEANINGS[BORDERS]}"
        totals.append(_bar(last, fall.bound - fall.borders, fall.bound, colour_of(BORDERS), about))
        said = [f"{named[0]}, with {BORDERS} {fall.borders:.3f}", *named[1:]]
    across = Axis.around("bits per value", [0.0, *rates], room=0.08)
    return Chart(
        fall.title, replace(across, low=0.0) if min(rates) >= 0 else across,
        Axis("", -0.6, last + 0.6, names=[(float(last - row), name) for row, name in enumerate(named)]),
        (_connected(rates), *totals, *steps), f"{fall.title}, in bits per value: {'; '.join(said)}.", HEIGHT, grid=False,
    )


def _bar(row: float, low: float, high: float, colour: str, tooltip: str) -> Cells:
    box: Box = (min(low, high), row - THICK / 2, max(low, high), row + THICK / 2)
    return Cells("", [box], colour, tooltips=[tooltip])


def _connected(rates: list[float]) -> Series:
    """A thin line from each row to the next, at the rate that both have."""
    rows = np.arange(len(rates), 0, -1, dtype=float)
    x = [each for rate in rates for each in (rate, rate, np.nan)]
    y = [each for row in rows for each in (row, row - 1, np.nan)]
    return Series("", x, y, GREY, "dotted", width=1.0)
