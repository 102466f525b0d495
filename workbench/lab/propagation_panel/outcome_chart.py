"""The outcomes of one campaign without protection and with it, as shares with their intervals."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.charts.description import Axis, Box, Cells, Chart, Series
from workbench.charts.looks import COLOURS
from workbench.lab.propagation_panel.counting import Counted, ended
from workbench.propagation.charts import HEIGHT
from workbench.propagation.trials import OUTCOMES

APART, WIDE = 0.14, 0.03   # of both campaigns, and of the bars of their intervals
WITHOUT, WITH = "without protection", "with protection"


def outcome_chart(bare: Counted | None, protected: Counted | None) -> Chart:
    """A mark for the share of each outcome among all faults that are possible, and its interval of 95%."""
    given = [(WITHOUT, bare, -APART, COLOURS[1], "square"), (WITH, protected, APART, COLOURS[0], "circle")]
    parts: list[Cells | Series] = []
    for name, counted, shift, colour, marker in given:
        rates = [] if counted is None else [counted.campaign.rate(outcome) for outcome in OUTCOMES]
        places = [number + shift for number, _ in enumerate(rates, 1)]
        shares = [100 * rate.estimate for rate in rates]
        bars: list[Box] = [
            (place - WIDE, 100 * rate.low, place + WIDE, 100 * rate.high) for place, rate in zip(places, rates, strict=True)
        ]
        tooltips = [] if counted is None else list(_told(name, counted))
        parts += [
            Cells("", bars, colour, 0.45, outlined=False),
            Series(name, places, shares, colour, None, marker, tooltips=tooltips),   # type: ignore[arg-type]
        ]
    names = tuple((float(number), outcome) for number, outcome in enumerate(OUTCOMES, 1))
    return Chart(
        "Outcomes, with intervals of 95%", Axis("", 0.5, len(OUTCOMES) + 0.5, names=names), Axis("% of all faults", 0, 100),
        tuple(parts), height=HEIGHT,
    )


def _told(name: str, counted: Counted) -> Iterator[str]:
    for outcome in OUTCOMES:
        rate, (found, tried) = counted.campaign.rate(outcome), ended(counted, outcome)
        interval = f"{rate.estimate:.1%} of all (95%: {rate.low:.1%} to {rate.high:.1%})"
        yield f"{outcome} {name}: {found:,} of {tried:,}; {interval}"
