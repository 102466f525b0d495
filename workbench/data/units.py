"""Units of lengths and values, as far as the data state them; `unit_grammar.py` says what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.data.field import Field
from workbench.data.particles import Particles
from workbench.data.trajectory import Trajectory

LENGTHS = ("length", "positions")   # keys of units of length
UNSTATED = "not stated"             # how readers begin when a file has no units
IN_CGS = ("Unit length in cgs (U_L)", "UnitLength_in_cm")   # of SWIFT and of Gadget


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


def unit_of_axes(field: Field) -> str:
    """The unit of a field's spacing; empty if it is not stated. One unit alone is that of the values.

    >>> unit_of_axes(Field([273.0], metadata={"units": {"length": "m"}}))
    'm'
    >>> unit_of_axes(Field([273.0], metadata={"units": "K"}))
    ''
    """
    return unit_of_length(field.metadata) if isinstance(field.metadata.get("units"), Mapping) else ""


def unit_of(data: Particles | Field | Trajectory) -> str:
    """The unit in which errors of these data are: of values, or of positions; empty if it is not stated.

    >>> unit_of(Particles([[0.0, 0.0]], metadata={"units": {"UnitLength_in_cm": 3.0856776e21}}))
    '3.0856776e+21 cm'
    """
    if isinstance(data, Field):
        return unit_of_values(data)
    units = data.metadata.get("units")
    if isinstance(units, Mapping):
        for key in IN_CGS:
            if key in units:
                value = units[key][0] if isinstance(units[key], list | tuple) else units[key]
                return f"{float(value):.8g} cm"
    return unit_of_length(data.metadata)
