"""How the array at a site is shown: positions as particles, grids as slices, all else as a curve.

Complex numbers are shown by their size. Labels of particles are shown where the particles are.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from workbench.backend import to_host
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.lab.propagation_panel.state import PropagationState
from workbench.lab.propagation_panel.travel import Baseline, Travel
from workbench.lab.remembered import remembered
from workbench.propagation.error_sizes import root_mean_square

Form = Literal["positions", "labels", "field", "line"]
FEWEST_POINTS = 4


class Arrangement(NamedTuple):
    """How a site is shown, and of particles and their labels, the site of the positions."""

    form: Form
    positions: str = ""


def arrangement(base: Baseline, site: str) -> Arrangement:
    """How the array at a site is shown.

    >>> from workbench.propagation import Pipeline
    >>> base = Baseline(Pipeline([("sum", lambda x: x.sum())]).run(np.ones((8, 8))))
    >>> arrangement(base, "input").form, arrangement(base, "sum").form
    ('field', 'line')
    """
    if _holds_positions(base, site):
        return Arrangement("positions", site)
    array = base.run[site]
    if array.ndim == 1 and base.run.pipeline.categorical(site):
        for other in base.run.pipeline.sites:
            if _holds_positions(base, other) and len(base.run[other]) == len(array):
                return Arrangement("labels", other)
    return Arrangement("field" if array.ndim >= 2 else "line")


def _holds_positions(base: Baseline, site: str) -> bool:
    array = base.run[site]
    if array.ndim != 2 or array.shape[1] not in (2, 3) or array.dtype not in (np.float32, np.float64):
        return False
    return site in base.run.pipeline.boxes or (len(array) >= FEWEST_POINTS and len(array) > array.shape[1])


def original_particles(base: Baseline, site: str) -> Particles:
    """The positions at a site, in their box."""

    def made() -> Particles:
        positions = to_host(base.run[site])
        if not np.isfinite(positions).all():
            raise WorkbenchError(f"the positions at {site} must be finite to be shown; some are not")
        return Particles(positions, box=base.run.pipeline.boxes.get(site))

    return remembered(base, "propagation: particles", site, made)


def original_field(base: Baseline, site: str) -> Field:
    """The values at a site as they are without the error, as a field of one to four axes."""
    return remembered(base, "propagation: field", site, lambda: _field(base.run[site]))


def changed_field(travel: Travel, site: str) -> Field:
    """The values at a site with the error."""
    if site not in travel.errors:
        return original_field(travel.base, site)
    return remembered(travel, "propagation: field", site, lambda: _field(travel.changed[site]))


def difference_fields(travel: Travel, site: str) -> tuple[Field, Field]:
    """Two fields whose difference is that of the values; for complex numbers, it is the size of the change."""
    if travel.original[site].dtype.kind != "c":
        return original_field(travel.base, site), changed_field(travel, site)

    def made() -> tuple[Field, Field]:
        size = _shaped(travel.difference(site))
        return Field(np.zeros(size.shape)), Field(size)

    return remembered(travel, "propagation: size of change", site, made)


def largest_change(travel: Travel, site: str) -> float:
    """The largest finite change of a value at a site."""
    change = _change(travel, site)
    return remembered(
        travel, "propagation: largest change", site, lambda: float(change.max(initial=0.0, where=np.isfinite(change)))
    )


def typical_size(base: Baseline, site: str) -> float:
    """The root mean square of the finite values at a site; 1 where all are zero."""

    def found() -> float:
        values = _shaped(base.run[site]).astype(np.float64)
        return root_mean_square(values[np.isfinite(values)]) or 1.0

    return remembered(base, "propagation: size", site, found)


def shown_slice(base: Baseline, travel: Travel | None, state: PropagationState) -> tuple[int, int]:
    """The component and the slice that are shown: the chosen ones, or those with the largest error."""
    shape, component, index = field_shape(base, state.look), state.component, state.index
    known = travel is not None and state.look in travel.reached
    if component is None:
        component = largest_component(travel, state.look) if len(shape) == 4 and known and travel is not None else 0
    if index is None:
        index = 0 if len(shape) < 3 else shape[-3:][state.axis] // 2
        if len(shape) >= 3 and known and travel is not None:
            index = largest_slice(travel, state.look, state.axis, component)
    return component, index


def largest_component(travel: Travel, site: str) -> int:
    """The component that has the largest error; the first where there is none."""
    return remembered(
        travel, "propagation: largest component", site, lambda: int(np.argmax(_change(travel, site).max(axis=(1, 2, 3))))
    )


def largest_slice(travel: Travel, site: str, axis: int, component: int) -> int:
    """The slice across an axis that has the largest error; the middle one where there is none."""

    def found() -> int:
        change = _change(travel, site)
        part = change[component] if change.ndim == 4 else change
        worst = part.max(axis=tuple(other for other in range(3) if other != axis))
        return int(np.argmax(worst)) if worst.max() > 0 else len(worst) // 2

    return remembered(travel, "propagation: largest slice", (site, axis, component), found)


def field_shape(base: Baseline, site: str) -> tuple[int, ...]:
    """The shape of a site as a field: one to four axes."""
    shape = base.run[site].shape
    return shape if 1 <= len(shape) <= 4 else (1,) if not shape else (math.prod(shape[:-3]), *shape[-3:])


def _change(travel: Travel, site: str) -> np.ndarray:
    """The size of the change of every value, kept because several questions are asked about it."""
    return remembered(travel, "propagation: change", site, lambda: _shaped(travel.difference(site)))


def _field(array: np.ndarray) -> Field:
    values = _shaped(to_host(array))
    return Field(values if values.dtype.kind == "f" and values.dtype.itemsize >= 4 else values.astype(np.float64))


def _shaped(array: np.ndarray) -> np.ndarray:
    """An array of real numbers with one to four axes."""
    values = to_host(array)
    if values.dtype.kind == "c":
        with np.errstate(all="ignore"):
            values = abs(values)
    shape = values.shape
    return values if 1 <= len(shape) <= 4 else values.reshape(1 if not shape else (-1, *shape[-3:]))
