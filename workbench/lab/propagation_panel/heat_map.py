"""The campaign as a heat map: the share of trials that end in one way, by site and bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.charts.chart import GREY
from workbench.lab.chart_library import hv
from workbench.lab.charts import styled
from workbench.lab.legend import Entry
from workbench.lab.propagation_panel.counting import Counted
from workbench.lab.propagation_panel.error_charts import HEIGHT
from workbench.propagation.campaign_result import HeatMap

HARMLESS, HARMFUL = "#f4efe4", "#d8660f"   # black numbers can be read on both, and on all between
READABLE = 8             # columns, up to which cells have room for numbers
MOST_TICKS = 16
ROW, FRAME = 34, 90      # pixels for each row, and for what is around them
TALLEST, LOW = 420, 15   # pixels; lower rows have no room for a number
ON_CELLS = {"text_color": "#000000", "text_font_size": "11.5px", "text_align": "center", "text_baseline": "middle"}
AXES = ["bit", "site"]


@dataclass(frozen=True)
class Cell:
    """One cell: its column, its row from below, and what was found."""

    column: int
    row: int
    site: str
    bit: str
    share: float
    low: float
    high: float
    trials: int

    @property
    def found(self) -> int:
        """How many trials ended so."""
        return round(self.share * self.trials)

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Left, bottom, right, top."""
        return self.column, self.row, self.column + 1, self.row + 1


def heat_map_chart(counted: Counted, outcome: str) -> Any:
    """A row for each site, a column for each bit; cells without trials are empty frames."""
    found = counted.campaign.heat_map(outcome)
    cells, columns = cells_of(found), ordered_bits(found.bits)
    tried = [cell for cell in cells if cell.trials]
    boxes = [
        (*cell.box, shade(cell.share), cell.site, cell.bit, cell.share, f"{cell.low:.1%} to {cell.high:.1%}", cell.trials)
        for cell in tried
    ]
    rows = len(found.sites)
    height = max(min(FRAME + ROW * rows, TALLEST), HEIGHT)
    readable = len(columns) <= READABLE and (height - FRAME) / rows >= LOW
    numbers = [(cell.column + 0.5, cell.row + 0.5, f"{cell.found:,}/{cell.trials:,}") for cell in tried]
    told = [("site", "@where"), ("bit", "@which"), (outcome, "@share{0.0%}"), ("95% interval", "@interval"),
            ("trials", "@trials{0,0}")]
    fields = ["colour", "where", "which", "share", "interval", "trials"]
    layers = (
        hv.Rectangles([cell.box for cell in cells if not cell.trials], [*AXES, "to bit", "to site"]).opts(
            color=GREY, fill_alpha=0.08, line_color=GREY, line_width=0.5
        )
        * hv.Rectangles(boxes, [*AXES, "to bit", "to site"], fields).opts(
            color="colour", line_color=GREY, line_width=0.5, tools=["hover"], hover_tooltips=told
        )
        * hv.Labels(numbers if readable else [], AXES, "size").opts(**ON_CELLS)
    )
    every = max(1, -(-len(columns) // MOST_TICKS))
    return styled(
        layers, f"Share of trials that end {outcome}", [Entry("0%", HARMLESS), Entry("100%", HARMFUL)],
        _in_words(tried, outcome), xlim=(0, len(columns)), ylim=(0, rows), xlabel="bit", ylabel="", show_grid=False,
        xticks=[(column + 0.5, bit) for column, bit in enumerate(columns) if column % every == 0],
        yticks=[(rows - row - 0.5, site) for row, site in enumerate(found.sites)], height=height,
    )


def cells_of(found: HeatMap) -> list[Cell]:
    """The cells of a heat map, the first site at the top."""
    columns, cells = ordered_bits(found.bits), []
    for row, site in enumerate(found.sites):
        for place, bit in enumerate(found.bits):
            share, low, high = (float(np.nan_to_num(part[row, place])) for part in (found.share, found.low, found.high))
            above, trials = len(found.sites) - 1 - row, int(found.trials[row, place])
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
        found = f"Largest: {worst.found:,} of {worst.trials:,} at {worst.site}, {worst.bit}, {interval}."
    return f"Share of trials that end {outcome}, by site and bit. {found}"
