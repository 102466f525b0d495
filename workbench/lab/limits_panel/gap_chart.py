"""The gap between each codec and the bound, divided by cause, as bars that begin at the bound."""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.charts.description import Axis, Box, Cells, Chart, Rule
from workbench.lab.limits_panel.causes import CAUSES, MEANINGS, colour_of
from workbench.lab.limits_panel.spectra_chart import HEIGHT
from workbench.limits.operating_point import OperatingPoint

THICK = 0.5         # of a row
READABLE = 0.17     # of the width: narrower pieces have no room for a number
OF_FIXED_SIZE = ", large for few values"


def gap_chart(points: Sequence[OperatingPoint]) -> Chart:
    """A row for each point, the first at the top; causes have fixed colours and a fixed order."""
    rows = len(points)
    ends = {cause: [_end(point, cause) for point in points] for cause in CAUSES}
    x = Axis.around("bits per value", [0.0, *(bits for each in ends.values() for pair in each for bits in pair)], room=0.06)
    names = [(rows - 1.0 - row, f"{point.run.label}  {point.bits:#.3g}") for row, point in enumerate(points)]
    cells = [_cells(cause, points, ends[cause], READABLE * (x.high - x.low)) for cause in CAUSES]
    return Chart(
        "Bits above the bound, by cause", x, Axis("", -0.5, max(rows, 1) - 0.5, names=names),
        (*cells, Rule("", "x", 0.0, dash="solid")), f"Bits above the bound, by cause. {_in_words(points)}", HEIGHT,
        grid=False,
    )


def _end(point: OperatingPoint, cause: str) -> tuple[float, float]:
    """The ends of the piece of a cause: positive ones follow each other to the right of the bound, negative to the left."""
    bits, before = point.parts.get(cause, 0.0), list(CAUSES)[: list(CAUSES).index(cause)]
    others = (point.parts.get(each, 0.0) for each in before)
    start = math.fsum(other for other in others if (other >= 0) == (bits >= 0))
    return (start, start + bits) if bits >= 0 else (start + bits, start)


def _cells(cause: str, points: Sequence[OperatingPoint], ends: Sequence[tuple[float, float]], readable: float) -> Cells:
    """The pieces of a cause; documents that are most of an archive are an artefact of small data."""
    name = CAUSES[cause]
    mostly = cause == "documents" and any(2 * point.parts.get(cause, 0.0) > point.bits for point in points)
    boxes, tooltips, texts = list[Box](), list[str](), list[str]()
    for row, (point, (low, high)) in enumerate(zip(points, ends, strict=True), 1):
        if low != high:
            middle, bits = len(points) - row, f"{point.parts[cause]:+.3f} bits per value: {MEANINGS[name]}"
            boxes.append((low, middle - THICK / 2, high, middle + THICK / 2))
            tooltips.append(f"{point.run.label}, error bound {float(point.run['limit']):.3g}: {bits}")
            texts.append(f"{high - low:.2f}" if high - low > readable else "")
    return Cells(name + (OF_FIXED_SIZE if mostly else ""), boxes, colour_of(name), tooltips=tooltips, texts=texts)


def _in_words(points: Sequence[OperatingPoint]) -> str:
    """The bars in words."""
    return " ".join(
        f"{point.run.label}: {point.bits:.2f} bits per value, {abs(point.gap):.2f} "
        f"{'above' if point.gap >= 0 else 'below'} the bound." for point in points
    )
