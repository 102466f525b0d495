"""The CF conventions that change the meaning of numbers: missing values, and numbers packed into integers.

Missing values become a mask and stay in the array as stored. Numbers packed into integers are unpacked, because the
integers are only a code. Floats with a scale factor stay unscaled unless the caller asks for scaling: error bounds refer to
the stored floats, and scaling would double their size to float64.

The mask is that of netCDF4, which follows the conventions: fill values, missing values and the valid range are compared
with the packed numbers, and attributes that their type cannot represent are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.data.labelled import PACKING, stored_as
from workbench.errors import WorkbenchError


@dataclass(frozen=True)
class Decoded:
    """Decoded numbers: the values, the mask of missing ones, whether packing was undone, and if so how they were stored."""

    values: np.ndarray
    mask: np.ndarray | None
    scaled: bool
    stored: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def metadata(self) -> dict[str, Any]:
        """The entries of metadata: `scaled`, and for unpacked numbers `stored`, their type and packing in the file."""
        return {"scaled": self.scaled, **({"stored": dict(self.stored)} if self.stored else {})}


def decoded(stored: np.ndarray, attributes: Mapping[str, Any], scaled: bool | None, default_fill: Any = None) -> Decoded:
    """The meaning of stored numbers; `scaled` is what `unpacked` takes.

    >>> decoded(np.array([1, -1], np.int8), {"_Unsigned": "true", "_FillValue": np.int8(-1)}, None)
    Decoded(values=array([  1, 255], dtype=uint8), mask=array([False,  True]), scaled=False)
    """
    numbers = stored if scaled is False else with_sign(stored, attributes)
    values = unpacked(numbers, attributes, scaled)
    scaled = values is not numbers
    packing = stored_as({"dtype": stored.dtype, **attributes}) if scaled else {}
    return Decoded(values, missing(numbers, attributes, default_fill, stored.dtype), scaled, packing)


def with_sign(stored: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
    """The same bits as unsigned integers where `_Unsigned` is "true"; NetCDF-3 has no type for them."""
    said = str(attributes.get("_Unsigned", "")).lower()
    if said == "true" and stored.dtype.kind == "i":
        return stored.view(stored.dtype.str.replace("i", "u"))
    return stored


def missing(
    values: np.ndarray, attributes: Mapping[str, Any], default_fill: Any = None, stored: np.dtype | None = None
) -> np.ndarray | None:
    """True where a value is a fill value or outside the valid range; None where there is no such value.

    `stored` is the type on disk, and that of the attributes, where the values have another sign.

    >>> missing(np.array([1.0, -999.0]), {"missing_value": -999.0}).tolist()
    [False, True]
    """
    dtypes = values.dtype, values.dtype if stored is None else stored
    mask = np.zeros(values.shape, bool)
    for fill in _numbers(dtypes, attributes.get("_FillValue", default_fill), attributes.get("missing_value")):
        mask |= np.isnan(values) if np.isnan(fill) else values == fill
    low, high = _valid_range(dtypes, attributes)
    for limit in low:
        mask |= values < limit
    for limit in high:
        mask |= values > limit
    return mask if mask.any() else None


def unpacked(values: np.ndarray, attributes: Mapping[str, Any], scaled: bool | None) -> np.ndarray:
    """Values times scale_factor plus add_offset if `scaled`; None means for stored integers only.

    >>> unpacked(np.array([1, 2], np.int16), {"scale_factor": 0.5}, None).tolist()
    [0.5, 1.0]
    >>> unpacked(np.array([1, 2], np.float32), {"scale_factor": 0.5}, None).tolist()
    [1.0, 2.0]
    """
    if scaled not in (None, True, False):
        raise WorkbenchError(f"scaled must be True, False, or None (integers only); got {scaled!r}")
    packing = {key: attributes[key] for key in PACKING if key in attributes}
    wanted = values.dtype.kind in "iu" if scaled is None else scaled
    if not packing or not wanted:
        return values
    single = values.dtype.kind in "iu" and values.dtype.itemsize <= 2
    single = single and all(getattr(number, "dtype", None) == np.float32 for number in packing.values())
    factor, offset = (np.float64(packing.get(key, default)) for key, default in zip(PACKING, (1, 0), strict=True))
    return (values * factor + offset).astype(np.float32 if single else np.float64)


def _valid_range(dtypes: tuple[np.dtype, np.dtype], attributes: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """The smallest and the largest valid value, as far as they are given."""
    pair = _numbers(dtypes, attributes.get("valid_range"))
    if len(pair) == 2:
        return pair[:1], pair[1:]
    return _numbers(dtypes, attributes.get("valid_min")), _numbers(dtypes, attributes.get("valid_max"))


def _numbers(dtypes: tuple[np.dtype, np.dtype], *given: Any) -> list[Any]:
    """Attributes in the type of the values; an attribute that this type cannot represent is ignored."""
    found = []
    for entry in given:
        array = np.atleast_1d(np.asarray(entry))
        if entry is not None and array.dtype.kind in "fiu":
            numbers = [number for one in array for number in _as_stored(one, *dtypes)]
            found += numbers if len(numbers) == array.size else []
    return found


def _as_stored(number: Any, dtype: np.dtype, stored: np.dtype) -> list[Any]:
    """The number in the type of the values, converted through the type on disk; empty if that cannot represent it."""
    with np.errstate(all="ignore"):
        rounded = number.astype(stored)
        if dtype.kind == "f" or rounded == number:
            return [rounded.view(dtype)]
        direct = number.astype(dtype)
        return [direct] if direct == number else []
