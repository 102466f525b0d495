"""What the steps of a series have in common: a step of another shape, type or box than the one before it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.archive.archive import IDS, Archive
from workbench.archive.collection.collection import Collection
from workbench.archive.collection.dataset import Dataset
from workbench.archive.content.registry import content_of
from workbench.data import Particles
from workbench.data.chunked import MASSES, ChunkedParticles
from workbench.data.columns import row_type
from workbench.errors import WorkbenchError
from workbench.run.chunked_field import ChunkedField


def require_alike(given: Any, before: Archive | Collection, number: int) -> None:
    """Refuse data that are not of the kind of the step before.

    Masks, metadata and the number of particles with ids may be others.
    """
    if isinstance(before, Collection):
        if not isinstance(given, Dataset):
            raise _other(number, "a dataset", f"{content_of(given).words}", "the data of this one")
        if strangers := sorted(set(given) ^ set(before)):
            where = "is new" if strangers[0] in given else "is missing"
            raise WorkbenchError(
                f"step {number} must have the members of the steps before it, {', '.join(before)}; {strangers[0]!r} {where}"
            )
        for name in before:
            try:
                _require_alike(given[name], before[name], number)
            except WorkbenchError as error:
                raise WorkbenchError(f"{name!r}: {error}") from None
        return
    if isinstance(given, Dataset):
        raise _other(number, before.content.words, "a dataset", "one of its members")
    _require_alike(given, before, number)


def _require_alike(given: Any, before: Archive, number: int) -> None:
    content = content_of(given)
    if content is not before.content:
        raise _other(number, before.content.words, content.words, "the data of this one")
    known = {} if before.kind == "variable" else _outline_of(before)
    for what, expected in known.items():
        got = _outline(given)[what]
        if got != expected:
            raise WorkbenchError(
                f"step {number} must have the {what} of the steps before it, {expected}; got {got}: begin another series"
            )


def _other(number: int, expected: str, got: str, remedy: str) -> WorkbenchError:
    return WorkbenchError(
        f"step {number} must be {expected}, as the steps before it; got {got}: begin another series, or give {remedy}"
    )


def _outline_of(archive: Archive) -> dict[str, Any]:
    layout = archive.data.layout
    if archive.kind == "field":
        return {"shape": layout.shape, "type": str(layout.dtype), "spacing": archive.spacing}
    columns = {
        name: _row(stored.layout.dtype, stored.layout.shape[1:]) for name, stored in archive.data_arrays.items()
        if name not in ("positions", MASSES)
    }
    return {
        "box": archive.box, "type": str(layout.dtype), "number of dimensions": layout.shape[1], "columns": _sorted(columns),
    }


def _outline(given: Any) -> dict[str, Any]:
    if not isinstance(given, Particles | ChunkedParticles):
        field = ChunkedField.of(given)
        return {"shape": tuple(field.shape), "type": str(field.dtype), "spacing": tuple(field.spacing)}
    if isinstance(given, Particles):
        rows = {name: row_type(values) for name, values in given.companions.items()}
        dtype = given.positions.dtype
    else:
        columns = tuple(name for name in given.columns if name != MASSES)
        first = given.companions(0, columns, slice(1)).companions
        rows, dtype = {name: row_type(values) for name, values in first.items()}, given.dtype
    columns_of = {name: _row(row.base, row.shape) for name, row in rows.items() if name != MASSES}
    return {
        "box": given.box, "type": str(dtype), "number of dimensions": given.dimensions, "columns": _sorted(columns_of),
    }


def _row(dtype: np.dtype, shape: tuple[int, ...]) -> str:
    return f"{dtype} x {shape[0]}" if shape else str(dtype)


def _sorted(columns: Mapping[str, str]) -> str:
    names = sorted(columns, key=lambda name: (name != IDS, name))
    return ", ".join(f"{name} ({columns[name]})" for name in names) or "none"
