"""The map of losses: a row for each group of tensors, a column for each bound, and the chosen bound of each group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from workbench.charts.description import Axis, Cells, Chart, Series
from workbench.charts.looks import INK
from workbench.propagation.language.token_errors import FLOOR, LARGEST, colour

MOST_NAMES = 32
MOST_BOUNDS = 9   # that fit side by side below a chart
SPAN = 1e5   # the largest loss over the smallest that has a colour of its own, at most


def sensitivity_chart(
    groups: Sequence[str], shares: Sequence[float], loss: np.ndarray, chosen: Mapping[str, float] = MappingProxyType({}),
    unit: str = "",
) -> Chart:
    """The lighter, the larger the loss, in this unit; a mark is at the chosen bound. Bounds that lose nothing are dark."""
    rows, columns = loss.shape
    finite = loss[np.isfinite(loss) & (loss > 0)]
    largest = float(finite.max()) if finite.size else 1.0
    least = max(float(finite.min()), largest / SPAN) if finite.size else 0.1
    steps = math.log(largest / least) or 1.0

    def shade(found: float) -> str:
        place = math.log(max(found, least) / least) / steps
        return colour(FLOOR * (LARGEST / FLOOR) ** place)

    boxes, colours, tooltips = [], [], []
    for row, column in np.argwhere(~np.isnan(loss)).tolist():
        found = float(loss[row, column])
        boxes.append((float(column), rows - row - 1.0, column + 1.0, float(rows - row)))
        colours.append(shade(found))
        tooltips.append(f"{groups[row]}, {named(shares[column])}: {found:.3g} {unit}".strip())
    at = [(shares.index(chosen[name]) + 0.5, rows - row - 0.5) for row, name in enumerate(groups) if name in chosen]
    marks = Series("chosen", [x for x, _ in at], [y for _, y in at], "#ffffff", None, "circle", size=6)
    every = max(1, -(-rows // MOST_NAMES))
    names = [(rows - row - 0.5, name) for row, name in enumerate(groups) if row % every == 0]
    apart = -(-columns // MOST_BOUNDS)
    bounds = [(column + 0.5, "exact" if share == 0 else f"{share:.3g}") for column, share in enumerate(shares)][::apart]
    keyed = [least * math.exp(steps * part / 3) for part in range(4)]
    scale = [Cells(f"{found:.1g}", [], shade(found)) for found in keyed]
    worst = groups[int(np.argmax(np.where(np.isfinite(loss), loss, -math.inf)) // columns)]
    most = f"{largest:.3g} {unit}".strip()
    return Chart(
        f"Loss ({unit}) by group and bound" if unit else "Loss by group and bound",
        Axis("bound, in units of the root mean square", 0, columns, names=bounds), Axis("", 0, rows, names=names),
        (Cells("", boxes, tooltips=tooltips, colours=colours, outlined=False), marks),
        about=f"Loss of {rows} groups of tensors at {columns} bounds, at most {most}, of {worst}.",
        height=max(200, min(14 * rows + 110, 560)), grid=False,
        scale=(*scale, *([Series("chosen", [], [], INK, None, "circle", hollow=True)] if at else [])),
    )


def named(share: float) -> str:
    """A bound in words.

    >>> named(0.0), named(0.25)
    ('exact', '0.25 rms')
    """
    return "exact" if share == 0 else f"{share:.3g} rms"
