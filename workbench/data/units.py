"""Units of lengths and values, as far as the data state them, and factors between units that people write.

A bound such as 10 pc means nothing to data in Mpc/h until both are factors of the same base units. Only units that are
products of powers of known ones are understood; anything else is refused by name rather than guessed. h, the Hubble
constant over 100 km/s/Mpc, counts as a base unit: kpc/h become Mpc/h, but not Mpc.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from workbench.data.field import Field
from workbench.data.particles import Particles
from workbench.errors import WorkbenchError

LENGTHS = ("length", "positions")   # keys of units of length
UNSTATED = "not stated"             # how readers begin when a file has no units
IN_CGS = ("Unit length in cgs (U_L)", "UnitLength_in_cm")   # of SWIFT and of Gadget

Base = dict[str, int]

# What each unit is, in powers of m, kg, s, K, h and others.
_KNOWN: dict[str, tuple[float, Base]] = {
    "m": (1.0, {"m": 1}), "g": (1e-3, {"kg": 1}), "s": (1.0, {"s": 1}), "K": (1.0, {"K": 1}), "h": (1.0, {"h": 1}),
    "mol": (1.0, {"mol": 1}), "1": (1.0, {}), "%": (0.01, {}), "percent": (0.01, {}),
    "pc": (3.0856775814913673e16, {"m": 1}), "AU": (1.495978707e11, {"m": 1}), "ly": (9.4607304725808e15, {"m": 1}),
    "angstrom": (1e-10, {"m": 1}), "Angstrom": (1e-10, {"m": 1}), "Å": (1e-10, {"m": 1}), "micron": (1e-6, {"m": 1}),
    "Msun": (1.988409870698051e30, {"kg": 1}), "N": (1.0, {"kg": 1, "m": 1, "s": -2}),
    "J": (1.0, {"kg": 1, "m": 2, "s": -2}), "W": (1.0, {"kg": 1, "m": 2, "s": -3}),
    "erg": (1e-7, {"kg": 1, "m": 2, "s": -2}),
    "Pa": (1.0, {"kg": 1, "m": -1, "s": -2}), "bar": (1e5, {"kg": 1, "m": -1, "s": -2}),
    "min": (60.0, {"s": 1}), "hour": (3600.0, {"s": 1}), "day": (86400.0, {"s": 1}), "yr": (31557600.0, {"s": 1}),
}
_PREFIXES = {"f": 1e-15, "p": 1e-12, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3, "c": 1e-2, "d": 1e-1, "h": 1e2, "k": 1e3,
             "M": 1e6, "G": 1e9, "T": 1e12}
_PREFIXED = ("m", "g", "s", "K", "pc", "N", "J", "W", "Pa", "bar", "yr", "mol")
_FACTOR = re.compile(r"(?P<name>[A-Za-zÅµ%]+|1)\^?(?P<power>-?\d+)?$")
_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*)$")


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


def unit_of(data: Particles | Field) -> str:
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


def number_and_unit(text: str) -> tuple[float, str]:
    """The number and the unit of a quantity as it is written.

    >>> number_and_unit("10 kpc/h")
    (10.0, 'kpc/h')
    """
    found = _NUMBER.match(text)
    if found is None or not found[2].strip():
        raise WorkbenchError(f'a quantity is a number and a unit, such as "10 pc"; got {text!r}')
    return float(found[1]), found[2].strip()


def factor_between(unit: str, other: str) -> float:
    """How many of the other unit one of this is.

    >>> factor_between("kpc/h", "Mpc/h"), factor_between("hPa", "kg m-1 s-2")
    (0.001, 100.0)
    """
    (size, base), (other_size, other_base) = _parsed(unit), _parsed(other)
    if base != other_base:
        raise WorkbenchError(f"{unit} and {other} measure different things: give the bound in a unit like {other}")
    return float(f"{size / other_size:.12g}")


def _parsed(unit: str) -> tuple[float, Base]:
    """The size of a unit in base units, and their powers without zeros."""
    number = _NUMBER.match(unit)
    size, rest = (float(number[1]), number[2]) if number and number[2] else (1.0, unit)
    total: Base = {}
    for place, part in enumerate(rest.replace("**", "^").split("/")):
        for word in re.split(r"[\s*·.]+", part.strip()):
            if not word:
                continue
            found = _FACTOR.match(word)
            known = _one(found["name"]) if found else None
            if found is None or known is None:
                raise WorkbenchError(f"the unit {unit!r} is not known: {word!r}; give a number in the unit of the data")
            power = int(found["power"] or 1) * (-1 if place else 1)
            size *= known[0] ** power
            for name, each in known[1].items():
                total[name] = total.get(name, 0) + each * power
    return size, {name: power for name, power in total.items() if power}


def _one(name: str) -> tuple[float, Base] | None:
    """A unit with or without a prefix."""
    if name in _KNOWN:
        return _KNOWN[name]
    prefix, rest = name[:1], name[1:]
    if prefix in _PREFIXES and rest in _PREFIXED:
        return _PREFIXES[prefix] * _KNOWN[rest][0], _KNOWN[rest][1]
    return None
