"""A legend drawn as data, because Bokeh's own shows neither marks that vary within an element nor later additions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import holoviews as hv

from workbench.bounds.chart import GREY

LETTERS = 11   # pixels
ROW = 0.075    # of the height of a chart
SMALL = {"text_color": GREY, "text_font_size": f"{LETTERS}px", "text_align": "left", "text_baseline": "middle"}

Corner = Literal["bottom left", "top right", "beside"]
Ends = tuple[float, float]
Entry = tuple[float, float, str, str, str]   # where, the name, its colour and its mark
STARTS = {"bottom left": 0.03, "top right": 0.7, "beside": 0.74}   # of the width
BESIDE = 1.4   # times the width, as room for a legend beside the data
HEIGHT = 260   # of all charts of this panel, in pixels


def rows_from(
    corner: Corner, told: Sequence[tuple[str, str, str]], x: Ends, y: Ends, across_log: bool = False, up_log: bool = False
) -> list[Entry]:
    """A place for each name with its colour and mark, in rows from the top down.

    >>> rows_from("bottom left", [("zfp", "#d0600f", "square")], (0.0, 10.0), (0.0, 1.0))
    [(0.3, 0.06, 'zfp', '#d0600f', 'square')]
    """
    count = len(told)
    first = 0.06 + ROW * (count - 1) if corner == "bottom left" else 0.94
    where = _between(x, STARTS[corner], across_log)
    return [(where, _between(y, first - ROW * row, up_log), *each) for row, each in enumerate(told)]


def names(entries: Sequence[Entry], axes: list[str]) -> tuple[Any, Any]:
    """The marks, and the names to the right of them."""
    marks = hv.Points([(*entry[:2], *entry[3:]) for entry in entries], axes, ["colour", "mark"])
    texts = hv.Labels([(entry[0], entry[1], f"   {entry[2]}") for entry in entries], axes, "name")
    return marks.opts(color="colour", marker="mark", size=7), texts.opts(**SMALL)


def widened(ends: Ends, logarithmic: bool = False) -> Ends:
    """An axis with room for a legend beside the data.

    >>> widened((0.0, 10.0))
    (0.0, 14.0)
    """
    return ends[0], _between(ends, BESIDE, logarithmic)


def _between(ends: Ends, share: float, logarithmic: bool) -> float:
    """The place at a share of the way between the ends."""
    low, high = (math.log10(end) for end in ends) if logarithmic else ends
    place = low + share * (high - low)
    return 10.0**place if logarithmic else place
