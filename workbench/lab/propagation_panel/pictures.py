"""The pictures of the propagation panel: the array at a site without the error, with it, and the difference.

A picture is made once for each view setting; later calls return the same object, so a view need not send it again.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from workbench.data import Field
from workbench.guarantees import Limit
from workbench.lab import levels, projection, slices
from workbench.lab.density import density_picture, density_pixels
from workbench.lab.description import Axes, Marks, Picture, Window
from workbench.lab.projection import Projection, shown_axes
from workbench.lab.propagation_panel.arrays import (
    arrangement,
    changed_field,
    difference_fields,
    field_shape,
    largest_change,
    original_field,
    original_particles,
    shown_slice,
    typical_size,
)
from workbench.lab.propagation_panel.state import PropagationState
from workbench.lab.propagation_panel.travel import Baseline, Travel
from workbench.lab.remembered import remembered
from workbench.lab.slices import Cut

WIDE = 20.0           # the ratio of the largest value to the median above which colours follow the logarithm
DECADES = 16          # of changes that are shown, at most
BELOW = 6             # decades below the largest change, where unchanged values are shown
MOST_MARKS = 20_000
MARK = "#ff3df0"      # of hit values and moved particles: no colour of the maps
RING = 9.0


def pictures(base: Baseline, travel: Travel | None, state: PropagationState) -> tuple[Picture, ...]:
    """Two or three pictures of the chosen site; none for numbers that are shown as a curve."""
    shown = arrangement(base, state.look)
    if shown.form == "positions":
        return _of_positions(base, travel, state)
    if shown.form == "labels":
        return _of_labels(base, travel, state, shown.positions)
    return _of_field(base, travel, state) if shown.form == "field" else ()


# Grids.

def _of_field(base: Baseline, travel: Travel | None, state: PropagationState) -> tuple[Picture, ...]:
    cut, site = state.cut(*shown_slice(base, travel, state)), state.look
    original = remembered(base, "propagation: original", (site, cut), lambda: _values(base, site, cut))
    if travel is None or site in travel.stopped:
        return (original,)
    made = remembered(
        travel, "propagation: pictures", (site, cut, state.scale),
        lambda: (_changed(travel, site, cut, original), _difference(travel, site, cut, state.scale)),
    )
    if not (marks := _hits(base, travel, state, cut)):
        return original, *made
    return original, *remembered(
        travel, "propagation: marked pictures", (site, cut, state.scale),
        lambda: tuple(replace(picture, marks=marks) for picture in made),
    )


def is_wide(base: Baseline, site: str) -> bool:
    """Whether values span so many decades that colours follow their logarithm."""

    def found() -> bool:
        values = original_field(base, site).values
        positive = values[np.isfinite(values) & (values > 0)]
        if positive.size < values.size // 2 or bool((values < 0).any()):
            return False
        return float(positive.max()) > WIDE * float(np.median(positive))

    return remembered(base, "propagation: wide", site, found)


def _values(base: Baseline, site: str, cut: Cut) -> Picture:
    field, logarithmic = original_field(base, site), is_wide(base, site)
    low, high = slices.slice_range(field, cut, logarithmic)
    raster = slices.slice_raster(field, cut)
    pixels = levels.bytes_of(raster.values, low, high, logarithmic, np.uint16)
    quantity = f"|{site}|" if base.run[site].dtype.kind == "c" else site
    return Picture(
        "original", pixels, raster.window, "values", low, high, logarithmic=logarithmic, empty=True, axes=_axes(cut, field),
        quantity=quantity,
    )


def _changed(travel: Travel, site: str, cut: Cut, original: Picture) -> Picture:
    field = changed_field(travel, site)
    raster = slices.slice_raster(field, cut)
    pixels = levels.bytes_of(raster.values, original.low, original.high, original.logarithmic, np.uint16)
    return replace(original, title="with error", pixels=pixels)


def _difference(travel: Travel, site: str, cut: Cut, scale: str) -> Picture:
    """The change of each value: its size on a logarithmic scale, or with its sign."""
    before, after = difference_fields(travel, site)
    raster = slices.error_raster(before, after, Limit("absolute", 1.0), cut)
    axes, largest = _axes(cut, before), largest_change(travel, site)
    if scale == "sign" and travel.original[site].dtype.kind != "c":
        most = largest or 1.0
        with np.errstate(invalid="ignore"):
            pixels = levels.difference_bytes(raster.values, most)
        return Picture("change", pixels, raster.window, "difference", -most, most, empty=True, axes=axes)
    return _sizes(abs(raster.values), raster.window, largest, typical_size(travel.base, site), axes)


def _axes(cut: Cut, field: Field) -> Axes:
    """The names of the axes."""
    return replace(cut.axes(field), depth="")   # the note has it, as there is no room above narrow pictures


def _sizes(sizes: np.ndarray, window: Window, largest: float, unit: float, axes: Axes) -> Picture:
    """Sizes of changes, in units of the typical value, on a logarithmic scale; unchanged values are at its lower end."""
    with np.errstate(all="ignore"):
        shares = sizes / unit
        changed = shares[np.isfinite(shares) & (shares > 0)]
        high = 10.0 ** math.ceil(math.log10(_within(largest / unit)))
        least = float(np.quantile(changed, 0.02)) if changed.size else high
        low = 10.0 ** math.floor(math.log10(_within(max(least, high * 10.0**-DECADES))))
        low = min(low, high * 10.0**-BELOW if bool((shares == 0).any()) else high / 10)
    pixels = levels.bytes_of(np.minimum(shares, high), low, high, logarithmic=True)
    return Picture("change / rms", pixels, window, "density", low, high, logarithmic=True, empty=True, axes=axes)


def _within(value: float) -> float:
    """A value for which there is a power of ten."""
    return min(max(value, 1e-300), 1e300) if math.isfinite(value) else 1e300


def _hits(base: Baseline, travel: Travel, state: PropagationState, cut: Cut) -> tuple[Marks, ...]:
    """Rings around the values in which bits were changed, as far as they are in the slice."""
    indices = hit_indices(travel, state.site)
    if state.look != state.site or not indices:
        return ()
    shape, found = field_shape(base, state.look), []
    complex_values = base.run[state.look].dtype.kind == "c"
    for index in indices:
        place = [int(each) for each in np.unravel_index(index // 2 if complex_values else index, shape)]
        if len(shape) == 4 and place.pop(0) != cut.time:
            continue
        if len(shape) >= 3 and place.pop(cut.axis) != cut.index:
            continue
        found.append((place[1] + 0.5, place[0] + 0.5))
    layer = "hit values" if len(indices) > 1 else ""   # a single ring explains itself
    return (Marks("points", np.array(found), MARK, layer, RING, dashed=True),) if found else ()


def hit_indices(travel: Travel, site: str) -> list[int]:
    """The flat indices of the values in which bits were changed, as far as the run notes them."""
    return [int(note["index"]) for note in travel.changed.notes.get(site, ()) if "index" in note]


# Particles.

def _of_positions(base: Baseline, travel: Travel | None, state: PropagationState) -> tuple[Picture, ...]:
    particles, key = original_particles(base, state.look), _view(base, state)
    original, counts = remembered(base, "propagation: density", key, lambda: _density(base, state))
    if travel is None or state.look in travel.stopped:
        return (original,)

    def made() -> tuple[Picture, Picture]:
        own, axes = travel.changed[state.look], list(shown_axes(particles, seen_along(particles.dimensions, state)))
        found = _counts(own[:, axes], original)
        area = projection.pixel_area(original.window, found.shape)
        pixels = density_pixels(original, found)
        difference = found.astype(np.int32) - counts
        most = levels.difference_range(difference)
        marks = _movements(travel, state, axes)
        changed = replace(original, title="with error", pixels=pixels, marks=marks)
        return changed, Picture(
            "difference", levels.difference_bytes(difference, most), original.window, "difference", -most / area,
            most / area, unit=original.unit, empty=True, axes=original.axes, marks=marks,
        )

    return original, *remembered(travel, "propagation: density", key, made)


def seen_along(dimensions: int, state: PropagationState) -> int:
    """The axis along which particles are seen: the third, unless another is chosen."""
    return 2 - state.axis if dimensions == 3 else 0


def _view(base: Baseline, state: PropagationState) -> tuple[object, ...]:
    return state.look, state.axis, state.window, state.pixels


def _density(base: Baseline, state: PropagationState, site: str = "") -> tuple[Picture, np.ndarray]:
    particles = original_particles(base, site or state.look)
    return density_picture(particles, seen_along(particles.dimensions, state), state.window, state.pixels)


def _counts(places: np.ndarray, original: Picture) -> np.ndarray:
    """How many of these places are in each pixel of a picture."""
    across, up = (np.ascontiguousarray(places[:, axis]) for axis in (0, 1))
    seen = Projection(across, up, (-math.inf, math.inf, -math.inf, math.inf))
    return seen.within(original.window).counts(original.pixels.shape)


def _movements(travel: Travel, state: PropagationState, axes: list[int]) -> tuple[Marks, ...]:
    """Lines from the old to the new places of moved particles, if they are few."""
    before, after = (values[state.look][:, axes] for values in (travel.original, travel.changed))
    moved = np.flatnonzero((before != after).any(axis=1))
    if not 0 < len(moved) <= MOST_MARKS // 10:
        return ()
    rings = Marks("points", before[moved], MARK, "hit particles", RING, dashed=True)
    ends = after[moved]
    shown = np.isfinite(ends).all(axis=1) & (abs(ends) < 1e6 * (1 + abs(before[moved]).max())).all(axis=1)
    lines = np.concatenate([before[moved][shown], ends[shown]], axis=1)
    return rings, Marks("lines", lines, MARK, "movements")


# Labels of particles.

def _of_labels(base: Baseline, travel: Travel | None, state: PropagationState, positions: str) -> tuple[Picture, ...]:
    """The particles, and those of them whose label has changed."""
    key = _view(base, state)
    original, _ = remembered(base, "propagation: density", (positions, *key), lambda: _density(base, state, positions))
    if travel is None or state.look in travel.stopped:
        return (original,)

    def made() -> Picture:
        changed = np.flatnonzero(travel.original[state.look] != travel.changed[state.look])
        places = original_particles(base, positions)
        axes = list(shown_axes(places, seen_along(places.dimensions, state)))
        of_changed = np.asarray(places.positions)[changed][:, axes]
        few = of_changed[:: max(1, len(of_changed) // MOST_MARKS)]
        return replace(
            original, title=f"with another label: {len(changed):,}", colours="density",
            pixels=density_pixels(original, _counts(of_changed, original)),
            marks=(Marks("points", few, MARK, "changed labels", 2.0),) if 0 < len(few) <= MOST_MARKS // 10 else (),
        )

    return original, remembered(travel, "propagation: labels", key, made)


def view_note(base: Baseline, travel: Travel | None, state: PropagationState) -> str:
    """The part of an array that is seen, and the meaning of a pixel where that is not one value."""
    form = arrangement(base, state.look).form
    if form == "line":
        return ""
    if form != "field":
        return "seen along an axis: particles per area"
    field: Field = original_field(base, state.look)
    cut = state.cut(*shown_slice(base, travel, state))
    rows, columns = (part.stop - part.start for part in cut.cells(field))
    depth = cut.axes(field).depth.replace("time =", "component =")   # the first of four axes
    parts = [f"{depth}{', which has the largest error' if state.index is None else ''}"] if depth else []
    if max(rows, columns) > state.pixels:
        parts.append("each pixel is the mean of several values, and of the change the largest among them")
    return "; ".join(parts)
