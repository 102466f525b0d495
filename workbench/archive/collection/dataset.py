"""Datasets: what users call their data. Named fields, particles and arrays of any type, perhaps in groups.

A dataset of xarray, a mapping of arrays, a table of columns: each becomes members with names, which `wb.compress` takes
with a bound for each, and which come back as the same object. Coordinates are members like others, so shared ones are there
once.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench import backend
from workbench.archive.collection.conventions import describing
from workbench.archive.collection.names import require_known, require_name, require_no_group
from workbench.archive.collection.pandas_columns import array_of, is_extension, is_text, without_nan
from workbench.archive.collection.tables import columns_of, dimensions_of_columns, is_table, to_frame, with_truth_values
from workbench.archive.content.registry import is_content
from workbench.charts.table import html_table
from workbench.data import Field
from workbench.data.attributes import to_plain
from workbench.data.labelled import Labelled, attributes_of, is_data_array, with_nan
from workbench.data.summary_html import summary
from workbench.data.variable import Variable
from workbench.data.xarray_variables import (
    encoding_from,
    encoding_of,
    metadata_of,
    to_variable,
    with_plain_dates,
    without_packing,
)
from workbench.errors import WorkbenchError, briefly
from workbench.run.chunked_field import ChunkedField, is_lazy
from workbench.slabs import Slices

MOST_MEMBERS = 2**13
LEFT_OUT = "left_out"   # what is known of a group: sentences about what of its files is not in it

Groups = Mapping[str, Mapping[str, Any]]   # what is known of each group, by its name: "" is the whole


class Dataset(Mapping[str, Any]):
    """Named members: each is a field, particles, or a `Variable`; names may have groups, as in `ocean/temperature`.

    Members are given as these, as arrays of any kind that `wb.Field` takes, as arrays of dates, text, booleans or complex
    numbers, as tables (a DataFrame, a structured array), or as mappings of such members.

    >>> dataset = Dataset({"T": np.zeros((3, 4)), "station": {"name": ["A", "B"], "height": [10.0, 20.0]}})
    >>> list(dataset), dataset["station/height"]
    (['T', 'station/name', 'station/height'], Field('height', 2, float64))
    >>> dataset["station"]["name"].values.tolist()
    ['A', 'B']
    """

    def __init__(
        self, members: Mapping[str, Any], groups: Groups = MappingProxyType({}), bounded: Iterable[str] = ()
    ) -> None:
        self.bounded = frozenset(bounded)   # members with errors, which must not be rounded again when they are written
        known: dict[str, Mapping[str, Any]] = {}
        self._members = dict(_flat("", members, known))
        self.groups: dict[str, Mapping[str, Any]] = {**known, **{name: dict(group) for name, group in groups.items()}}
        for name in (*self._members, *filter(None, self.groups)):
            require_name(name)
        require_no_group(self._members, self.groups)
        if not self._members:
            raise WorkbenchError("a dataset must have members; got none")
        if len(self._members) > MOST_MEMBERS:
            raise WorkbenchError(f"a dataset must have at most {MOST_MEMBERS:,} members; got {len(self._members):,}")

    @classmethod
    def of(cls, given: Any) -> Dataset:
        """The dataset itself, or that of a Dataset or DataTree of xarray, a table, or a mapping of members.

        >>> Dataset.of({"x": [1.0, 2.0]})
        Dataset(x: Field('x', 2, float64))
        """
        if isinstance(given, cls):
            return given
        if _is_xarray(given, "DataTree"):
            return _of_tree(given)
        if _is_xarray(given, "Dataset"):
            members, group = _of_xarray(given)
            return cls(members, {"": group})
        if is_table(given):
            return _of_table(given)
        if not isinstance(given, Mapping):
            raise WorkbenchError(f"a dataset must be one of xarray, a table, or a mapping; got {briefly(given)}")
        return cls(given)

    def __getitem__(self, name: str) -> Any:
        """A member, or the dataset of a group."""
        if name in self._members:
            return self._members[name]
        inside = dict(_below(name, self._members))
        if not inside:
            require_known(name, self._members, "a member")
        groups = {**dict(_below(name, self.groups)), "": self.groups.get(name, {})}
        return Dataset(inside, groups, (one[len(name) + 1 :] for one in self.bounded if one.startswith(f"{name}/")))

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    @property
    def coordinates(self) -> frozenset[str]:
        """The names of members that say where the values of others are."""
        return coordinates_of(self.groups)

    @functools.cached_property
    def describing(self) -> frozenset[str]:
        """The names of members that describe others by the conventions of CF: bounds, weights, terms, places, mappings."""
        return frozenset(describing(self._members))

    def with_members(self, members: Mapping[str, Any]) -> Dataset:
        """The dataset with other members of the same names, or with some of them."""
        return Dataset(members, self.groups, self.bounded & set(members))

    def leaving_out(self, notes: Iterable[str]) -> Dataset:
        """The dataset with a list of what of its files is not in it."""
        groups = {**self.groups, "": {**self.groups.get("", {}), LEFT_OUT: list(notes)}}
        return Dataset(self._members, groups, self.bounded)

    def to_xarray(self) -> Any:
        """The Dataset of xarray or, if members are in groups, the DataTree. Masked values become NaN.

        Members with errors that were packed in the source have no packing any more: it would round them beyond their bound.
        """
        import xarray

        inside: dict[str, dict[str, Any]] = {"": {}, **{name: {} for name in self.groups}}
        for name, member in self._members.items():
            group, _, own = name.rpartition("/")
            inside.setdefault(group, {})[own] = variable = variable_of(own, member)
            if name in self.bounded:
                variable.encoding = without_packing(variable.encoding, variable.dtype)
        nodes = {f"/{name}": dataset_of(xarray, variables, self.groups.get(name, {})) for name, variables in inside.items()}
        return nodes["/"] if len(nodes) == 1 else xarray.DataTree.from_dict(nodes)

    def to_dataframe(self) -> Any:
        """The table as a DataFrame of pandas, if all members are columns of one length."""
        return to_frame({name: column_of(name, member) for name, member in self._members.items()}, self.groups.get("", {}))

    def __repr__(self) -> str:
        shown = [f"{name}: {member!r}" for name, member in list(self._members.items())[:20]]
        more = [f"and {len(self) - 20} more"] if len(self) > 20 else []
        return f"Dataset({', '.join([*shown, *more])})"

    def _repr_html_(self) -> str:
        """A row for each member; no values are read."""
        rows = [
            [name, " x ".join(f"{size:,}" for size in member.shape), str(member.values.dtype),
             str(member.metadata.get("units", "")), "coordinate" if name in self.coordinates else ""]
            if isinstance(member, Field | Variable) else [name, repr(member), "", "", ""]
            for name, member in self._members.items()
        ]
        below = html_table(["name", "shape", "type", "units", ""], rows, texts=range(5))
        return summary(f"Dataset of {len(self)} members", {}, self.groups.get("", {}).get("attributes"), below)


@dataclass(frozen=True, eq=False)
class InVariable:
    """The values of a variable that xarray has not read yet: each part is read where it is needed."""

    variable: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values along each axis."""
        return tuple(self.variable.shape)

    @property
    def dtype(self) -> np.dtype:
        """Their type."""
        return np.dtype(self.variable.dtype)

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of the chunks of the file."""
        stated = self.variable.encoding.get("preferred_chunks", {})
        sizes = [stated.get(axis) for axis in self.variable.dims]
        return tuple(map(int, sizes)) if all(isinstance(size, int) for size in sizes) else None

    def __getitem__(self, place: Slices) -> np.ndarray:
        return np.asarray(self.variable[place].copy(deep=False).values)


def member_of(name: str, given: Any, metadata: Mapping[str, Any] | None = None) -> Any:
    """An array as a member: a field if it is numbers on a grid, else a variable."""
    own = name.rpartition("/")[2]
    try:
        if is_content(given):
            return given
        if is_data_array(given):
            labelled = Labelled.of(given.drop_vars(list(given.coords)))
            given, metadata = labelled.values, {**labelled.metadata, **(metadata or {})}
        if type(given).__name__ == "Series" and hasattr(given, "to_xarray"):
            labelled = Labelled.of(given)
            given, metadata = labelled.values, {**labelled.metadata, **(metadata or {})}
        if is_extension(getattr(given, "dtype", None)):
            given, note = _of_extension("an array", given)
            metadata = {**(metadata or {}), **note}
        if is_lazy(given):
            if _is_field(np.dtype(given.dtype), tuple(given.shape)):
                return ChunkedField(given, name=own, metadata=metadata)
            return Variable(_computed(given), own, metadata)
        array = given if hasattr(given, "dtype") else _array_of(given)
        dtype, shape = np.dtype(array.dtype), tuple(array.shape)
        if _is_field(dtype, shape):
            return Field(array, name=own, metadata=metadata)
        return Variable(without_nan(array) if dtype.kind == "O" else array, own, metadata)
    except WorkbenchError as error:
        raise WorkbenchError(f"{name!r}: {error}") from None


def coordinates_of(groups: Groups) -> frozenset[str]:
    """The whole names of the coordinates of all groups.

    >>> coordinates_of({"ocean": {"coordinates": ["depth"]}})
    frozenset({'ocean/depth'})
    """
    return frozenset(
        f"{group}/{name}" if group else name
        for group, about in groups.items() for name in texts_of(about.get("coordinates"))
    )


def variable_of(name: str, member: Any) -> Any:
    """A member as a variable of xarray."""
    if not isinstance(member, Field | Variable):
        raise WorkbenchError(f"{name!r} must be one array, to become one of xarray; got {member!r}: leave it out")
    return to_variable(name, plain_values(member), member.metadata)


def plain_values(member: Field | Variable) -> np.ndarray:
    """The values of a member; those that are masked are NaN."""
    if isinstance(member, Variable):
        return member.values
    mask = None if member.mask is None else backend.to_host(member.mask)
    return with_nan(backend.to_host(member.values), mask)


def dataset_of(xarray: Any, variables: Mapping[str, Any], group: Mapping[str, Any]) -> Any:
    """The Dataset of these variables, with the attributes and coordinates of their group."""
    coordinates = {name for name in texts_of(group.get("coordinates")) if name in variables}
    data = {name: variable for name, variable in variables.items() if name not in coordinates}
    beside = {name: variable for name, variable in variables.items() if name in coordinates}
    dataset = xarray.Dataset(data, beside, attributes_of(group))
    dataset.encoding = encoding_from(group.get("encoding"))
    return dataset


def column_of(name: str, member: Any) -> Any:
    """A member as a column of a table."""
    if isinstance(member, Field) and len(member.shape) == 1:
        values = np.asarray(member.values, bool if member.metadata.get("truth_values") else None)
        return values if member.mask is None else np.ma.MaskedArray(values, np.asarray(member.mask))
    if isinstance(member, Variable) and len(member.shape) == 1:
        return member.values
    raise WorkbenchError(f"{name!r} must be a column, to become one of a table; got {member!r}")


def _flat(before: str, members: Mapping[str, Any], groups: dict[str, Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """All members with their whole names; `groups` gets what is known of groups."""
    for key, given in members.items():
        name = require_name(f"{before}{key}" if isinstance(key, str) else key)
        if isinstance(given, Dataset) or _is_xarray(given, "Dataset") or _is_xarray(given, "DataTree") or is_table(given):
            inner = Dataset.of(given)
            groups.update({f"{name}/{rest}" if rest else name: group for rest, group in inner.groups.items()})
            yield from ((f"{name}/{rest}", member) for rest, member in inner.items())
        elif isinstance(given, Mapping):
            yield from _flat(f"{name}/", given, groups)
        else:
            yield name, member_of(name, given)


def _of_table(table: Any) -> Dataset:
    """The dataset of a table, each column a member; columns that are the index are coordinates."""
    columns, about = columns_of(table)
    members = {}
    for name, axes in dimensions_of_columns(columns).items():
        column, note = with_truth_values(columns[name])
        members[name] = member_of(name, column, {"dimensions": axes, **note})
    return Dataset(members, {"": about})


def _of_tree(tree: Any) -> Dataset:
    """The dataset of a DataTree, each node a group."""
    members: dict[str, Any] = {}
    groups: dict[str, Mapping[str, Any]] = {}
    for node in tree.subtree:
        path = node.path.strip("/")
        own, groups[path] = _of_xarray(node.to_dataset(inherit=False))
        members |= {f"{path}/{name}" if path else name: member for name, member in own.items()}
    return Dataset(members, groups)


def _of_xarray(dataset: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The members of a Dataset of xarray, and what is known of it."""
    names = list(dataset.variables)
    if strangers := [name for name in names if not isinstance(name, str)]:
        raise WorkbenchError(f"names of variables must be text; got {strangers[0]!r}: rename it")
    members = {name: _of_variable(name, dataset.variables[name]) for name in names}
    attributes, types = to_plain("the dataset", dataset.attrs)
    about = {
        "attributes": attributes, "types": types, "encoding": encoding_of(dataset.encoding),
        "coordinates": [name for name in names if name in dataset.coords],
    }
    return members, {key: entry for key, entry in about.items() if entry}


def _of_variable(name: str, variable: Any) -> Any:
    if is_extension(variable.dtype):
        array, note = _of_extension(repr(name), variable.to_index() if name in variable.dims else variable.data)
        return member_of(name, array, {**metadata_of(name, variable), **note})
    if variable.dtype.kind == "O" and is_text(texts := without_nan(variable.values)):
        return member_of(name, texts, metadata_of(name, variable))
    try:
        variable, coded = with_plain_dates(name, variable)
    except WorkbenchError as error:
        raise WorkbenchError(f"{name!r}: {error}") from None
    metadata = {**metadata_of(name, variable), **coded}
    dask = hasattr(variable.data if variable._in_memory else variable._data, "__dask_graph__")
    dtype, shape = np.dtype(variable.dtype), tuple(variable.shape)
    if _is_field(dtype, shape) and (dask or not variable._in_memory):
        return member_of(name, variable.data if dask else InVariable(variable), metadata)
    return member_of(name, variable.values, metadata)


def _computed(lazy: Any) -> Any:
    """An array that stays where it is until it is read, with its values; one of a file keeps its unit."""
    if hasattr(lazy, "__dask_graph__"):
        return lazy.compute()
    return lazy if hasattr(lazy, "__array__") else lazy[tuple(slice(0, size) for size in lazy.shape)]


def _of_extension(what: str, values: Any) -> tuple[Any, dict[str, Any]]:
    """An array of a type of pandas as one of NumPy, and a note of what it held."""
    import pandas

    return with_truth_values(array_of(what, pandas.Series(values)))


def _array_of(given: Any) -> np.ndarray:
    """A list, a number or text as an array."""
    labelled = Labelled.of(given)
    if hasattr(labelled.values, "dtype"):
        array: np.ndarray = labelled.values
        return array
    try:
        return Variable(labelled.values).values
    except WorkbenchError:
        raise
    except (ValueError, TypeError) as error:
        raise WorkbenchError(f"expected an array; got {briefly(given)}: {error}") from None


def _is_field(dtype: np.dtype, shape: tuple[int, ...]) -> bool:
    """Whether these are numbers on a grid that codecs take."""
    from workbench.data.field import DTYPES

    return dtype.newbyteorder("=").name in DTYPES and 1 <= len(shape) <= 4 and 0 not in shape


def _is_xarray(given: Any, kind: str) -> bool:
    return type(given).__module__.partition(".")[0] == "xarray" and type(given).__name__ == kind


def _below(group: str, named: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What is in a group, by the rest of its name."""
    return ((name[len(group) + 1 :], entry) for name, entry in named.items() if name.startswith(f"{group}/"))


def texts_of(given: Any) -> list[str]:
    """The texts in a list that a document states.

    >>> texts_of(["a", 1]), texts_of(None)
    (['a'], [])
    """
    return [one for one in given if isinstance(one, str)] if isinstance(given, list | tuple) else []


def in_group(names: Iterable[str], groups: Groups, group: str) -> dict[str, str]:
    """The whole names of the members that are in a group itself, by their names there.

    >>> in_group(["T", "ocean/T", "ocean/deep/T"], {"": {}, "ocean": {}}, "ocean")
    {'T': 'ocean/T'}
    """
    require_known(group, groups, "a group")
    begin = f"{group}/" if group else ""
    inside = (name.removeprefix(begin) for name in names if name.startswith(begin))
    return {own: f"{begin}{own}" for own in inside if "/" not in own}
