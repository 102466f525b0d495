"""The outcomes of one campaign without protection and with it, as shares with their intervals."""

from __future__ import annotations

from workbench.charts.description import Axis, Box, Cells, Chart, Series
from workbench.charts.looks import COLOURS, Marker
from workbench.lab.propagation_panel.counting import Counted, share_text
from workbench.propagation.charts import HEIGHT
from workbench.propagation.trials import OUTCOMES

APART, WIDE = 0.14, 0.03   # of both campaigns, and of the bars of their intervals
WITHOUT, WITH = "without protection", "with protection"


def outcome_chart(bare: Counted | None, protected: Counted | None) -> Chart:
    """A mark for the share of each outcome among all possible faults, and its interval of 95%."""
    parts: list[Cells | Series] = []
    given: list[tuple[str, Counted | None, float, str, Marker]] = [
        (WITHOUT, bare, -APART, COLOURS[1], "square"), (WITH, protected, APART, COLOURS[0], "circle")
    ]
    for name, counted, shift, colour, marker in given:
        rates = {} if counted is None else {outcome: counted.campaign.rate(outcome) for outcome in OUTCOMES}
        places = [number + shift for number, _ in enumerate(rates, 1)]
        bars: list[Box] = [
            (place - WIDE, 100 * rate.low, place + WIDE, 100 * rate.high)
            for place, rate in zip(places, rates.values(), strict=True)
        ]
        told = [f"{outcome} {name}: {share_text(rate)} of all possible faults" for outcome, rate in rates.items()]
        shares = [100 * rate.estimate for rate in rates.values()]
        parts += [
            Cells("", bars, colour, 0.45, outlined=False),
            Series(name, places, shares, colour, None, marker, tooltips=told),
        ]
    names = tuple((float(number), outcome) for number, outcome in enumerate(OUTCOMES, 1))
    return Chart(
        "Outcomes of all possible faults, with intervals of 95%", Axis("", 0.5, len(OUTCOMES) + 0.5, names=names),
        Axis("%", 0, 100), tuple(parts), height=HEIGHT,
    )
