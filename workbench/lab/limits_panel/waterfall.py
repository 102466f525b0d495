"""The bits from the theoretical bound to a rate in practice, step by step: those of a codec, or those that are known.

Steps sum to the last rate exactly. A codec may be below the bound, by errors larger than uniform ones, or because the
Gaussian model does not describe the field: such steps go to the left.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from workbench.charts.description import Axis, Cells, Chart, Series
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
BOUND = "bound"


@dataclass(frozen=True)
class Step:
    """Bits that are added for one cause."""

    cause: str
    bits: float


@dataclass(frozen=True)
class Waterfall:
    """A first rate, steps, and the name of the rate at their end. `bound` is the number of steps up to the bound."""

    title: str
    start: float
    steps: tuple[Step, ...]
    end: str
    bound: int = 0

    @property
    def rates(self) -> list[float]:
        """The rate before the first step, and after each."""
        return list(itertools.accumulate((step.bits for step in self.steps), initial=self.start))


def of_theory(found: Figures) -> Waterfall:
    """What is added without regard to a codec; each cost is that of the bound with this one change."""
    adds = {
        "tiles": found.tiled - found.rate, "one variance": found.pooled, "each value": found.pointwise - found.rate,
        "model": found.description,
    }
    steps = tuple(Step(cause, bits) for cause, bits in adds.items() if bits >= VISIBLE)
    return _from_bound("What practice adds", found.rate, found.borders, steps, "in practice")


def to_codec(limits: FieldLimits, point: OperatingPoint) -> Waterfall:
    """From the bound at uniform errors within the codec's error bound to its rate."""
    asked = uniform_mse(limit_of(point))
    rate = limits.rate(asked)
    tighter = point.rate - rate
    adds = {"smaller errors" if tighter >= 0 else "larger errors": tighter}
    adds |= {name: point.parts.get(cause, 0.0) for cause, name in CAUSES.items()}
    steps = tuple(Step(cause, bits) for cause, bits in adds.items() if bits != 0)
    return _from_bound(f"From the bound to {point.run.label}", rate, limits.price_of_borders(asked), steps, point.run.label)


def _from_bound(title: str, rate: float, borders: float, steps: tuple[Step, ...], end: str) -> Waterfall:
    """The borders of regions are a part of the bound."""
    if borders < VISIBLE:
        return Waterfall(title, rate, steps, end)
    return Waterfall(title, rate - borders, (Step("region borders", borders), *steps), end, 1)


def waterfall_chart(fall: Waterfall) -> Chart:
    """A row for each rate and each step, the first at the top."""
    rows = _rows(fall)
    last = len(rows) - 1
    names = [(float(last - row), f"{name}  {text}") for row, (name, text, _, _) in enumerate(rows)]
    ends = [end for _, _, low, high in rows for end in (low, high)]
    x = Axis.around("bits per value", ends, room=0.08)
    levels = [(last - row, low) for row, (_, _, low, high) in enumerate(rows) if low == high]
    bars = tuple(
        Cells("", [(min(low, high), last - row - THICK / 2, max(low, high), last - row + THICK / 2)], colour_of(name),
              tooltips=[f"{text} bits per value: {MEANINGS[name]}"])
        for row, (name, text, low, high) in enumerate(rows) if low != high
    )
    told = "; ".join(f"{name} {text}" for name, text, _, _ in rows)
    return Chart(
        fall.title, x, Axis("", -0.6, last + 0.6, names=names),
        (_connected([high for _, _, _, high in rows]), *bars,
         Series("", [at for _, at in levels], [row for row, _ in levels], GREY, None, "diamond",
                tooltips=[f"{at:.3f} bits per value" for _, at in levels])),
        f"{fall.title}, in bits per value: {told}.", HEIGHT, grid=False,
    )


def _rows(fall: Waterfall) -> list[tuple[str, str, float, float]]:
    """Names, texts, and the rates before and after, from the first rate to the last; a rate itself has one place."""
    rates = fall.rates
    ends = itertools.pairwise(rates)
    rows = [(step.cause, f"{step.bits:+.3f}", low, high) for step, (low, high) in zip(fall.steps, ends, strict=True)]

    def level(name: str, at: int) -> tuple[str, str, float, float]:
        return name, f"{rates[at]:.3f}", rates[at], rates[at]

    first = [level("without borders", 0)] if fall.bound else []
    return [*first, *rows[: fall.bound], level(BOUND, fall.bound), *rows[fall.bound :], level(fall.end, -1)]


def _connected(rates: list[float]) -> Series:
    """A thin line from each row to the next, at the rate that both have."""
    rows = np.arange(len(rates) - 1, -1, -1, dtype=float)
    x = [each for rate in rates[:-1] for each in (rate, rate, np.nan)]
    y = [each for row in rows[:-1] for each in (row, row - 1, np.nan)]
    return Series("", x, y, GREY, "dotted", width=1.0)
