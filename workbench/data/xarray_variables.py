"""Variables of xarray: what they carry beside their values, as metadata of plain values, and the variables again.

Values that xarray has unpacked stay unpacked: an archive bounds the errors of numbers that mean something. How the file had
stored them is kept as their encoding, so that xarray writes such a file again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.data.attributes import from_plain, to_plain
from workbench.data.labelled import PACKING, STORED, UNSTATED, as_numbers, attributes_of, stored_as
from workbench.errors import WorkbenchError

DECIMALS = "least_significant_digit"   # an attribute of files, which xarray has in the encoding
ROUNDING = {DECIMALS, "significant_digits", "quantize_mode"}   # of the encoding: it would round the values on writing
LEFT_OUT = {   # of the encoding: it says where the values were, not what they are
    "source", "original_shape", "preferred_chunks", "compressors", "filters", "serializer", "compressor", *ROUNDING,
}
OF_TEXT = "text of any length"


def metadata_of(name: str, variable: Any) -> dict[str, Any]:
    """The dimensions, attributes and encoding of a variable."""
    if strangers := [axis for axis in variable.dims if not isinstance(axis, str)]:
        raise WorkbenchError(f"the dimensions of {name!r} must be text; got {strangers[0]!r}: rename it")
    rounded = {DECIMALS: variable.encoding[DECIMALS]} if variable.encoding.get(DECIMALS) is not None else {}
    attributes, types = to_plain(repr(name), {**variable.attrs, **rounded})
    encoding = encoding_of(variable.encoding)
    units, stored = attributes.get("units"), stored_as(variable.encoding)
    found = {
        "units": units if isinstance(units, str) else "",
        "dimensions": list(variable.dims),
        "attributes": attributes,
        "types": types,
        "encoding": encoding,
        "stored": stored if stored.get("dtype") != variable.dtype.name else {},
    }
    return {key: entry for key, entry in found.items() if entry or key == "dimensions"}


def with_plain_dates(name: str, variable: Any) -> tuple[Any, dict[str, Any]]:
    """The variable, where its dates are of a calendar that NumPy lacks as numbers that CF defines; and a note of that."""
    if variable.dtype.kind != "O" or all(isinstance(one, str | None) for one in variable.values.flat):
        return variable, {}
    encoding = encoding_of(variable.encoding)
    return as_numbers(name, variable), {"calendar_coded": True, **({"encoding": encoding} if encoding else {})}


def encoding_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of an encoding that plain values can hold."""
    kept = {name: value for name, value in given.items() if name not in LEFT_OUT and value is not None}
    if (dtype := kept.pop("dtype", None)) is not None:
        kept["dtype"] = OF_TEXT if dtype is str else np.dtype(dtype).str
    plain, types = {}, {}   # type: dict[str, Any], dict[str, Any]
    for name, value in kept.items():
        value = sorted(value) if isinstance(value, set | frozenset) else value   # dimensions without a limit
        try:
            entries, of_type = to_plain("the encoding", {name: value})
        except WorkbenchError:   # an object of a library
            continue
        plain, types = plain | entries, types | of_type
    return {**plain, "types": types} if types else plain


def encoding_from(stated: Any) -> dict[str, Any]:
    """The encoding that `encoding_of` described."""
    plain = dict(stated) if isinstance(stated, Mapping) else {}
    types = plain.pop("types", {})
    given = from_plain(plain, types if isinstance(types, Mapping) else {})
    encoding = {name: value for name, value in given.items() if name not in LEFT_OUT}
    if "dtype" in encoding:
        encoding["dtype"] = str if encoding["dtype"] == OF_TEXT else np.dtype(encoding["dtype"])
    for name in ("chunksizes", "shards", "chunks"):
        if isinstance(encoding.get(name), list):
            encoding[name] = tuple(encoding[name])
    return encoding


def without_packing(encoding: Mapping[str, Any], dtype: np.dtype) -> dict[str, Any]:
    """The encoding without what would round the values again when they are written.

    >>> without_packing({"dtype": np.dtype("i2"), "scale_factor": 0.1, "_FillValue": -9, "zlib": True}, np.dtype("f4"))
    {'zlib': True}
    """
    stored = encoding.get("dtype", dtype)
    narrow = isinstance(stored, np.dtype) and (stored.kind != dtype.kind or stored.itemsize < dtype.itemsize)
    rounds = narrow or any(encoding.get(name) is not None for name in PACKING)
    return {name: entry for name, entry in encoding.items() if not (rounds and name in STORED)}


def dimensions_of(name: str, shape: tuple[int, ...], metadata: Mapping[str, Any]) -> list[str]:
    """The names of the axes of an array; other arrays have none in common with one that came without."""
    given = metadata.get("dimensions")
    if isinstance(given, list | tuple) and len(given) == len(shape) and all(isinstance(each, str) for each in given):
        return list(given)
    return [f"{name}_{axis}" for axis in range(len(shape))]


def to_variable(name: str, values: np.ndarray, metadata: Mapping[str, Any]) -> Any:
    """The variable of xarray with these values."""
    import xarray

    attributes, units = attributes_of(metadata), metadata.get("units")
    if isinstance(units, str) and not units.startswith(UNSTATED):
        attributes.setdefault("units", units)
    encoding = encoding_from(metadata.get("encoding"))
    variable = xarray.Variable(dimensions_of(name, values.shape, metadata), values, attributes, encoding)
    return decoded_dates(name, variable) if metadata.get("calendar_coded") else variable


def decoded_dates(name: str, variable: Any) -> Any:
    """Dates of a calendar that NumPy lacks, from their numbers; the encoding is that of the file that they came from."""
    from xarray import conventions

    encoding, bare = variable.encoding, variable.copy(deep=False)
    bare.encoding = {}
    dates = conventions.decode_cf_variable(name, bare)
    dates.encoding = encoding
    return dates
