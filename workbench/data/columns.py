"""Further columns of particles, by name: potentials, temperatures, magnetic fields, types, flags.

Each has a number or a row of numbers for every particle. Names can be those of arrays in an archive and of files on every
system, so they are plain, and no two of them differ in upper and lower case alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.data.field import DTYPES
from workbench.data.labelled import is_data_array, without_unit
from workbench.data.taking import as_array, conversion, taken, unmasked
from workbench.errors import WorkbenchError, briefly

TYPES = (*DTYPES, "bool")
OWN = ("positions", "velocities", "ids", "masses", "extents", "permutation", "box", "cell", "length")
NONE: Mapping[str, Array] = MappingProxyType({})
LEAVE_OUT = "leave those particles out, as in positions[~mask]"
_NAME = re.compile(r"(?!__)[A-Za-z0-9_]([A-Za-z0-9_.-]{0,62}[A-Za-z0-9_-])?")


def columns_without_units(given: Any) -> tuple[dict[Any, Any], dict[str, str]]:
    """The columns as bare arrays, and the units of those that are quantities.

    >>> columns_without_units(None)
    ({}, {})
    """
    if given is None:
        return {}, {}
    if not isinstance(given, Mapping):
        raise WorkbenchError(f'columns must map names to arrays, as in {{"Potential": array}}; got {briefly(given)}')
    if (strange := next((name for name, one in given.items() if is_data_array(one)), None)) is not None:
        raise WorkbenchError(f"the column {strange} must be a bare array; got a DataArray: give its .values")
    parts = {name: without_unit(one) for name, one in given.items()}
    return {name: bare for name, (bare, _) in parts.items()}, {name: unit for name, (_, unit) in parts.items() if unit}


def checked_columns(given: Mapping[Any, Any], positions: Array) -> Mapping[str, Array]:
    """The columns as a mapping that cannot be changed, each with a row for every position.

    >>> checked_columns({"Type": [1, 2]}, np.zeros((2, 3)))["Type"].tolist()
    [1, 2]
    >>> checked_columns({"Type": [1, 2, 3]}, np.zeros((2, 3)))
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: the column Type must have shape (2,) or (2, k), to match the positions; got (3,)
    """
    require_names(given)
    return MappingProxyType({name: _column(name, array, positions) for name, array in given.items()})


def require_names(names: Iterable[Any]) -> None:
    """Refuse names that columns cannot have, or not together."""
    folded: dict[str, str] = {}
    for name in names:
        if not can_be_name(name):
            raise WorkbenchError(
                "the name of a column must be at most 64 letters, digits, '_', '-' and '.', beginning with no '-', '.' or "
                f"'__' and ending with no '.'; got {briefly(name)}"
            )
        if name.lower() in OWN:
            raise WorkbenchError(
                f"{name!r} cannot be the name of a column, as particles have {name.lower()} of their own: rename the column"
            )
        if (other := folded.setdefault(name.lower(), name)) != name:
            raise WorkbenchError(f"{other!r} and {name!r} would be one file on some systems: rename one of these columns")


def can_be_name(name: Any) -> bool:
    """Whether this can be the name of an array and of a folder.

    >>> can_be_name("Mass_Type-1.x"), can_be_name("../x"), can_be_name("zarr.json")
    (True, False, False)
    """
    return isinstance(name, str) and _NAME.fullmatch(name) is not None and name.lower() != "zarr.json"


def can_be_column(name: Any, array: Any, count: int) -> bool:
    """Whether an array of a file, or what only has its shape and type, can be a column of so many particles."""
    shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
    if not shape or dtype is None or not can_be_name(name) or name.lower() in OWN:
        return False
    return dtype.name in TYPES and len(shape) in (1, 2) and shape[0] == count and 0 not in shape


def row_type(array: Any) -> np.dtype:
    """The type of a row of an array: that of a number, or of several.

    >>> row_type(np.zeros((5, 3), np.float32)), row_type(np.zeros(5, bool))
    (dtype(('<f4', (3,))), dtype('bool'))
    """
    return np.dtype((array.dtype.newbyteorder("="), tuple(array.shape[1:])))


def _column(name: str, given: Any, positions: Array) -> Array:
    what = f"the column {name}"
    array = as_array(what, unmasked(what, given, LEAVE_OUT))
    backend.namespace(array, positions)
    if array.dtype.name not in TYPES:
        raise WorkbenchError(
            f"{what} must be float32, float64, integers or bool; got {array.dtype}: {conversion(array.dtype)}"
        )
    count = len(positions)
    if array.ndim not in (1, 2) or array.shape[0] != count or 0 in array.shape:
        shapes = f"({count},) or ({count}, k)"
        raise WorkbenchError(f"{what} must have shape {shapes}, to match the positions; got {array.shape}")
    return taken(array)
