"""The accessor `.wb`: the calls of the workbench on the arrays and datasets that xarray has.

    ds.wb.compress({"T": wb.Absolute("0.01 K"), "*": wb.Exact()}, out="x.zip")

Each call has the arguments of the function of `workbench`, without the data. On a dataset, what is about one array is done
for every variable of floating-point numbers, or for those that `names=` says, and returned by name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import xarray

from workbench.archive import compress
from workbench.archive.collection.names import require_known
from workbench.archive.collection.reports import Reports
from workbench.bounds import find_bound, predict, sweep
from workbench.errors import WorkbenchError, briefly
from workbench.limits import rate_distortion
from workbench.metrics import compare
from workbench.xarray.statistics import Dims, statistic_of

STATISTICS = ("mean", "sum", "std", "min", "max")


def _is_field_of_floats(array: xarray.DataArray) -> bool:
    return array.dtype in (np.float32, np.float64) and 1 <= array.ndim <= 4 and array.size > 0


def _on_array(verb: Callable[..., Any]) -> Any:
    """A call with the array as its first argument."""

    @functools.wraps(verb)
    def method(self: OfDataArray | OfDataset, *args: Any, **options: Any) -> Any:
        return verb(self._data, *args, **options)

    return method


def _on_each(verb: Callable[..., Any]) -> Any:
    """A call for each variable of floating-point numbers."""

    @functools.wraps(verb)
    def method(self: OfDataset, *args: Any, names: str | Iterable[str] | None = None, **options: Any) -> dict[str, Any]:
        return {name: verb(self._data[name], *args, **options) for name in self._chosen(names)}

    return method


def _of_array(name: str) -> Any:
    """A statistic of the original array, from the archive that it is read from."""

    def method(self: OfDataArray, dim: Dims = None) -> xarray.Dataset:
        own = str(self._data.name or "values")
        return statistic_of({own: self._data}, name, dim)

    method.__name__, method.__doc__ = name, f"The {name} of the original values, of all or along dimensions, with bounds."
    return method


def _of_each(name: str) -> Any:
    """A statistic of each original variable, from the archive that it is read from."""

    def method(self: OfDataset, dim: Dims = None, *, names: str | Iterable[str] | None = None) -> xarray.Dataset:
        asked = set() if dim is None else {dim} if isinstance(dim, str) else set(dim)
        chosen = self._chosen(names)
        along = [own for own in chosen if not asked or asked & set(self._data[own].dims)]
        return statistic_of({own: self._data[own] for own in along or chosen}, name, dim)

    method.__name__, method.__doc__ = name, f"The {name} of each variable's original values, with proven bounds."
    return method


@xarray.register_dataarray_accessor("wb")   # type: ignore[no-untyped-call]
class OfDataArray:
    """The calls on one array.

    >>> import numpy as np, xarray, workbench as wb, workbench.xarray
    >>> array = xarray.DataArray(np.linspace(0, 1, 1000), dims="x", name="T")
    >>> array.wb.compress(wb.Absolute(1e-3)).decompress().to_xarray().dims
    ('x',)
    """

    def __init__(self, array: xarray.DataArray) -> None:
        self._data = array

    compress = _on_array(compress)
    compare = _on_array(compare)
    find_bound = _on_array(find_bound)
    predict = _on_array(predict)
    sweep = _on_array(sweep)
    limits = _on_array(rate_distortion)
    mean, sum, std, min, max = map(_of_array, STATISTICS)


@xarray.register_dataset_accessor("wb")   # type: ignore[no-untyped-call]
class OfDataset:
    """The calls on a dataset.

    >>> import numpy as np, xarray, workbench as wb, workbench.xarray
    >>> dataset = xarray.Dataset({"T": ("x", np.linspace(0, 1, 1000)), "id": ("x", np.arange(1000))})
    >>> archive = dataset.wb.compress({"T": wb.Absolute(1e-3)})
    >>> archive["id"].certificate["values"].bound, dataset.wb.compare(archive.to_xarray())["T"].max_error <= 1e-3
    (Exact(), True)
    """

    def __init__(self, dataset: xarray.Dataset) -> None:
        self._data = dataset

    compress = _on_array(compress)
    find_bound = _on_each(find_bound)
    predict = _on_each(predict)
    sweep = _on_each(sweep)
    limits = _on_each(rate_distortion)
    mean, sum, std, min, max = map(_of_each, STATISTICS)

    def compare(self, decoded: xarray.Dataset, *, names: str | Iterable[str] | None = None, **options: Any) -> Reports:
        """How different each variable is from that of the same name in another dataset: `wb.compare` of each."""
        if not isinstance(decoded, xarray.Dataset):
            raise WorkbenchError(f"decoded must be a Dataset, such as archive.to_xarray(); got {briefly(decoded)}")
        chosen = self._chosen(names)
        for name in chosen:
            require_known(name, map(str, decoded.variables), "a variable of the decoded dataset")
        return Reports({name: compare(self._data[name], decoded[name], **options) for name in chosen})

    def _chosen(self, names: str | Iterable[str] | None) -> list[str]:
        """The variables that a call is about."""
        if names is None:
            return [str(name) for name, array in self._data.data_vars.items() if _is_field_of_floats(array)]
        chosen = [names] if isinstance(names, str) else list(names)
        for name in chosen:
            require_known(name, map(str, self._data.variables), "a variable")
        return chosen
