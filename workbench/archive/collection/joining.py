"""Several files as one dataset: months, levels or tiles, joined along the dimensions whose coordinates differ.

xarray joins, on Dask, so values are read where they are used. What does not fit is refused before (`fitting.py`).
"""

from __future__ import annotations

import importlib.util
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive.collection.dataset import Dataset
from workbench.archive.collection.files import reader_of
from workbench.archive.collection.fitting import (
    Parts,
    dimensions_that_differ,
    listed,
    require_order,
    require_same_names,
    require_same_values,
    require_same_variables,
)
from workbench.archive.collection.xarray_files import dataset_of_groups, opened_groups
from workbench.data.readers.paths import require_distinct
from workbench.errors import WorkbenchError

MOST_TOGETHER = 2**25   # bytes of a variable that are read together
OF_SHAPE = ("chunksizes", "chunks", "shards", "original_shape", "preferred_chunks")   # of an encoding


@contextmanager
def joined_files(paths: Sequence[Path]) -> Iterator[Dataset]:
    """The dataset in several files; attributes that differ are not in it, but are listed as left out."""
    require_distinct(paths)
    _require_dask()
    with ExitStack() as stack:
        files = {str(path): stack.enter_context(_groups_of(path)) for path in paths}
        first, *others = files
        for other in others:
            require_same_names("the group ", files, first, other)
        groups, notes = {}, []   # type: dict[str, Any], list[str]
        for group in files[first]:
            parts = {name: file[group].chunk(_chunks(file[group])) for name, file in files.items()}
            groups[group] = _joined(parts) if parts[first].variables else parts[first]
            notes += _differing(group, parts)
        dataset = dataset_of_groups(groups)
        yield dataset.leaving_out(notes) if notes else dataset


def _require_dask() -> None:
    if importlib.util.find_spec("dask") is None:
        needed = "several files as one dataset need dask, which is not installed: pip install 'lossbench[dask]'"
        raise WorkbenchError(needed)


@contextmanager
def _groups_of(path: Path) -> Iterator[dict[str, Any]]:
    if reader_of(path) is not None:
        raise WorkbenchError(f"{path} cannot be joined with others: expected arrays with coordinates, as in NetCDF")
    with opened_groups(path) as groups:
        yield groups


def _joined(parts: Parts) -> Any:
    """The dataset of all parts."""
    import xarray

    first, *others = parts
    for other in others:
        require_same_variables(parts, first, other)
    along = dimensions_that_differ(parts)
    if not along:
        parts, along = _along_new_dimension(parts)
    for other in others:
        require_same_values(parts, first, other, along)
    require_order(parts, along)
    try:
        found = xarray.combine_by_coords(
            list(parts.values()), data_vars="minimal", coords="minimal", compat="override", join="exact",
            combine_attrs="drop_conflicts",
        )
    except Exception as error:   # of xarray, of many kinds
        files = f"{first} and {len(others)} other file{'s' if len(others) > 1 else ''}"
        raise WorkbenchError(f"{files} cannot be joined along {listed(along)}: {error}") from error
    found.encoding = {key: entry for key, entry in parts[first].encoding.items() if key != "source"}
    return found


def _along_new_dimension(parts: Parts) -> tuple[Parts, list[str]]:
    """The parts with the first coordinate of one value that differs, such as the time of a map, as a dimension."""
    first, *others = parts

    def differs(name: str) -> bool:
        return any(not parts[first].variables[name].equals(parts[other].variables[name]) for other in others)

    single = [name for name in parts[first].coords if parts[first].variables[name].ndim == 0 and differs(name)]
    if not single:
        raise WorkbenchError(
            f"{first} and {others[0]} have the same coordinates: files are joined along one whose values differ"
        )
    new = single[0]
    moving = [*single, *filter(differs, parts[first].data_vars)]
    return {file: _spread(part, new, moving) for file, part in parts.items()}, [new]


def _spread(part: Any, new: str, moving: Sequence[str]) -> Any:
    """The part with a further dimension of one point, which these variables have."""
    spread = {name: part.variables[name].set_dims((new, *part.variables[name].dims)) for name in moving}
    for variable in spread.values():
        variable.encoding = {key: entry for key, entry in variable.encoding.items() if key not in OF_SHAPE}
    beside = {name: variable for name, variable in spread.items() if name in part.coords}
    data = {name: variable for name, variable in spread.items() if name not in beside}
    return part.drop_vars(moving).assign_coords(beside).assign(data)


def _chunks(part: Any) -> dict[str, Any]:
    """Parts of a file that are read together: whole chunks of it, of some megabytes."""
    largest = max(part.data_vars.values(), key=lambda one: one.nbytes, default=None)
    if largest is None:
        return {}
    stated = largest.encoding.get("preferred_chunks", {})
    chunks = {axis: min(stated.get(axis, 1), size) for axis, size in largest.sizes.items()}
    for axis in reversed(largest.dims):
        room = max(MOST_TOGETHER // (largest.dtype.itemsize * math.prod(chunks.values())), 1)
        chunks[axis] = min(chunks[axis] * room, largest.sizes[axis])
    return chunks


def _differing(group: str, parts: Parts) -> list[str]:
    """The attributes that are not the same in all files, in sentences."""
    held = [part.variables for part in parts.values()]
    owners = {group or "the dataset": [part.attrs for part in parts.values()]}
    owners |= {f"{group}/{name}" if group else str(name): [one[name].attrs for one in held] for name in held[0]}
    notes = []
    for owner, attributes in owners.items():
        names = dict.fromkeys(itertools.chain(*attributes))
        if differing := [str(name) for name in names if any(not _same(attributes[0], one, name) for one in attributes[1:])]:
            notes.append(f"attributes of {owner} that differ among the files: {', '.join(differing)}")
    return notes


def _same(one: Mapping[str, Any], other: Mapping[str, Any], name: str) -> bool:
    if name not in one or name not in other:
        return False
    mine, its = np.asarray(one[name]), np.asarray(other[name])
    return bool(np.array_equal(mine, its, equal_nan=mine.dtype.kind == its.dtype.kind == "f"))
