"""NetCDF-3 and NetCDF-4 fields: the variable that the caller names, or the only candidate.

Numbers are read as they are on disk; see `workbench.data.readers.cf` for fill values, which become a mask, and for
scale factors, which are applied to packed integers and otherwise only on request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from workbench import backend
from workbench.data.field import Field
from workbench.data.readers import cf, hdf5
from workbench.data.readers.arrays import Spacing
from workbench.data.readers.format import Format
from workbench.data.readers.leaving import named, noted
from workbench.data.readers.libraries import library
from workbench.data.readers.netcdf3_size import check_size
from workbench.data.readers.options import chosen_name
from workbench.data.readers.source import Source, plain

MAGICS = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
REFERRING = ("bounds", "climatology", "coordinates", "formula_terms", "cell_measures", "ancillary_variables")
COORDINATE_UNITS = ("degrees_north", "degrees_east", "degree_north", "degree_east")


@contextmanager
def opened(source: Source) -> Iterator[Any]:
    """The dataset, open for reading, numbers as they are on disk."""
    netcdf4 = library("netCDF4", "NetCDF files")
    if source.starts_with(*MAGICS):
        check_size(source)
    else:
        with hdf5.opened(source):
            pass   # looked at for data elsewhere, which the NetCDF library reads, too
    with source.read_by("netCDF4"), netcdf4.Dataset(str(source.path)) as dataset:
        dataset.set_auto_maskandscale(False)
        yield dataset


def is_netcdf(source: Source) -> bool:
    """By the first bytes, or by the marks of NetCDF-4 inside an HDF5 file."""
    return source.starts_with(*MAGICS) or hdf5.kind(source) == "netcdf"


def read(source: Source, *, name: str | None = None, scaled: bool | None = None, spacing: Spacing = None) -> Field:
    """The variable `name`; without one, the only variable with the most axes that is no coordinate or bound."""
    with opened(source) as dataset:
        every = _variables(dataset)
        numeric = {key: variable for key, variable in every.items() if _is_array(variable)}
        candidates = numeric if name is not None else {key: numeric[key] for key in numeric.keys() - _auxiliary(every)}
        chosen = chosen_name(name, {key: variable.shape for key, variable in candidates.items()}, "file")
        variable = numeric[chosen]
        attributes = {key: variable.getncattr(key) for key in variable.ncattrs()}
        source.require_room(chosen, variable.size * variable.dtype.itemsize)
        _require_sources(source, chosen)
        found = cf.decoded(variable[...], attributes, scaled, _default_fill(variable))
        metadata = _metadata(dataset, variable, attributes) | found.metadata | ({"path": chosen} if "/" in chosen else {})
        metadata = noted(metadata, named("variable", every.keys() - {chosen}))
    values = backend.read_only(found.values)
    return Field(values, spacing, chosen.rpartition("/")[2], found.mask, metadata)


def _require_sources(source: Source, name: str) -> None:
    """Refuse a variable that is virtual in HDF5, and whose data are in files that are missing."""
    if not source.starts_with(*MAGICS):
        with hdf5.opened(source) as file:
            if (found := file.get(name)) is not None:   # a few names are others in HDF5
                hdf5.refuse_missing_sources(found, source.path)


def _variables(group: Any, path: str = "") -> dict[str, Any]:
    found = {path + name: variable for name, variable in group.variables.items()}
    for name, inner in group.groups.items():
        found |= _variables(inner, f"{path}{name}/")
    return found


def _is_array(variable: Any) -> bool:
    return getattr(variable.dtype, "kind", "") in tuple("fiu") and variable.ndim > 0 and variable.size > 0


def _auxiliary(variables: dict[str, Any]) -> set[str]:
    """Coordinates, bounds and other variables that attributes of variables refer to."""
    found = set()
    for key, variable in variables.items():
        short = key.rpartition("/")[2]
        attributes = {name: str(variable.getncattr(name)) for name in variable.ncattrs()}
        if short in variable.dimensions or attributes.get("units") in COORDINATE_UNITS:
            found.add(key)
        words = {word for name in REFERRING for word in attributes.get(name, "").split()}
        found |= {other for other in variables if other.rpartition("/")[2] in words}
    return found


def _default_fill(variable: Any) -> Any:
    """The library's default fill value; bytes have none, because all their values are in use."""
    if variable.dtype.itemsize == 1:
        return None
    return library("netCDF4", "NetCDF files").default_fillvals.get(variable.dtype.str[1:])


def _metadata(dataset: Any, variable: Any, attributes: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": f"NetCDF ({dataset.data_model})",
        "units": plain(attributes.get("units", "not stated")),
        "dimensions": list(variable.dimensions),
        "attributes": plain(attributes),
        "file_attributes": {key: plain(dataset.getncattr(key)) for key in dataset.ncattrs()},
    }


NETCDF = Format("netcdf", "NetCDF field", is_netcdf, read)
