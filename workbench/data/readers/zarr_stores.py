"""Zarr stores, format 2 and 3, in a folder or a zip file: an array, or the array of that name in a group."""

from __future__ import annotations

import base64
import struct
from typing import Any

from workbench import backend
from workbench.data.field import Field
from workbench.data.readers import cf
from workbench.data.readers.arrays import Spacing
from workbench.data.readers.format import Format
from workbench.data.readers.leaving import named, noted
from workbench.data.readers.named_columns import zarr_snapshot
from workbench.data.readers.options import chosen_name
from workbench.data.readers.source import Source, plain
from workbench.data.readers.zarr_files import is_store, opened, require_inside, require_room


def read(source: Source, *, name: str | None = None, scaled: bool | None = None, spacing: Spacing = None) -> Field:
    """The array of that name; without one, the only array, or the only one with the most axes.

    The attributes `_FillValue`, `missing_value` and the valid range define a mask, and packing is undone, as in NetCDF. The
    fill value of Zarr itself, usually 0, marks unwritten chunks and is no mask unless xarray wrote the array.
    """
    require_inside(source)
    with opened(source) as (zarr, node):
        arrays = {"": node} if isinstance(node, zarr.Array) else _arrays(node)
        numeric = {key: array for key, array in arrays.items() if _is_field(array)}
        shapes = {key: array.shape for key, array in numeric.items()}
        chosen = "" if "" in numeric else chosen_name(name, shapes, "store")
        array = numeric[chosen]
        attributes = dict(array.attrs)
        require_room(array, chosen or "the array", source)
        found = cf.decoded(array[...], attributes | _fill_value(array), scaled)
        metadata = {
            "format": f"Zarr {array.metadata.zarr_format}",
            "units": plain(attributes.get("units", "not stated")),
            "dimensions": plain(getattr(array.metadata, "dimension_names", None) or attributes.get("_ARRAY_DIMENSIONS")),
            "attributes": plain(attributes),
            "store_attributes": plain(dict(node.attrs)),
            **found.metadata,
        }
        metadata = noted(metadata, named("array", arrays.keys() - {chosen}))
    title = chosen.rpartition("/")[2] or None
    return Field(backend.read_only(found.values), spacing, title, found.mask, metadata)


def _fill_value(array: Any) -> dict[str, Any]:
    """The fill value of xarray, under its NetCDF name.

    In format 3 it is an attribute, a float as the base64 of its eight bytes. In format 2 it is Zarr's own fill value, in
    arrays that xarray wrote: they have `_ARRAY_DIMENSIONS`.
    """
    given = array.attrs.get("_FillValue")
    if isinstance(given, str):
        return {"_FillValue": _float(given)}
    if given is None and array.metadata.zarr_format == 2 and "_ARRAY_DIMENSIONS" in array.attrs:
        return {"_FillValue": array.metadata.fill_value}
    return {}


def _float(text: str) -> float | None:
    """A float written as base64, as xarray does, or as a word; None where the text is neither.

    >>> _float("AAAAgB2vFUQ="), _float("NaN")
    (1.0000000200408773e+20, nan)
    """
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return float(struct.unpack("<d", base64.standard_b64decode(text))[0])
    except (ValueError, struct.error):   # binascii.Error is a ValueError
        return None


def _arrays(group: Any, path: str = "") -> dict[str, Any]:
    found = {path + name: array for name, array in group.arrays()}
    for name, inner in group.groups():
        found |= _arrays(inner, f"{path}{name}/")
    return found


def _is_field(array: Any) -> bool:
    return array.dtype.kind in "fiu" and array.ndim > 0 and array.size > 0


ZARR = Format("zarr", "Zarr store (folder or zip, formats 2 and 3)", is_store, read, zarr_snapshot)
