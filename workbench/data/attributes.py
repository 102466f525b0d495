"""Attributes of arrays and datasets as plain values that JSON holds, with what JSON cannot say of them beside.

NetCDF knows numbers of every width, and files use NaN for fill values; JSON has one kind of number, and no NaN. So the
types are listed where they would be lost, and numbers that are not finite are text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.errors import WorkbenchError, briefly

_NUMBERS = "biuf"


def to_plain(whose: str, given: Mapping[Any, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The attributes as plain values, and the types of those that are not plain.

    >>> to_plain("T", {"units": "K", "valid_range": np.array([0, 9], np.int16), "_FillValue": np.float32("nan")})
    ({'units': 'K', 'valid_range': [0, 9], '_FillValue': 'nan'}, {'valid_range': '<i2', '_FillValue': '<f4'})
    """
    plain: dict[str, Any] = {}
    types: dict[str, str] = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise WorkbenchError(f"the names of attributes of {whose} must be text; got {name!r}: rename it")
        array = np.asarray(value) if isinstance(value, np.generic | np.ndarray) else None
        if array is not None and array.dtype.kind not in _NUMBERS + "U":
            raise _unkept(whose, name, value)
        entry = value if array is None else array.tolist()
        if array is not None and array.dtype.kind in _NUMBERS:
            types[name] = array.dtype.str
        elif _has_special(entry):
            types[name] = "float"
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
    for name, dtype in types.items():
        if name not in restored or not isinstance(dtype, str):
            continue
        try:
            value = _special(restored[name])
            restored[name] = value if dtype == "float" else _of_type(value, dtype)
        except (TypeError, ValueError, OverflowError):
            got = briefly(plain[name])
            raise WorkbenchError(f"the attribute {name!r} must be of type {dtype[:20]}; got {got}") from None
    return restored


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


def _has_special(entry: Any) -> bool:
    if isinstance(entry, list | tuple):
        return any(map(_has_special, entry))
    return isinstance(entry, float) and not math.isfinite(entry)


def _special(entry: Any) -> Any:
    if isinstance(entry, list):
        return [_special(one) for one in entry]
    return float(entry) if entry in ("nan", "inf", "-inf") else entry


def _unkept(whose: str, name: str, value: Any) -> WorkbenchError:
    return WorkbenchError(
        f"the attributes of {whose} must be text, numbers, or lists of these; got {name!r}: {briefly(value)}. Leave it "
        "out, or convert it to text"
    )
