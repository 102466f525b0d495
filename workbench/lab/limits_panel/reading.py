"""What lies under the pointer in the pictures of the limits panel: value, region and new information of one cell."""

from __future__ import annotations

import math

from workbench.data import Field
from workbench.lab.description import Reading
from workbench.lab.limits_panel.state import LimitsState
from workbench.lab.limits_panel.theory import Model, News
from workbench.lab.reading import NO_VALUE, cell_text, value_text


def reading(
    field: Field, state: LimitsState, model: Model | None, news: News | None, place: tuple[float, float]
) -> Reading | None:
    """The cell at a place in each of the pictures; None beyond the field."""
    cell = state.cut.cell(field, *place)
    if cell is None:
        return None
    values = [value_text(field, cell)]
    if model is not None:
        label = int(model.limits.source.regions.labels[cell])
        values.append(NO_VALUE if label < 0 else f"region {label + 1}")
        if news is not None:
            bits = float(news.bits[cell]) - math.log2(2 * state.eb)   # they are those of an error bound of 1/2
            values.append(f"{bits:.4g} bits" if math.isfinite(bits) else NO_VALUE)
    return Reading(tuple(values), cell_text(cell))
