"""The charts of campaigns: a heat map of one outcome by site and bit; all outcomes without protection and with it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.charts.description import Axis, Box, Cells, Chart, Series
from workbench.charts.looks import COLOURS, GREY, Marker
from workbench.lab.propagation_panel.counting import Counted, share_text
from workbench.propagation.campaign_result import HeatMap
from workbench.propagation.charts import HEIGHT, short
from workbench.propagation.trials import OUTCOMES

HARMLESS, HARMFUL = "#f4efe4", "#d8660f"   # black numbers can be read on both, and on all between
READABLE = 8             # columns, up to which cells have room for numbers, and rows, up to which all have their names
MOST_TICKS = 16
FEW = 30                 # trials: the interval of a share is wider than a third
INK = "#333333"          # on both colours
ROW, FRAME = 34, 90      # pixels for each row, and for what is around them
TALLEST, LOW = 420, 15   # pixels; lower rows have no room for a number
APART, WIDE = 0.14, 0.03   # of marks without and with protection, and of the bars of their intervals
WITHOUT, WITH = "without protection", "with protection"


class Cell(NamedTuple):
    """One cell: its column, its row from below, and the share of its trials that ended so, with its interval."""

    column: int
    row: int
    site: str
    bit: str
    share: float
    low: float
    high: float
    trials: int


def heat_map_chart(counted: Counted, outcome: str) -> Chart:
    """A row for each site, a column for each bit; cells without trials are empty frames."""
    heat_map = counted.campaign.heat_map(outcome)
    cells, columns, rows = cells_of(heat_map), ordered_bits(heat_map.bits), len(heat_map.sites)
    tried = [cell for cell in cells if cell.trials]
    height = max(min(FRAME + ROW * rows, TALLEST), HEIGHT)
    readable = len(columns) <= READABLE and (height - FRAME) / rows >= LOW
    tooltips = [
        f"{cell.site}, bit {cell.bit}: {outcome} {cell.share:.1%} ({cell.low:.1%} to {cell.high:.1%} with 95% confidence) "
        f"of {cell.trials:,} trials" for cell in tried
    ]
    numbers = [f"{cell.share:.0%} of {cell.trials:,}" for cell in tried] if readable else []
    few = [cell for cell in tried if cell.trials < FEW]
    marked = few if readable or len(few) < len(tried) else []
    corners = [cell.column + 0.92 for cell in marked], [cell.row + 0.82 for cell in marked]
    marks = Series(f"fewer than {FEW} trials", *corners, INK, None, "circle", size=5, hollow=True)
    told = marks if marked else Series(f"all of fewer than {FEW} trials", [], [], INK, None)
    shades = [shade(cell.share) for cell in tried]
    every = max(1, -(-len(columns) // MOST_TICKS))
    bits = [(column + 0.5, bit) for column, bit in enumerate(columns) if column % every == 0]
    named = max(1, -(-rows // READABLE))
    sites = [(rows - row - 0.5, short(site)) for row, site in enumerate(heat_map.sites) if row % named == 0]
    return Chart(
        f"Share of trials that end {outcome}", Axis("bit" if columns[0].isdecimal() else "", 0, len(columns), names=bits),
        Axis("", 0, rows, names=sites),
        (
            Cells("", [_box(cell) for cell in cells if not cell.trials], GREY, 0.08),
            Cells("", [_box(cell) for cell in tried], tooltips=tooltips, texts=numbers, colours=shades),
            marks,
        ),
        _in_words(tried, outcome), height, grid=False,
        scale=(Cells("0%", [], HARMLESS), Cells("100%", [], HARMFUL), *([told] if few else [])),
    )


def _box(cell: Cell) -> Box:
    return cell.column, cell.row, cell.column + 1, cell.row + 1


def cells_of(heat_map: HeatMap) -> list[Cell]:
    """The cells of a heat map, the first site at the top."""
    columns, cells = ordered_bits(heat_map.bits), []
    for row, site in enumerate(heat_map.sites):
        for place, bit in enumerate(heat_map.bits):
            parts = heat_map.share, heat_map.low, heat_map.high
            share, low, high = (float(np.nan_to_num(part[row, place])) for part in parts)
            above, trials = len(heat_map.sites) - 1 - row, int(heat_map.trials[row, place])
            cells.append(Cell(columns.index(bit), above, site, bit, share, low, high, trials))
    return cells


def ordered_bits(bits: tuple[str, ...]) -> list[str]:
    """The columns in their order: a site with wide numbers may come after one with narrow ones.

    >>> ordered_bits(("0", "1", "10", "2")), ordered_bits(("sign", "exponent"))
    (['0', '1', '2', '10'], ['sign', 'exponent'])
    """
    return sorted(bits, key=int) if all(bit.isdecimal() for bit in bits) else list(bits)


def shade(share: float) -> str:
    """The colour of a share: evenly from harmless to harmful.

    >>> shade(0.0), shade(1.0)
    ('#f4efe4', '#d8660f')
    """
    ends = [np.array([int(end[place : place + 2], 16) for place in (1, 3, 5)]) for end in (HARMLESS, HARMFUL)]
    mixed = np.rint(ends[0] + (ends[1] - ends[0]) * min(max(share, 0.0), 1.0)).astype(int)
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _in_words(tried: list[Cell], outcome: str) -> str:
    worst = max(tried, key=lambda cell: cell.share, default=None)
    found = "No trials yet."
    if worst is not None:
        interval = f"{worst.low:.0%} to {worst.high:.0%} with 95% confidence"
        ended = f"{round(worst.share * worst.trials):,} of {worst.trials:,}"
        found = f"Largest: {ended} at {worst.site}, {worst.bit}, {interval}."
    return f"Share of trials that end {outcome}, by site and bit. {found}"


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
        "Outcomes of all possible faults", Axis("", 0.5, len(OUTCOMES) + 0.5, names=names),
        Axis("%", 0, 100), tuple(parts), height=HEIGHT,
    )
