"""Tables: their columns as arrays, and the DataFrame again. Tables of pandas, pyarrow, polars and astropy, and of NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

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


def columns_of(table: Any) -> Iterator[tuple[str, Any]]:
    """The columns of a table, as arrays.

    >>> [(name, column.tolist()) for name, column in columns_of(np.array([(1, 2.5)], [("id", "i8"), ("x", "f4")]))]
    [('id', [1]), ('x', [2.5])]
    """
    names = table.dtype.names if isinstance(table, np.ndarray) else None
    if names is None:
        names = getattr(table, "column_names", None) or getattr(table, "colnames", None) or list(table.columns)
    if strangers := [name for name in names if not isinstance(name, str)]:
        raise WorkbenchError(f"the names of columns must be text; got {strangers[0]!r}: rename it")
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise WorkbenchError(f"two columns are named {twice!r}: rename one of them")
    for name in names:
        yield name, _column(name, table[name])


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
    return pandas.DataFrame(series)


def _column(name: str, column: Any) -> Any:
    """A column as an array of NumPy, with its unit, or its mask, if it has one."""
    if type(column).__module__.partition(".")[0] == "pandas":
        return _of_pandas(name, column)
    if hasattr(column, "to_arrow"):   # of polars
        column = column.to_arrow()
    if hasattr(column, "to_pandas"):   # of pyarrow
        return _of_pandas(name, column.to_pandas(types_mapper=_with_missing))
    return column


def _with_missing(dtype: Any) -> Any:
    """The type of pandas for integers of pyarrow, which may be missing."""
    import pandas

    return pandas.api.types.pandas_dtype(str(dtype).capitalize().replace("Ui", "UI")) if "int" in str(dtype) else None


def _of_pandas(name: str, column: Any) -> Any:
    """A column of pandas; what NumPy lacks is masked, or refused."""
    import pandas

    if isinstance(column.dtype, pandas.CategoricalDtype | pandas.DatetimeTZDtype):
        raise WorkbenchError(f"column {name!r} of type {column.dtype} cannot be kept: convert it to text, numbers or dates")
    missing = column.isna().to_numpy()
    if pandas.api.types.is_string_dtype(column.dtype) or column.dtype == object:
        texts = column.to_numpy(object).copy()
        texts[missing] = None
        return texts
    if not missing.any() or column.dtype.kind in "fMm":
        return column.to_numpy(getattr(column.dtype, "numpy_dtype", None))
    numbers = column.fillna(0).to_numpy(getattr(column.dtype, "numpy_dtype", None))
    return np.ma.MaskedArray(numbers, missing)
