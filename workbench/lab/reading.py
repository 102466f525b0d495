"""The exact content of data at one place of a picture, as text: pixels are too coarse, and may be means of many values."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.data import Field, Particles
from workbench.guarantees import Limit
from workbench.lab.description import Reading, Window
from workbench.lab.projection import Projection, pixel_area
from workbench.lab.units import density_unit

NO_VALUE = "no value"


def cell_text(cell: Sequence[int]) -> str:
    """A cell as its index in the array.

    >>> cell_text((3, 4))
    'cell [3, 4]'
    """
    return f"cell [{', '.join(map(str, cell))}]"


def value_text(field: Field, cell: tuple[int, ...]) -> str:
    """The value of a cell, with all its digits.

    >>> value_text(Field([0.1, float("nan")]), (0,)), value_text(Field([0.1, float("nan")]), (1,))
    ('0.1', 'no value')
    """
    return str(field.values[cell]) if field.valid[cell] else NO_VALUE


def error_text(original: Field, decoded: Field, limit: Limit, cell: tuple[int, ...]) -> str:
    """The error of a cell, and as a share of what it may be.

    >>> error_text(Field([2.0]), Field([2.05]), Limit("absolute", 0.1), (0,))
    '0.05 = 0.5 bounds'
    """
    if not original.valid[cell]:
        return NO_VALUE
    value = float(original.values[cell])
    error = float(decoded.values[cell]) - value
    allowed = limit.value * abs(value) if limit.relative else limit.value
    return f"{error:.6g} = {error / allowed:.4g} bounds" if allowed > 0 else f"{error:.6g}"


def particle_reading(
    shown: Sequence[Particles], axis: int, window: Window, shape: tuple[int, ...], place: tuple[float, float]
) -> Reading:
    """How many particles of each set are in the pixel at a place of the picture of a window, and per area.

    >>> particles = Particles([[0.1, 0.1, 0.5], [0.2, 0.2, 0.5]], box=1.0)
    >>> particle_reading([particles], 2, (0.0, 1.0, 0.0, 1.0), (2, 2), (0.3, 0.3)).values
    ('2 here, 8 per unit area',)
    """
    rows, columns = shape
    counts = [Projection.of(particles, axis).count_at(window, (rows, columns), *place) for particles in shown]
    area = pixel_area(window, shape)
    return Reading(tuple("" if count is None else count_text(count, area, shown[0]) for count in counts))


def count_text(count: int, area: float, particles: Particles) -> str:
    """A number of particles, or a difference of two, and how many per area that is."""
    return f"{count:,} here, {count / area:.4g} {density_unit(particles).removeprefix('particles ')}"
