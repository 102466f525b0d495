"""The further columns of particles in a file: which there are, and which of them a caller wants by `columns=`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.data.columns import can_be_column, require_names, row_type
from workbench.errors import WorkbenchError, briefly

ALL = "all"

Wanted = str | Sequence[str] | None   # names of columns, or "all" that there are
Rows = Mapping[str, np.dtype]         # the types of a row, by the name of the column


class Shaped(NamedTuple):
    """An array of a file that is not read."""

    shape: tuple[int, ...]
    dtype: np.dtype


def offered(arrays: Mapping[str, Any], count: int) -> dict[str, np.dtype]:
    """Those of these arrays of a file that can be columns of so many particles, with their types of a row.

    >>> offered({"T": np.zeros(3), "name": np.array(["a", "b", "c"]), "edges": np.zeros(4)}, 3)
    {'T': dtype('float64')}
    """
    return {name: row_type(array) for name, array in arrays.items() if can_be_column(name, array, count)}


def chosen(wanted: Wanted, there: Sequence[Rows], where: str, own: Collection[str] = ()) -> dict[str, np.dtype]:
    """The columns that are wanted, which all of these files or types of particles must have; `own` are read anyway.

    >>> chosen("all", [{"T": np.dtype("f4"), "x": np.dtype("f4")}, {"T": np.dtype("f4")}], "snap")
    {'T': dtype('float32')}
    >>> chosen(["rho"], [{"T": np.dtype("f4")}], "snap")
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: snap has no column 'rho' for all of its particles; columns can be "all", or some of T
    """
    common = {name: row for name, row in there[0].items() if all(name in one for one in there)} if there else {}
    names = names_of(wanted, common)
    for name in names:
        if name in own:
            raise WorkbenchError(f"{name} in {where} is read without columns=...: leave it out there")
        if name not in common:
            some = f'columns can be "all", or some of {", ".join(sorted(common))}'
            listed = some if common else "it has no further ones"
            raise WorkbenchError(f"{where} has no column {name!r} for all of its particles; {listed}")
        if len(rows := {str(one[name]) for one in there}) > 1:
            got = " and ".join(sorted(rows))
            raise WorkbenchError(f"the column {name} must have one type in all of {where}; got {got}")
    require_names(names)
    return {name: common[name] for name in names}


def names_of(wanted: Any, there: Collection[str]) -> list[str]:
    """The names that are wanted, each once.

    >>> names_of(None, ["T"]), names_of("all", ["T"]), names_of("rho, T", ["T"])
    ([], ['T'], ['rho', 'T'])
    """
    if wanted is None:
        return []
    if isinstance(wanted, str):
        return list(there) if wanted == ALL else list(dict.fromkeys(name.strip() for name in wanted.split(",")))
    names = list(wanted) if isinstance(wanted, list | tuple | set | frozenset) else []
    if not all(isinstance(name, str) for name in names) or not isinstance(wanted, list | tuple | set | frozenset):
        raise WorkbenchError(f'columns must be names of columns, as in ["Potential"], or "all"; got {briefly(wanted)}')
    return list(dict.fromkeys(names))
