"""The pictures of the bounds panel: original, decoded, and difference.

A picture is made once for each view setting; later calls return the same object, so a view need not send it again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workbench.data import Field, Particles
from workbench.data.units import unit_of_values
from workbench.guarantees import Limit
from workbench.lab import levels, projection, slices
from workbench.lab.bounds_panel.state import BoundsState
from workbench.lab.bounds_panel.trial import Trial
from workbench.lab.colour_scale import scale_of
from workbench.lab.density import density_picture, density_pixels
from workbench.lab.description import Picture
from workbench.lab.extremes import extremes
from workbench.lab.projection import Projection
from workbench.lab.remembered import remembered


def pictures(data: Particles | Field, state: BoundsState, trial: Trial | None) -> tuple[Picture, ...]:
    """The original and, once there is a trial, the decoded data and the error. A line of values is drawn as a chart."""
    if isinstance(data, Particles):
        return _of_particles(data, state, trial)
    return _of_field(data, state, trial) if len(data.shape) > 1 else ()


def note(data: Particles | Field, state: BoundsState) -> str:
    """The meaning of a pixel that shows several values."""
    if isinstance(data, Particles) or len(data.shape) == 1:
        return ""
    rows, columns = _original(data, state)[1]
    if rows * columns == 1:
        return ""
    return f"each pixel is the mean of up to {rows} x {columns} values, and of the error the largest among them"


# Fields.

def _of_field(field: Field, state: BoundsState, trial: Trial | None) -> tuple[Picture, ...]:
    original, _ = _original(field, state)
    if trial is None or trial.outcome is None:
        return (original,)
    decoded, limit = trial.decoded, trial.limit
    assert isinstance(decoded, Field)
    made = remembered(decoded, "pictures", _view(field, state), lambda: _decoded(field, decoded, limit, state, original))
    return original, *made


def _original(field: Field, state: BoundsState) -> tuple[Picture, tuple[int, int]]:
    """The picture, and how many values a pixel represents."""

    def made() -> tuple[Picture, tuple[int, int]]:
        cut = state.cut(field)
        low, high = slices.slice_range(field, cut, state.logarithmic)
        raster = slices.slice_raster(field, cut)
        pixels = levels.bytes_of(raster.values, low, high, state.logarithmic, np.uint16)
        picture = Picture(
            "original", pixels, raster.window, "values", low, high, logarithmic=state.logarithmic,
            unit=unit_of_values(field), empty=True, axes=cut.axes(field), quantity=field.name or "value",
            limits="full" if state.logarithmic or scale_of(field, *extremes(field)) == "linear" else "1-99",
        )
        return picture, raster.block

    return remembered(field, "pictures", _view(field, state), made)


def _decoded(field: Field, decoded: Field, limit: Limit, state: BoundsState, original: Picture) -> tuple[Picture, Picture]:
    """The decoded field, on the scale of the original and empty where that is; and the error."""
    cut = state.cut(field)
    shown = slices.slice_raster(decoded, cut, like=field)
    pixels = levels.bytes_of(shown.values, original.low, original.high, original.logarithmic, np.uint16)
    error = slices.error_raster(field, decoded, limit, cut)
    most, unit = (1.0, "bounds") if limit.value > 0 else (_largest(error.values), original.unit)
    difference = levels.difference_bytes(error.values, most)
    return (
        replace(original, title="decoded", pixels=pixels),
        Picture(
            "error", difference, error.window, "difference", -most, most, unit=unit, empty=True, axes=original.axes,
            quantity="error",
        ),
    )


def _largest(values: np.ndarray) -> float:
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max(initial=0.0)) or 1.0


def _view(data: Particles | Field, state: BoundsState) -> tuple[object, ...]:
    return state.cut(data), state.logarithmic


# Particles.

def _of_particles(particles: Particles, state: BoundsState, trial: Trial | None) -> tuple[Picture, ...]:
    original, counts = density_picture(particles, state.axis, state.window, state.pixels, state.logarithmic)
    if trial is None or trial.outcome is None:
        return (original,)
    decoded = trial.decoded
    assert isinstance(decoded, Particles)
    made = remembered(decoded, "pictures", _view(particles, state), lambda: _moved(decoded, state, original, counts))
    return original, *made


def _moved(decoded: Particles, state: BoundsState, original: Picture, counts: np.ndarray) -> tuple[Picture, Picture]:
    """The decoded particles in the pixels of the original, and the difference of the counts."""
    shape = original.pixels.shape
    moved = Projection.of(decoded, state.axis).within(original.window).counts(shape)
    difference = moved - counts
    most = levels.difference_range(difference)
    area = projection.pixel_area(original.window, shape)
    pixels = density_pixels(original, moved)
    changed = levels.difference_bytes(difference, most)
    return (
        replace(original, title="decoded", pixels=pixels),
        Picture(
            "difference", changed, original.window, "difference", -most / area, most / area, unit=original.unit, empty=True,
            axes=original.axes,
        ),
    )
