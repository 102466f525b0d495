"""Which variables describe others, by the CF conventions: bounds of cells, places, weights, terms, mappings of grids.

Attributes of a variable name the variables that describe it. Changed by an error bound that is meant for data, they would
put all data elsewhere, so they are kept exactly like coordinates. A term that has more axes than what it describes is data,
such as the pressure at the surface of a hybrid coordinate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

ALWAYS = ("bounds", "climatology", "grid_mapping")
UNLESS_LARGER = ("coordinates", "formula_terms", "cell_measures")
PLACES = ("degrees_north", "degrees_east", "degree_north", "degree_east")


def describing(members: Mapping[str, Any]) -> Iterator[str]:
    """The names of members that describe others, or are places or dates.

    >>> import workbench as wb
    >>> lat = wb.Field([1.0, 2.0], metadata={"attributes": {"bounds": "lat_bnds"}})
    >>> list(describing({"lat": lat, "lat_bnds": wb.Field([[0.0, 1.0], [1.0, 2.0]]), "T": wb.Field([1.0])}))
    ['lat_bnds']
    """
    for name, member in members.items():
        metadata = getattr(member, "metadata", {})
        attributes = metadata.get("attributes", {})
        if metadata.get("calendar_coded") or attributes.get("units") in PLACES:
            yield name
        yield from _named(name, {**metadata.get("encoding", {}), **attributes}, members)


def _named(name: str, attributes: Mapping[str, Any], members: Mapping[str, Any]) -> Iterator[str]:
    """The members that the attributes of one name, in its group."""
    group, slash, _ = name.rpartition("/")
    axes = len(getattr(members[name], "shape", ()))
    for key in (*ALWAYS, *UNLESS_LARGER):
        stated = attributes.get(key)
        for word in stated.split() if isinstance(stated, str) else ():
            other = f"{group}{slash}{word}"
            if other in members and (key in ALWAYS or len(getattr(members[other], "shape", ())) <= axes):
                yield other
