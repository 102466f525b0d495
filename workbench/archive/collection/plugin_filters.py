"""Variables of NetCDF-4 and HDF5 files whose filters the NetCDF library lacks: their values are read by h5py.

The library of `netCDF4` looks for filters when it is imported, in a folder of its own, and so does not find those of
`hdf5plugin` (SZ3, ZFP, SPERR, Blosc2). h5py finds them. Everything else about such a variable is as xarray reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive.stated_filters import Stated, loss_of_filter
from workbench.data.readers import hdf5
from workbench.data.readers.hdf5 import opened
from workbench.data.readers.source import Source
from workbench.run.stored_arrays import InHdf5

OF_NETCDF = {1, 2, 3, 4, 5, 6, 307, 32001, 32015}   # deflate, shuffle, ..., bzip2, Blosc and Zstandard


def filters_in(path: Path) -> dict[str, list[tuple[int, tuple[int, ...]]]]:
    """The filters of each data set of an HDF5 file, as numbers and parameters; none of another file."""
    found: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
    if not path.is_file() or not Source.at(path).starts_with(hdf5.MAGIC):
        return found

    def look(name: str, node: Any) -> None:
        if hasattr(node, "shape"):
            properties = node.id.get_create_plist()
            each = (properties.get_filter(number) for number in range(properties.get_nfilters()))
            found[name] = [(one[0], tuple(one[2])) for one in each]

    with opened(Source.at(path)) as file:
        file.visititems(look)
    return found


def losses_of_filters(path: Path) -> dict[str, list[Stated]]:
    """What the filters of each data set say of its errors."""
    stated = {
        name: [loss for one in filters if (loss := loss_of_filter(*one)) is not None]
        for name, filters in filters_in(path).items()
    }
    return {name: losses for name, losses in stated.items() if losses}


def with_plugin_filters(path: Path, groups: Mapping[str, Any]) -> dict[str, Any]:
    """The datasets of xarray in a file, of which some variables are read by h5py."""
    names = [
        name for name, filters in filters_in(path).items() if any(number not in OF_NETCDF for number, _ in filters)
    ]
    if not names:
        return dict(groups)
    import xarray

    changed = dict(groups)
    with xarray.open_datatree(path, decode_cf=False) as raw:
        for name in names:
            group, _, own = name.rpartition("/")
            variable = _variable(path, name, raw[f"/{group}"].variables[own])
            changed[group] = changed[group].assign({own: variable})
    return changed


def _variable(path: Path, name: str, raw: Any) -> Any:
    """The variable with values that h5py reads, decoded as xarray decodes others."""
    import xarray

    bare = xarray.Variable(raw.dims, _lazy(path, name), raw.attrs, raw.encoding)
    return xarray.conventions.decode_cf_variable(name, bare, decode_timedelta=False)


def _lazy(path: Path, name: str) -> Any:
    from xarray.backends import BackendArray
    from xarray.core import indexing

    class Values(BackendArray):
        """The values of a data set, read by parts."""

        def __init__(self) -> None:
            with opened(Source.at(path)) as file:
                self.stored = InHdf5.of(file[name])
            self.shape, self.dtype = self.stored.shape, self.stored.dtype

        def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
            return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._at)

        def _at(self, key: Any) -> np.ndarray:
            import hdf5plugin  # noqa: F401 - h5py has its filters from then on

            return np.asarray(self.stored[key])

    return indexing.LazilyIndexedArray(Values())
