"""The gap between each codec and the bound, divided by cause, as bars that begin at the bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holoviews as hv

from workbench.bounds.chart import GREY
from workbench.lab.charts import colour, limits, styled
from workbench.lab.limits_panel.legend import HEIGHT, SMALL
from workbench.limits.operating_point import OperatingPoint

CAUSES = ("tiles", "pointwise bound", "documents", "prediction and coding")   # in the order in which bars are stacked
AXES = ["bits above the bound", "codec"]
THICK = 0.42        # of a row
READABLE = 0.08     # of the width: narrower pieces have no room for a number
CENTRED = {**SMALL, "text_align": "center"}
NOTHING = "press “compare codecs”"


def gap_chart(points: Sequence[OperatingPoint]) -> Any:
    """A row for each point, the first at the top; causes have fixed colours and a fixed order."""
    rows = len(points)
    pieces = [piece for row, point in enumerate(points) for piece in _pieces(point, rows - 1 - row)]
    ends = [end for piece in pieces for end in (piece[0], piece[2])]
    low, high = limits([0.0, *ends], room=0.06) if points else (0.0, 1.0)
    inside = [
        ((left + right) / 2, (bottom + top) / 2, f"{right - left:.2f}")
        for left, bottom, right, top, *_ in pieces if right - left > READABLE * (high - low)
    ]
    left = max(low, 0.0) + 0.015 * (high - low)
    titles = [(left, rows - 1 - row + 0.4, _title(point)) for row, point in enumerate(points)]
    hint = [] if points else [(0.5 * (low + high), 0.5, NOTHING)]
    bars = hv.Rectangles(pieces, [*AXES, "to bits", "to row"], ["colour", "cause", "in bits", "error bound"])
    layers = (
        bars.opts(color="colour", line_color=GREY, line_width=0.5, tools=["hover"])
        * hv.VLines([0.0] if points else []).opts(color=GREY, line_width=1.2)
        * hv.Labels(inside, AXES, "size").opts(**{**CENTRED, "text_color": "#ffffff"})
        * hv.Labels(titles, AXES, "name").opts(**SMALL)
        * hv.Labels(hint, AXES, "hint").opts(**CENTRED)
        * _causes(low, high, rows)
    )
    up = -0.4 - 0.3 * max(rows, 2), max(rows, 1) - 0.2
    return styled(
        layers, xlim=(low, high), ylim=up, xlabel=AXES[0], yaxis=None, show_legend=False, show_grid=False, height=HEIGHT
    )


def _pieces(point: OperatingPoint, row: int) -> list[tuple[Any, ...]]:
    """The pieces of one bar: positive ones to the right of the bound, negative ones to the left."""
    right = left = 0.0
    found, limit = [], f"{float(point.run['limit']):.3g}"
    for number, cause in enumerate(CAUSES):
        bits = point.parts.get(cause, 0.0)
        start = right if bits >= 0 else left
        if bits != 0:
            ends = sorted((start, start + bits))
            found.append((ends[0], row - THICK / 2, ends[1], row + THICK / 2, colour(number), cause, round(bits, 4), limit))
        right, left = right + max(bits, 0.0), left + min(bits, 0.0)
    return found


def _title(point: OperatingPoint) -> str:
    where = f"{abs(point.gap):.2f} {'above' if point.gap >= 0 else 'below'} the bound"
    return f"{point.run.label}: {point.bits:.2f} bits, {where}"


def _causes(low: float, high: float, rows: int) -> Any:
    """The colours of the causes, in two lines below the bars."""
    found = []
    for number, cause in enumerate(CAUSES):
        where = low + (0.04 + 0.5 * (number % 2)) * (high - low)
        found.append((where, -0.4 - (0.09 + 0.12 * (number // 2)) * max(rows, 2), cause, colour(number)))
    marks = hv.Points([(x, y, shade) for x, y, _, shade in found], AXES, ["colour"])
    texts = hv.Labels([(x, y, f"   {cause}") for x, y, cause, _ in found], AXES, "cause")
    return marks.opts(color="colour", marker="square", size=7) * texts.opts(**SMALL)
