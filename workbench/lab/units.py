"""Units and names of axes, as far as the data state them. Readers note units in several ways; nothing is guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.data import Field, Particles

LENGTHS = ("length", "positions")   # keys of units of length
UNSTATED = "not stated"             # how readers begin when a file has no units


def unit_of_length(metadata: Mapping[str, Any]) -> str:
    """The unit of positions; empty if it is not stated.

    >>> unit_of_length({"units": {"positions": "comoving Mpc/h"}}), unit_of_length({"units": "Mpc/h, km/s"})
    ('Mpc/h', 'Mpc/h')
    """
    units = metadata.get("units")
    if isinstance(units, Mapping):
        units = next((units[key] for key in LENGTHS if key in units), "")
    if not isinstance(units, str) or units.startswith(UNSTATED):
        return ""
    return units.partition(",")[0].strip().removeprefix("comoving ")


def unit_of_values(field: Field) -> str:
    """The unit of a field's values; empty if it is not stated.

    >>> unit_of_values(Field([273.0], metadata={"units": "K"}))
    'K'
    """
    units = field.metadata.get("units")
    return units if isinstance(units, str) and not units.startswith(UNSTATED) else ""


def density_unit(particles: Particles) -> str:
    """The unit of particles per area.

    >>> density_unit(Particles([[0.0, 0.0]], metadata={"units": "nm"})), density_unit(Particles([[0.0, 0.0]]))
    ('particles per nm²', 'particles per unit area')
    """
    unit = unit_of_length(particles.metadata)
    if not unit:
        return "particles per unit area"
    return f"particles per {unit if unit.isalpha() else f'({unit})'}²"


def axis_names(data: Particles | Field) -> tuple[str, ...]:
    """The name of each axis: x, y, z of particles; of fields those of the file, or their numbers.

    >>> axis_names(Particles([[0.0, 0.0]])), axis_names(Field([[1.0]]))
    (('x', 'y'), ('axis 0', 'axis 1'))
    """
    if isinstance(data, Particles):
        return ("x", "y", "z")[: data.dimensions]
    count = len(data.shape)
    given = data.metadata.get("dimensions")
    if isinstance(given, list | tuple) and len(given) == count and all(isinstance(name, str) and name for name in given):
        return tuple(given)
    return tuple(f"axis {number}" for number in range(count))
