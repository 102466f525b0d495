"""Which bound velocities and further columns of particles have: rules by name or pattern, settled before any work.

A name counts before patterns, and an earlier pattern before a later one. Columns that no rule is about are exact, and so
are integers and flags unless a rule names them: a pattern for all columns is meant for measured numbers.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.archive.collection.names import require_known
from workbench.archive.in_order import PERMUTATION, VELOCITIES
from workbench.archive.request import Request
from workbench.archive.root import MOST_ARRAYS
from workbench.data import Field
from workbench.data.particles import COMPANIONS
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, PointwiseRelative

ALL = "*"


def bounds_beside(dtypes: Mapping[str, np.dtype], request: Request, metadata: Mapping[str, Any]) -> dict[str, Bound]:
    """The bounds of the arrays beside positions, of which these are the types of a row; those without one are exact."""
    _require_few(dtypes, request)
    _require_velocities(dtypes, request)
    own = {} if request.velocities is None else {VELOCITIES: request.velocities}
    return {**own, **_bounds_of_columns(dtypes, request.columns, metadata)}


def _bounds_of_columns(
    dtypes: Mapping[str, np.dtype], rules: Mapping[str, Bound], metadata: Mapping[str, Any]
) -> dict[str, Bound]:
    """The bounds of columns that are not exact."""
    columns = {name: dtype.base for name, dtype in dtypes.items() if name not in COMPANIONS}
    for rule in rules:
        _require_some(rule, columns)
    found = {}
    for name, dtype in columns.items():
        bound = _rule_for(name, dtype, rules)
        if bound is not None and bound.eb > 0:
            _require_possible(name, dtype, bound)
            found[name] = _in_unit_of(name, bound, metadata)
    return found


def _rule_for(name: str, dtype: np.dtype, rules: Mapping[str, Bound]) -> Bound | None:
    if name in rules or dtype.kind != "f":
        return rules.get(name)
    return next((bound for pattern, bound in rules.items() if fnmatch.fnmatchcase(name, pattern)), None)


def _require_some(rule: str, columns: Mapping[str, np.dtype]) -> None:
    """Refuse a rule that is about no column: a slip of the pen would leave one without its bound."""
    if rule in COMPANIONS:
        other = "give velocities=" if rule == VELOCITIES else f"{rule} are always exact"
        raise WorkbenchError(f"rules for columns are about columns of other names; got {rule!r}: {other}")
    if rule == ALL or any(fnmatch.fnmatchcase(name, rule) for name in columns):
        return
    if not columns:
        raise WorkbenchError(f"rules for columns need particles with further columns; these have none, so no {rule!r}")
    require_known(rule, columns, "a column, or a pattern")


def _require_possible(name: str, dtype: np.dtype, bound: Bound) -> None:
    """Refuse bounds that flags and integers cannot have."""
    if dtype.kind == "b":
        raise WorkbenchError(f"the column {name} holds flags, which are exact: give wb.Exact(), or leave {name!r} out")
    if dtype.kind in "iu" and isinstance(bound, PointwiseRelative):
        raise WorkbenchError(
            f"the bound of integers must be wb.Absolute or wb.Relative; got {bound!r} for the column {name} of {dtype}"
        )


def _in_unit_of(name: str, bound: Bound, metadata: Mapping[str, Any]) -> Bound:
    """The bound in the unit of a column, as far as the metadata state it."""
    units = metadata.get("units")
    unit = units.get(name) if isinstance(units, Mapping) else None
    return bound.for_data(Field(np.zeros(1), name=name, metadata={} if unit is None else {"units": unit}))


def _require_few(dtypes: Mapping[str, np.dtype], request: Request) -> None:
    """Refuse more arrays than an archive has."""
    beside = {*dtypes, *((PERMUTATION,) if request.store_permutation else ())}
    most = MOST_ARRAYS - 2   # positions and extents
    if len(beside) > most:
        raise WorkbenchError(
            f"an archive has at most {most} arrays beside positions; these particles have {len(beside)}: divide them"
        )


def _require_velocities(dtypes: Mapping[str, np.dtype], request: Request) -> None:
    """Refuse a bound of velocities where there are none, and velocities that are no floats."""
    if VELOCITIES not in dtypes and request.velocities is not None:
        raise WorkbenchError("velocities= bounds the velocities of particles; these have none")
    if VELOCITIES in dtypes and dtypes[VELOCITIES].base.name not in ("float32", "float64"):
        got = dtypes[VELOCITIES].base
        raise WorkbenchError(f"velocities must be float32 or float64; got {got}: convert with .astype(...)")
