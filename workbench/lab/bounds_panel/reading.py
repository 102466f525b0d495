"""What lies under the pointer in the pictures of the bounds panel: the same cell, or the same pixel, in all of them."""

from __future__ import annotations

from workbench.data import Field, Particles
from workbench.lab.bounds_panel.pictures import pictures
from workbench.lab.bounds_panel.state import BoundsState
from workbench.lab.bounds_panel.trial import Trial
from workbench.lab.description import Reading
from workbench.lab.grid import Grid, grid_of
from workbench.lab.projection import Projection, pixel_area
from workbench.lab.reading import NO_VALUE, cell_text, count_text, error_text, particle_reading, value_text


def reading(
    data: Particles | Field, state: BoundsState, trial: Trial | None, place: tuple[float, float]
) -> Reading | None:
    """Original, decoded and error, also in units of the bound; of particles, their numbers. None beyond the data."""
    trial = None if trial is None or trial.outcome is None else trial
    if isinstance(data, Particles):
        return _of_particles(data, state, trial, place)
    cell = state.cut(data).cell(data, *place)
    if cell is None:
        return None
    values = [value_text(data, cell)]
    if trial is not None:
        decoded = trial.decoded
        assert isinstance(decoded, Field)
        known = values[0] != NO_VALUE
        values += [str(decoded.values[cell]) if known else NO_VALUE, error_text(data, decoded, trial.limit, cell)]
    return Reading(tuple(values), place_text(grid_of(data), cell))


def place_text(grid: Grid, cell: tuple[int, ...]) -> str:
    """The coordinates of a cell, where there are some, and its index.

    >>> import numpy as np
    >>> from workbench.lab.grid import GridAxis
    >>> place_text((GridAxis.of("lat", np.array([60.0, 30.0]), "degrees_north"), GridAxis("lon", 4)), (1, 2))
    'lat 30 °N, cell [1, 2]'
    """
    known = (f"{axis.name} {axis.text(index)}" for axis, index in zip(grid, cell, strict=True) if axis.texts)
    return ", ".join([*known, cell_text(cell)])


def _of_particles(
    particles: Particles, state: BoundsState, trial: Trial | None, place: tuple[float, float]
) -> Reading | None:
    original = pictures(particles, state, None)[0]
    shape, shown = original.pixels.shape, [particles]
    if trial is not None:
        assert isinstance(trial.decoded, Particles)
        shown.append(trial.decoded)
    counted = particle_reading(shown, state.axis, original.window, shape, place)
    if len(shown) == 1 or not all(counted.values):
        return counted
    one, other = (Projection.of(each, state.axis).count_at(original.window, shape, *place) for each in shown)
    assert one is not None
    assert other is not None
    difference = count_text(other - one, pixel_area(original.window, shape), particles)
    return Reading((*counted.values, difference), counted.place)
