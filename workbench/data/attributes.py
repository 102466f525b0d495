"""Attributes of arrays and datasets as plain values that JSON holds, with what JSON cannot say of them beside.

NetCDF knows numbers of every width, and files use NaN for fill values; JSON has one kind of number, and no NaN. So the
types are listed where they would be lost, and numbers that are not finite are text: inside lists and mappings, their places
are listed, as text beside them may read the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from workbench.errors import WorkbenchError, briefly

_NUMBERS = "biuf"
_SPECIAL = ("nan", "inf", "-inf")
Path = tuple[str | int, ...]   # the keys and positions that lead to a number in an attribute


def to_plain(whose: str, given: Mapping[Any, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attributes as plain values, and the types of those that are not plain.

    >>> to_plain("T", {"units": "K", "valid_range": np.array([0, 9], np.int16), "_FillValue": np.float32("nan")})
    ({'units': 'K', 'valid_range': [0, 9], '_FillValue': 'nan'}, {'valid_range': '<i2', '_FillValue': '<f4'})
    >>> to_plain("T", {"levels": ["nan", float("nan")], "none": np.zeros((0, 2))})[1]
    {'levels': {'numbers': [[1]]}, 'none': {'dtype': '<f8', 'shape': [0, 2]}}
    """
    plain: dict[str, Any] = {}
    types: dict[str, Any] = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise WorkbenchError(f"the names of attributes of {whose} must be text; got {name!r}: rename it")
        array = np.asarray(value) if isinstance(value, np.generic | np.ndarray) else None
        if array is not None and array.dtype.kind not in _NUMBERS + "U":
            raise _unkept(whose, name, value)
        entry = value if array is None else array.tolist()
        if array is not None and array.dtype.kind in _NUMBERS:
            types[name] = _type_of(array)
        elif isinstance(entry, float) and not math.isfinite(entry):
            types[name] = "float"
        elif places := list(_special_places(entry)):
            types[name] = {"numbers": places}
        plain[name] = _plain(entry)
        if plain[name] is Ellipsis:
            raise _unkept(whose, name, value)
    return plain, types


def from_plain(plain: Mapping[str, Any], types: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that `to_plain` described.

    >>> from_plain({"valid_range": [0, 9], "scale": "inf"}, {"valid_range": "<i2", "scale": "float"})
    {'valid_range': array([0, 9], dtype=int16), 'scale': inf}
    """
    restored = dict(plain)
    for name, stated in types.items():
        if name not in restored:
            continue
        try:
            restored[name] = _restored(plain[name], stated)
        except (TypeError, ValueError, OverflowError):
            got = briefly(plain[name])
            raise WorkbenchError(f"the attribute {name!r} must be of type {briefly(stated)[:40]}; got {got}") from None
    return restored


def _type_of(array: np.ndarray) -> Any:
    """The type of an array, with its shape where that does not follow from its values."""
    dtype = array.dtype.str
    return dtype if array.size or array.ndim == 1 else {"dtype": dtype, "shape": list(array.shape)}


def _restored(entry: Any, stated: Any) -> Any:
    """An attribute as its type says."""
    match stated:
        case "float":
            return _special(entry)
        case str(dtype):
            return _of_type(_special(entry), dtype)
        case {"dtype": str(dtype), "shape": [*shape]}:
            return _of_type([], dtype).reshape(shape)
        case {"numbers": [*places]}:
            return _with_numbers(entry, {tuple(place) for place in places})
    return entry


def _of_type(value: Any, dtype: str) -> Any:
    if np.dtype(dtype).kind not in _NUMBERS:
        raise ValueError(f"no type of numbers: {dtype}")
    array = np.array(value, dtype)
    return array if array.ndim else array[()]


def _plain(entry: Any) -> Any:
    """The entry as JSON holds it; Ellipsis where it cannot."""
    if isinstance(entry, list | tuple):
        parts = [_plain(one) for one in entry]
        return Ellipsis if any(part is Ellipsis for part in parts) else parts
    if isinstance(entry, Mapping):
        inner = {key: _plain(one) for key, one in entry.items()}
        return inner if all(isinstance(k, str) and one is not Ellipsis for k, one in inner.items()) else Ellipsis
    if isinstance(entry, float) and not math.isfinite(entry):
        return repr(float(entry))
    if isinstance(entry, str):
        return str(entry)
    return entry if isinstance(entry, bool | int | float | None) else Ellipsis


def _special_places(entry: Any) -> Iterator[list[str | int]]:
    """Where numbers that are not finite are, in lists and mappings."""
    if isinstance(entry, float) and not math.isfinite(entry):
        yield []
    inside = entry.items() if isinstance(entry, Mapping) else enumerate(entry) if isinstance(entry, list | tuple) else ()
    for key, one in inside:
        yield from ([key, *rest] for rest in _special_places(one))


def _with_numbers(entry: Any, places: set[Path], here: Path = ()) -> Any:
    """Lists and mappings with the numbers that are at these places."""
    if here in places:
        return float(entry)
    if isinstance(entry, list | tuple):
        return [_with_numbers(one, places, (*here, number)) for number, one in enumerate(entry)]
    if isinstance(entry, Mapping):
        return {key: _with_numbers(one, places, (*here, key)) for key, one in entry.items()}
    return entry


def _special(entry: Any) -> Any:
    if isinstance(entry, list):
        return [_special(one) for one in entry]
    return float(entry) if entry in _SPECIAL else entry


def _unkept(whose: str, name: str, value: Any) -> WorkbenchError:
    return WorkbenchError(
        f"the attributes of {whose} must be text, numbers, or lists of these; got {name!r}: {briefly(value)}. Leave it "
        "out, or convert it to text"
    )
