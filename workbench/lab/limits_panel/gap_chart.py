"""The gap between each codec and the bound, divided by cause, as bars that begin at the bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.charts.chart import GREY
from workbench.lab.chart_library import hv
from workbench.lab.charts import colour, limits, styled
from workbench.lab.legend import Entry
from workbench.lab.limits_panel.rate_chart import HEIGHT
from workbench.limits.operating_point import OperatingPoint

CAUSES = {   # in the order in which bars are stacked, with their names in the key
    "tiles": "tiles", "pointwise bound": "bound on every value", "documents": "the archive's own documents",
    "prediction and coding": "prediction and coding",
}
AXES = ["bits above the bound", "codec"]
THICK = 0.5         # of a row
READABLE = 0.1      # of the width: narrower pieces have no room for a number
ON_BARS = {"text_color": "#000000", "text_font_size": "11.5px", "text_align": "center", "text_baseline": "middle"}
OF_FIXED_SIZE = ", of a fixed size: large for so few values"


def gap_chart(points: Sequence[OperatingPoint]) -> Any:
    """A row for each point, the first at the top; causes have fixed colours and a fixed order."""
    rows = len(points)
    pieces = [piece for row, point in enumerate(points) for piece in _pieces(point, rows - 1 - row)]
    low, high = limits([0.0, *(end for piece in pieces for end in (piece[0], piece[2]))], room=0.06)
    inside = [
        ((left + right) / 2, (bottom + top) / 2, f"{right - left:.2f}")
        for left, bottom, right, top, *_ in pieces if right - left > READABLE * (high - low)
    ]
    told = [("cause", "@cause"), ("bits per value", "@{in bits}{+0.000}"), ("error bound", "@{error bound}")]
    bars = hv.Rectangles(pieces, [*AXES, "to bits", "to row"], ["colour", "cause", "in bits", "error bound"])
    layers = (
        bars.opts(color="colour", line_color=GREY, line_width=0.5, tools=["hover"], hover_tooltips=told)
        * hv.VLines([0.0]).opts(color=GREY, line_width=1.2)
        * hv.Labels(inside, AXES, "size").opts(**ON_BARS)
    )
    return styled(
        layers, "Bits above the bound, by cause", _key(points), f"Bits above the bound, by cause. {_told(points)}",
        xlim=(low, high), ylim=(-0.5, max(rows, 1) - 0.5), xlabel="bits per value above the bound", ylabel="",
        yticks=[(rows - 1 - row, f"{point.run.label}\n{point.bits:.3g} bits") for row, point in enumerate(points)],
        show_grid=False, height=HEIGHT,
    )


def _pieces(point: OperatingPoint, row: int) -> list[tuple[Any, ...]]:
    """The pieces of one bar: positive ones to the right of the bound, negative ones to the left."""
    right = left = 0.0
    found, limit = [], f"{float(point.run['limit']):.3g}"
    for number, (cause, name) in enumerate(CAUSES.items()):
        bits = point.parts.get(cause, 0.0)
        start = right if bits >= 0 else left
        if bits != 0:
            ends = sorted((start, start + bits))
            found.append((ends[0], row - THICK / 2, ends[1], row + THICK / 2, colour(number), name, round(bits, 4), limit))
        right, left = right + max(bits, 0.0), left + min(bits, 0.0)
    return found


def _key(points: Sequence[OperatingPoint]) -> list[Entry]:
    """The colours of the causes that occur; documents that are most of an archive are an artefact of small data."""
    entries = []
    for number, (cause, name) in enumerate(CAUSES.items()):
        if any(point.parts.get(cause, 0.0) for point in points):
            mostly = cause == "documents" and any(2 * point.parts.get(cause, 0.0) > point.bits for point in points)
            entries.append(Entry(name + (OF_FIXED_SIZE if mostly else ""), colour(number)))
    return entries


def _told(points: Sequence[OperatingPoint]) -> str:
    """The bars in words."""
    return " ".join(
        f"{point.run.label}: {point.bits:.2f} bits per value, {abs(point.gap):.2f} "
        f"{'above' if point.gap >= 0 else 'below'} the bound." for point in points
    )
