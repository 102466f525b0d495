"""Whether files are parts of one dataset: variables, types, units and grids as in the others, no overlap.

What xarray would fill with missing values, repeat or leave out when it joins them is refused here, with the names of
the file and of the variable.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.errors import WorkbenchError

Parts = Mapping[str, Any]   # a dataset of xarray for each file, by its name


def require_same_variables(parts: Parts, first: str, other: str) -> None:
    """Refuse a file whose variables have other names, types, dimensions or units than those of the first."""
    require_same_names("", parts, first, other)
    for name, variable in parts[first].variables.items():
        mine, its = _form(variable), _form(parts[other].variables[name])
        if mine != its:
            raise WorkbenchError(f"{other} does not fit {first}: {name!r} is {its}, and {mine} there")


def require_same_names(kind: str, files: Mapping[str, Any], first: str, other: str) -> None:
    """Refuse a file that has variables, or groups, which the first lacks, or the other way."""
    one, two = (list(getattr(files[file], "variables", files[file])) for file in (first, other))
    if strangers := [name for name in (*one, *two) if name not in one or name not in two]:
        has = first if strangers[0] in one else other
        raise WorkbenchError(f"{other} does not fit {first}: only {has} has {kind}{strangers[0]!r}")


def _form(variable: Any) -> str:
    """What must be the same of a variable: its type, dimensions and unit. Text may have any length."""
    kind, calendar = str(variable.dtype), variable.encoding.get("calendar")
    if variable.dtype.kind in "OUST":   # dates of a calendar that NumPy lacks are objects, like text
        kind = "text" if calendar is None else f"dates of the calendar {calendar}"
    units = variable.attrs.get("units")
    return f"{kind} ({', '.join(map(str, variable.dims))})" + (f" in {units}" if units is not None else "")


def dimensions_that_differ(parts: Parts) -> list[str]:
    """The dimensions along which files are joined; all others must have the same length."""
    first, *others = parts
    along = []
    for name in parts[first].sizes:
        indexes = [part.indexes.get(name) for part in parts.values()]
        if indexes[0] is not None and any(not indexes[0].equals(index) for index in indexes[1:]):
            along.append(name)
            continue
        for other in others:
            if parts[first].sizes[name] != parts[other].sizes[name]:
                raise WorkbenchError(
                    f"{other} does not fit {first}: {name!r} has {parts[other].sizes[name]:,} points, "
                    f"{parts[first].sizes[name]:,} there, and no coordinates along which files could be joined"
                )
    return along


def require_same_values(parts: Parts, first: str, other: str, along: Sequence[str]) -> None:
    """Refuse variables that differ although they have none of the dimensions along which files are joined."""
    for name, variable in parts[first].variables.items():
        if not set(variable.dims) & set(along) and not variable.equals(parts[other].variables[name]):
            raise WorkbenchError(
                f"{other} does not fit {first}: {name!r} has other values there, and no dimension {listed(along)}"
            )


def require_order(parts: Parts, along: Sequence[str]) -> None:
    """Refuse coordinates that overlap or have no order, and files of which some are missing in a grid of them."""
    for name in along:
        indexes = {file: part.indexes[name] for file, part in parts.items()}
        for file, index in indexes.items():
            if not (index.is_unique and (index.is_monotonic_increasing or index.is_monotonic_decreasing)):
                raise WorkbenchError(f"{file} must have {name!r} in order, each once, to be joined with other files")
        in_order = sorted(indexes.items(), key=lambda entry: entry[1].min())
        for (before, one), (after, two) in itertools.pairwise(in_order):
            if not one.equals(two) and two.min() <= one.max():
                raise WorkbenchError(
                    f"{after} does not fit {before}: {name!r} overlaps, from {two.min()} on; files must have the same "
                    "coordinates there, or follow each other"
                )
    places: dict[tuple[Any, ...], str] = {}
    for file, part in parts.items():
        place = tuple(part.indexes[name].min() for name in along)
        if place in places:
            raise WorkbenchError(f"{file} and {places[place]} hold the same {listed(along)}: give one of them")
        places[place] = file
    counts = [len({place[axis] for place in places}) for axis in range(len(along))]
    if math.prod(counts) != len(parts):
        raise WorkbenchError(
            f"files that differ in {listed(along)} must be {' x '.join(map(str, counts))}, one for each combination; got "
            f"{len(parts)}"
        )


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> listed(["lat", "lon"])
    "'lat' and 'lon'"
    """
    return " and ".join(map(repr, names))
