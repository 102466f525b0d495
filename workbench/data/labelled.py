"""Arrays that carry more than numbers: of xarray and pandas with coordinates, quantities of astropy, pint and unyt.

What they carry becomes metadata of plain text and numbers, which an archive keeps, and from which `to_xarray` makes the
array again. Coordinates keep their bits: long ones are deflated. What could not come back the same is refused.
"""

from __future__ import annotations

import base64
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.data.attributes import from_plain, to_plain
from workbench.data.taking import described
from workbench.data.unit_grammar import factor_between
from workbench.errors import WorkbenchError

OF_PANDAS = {"DatetimeTZDtype", "CategoricalDtype"}   # dates with a zone, categories: NumPy has none of them
MOST_LISTED = 64     # values of a coordinate that stand in the metadata as numbers that people read
FILLS = ("_FillValue", "missing_value")
PACKING = ("scale_factor", "add_offset")
STORED = ("dtype", *PACKING, *FILLS, "_Unsigned")   # of xarray's encoding, and of the attributes of files
UNSTATED = "not stated"
LONGEST_TEXT = 1000   # characters of text in an array of fixed width
MOST_TEXT = 2**22     # characters of all coordinates in the metadata; archives have room for twice as many


@dataclass(frozen=True)
class Labelled:
    """The bare array of a labelled one, with its name and what else it carries, as metadata.

    The values of a lazy array stay where they are.
    """

    values: Any
    name: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Any, as_stored: bool = False) -> Labelled:
        """The parts of an array; a bare one has no name and no metadata.

        Arrays of files whose attributes state fill values or packing are refused, unless they are wanted `as_stored`.

        >>> Labelled.of(np.zeros(3)).metadata
        {}
        """
        package, kind = _package(given), type(given).__name__
        if package == "pandas":
            given = _from_pandas(given)
        if package == "xarray" and kind in ("Variable", "IndexVariable"):
            given = _from_variable(given)
        if is_data_array(given):
            return _of_data_array(given)
        if package in ("h5py", "netCDF4", "zarr") and hasattr(given, "shape"):
            return _of_file(given, package, as_stored)
        values, unit = without_unit(given)
        return cls(values, metadata={"units": unit} if unit else {})


def joined(own: Mapping[str, Any], given: Any) -> Mapping[str, Any]:
    """The metadata that an array carries, and those that the caller gives, which must not state other units.

    >>> joined({"units": "K"}, {"model": "A"})
    mappingproxy({'units': 'K', 'model': 'A'})
    """
    found = described(given)
    units, stated = own.get("units", UNSTATED), found.get("units")
    if stated is not None and units not in (UNSTATED, stated):
        raise WorkbenchError(f"the array is in {units}, and metadata say {stated!r}: leave the units out of the metadata")
    return described({**own, **found})


def is_data_array(given: Any) -> bool:
    """Whether this is an array of xarray, which is not imported for the question.

    >>> is_data_array(np.zeros(3))
    False
    """
    return _package(given) == "xarray" and hasattr(given, "dims") and hasattr(given, "coords")


def is_labelled(given: Any) -> bool:
    """Whether this is an array with labels or a unit, of xarray, pandas, astropy, pint or unyt.

    >>> is_labelled(np.zeros(3))
    False
    """
    return _package(given) in ("xarray", "pandas", "astropy", "pint", "unyt") and hasattr(given, "shape")


def time_coordinate(given: Any) -> tuple[float, bool] | None:
    """The coordinate `time` of an array or a dataset of xarray, if it is one number or date, and whether it is a number.

    Dates are days since 1970, differences of dates are days.

    >>> time_coordinate(np.zeros(3)) is None
    True
    """
    if _package(given) != "xarray" or "time" not in getattr(given, "coords", ()) or given["time"].size != 1:
        return None
    value = np.asarray(given["time"].data).reshape(())
    is_number = value.dtype.kind in "iuf"
    if value.dtype.kind in "mM":
        since = np.datetime64("1970-01-01", "D").astype(value.dtype) if value.dtype.kind == "M" else value.dtype.type(0)
        value = (value - since) / np.timedelta64(1, "D")
    elif not is_number:
        return None
    return (float(value), is_number) if math.isfinite(value) else None


def width_in_file(dtype: np.dtype, metadata: Any) -> int:
    """The bytes of one value of a field as its file stored it: fewer than those of the value where it was packed.

    >>> width_in_file(np.dtype("f8"), {"stored": {"dtype": "int16"}}), width_in_file(np.dtype("f8"), {})
    (2, 8)
    """
    stored = metadata.get("stored") if isinstance(metadata, Mapping) else None
    name = stored.get("dtype") if isinstance(stored, Mapping) else None
    packed = isinstance(name, str) and re.fullmatch(r"u?int(8|16|32|64)|float(16|32|64)", name)
    return min(np.dtype(name).itemsize, dtype.itemsize) if packed else dtype.itemsize


def without_unit(given: Any) -> tuple[Any, str]:
    """The numbers of a quantity of astropy, pint or unyt, and its unit; other things have none.

    >>> without_unit(2.0)
    (2.0, '')
    """
    package = _package(given)
    if package == "pint":
        return given.magnitude, f"{given.units:~C}"
    unit = getattr(given, {"astropy": "unit", "unyt": "units"}.get(package, ""), None)
    if unit is not None and not hasattr(given, "value"):
        raise WorkbenchError(f"a {type(given).__name__} of {package} must be given as a quantity, such as data * unit")
    return (given, "") if unit is None else (given.value, str(unit))


def without_units(**given: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The numbers of the arrays of particles, with the box in the unit of positions, and the units by name.

    >>> without_units(positions=[[0.0, 1.0]], box=2.0)[1]
    {}
    """
    if (strange := next((name for name, one in given.items() if is_data_array(one)), None)) is not None:
        raise WorkbenchError(f"{strange} of particles must be a bare array; got a DataArray: give its .values")
    found = {name: without_unit(one) for name, one in given.items()}
    bare = {name: values for name, (values, _) in found.items()}
    units = {name: unit for name, (_, unit) in found.items() if unit}
    if unit := units.pop("box", ""):
        if "positions" not in units:
            raise WorkbenchError(f"a box in {unit} needs positions with a unit: give both as quantities or as numbers")
        bare["box"] = np.asarray(bare["box"], np.float64) * factor_between(unit, units["positions"])
    return bare, units


def _package(given: Any) -> str:
    return type(given).__module__.partition(".")[0]


def _from_pandas(given: Any) -> Any:
    """A column of pandas as an array of xarray, with its index as coordinate unless that only counts the rows."""
    if type(given).__name__ != "Series":
        raise WorkbenchError(
            f"a {type(given).__name__} of pandas must be given as numbers: choose a column, as in frame['x'], or give "
            "frame.to_numpy()"
        )
    try:
        array = given.to_xarray()
    except ImportError:
        raise WorkbenchError("a Series of pandas needs xarray, which is not installed: give series.to_numpy()") from None
    counts = given.index.name is None and np.array_equal(given.index.to_numpy(), np.arange(len(given)))
    return array.drop_vars(array.dims) if counts else array


def _from_variable(variable: Any) -> Any:
    import xarray

    array = xarray.DataArray(variable.data, dims=variable.dims, attrs=variable.attrs)
    array.encoding = variable.encoding
    return array


def _of_file(array: Any, package: str, as_stored: bool) -> Labelled:
    """An array of an open file. netCDF4 masks and unpacks its numbers; other libraries give them as they are stored."""
    if package == "netCDF4":
        attributes = {name: array.getncattr(name) for name in array.ncattrs()}
    else:
        attributes = {name: array.attrs[name] for name in (*STORED, "units") if name in array.attrs}
        changing = [name for name in STORED if name in attributes and not _is_nan(attributes[name])]
        if changing and not as_stored:
            raise WorkbenchError(
                f"an array of {package} whose attributes change the meaning of its numbers ({', '.join(changing)}) must be "
                "opened by wb.open(path, name=...), which masks and unpacks them; or give the numbers as stored, array[...]"
            )
    units, name = attributes.get("units"), str(array.name).rpartition("/")[2]
    return Labelled(array, None if as_stored else name or None, {"units": units} if isinstance(units, str) else {})


def _is_nan(fill: Any) -> bool:
    """Whether a fill value is NaN, which is none anyway; xarray writes it as base64 into Zarr."""
    if isinstance(fill, str):
        return fill == base64.b64encode(np.float64(np.nan).tobytes()).decode()
    return bool(np.all(np.asarray(fill) != np.asarray(fill)))


def _of_data_array(array: Any) -> Labelled:
    if type(array).__name__ == "Dataset":
        raise WorkbenchError("a Dataset holds several arrays: choose one, as in dataset['temperature']")
    names = [*array.dims, *array.coords, *([] if array.name is None else [array.name])]
    if strangers := [name for name in names if not isinstance(name, str)]:
        raise WorkbenchError(f"names of arrays, dimensions and coordinates must be text; got {strangers[0]!r}: rename it")
    values, unit = without_unit(array.data)
    attributes = _attributes("the array", array.attrs)
    stated = attributes["attributes"].get("units")
    if unit and isinstance(stated, str) and stated != unit:
        raise WorkbenchError(f"the array is in {unit}, and its attribute units says {stated}: remove one of them")
    metadata: dict[str, Any] = {
        "format": "xarray DataArray",
        "units": unit or (stated if isinstance(stated, str) else UNSTATED),
        "dimensions": list(array.dims),
        **attributes,
        "coordinates": _coordinates(array),
    }
    stored = stored_as(array.encoding)
    if stored.get("dtype") != values.dtype.name and stored:
        metadata["stored"] = stored
    return Labelled(values, array.name, metadata)


def stored_as(encoding: Mapping[str, Any]) -> dict[str, Any]:
    """How the file stored the values: their type, and how they were packed; empty if it is not known.

    >>> stored_as({"dtype": np.dtype("<i2"), "scale_factor": np.float64(0.5), "zlib": True})
    {'dtype': 'int16', 'scale_factor': 0.5}
    """
    found = {name: encoding[name] for name in STORED if encoding.get(name) is not None}
    if "dtype" not in found:
        return {}
    found["dtype"] = np.dtype(found["dtype"]).name
    return {name: plain for name, entry in found.items() if _is_plain(plain := np.asarray(entry).tolist())}


def _attributes(whose: str, given: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes as metadata of plain values. A fill value of NaN says nothing: NaN are kept as they are."""
    nothing = {name for name in FILLS if isinstance(fill := given.get(name), float) and np.isnan(fill)}
    plain, types = to_plain(whose, {name: value for name, value in given.items() if name not in nothing})
    return {"attributes": plain, **({"types": types} if types else {})}


def attributes_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that metadata state, in their types.

    >>> attributes_of({"attributes": {"valid_min": 0}, "types": {"valid_min": "<f4"}})
    {'valid_min': np.float32(0.0)}
    """
    plain, types = metadata.get("attributes"), metadata.get("types")
    return from_plain(plain if isinstance(plain, Mapping) else {}, types if isinstance(types, Mapping) else {})


def _is_plain(entry: Any) -> bool:
    if isinstance(entry, list):
        return all(_is_plain(one) for one in entry)
    return isinstance(entry, str | bool | int) or (isinstance(entry, float) and np.isfinite(entry))


def _coordinates(array: Any) -> dict[str, Any]:
    """All coordinates, if archives have room for them."""
    found = {name: _coordinate(name, each) for name, each in array.coords.items()}
    sizes = {name: len(each.get("deflated", "")) for name, each in found.items()}
    if sum(sizes.values()) > MOST_TEXT:
        largest = max(sizes, key=lambda name: sizes[name])
        raise WorkbenchError(
            f"the coordinates must take at most {MOST_TEXT:,} bytes deflated; got {sum(sizes.values()):,}, most of them "
            f"for {largest!r}: compress large coordinates as arrays of their own, and leave them out here, as in "
            f"array.drop_vars({largest!r})"
        )
    return found


def _coordinate(name: str, array: Any) -> dict[str, Any]:
    """A coordinate: its dimensions, attributes and values, in the type that it has."""
    variable, coded = array.variable, False
    if type(variable.dtype).__name__ in OF_PANDAS:   # their values would come back as plain text or objects
        raise _unkept(name, variable.dtype)
    if variable.dtype.kind == "O" and not all(isinstance(one, str) for one in variable.values.flat):
        variable, coded = as_numbers(name, variable), True
    values = variable.values
    if values.dtype.kind not in "biufMmUO":
        raise _unkept(name, values.dtype)
    return {
        "dimensions": list(variable.dims),
        **_attributes(f"the coordinate {name}", variable.attrs),
        **({"calendar_coded": True} if coded else {}),
        **_as_text(values),
    }


def as_numbers(name: str, variable: Any) -> Any:
    """Dates of calendars that NumPy does not have, as CF writes them: numbers since a date."""
    from xarray import conventions

    try:
        coded = conventions.encode_cf_variable(variable)
        back = conventions.decode_cf_variable(name, coded)
    except Exception:   # xarray and cftime raise errors of many kinds for objects that are no dates
        raise _unkept(name, variable.dtype) from None
    if coded.dtype.kind not in "iuf" or not np.array_equal(back.values, variable.values):
        raise _unkept(name, variable.dtype)
    return coded


def _unkept(name: str, dtype: np.dtype) -> WorkbenchError:
    return WorkbenchError(
        f"the coordinate {name!r} of type {dtype} cannot be kept: numbers, dates and text can; "
        f"leave it out, as in array.drop_vars({name!r}), or turn an index of several levels into arrays by reset_index"
    )


def _as_text(values: np.ndarray) -> dict[str, Any]:
    """An array as JSON holds it without loss: few finite numbers and text as a list, others deflated."""
    kind, fixed = values.dtype.kind, values.dtype.itemsize <= 4 * LONGEST_TEXT
    stated = {"dtype": values.dtype.str if kind != "O" and fixed else "object", "shape": list(values.shape)}
    few = values.size <= MOST_LISTED and kind in "biuf" and bool(np.isfinite(values).all())
    if few or kind in "UO":
        return {**stated, "values": values.ravel().tolist()}
    return {**stated, "deflated": base64.b64encode(zlib.compress(np.ascontiguousarray(values).tobytes(), 6)).decode()}


def _from_text(stated: Mapping[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    """The array of this shape that `_as_text` described; what an archive states takes no more memory than that."""
    dtype = np.dtype(stated["dtype"])
    if dtype.kind not in "biufMmUO" or dtype.itemsize > 4 * LONGEST_TEXT:
        raise ValueError(f"values must not be of type {dtype}")
    if "values" in stated:
        return np.array(stated["values"], dtype).reshape(shape)
    size = dtype.itemsize * math.prod(shape)
    raw = zlib.decompressobj().decompress(base64.b64decode(stated["deflated"]), max(size, 1))
    return np.frombuffer(raw, dtype).reshape(shape).copy()


def coordinates_along(metadata: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, tuple[np.ndarray, str]]:
    """The coordinates in the metadata that have one value for each point of an axis, and their units.

    >>> depths = {"dimensions": ["z"], "dtype": "<f8", "shape": [2], "values": [5.0, 15.0], "attributes": {"units": "m"}}
    >>> coordinates_along({"dimensions": ["z"], "coordinates": {"z": depths}}, (2,))
    {'z': (array([ 5., 15.]), 'm')}
    """
    names, coordinates = metadata.get("dimensions"), metadata.get("coordinates")
    if not isinstance(coordinates, Mapping) or not isinstance(names, list | tuple) or len(names) != len(shape):
        return {}
    sizes = dict(zip(names, shape, strict=True))
    return {
        name: _values_of(name, stated, sizes) for name, stated in coordinates.items()
        if name in sizes and isinstance(stated, Mapping) and stated.get("dimensions") == [name]
    }


def _values_of(name: str, stated: Mapping[str, Any], sizes: Mapping[str, int]) -> tuple[np.ndarray, str]:
    """The values of a coordinate, and their unit; dates need none."""
    import xarray

    variable = _variable(xarray, name, stated, sizes)
    return np.asarray(variable.values), str(variable.attrs.get("units", ""))


def to_data_array(values: np.ndarray, mask: np.ndarray | None, name: str | None, metadata: Mapping[str, Any]) -> Any:
    """The DataArray of these values, with the dimensions, coordinates and attributes in the metadata."""
    try:
        import xarray
    except ImportError:
        raise WorkbenchError("to_xarray needs xarray, which is not installed: pip install xarray") from None
    given = metadata.get("dimensions")
    dimensions = list(given) if isinstance(given, list | tuple) else []
    if len(dimensions) != values.ndim or not all(isinstance(each, str) for each in dimensions):
        dimensions = [f"axis_{axis}" for axis in range(values.ndim)]
    coordinates = metadata.get("coordinates")
    sizes = dict(zip(dimensions, values.shape, strict=True))
    found = {
        key: _variable(xarray, key, stated, sizes)
        for key, stated in (coordinates.items() if isinstance(coordinates, Mapping) else ())
    }
    return xarray.DataArray(with_nan(values, mask), found, dimensions, name, _shown(metadata))


def with_nan(values: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """NaN where values are masked, which is how xarray has them; integers become float64 for that."""
    if mask is None:
        return values
    valid = values[~mask]
    if values.dtype.kind in "iu" and valid.size and max(int(valid.max()), -int(valid.min())) > 2**53:
        raise WorkbenchError("masked integers beyond 2^53 have no place in xarray: take field.values and field.mask")
    return np.where(mask, np.nan, values).astype(values.dtype if values.dtype.kind == "f" else np.float64)


def _shown(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of an array, without those for numbers in a file that these are no longer."""
    shown, units = attributes_of(metadata), metadata.get("units")
    if "scaled" in metadata:   # read from a file here: fill values are masked, and packing may be undone
        for entry in (*FILLS, "_Unsigned", *(PACKING if metadata["scaled"] else ())):
            shown.pop(entry, None)
    if isinstance(units, str) and not units.startswith(UNSTATED):
        shown.setdefault("units", units)
    return shown


def _variable(xarray: Any, name: str, stated: Any, sizes: Mapping[str, int]) -> Any:
    try:
        axes, shape = list(stated["dimensions"]), tuple(stated["shape"])
        for axis, size in zip(axes, shape, strict=True):
            if sizes.get(axis) != size:
                raise WorkbenchError(
                    f"the coordinate {name} has {size} values along {axis}, and the field {sizes.get(axis, 0)}: "
                    "it belongs to the whole array; use archive.decompress().to_xarray()"
                )
        variable = xarray.Variable(axes, _from_text(stated, shape), attributes_of(stated))
        return xarray.conventions.decode_cf_variable(name, variable) if stated.get("calendar_coded") else variable
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, zlib.error) as error:
        raise WorkbenchError(f"the coordinate {name} in the metadata cannot be read ({error}): leave it out") from None
