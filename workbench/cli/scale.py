"""The scale of the data beside the bound, shown before compression: it reveals a bound in the wrong unit."""

from __future__ import annotations

from typing import Any

from workbench.archive.content.registry import content_of
from workbench.cli.source import readable
from workbench.data.units import unit_of
from workbench.guarantees import Bound


def scale_of(data: Any, bound: Bound) -> dict[str, Any]:
    """The range of a field, or the mean spacing and extent of particles, and the absolute value of the bound.

    >>> from workbench.data import Field, Particles
    >>> from workbench.guarantees import Relative
    >>> scale_of(Field([1.0, 2.0, 5.0], metadata={"units": "K"}), Relative(0.01))
    {'range': 4.0, 'lower': 1.0, 'upper': 5.0, 'units': 'K', 'limit': 0.04}
    >>> scale_of(Particles([[0.0, 0.0], [3.0, 4.0]], metadata={"units": "Mpc/h, km/s"}), Relative(0.01))["units"]
    'Mpc/h'
    """
    found, ends = content_of(data).scale(data)
    limit = bound.limit(ends)
    unit = unit_of(data)
    if unit and "units" not in found:
        found = {**found, "units": unit}
    return {**found, "limit": None if limit.relative else limit.value}


def in_words(scale: dict[str, Any], bound: Bound) -> str:
    """The same on one line.

    >>> from workbench.guarantees import Absolute
    >>> in_words({"range": 3.2e-7, "limit": 0.01}, Absolute(0.01))
    'range 3.2e-07, bound 0.01'
    """
    parts = [f"{name.replace('_', ' ')} {readable(value)}" for name, value in scale.items() if name != "limit"]
    limit = scale["limit"]
    return ", ".join([*parts, f"bound {bound.eb:g} of each value" if limit is None else f"bound {limit:g}"])
