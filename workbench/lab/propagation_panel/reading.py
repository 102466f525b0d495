"""What lies under the pointer in the pictures of the propagation panel: one value, before and after."""

from __future__ import annotations

import numpy as np

from workbench.lab.description import Reading
from workbench.lab.propagation_panel.arrays import (
    arrangement,
    field_shape,
    original_field,
    original_particles,
    shown_slice,
)
from workbench.lab.propagation_panel.pictures import pictures, seen_along
from workbench.lab.propagation_panel.state import PropagationState
from workbench.lab.propagation_panel.travel import Baseline, Travel
from workbench.lab.reading import cell_text, particle_reading


def reading(
    base: Baseline, travel: Travel | None, state: PropagationState, place: tuple[float, float]
) -> Reading | None:
    """The value at a place of a grid, or the particles per area there; None beyond, and where no picture is."""
    shown = arrangement(base, state.look)
    if shown.form in ("positions", "labels"):
        (original, *_), particles = pictures(base, travel, state), original_particles(base, shown.positions)
        along = seen_along(particles.dimensions, state)
        return particle_reading([particles], along, original.window, original.pixels.shape, place)
    if shown.form == "line":
        return None
    cell = state.cut(*shown_slice(base, travel, state)).cell(original_field(base, state.look), *place)
    if cell is None:
        return None
    flat = int(np.ravel_multi_index(cell, field_shape(base, state.look)))
    before = base.run[state.look].reshape(-1)[flat]
    if travel is None or state.look in travel.stopped:
        return Reading((str(before),), cell_text(cell))
    after = travel.changed[state.look].reshape(-1)[flat]
    return Reading((str(before), str(after), difference_text(before, after)), cell_text(cell))


def difference_text(before: np.generic, after: np.generic) -> str:
    """The change of a value, and as a share of it.

    >>> difference_text(np.float64(2.0), np.float64(2.5)), difference_text(np.float64(2.0), np.float64("nan"))
    ('0.5 = 25% of the value', 'not finite')
    """
    wide = np.complex128 if before.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        one, other = wide(before), wide(after)
        change = other - one
        if not np.isfinite(change):
            return "not finite" if np.isfinite(one) else "unchanged"
        if change == 0:
            return "unchanged"
        told = f"{abs(change):.6g}" if wide is np.complex128 else f"{change:.6g}"
        share = abs(change) / abs(one) if one != 0 else np.inf
        return f"{told} = {100 * share:.3g}% of the value" if np.isfinite(share) else told
