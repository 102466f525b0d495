"""Tables: their columns as arrays, and the DataFrame again. Tables of pandas, pyarrow, polars and astropy, and of NumPy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.archive.collection.pandas_columns import array_of, index_of, levels_of, with_index
from workbench.errors import WorkbenchError

ROW = "row"   # the dimension of columns


def is_table(given: Any) -> bool:
    """Whether these are columns of one length with names.

    >>> is_table(np.zeros(2, [("x", "f4"), ("id", "i8")])), is_table(np.zeros(2))
    (True, False)
    """
    package, kind = type(given).__module__.partition(".")[0], type(given).__name__
    named = isinstance(given, np.ndarray) and given.dtype.names is not None
    return named or (package, kind) in {
        ("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"), ("astropy", "Table"), ("astropy", "QTable"),
    }


def columns_of(table: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of a table as arrays, with those of its index; and what is known of the table.

    >>> columns, about = columns_of(np.array([(1, 2.5)], [("id", "i8"), ("x", "f4")]))
    >>> {name: column.tolist() for name, column in columns.items()}, about
    ({'id': [1], 'x': [2.5]}, {'kind': 'table'})
    """
    names = table.dtype.names if isinstance(table, np.ndarray) else None
    if names is None:
        names = getattr(table, "column_names", None) or getattr(table, "colnames", None) or list(table.columns)
    if strangers := [name for name in names if not isinstance(name, str)]:
        raise WorkbenchError(f"the names of columns must be text; got {strangers[0]!r}: rename it")
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise WorkbenchError(f"two columns are named {twice!r}: rename one of them")
    levels, unnamed = index_of(table) if hasattr(table, "set_index") else ({}, [])
    about = {"index": list(levels), "coordinates": list(levels), "unnamed": unnamed}
    columns = {**levels, **{name: _column(name, table[name]) for name in names}}
    return columns, {"kind": "table", **{key: entry for key, entry in about.items() if entry}}


def dimensions_of_columns(columns: Mapping[str, Any]) -> dict[str, list[str]]:
    """The dimensions of each column: all have that of the rows, and a name that no column has.

    >>> dimensions_of_columns({"x": np.zeros(2), "v": np.zeros((2, 3))})
    {'x': ['row'], 'v': ['row', 'v_1']}
    """
    row = ROW
    while row in columns:
        row += "_"
    return {
        name: [row, *(f"{name}_{axis}" for axis in range(1, len(column.shape)))] for name, column in columns.items()
    }


def with_truth_values(column: Any) -> tuple[Any, dict[str, Any]]:
    """A column, where it has truth values of which some are missing as masked numbers; and a note of that.

    >>> with_truth_values(np.ma.MaskedArray([True, False], [False, True]))[1]
    {'truth_values': True}
    """
    if isinstance(column, np.ma.MaskedArray) and column.dtype == bool:
        mask = np.ma.getmaskarray(column)
        return np.ma.MaskedArray(np.where(mask, 0, column.data).astype(np.uint8), mask), {"truth_values": True}
    return column, {}


def to_frame(columns: Mapping[str, Any], about: Mapping[str, Any]) -> Any:
    """The DataFrame of pandas with these columns; masked entries are missing."""
    try:
        import pandas
    except ImportError:
        raise WorkbenchError("to_dataframe needs pandas, which is not installed: pip install pandas") from None
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1:
        raise WorkbenchError(f"the columns of a table must have one length; got {sorted(lengths)}")
    series = {}
    for name, column in columns.items():
        masked = isinstance(column, np.ma.MaskedArray)
        series[name] = pandas.Series(column.data if masked else column)
        if masked:
            series[name] = series[name].convert_dtypes().mask(pandas.Series(column.mask))
    return with_index(pandas.DataFrame(series), list(levels_of(about.get("index"))), list(levels_of(about.get("unnamed"))))


def _column(name: str, column: Any) -> Any:
    """A column as an array of NumPy, with its unit, or its mask, if it has one."""
    if type(column).__module__.partition(".")[0] == "pandas":
        return array_of(f"column {name!r}", column)
    if hasattr(column, "to_arrow"):   # of polars
        column = column.to_arrow()
    if hasattr(column, "to_pandas"):   # of pyarrow
        return array_of(f"column {name!r}", column.to_pandas(types_mapper=_with_missing, date_as_object=False))
    return column


def _with_missing(dtype: Any) -> Any:
    """The type of pandas for integers and truth values of pyarrow, which may be missing."""
    import pandas

    name = {"bool": "boolean"}.get(str(dtype), str(dtype).capitalize().replace("Ui", "UI"))
    return pandas.api.types.pandas_dtype(name) if re.fullmatch(r"u?int(8|16|32|64)|bool", str(dtype)) else None
