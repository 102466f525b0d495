"""The gap between each codec and the bound, divided by cause, as bars that begin at the bound."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.charts.description import Axis, Box, Cells, Chart, Rule
from workbench.lab.limits_panel.causes import CAUSES, MEANINGS, colour_of
from workbench.lab.limits_panel.spectra_chart import HEIGHT
from workbench.limits.operating_point import OperatingPoint

THICK = 0.5         # of a row
READABLE = 0.1      # of the width: narrower pieces have no room for a number
OF_FIXED_SIZE = ", large for few values"


def gap_chart(points: Sequence[OperatingPoint]) -> Chart:
    """A row for each point, the first at the top; causes have fixed colours and a fixed order."""
    rows = len(points)
    pieces = [piece for row, point in enumerate(points) for piece in _pieces(point, rows - 1 - row)]
    x = Axis.around("bits per value", [0.0, *(end for piece in pieces for end in piece[1][::2])], room=0.06)
    names = [(rows - 1.0 - row, f"{point.run.label}  {point.bits:.3g}") for row, point in enumerate(points)]
    return Chart(
        "Bits above the bound, by cause", x, Axis("", -0.5, max(rows, 1) - 0.5, names=names),
        (*_causes(points, pieces, READABLE * (x.high - x.low)), Rule("", "x", 0.0, dash="solid")),
        f"Bits above the bound, by cause. {_in_words(points)}", HEIGHT, grid=False,
    )


def _pieces(point: OperatingPoint, row: int) -> list[tuple[str, Box, str]]:
    """The pieces of one bar by cause: positive ones to the right of the bound, negative ones to the left."""
    right = left = 0.0
    pieces, limit = [], f"{float(point.run['limit']):.3g}"
    for cause, name in CAUSES.items():
        bits = point.parts.get(cause, 0.0)
        start = right if bits >= 0 else left
        if bits != 0:
            low, high = sorted((start, start + bits))
            tooltip = f"{point.run.label}, error bound {limit}: {bits:+.3f} bits per value: {MEANINGS[name]}"
            pieces.append((cause, (low, row - THICK / 2, high, row + THICK / 2), tooltip))
        right, left = right + max(bits, 0.0), left + min(bits, 0.0)
    return pieces


def _causes(points: Sequence[OperatingPoint], pieces: Sequence[tuple[str, Box, str]], readable: float) -> list[Cells]:
    """The pieces of each cause; documents that are most of an archive are an artefact of small data."""
    cells = []
    for cause, name in CAUSES.items():
        boxes = [box for each, box, _ in pieces if each == cause]
        mostly = cause == "documents" and any(2 * point.parts.get(cause, 0.0) > point.bits for point in points)
        texts = [f"{box[2] - box[0]:.2f}" if box[2] - box[0] > readable else "" for box in boxes]
        tooltips = [words for each, _, words in pieces if each == cause]
        called = name + (OF_FIXED_SIZE if mostly else "")
        cells.append(Cells(called, boxes, colour_of(name), tooltips=tooltips, texts=texts))
    return cells


def _in_words(points: Sequence[OperatingPoint]) -> str:
    """The bars in words."""
    return " ".join(
        f"{point.run.label}: {point.bits:.2f} bits per value, {abs(point.gap):.2f} "
        f"{'above' if point.gap >= 0 else 'below'} the bound." for point in points
    )
