"""Columns and indexes of pandas as arrays of NumPy; what NumPy lacks is masked, or refused in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench.errors import WorkbenchError


def is_extension(dtype: Any) -> bool:
    """Whether this is a type of pandas that NumPy lacks.

    >>> is_extension(np.dtype("f4"))
    False
    """
    return not isinstance(dtype, np.dtype) and type(dtype).__module__.partition(".")[0] == "pandas"


def array_of(what: str, column: Any) -> Any:
    """A Series as an array; `what` is its name in sentences.

    >>> import pandas
    >>> array_of("column 'n'", pandas.Series(pandas.array([1, None], "Int64"))).tolist()
    [1, None]
    """
    import pandas

    if _is_foreign(column.dtype):
        raise WorkbenchError(f"{what} of type {column.dtype} cannot be kept: convert it to text, numbers or dates")
    missing = column.isna().to_numpy()
    if pandas.api.types.is_string_dtype(column.dtype) or column.dtype == object:
        texts = column.to_numpy(object).copy()
        texts[missing] = None
        return texts
    own = getattr(column.dtype, "numpy_dtype", None)
    if not missing.any() or column.dtype.kind in "fMm":
        return column.to_numpy(own)
    return np.ma.MaskedArray(column.fillna(False if column.dtype.kind == "b" else 0).to_numpy(own), missing)


def without_nan(texts: np.ndarray) -> np.ndarray:
    """Objects of which some are missing text, which pandas has as NaN, with None for these.

    >>> without_nan(np.array(["a", np.nan], object)).tolist()
    ['a', None]
    """
    missing = np.array([not isinstance(one, str) and _is_missing(one) for one in texts.flat], bool).reshape(texts.shape)
    if not missing.any():
        return texts
    found = texts.copy()
    found[missing] = None
    return found


def is_text(objects: np.ndarray) -> bool:
    """Whether all objects are text or None.

    >>> is_text(np.array(["a", None], object)), is_text(np.array([1.0], object))
    (True, False)
    """
    return all(isinstance(one, str | None) for one in objects.flat)


def index_of(frame: Any) -> tuple[dict[str, Any], list[str]]:
    """The levels of the index of a DataFrame by name, none if it only counts the rows; and which names it lacks itself.

    >>> import pandas
    >>> levels, unnamed = index_of(pandas.DataFrame({"x": [1.0]}, pandas.Index(["a"])))
    >>> list(levels), unnamed
    (['index'], ['index'])
    """
    index = frame.index
    if _only_counts(index):
        return {}, []
    names = list(index.names)
    stated = ["index" if len(names) == 1 else f"level_{number}" for number in range(len(names))]
    names = [stated[number] if name is None else name for number, name in enumerate(names)]
    for name in names:
        if not isinstance(name, str) or name in frame.columns or names.count(name) > 1:
            raise WorkbenchError(
                f"the index {name!r} must have a name of its own that is text, and that no column has: rename it, or "
                "leave the index out by reset_index(drop=True)"
            )
    levels = {name: _level(name, index.get_level_values(number)) for number, name in enumerate(names)}
    return levels, [name for name, own in zip(names, index.names, strict=True) if own is None]


def with_index(frame: Any, names: list[str], unnamed: list[str]) -> Any:
    """The DataFrame, with some of its columns as the index."""
    kept = [name for name in names if name in frame.columns]
    if not kept:
        return frame
    indexed = frame.set_index(kept)
    return indexed.rename_axis(index=[None if name in unnamed else name for name in kept])


def _level(name: str, values: Any) -> Any:
    try:
        return array_of(f"the index {name!r}", values.to_series(index=range(len(values))))
    except WorkbenchError as error:
        raise WorkbenchError(f"{error}; or leave it out by reset_index(drop=True)") from None


def _only_counts(index: Any) -> bool:
    """Whether an index without a name is 0, 1, 2 and so on."""
    if index.nlevels > 1 or index.name is not None:
        return False
    whole = isinstance(index.dtype, np.dtype) and index.dtype.kind in "iu"
    return not len(index) or (whole and np.array_equal(index.to_numpy(), np.arange(len(index))))


def _is_foreign(dtype: Any) -> bool:
    """Whether values would lose what the type says of them: categories, zones, periods, and lists of Arrow."""
    import pandas

    types = pandas.CategoricalDtype | pandas.DatetimeTZDtype | pandas.PeriodDtype | pandas.IntervalDtype
    arrow = getattr(dtype, "pyarrow_dtype", None)
    if isinstance(dtype, types) or arrow is None:
        return isinstance(dtype, types)
    return getattr(arrow, "tz", None) is not None or hasattr(arrow, "value_type") or arrow.num_fields > 0


def _is_missing(one: Any) -> bool:
    """Whether this is NaN, or what pandas has in its place."""
    return (isinstance(one, float) and one != one) or type(one).__name__ == "NAType"


def levels_of(about: Any) -> Iterator[str]:
    """The names in a list that a document states."""
    return (one for one in about if isinstance(one, str)) if isinstance(about, list | tuple) else iter(())
