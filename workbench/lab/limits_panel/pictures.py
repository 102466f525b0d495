"""The pictures of the limits panel: the field, the region of each value, and the bits spent on each; values at a place.

A picture is made once for each view setting; later calls return the same object, so a view need not send it again.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from workbench.charts.looks import area_colour
from workbench.data import Field
from workbench.data.units import unit_of_values
from workbench.lab import levels, slices
from workbench.lab.colour_scale import scale_of
from workbench.lab.description import Picture, Reading
from workbench.lab.extremes import extremes
from workbench.lab.limits_panel.state import LimitsState
from workbench.lab.limits_panel.theory import Model, News
from workbench.lab.reading import NO_VALUE, cell_text, value_text
from workbench.lab.remembered import remembered
from workbench.lab.slices import Cut

OUTLIERS = 0.01    # the share of values whose new information may lie outside of the scale


def pictures(field: Field, state: LimitsState, model: Model | None, news: News | None) -> tuple[Picture, ...]:
    """The field and, once computed, its regions and the new information. A line of values is drawn as a chart."""
    if len(field.shape) == 1:
        return ()
    original = remembered(field, "limits: field", state.cut, lambda: _original(field, state.cut))
    if model is None:
        return (original,)
    labels = model.limits.source.regions.labels
    regions = remembered(model, "regions", state.cut, lambda: _regions(field, labels, state.cut))
    if news is None:
        return original, regions
    bits = remembered(news, "bits", state.cut, lambda: _bits(field, news.bits, state.cut))
    shift = math.log2(2 * state.eb)   # doubling the bound saves one bit per value: only the scale changes
    return original, regions, replace(bits, low=bits.low - shift, high=bits.high - shift)


def reading(
    field: Field, state: LimitsState, model: Model | None, news: News | None, place: tuple[float, float]
) -> Reading | None:
    """Value, region and new information of the cell at a place; None beyond the field."""
    cell = state.cut.cell(field, *place)
    if cell is None:
        return None
    values = [value_text(field, cell)]
    if model is not None:
        label = int(model.limits.source.regions.labels[cell])
        values.append(NO_VALUE if label < 0 else f"region {label + 1}")
    if model is not None and news is not None:
        bits = float(news.bits[cell]) - math.log2(2 * state.eb)   # they are those of an error bound of 1/2
        values.append(f"{bits:.4g} bits" if math.isfinite(bits) else NO_VALUE)
    return Reading(tuple(values), cell_text(cell))


def note(field: Field, state: LimitsState) -> str:
    """The meaning of a pixel that has several values."""
    if len(field.shape) == 1:
        return ""
    rows, columns = (cells.stop - cells.start for cells in state.cut.cells(field))
    if max(rows, columns) <= state.pixels:
        return ""
    block = " x ".join(str(-(-count // min(count, state.pixels))) for count in (rows, columns))
    return f"each pixel is the mean of up to {block} values, and the region of the one in its middle"


def _original(field: Field, cut: Cut) -> Picture:
    low, high = slices.slice_range(field, cut)
    raster = slices.slice_raster(field, cut)
    pixels = levels.bytes_of(raster.values, low, high, levels=np.uint16)
    return Picture(
        "field", pixels, raster.window, "values", low, high, unit=unit_of_values(field), empty=True, axes=cut.axes(field),
        quantity=field.name or "value", limits="full" if scale_of(field, *extremes(field)) == "linear" else "1-99",
    )


def _regions(field: Field, labels: np.ndarray, cut: Cut) -> Picture:
    """The region number of each value, from 1, in the colour of its curve."""
    shown = cut.plane(labels)[cut.cells(field)]
    middles = [_middles(count, cut.pixels) for count in shown.shape]
    seen = shown[np.ix_(*middles)][::-1]
    count = int(labels.max()) + 1
    pixels = levels.bytes_of(np.where(seen < 0, np.nan, seen + 1), 1.0, float(count))
    return Picture(
        "regions", pixels, cut.covered(field), "values", 1.0, float(count), empty=True, axes=cut.axes(field),
        quantity="region", palette=tuple(area_colour(region) for region in range(count)),
    )


def _middles(count: int, pixels: int) -> np.ndarray:
    """The indices of the values in the middle of each pixel."""
    shown = min(count, pixels)
    return (2 * np.arange(shown) + 1) * count // (2 * shown)


def _bits(field: Field, bits: np.ndarray, cut: Cut) -> Picture:
    """New information at an error bound of 1, on one scale for all slices."""
    known = bits[np.isfinite(bits)]
    known = known if known.size else np.array([0.0, 1.0])   # constant regions, which tell nothing new
    low, high = (float(end) for end in np.quantile(known, [OUTLIERS, 1 - OUTLIERS]))
    raster = slices.slice_raster(Field(bits, field.spacing, mask=field.mask), cut)
    pixels = levels.bytes_of(raster.values, low, high)
    return Picture(
        "new information", pixels, raster.window, "density", low, high, unit="bits", empty=True, axes=cut.axes(field),
        quantity="new information",
    )
