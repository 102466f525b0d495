"""Files of several arrays: when one is opened as a dataset, what is refused then, and the list of its arrays."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from workbench.archive.collection.dataset import Dataset
from workbench.archive.collection.sources import opened_dataset
from workbench.archive.recognition import is_archive
from workbench.cli.damaged import damage_told_apart
from workbench.cli.source import flag, given_options, print_result
from workbench.cli.suggestion import beginning_of_values
from workbench.cli.visible import visible
from workbench.data import Field
from workbench.data.readers.paths import is_several
from workbench.errors import WorkbenchError

FOR_PARTICLES = {
    "keep_clusters": None, "order": "keep", "velocities_abs": None, "velocities_rel": None, "store_permutation": False,
    "column_abs": None, "column_rel": None,
}   # options of `compress`, and what they are unless given
MOST_READ = 2**20   # values of an array that are read for its range
LEAST = 1000   # values of an array that is worth a bound of its own


@contextmanager
def dataset_of(options: argparse.Namespace) -> Iterator[Dataset]:
    """The dataset in the file, or in those of a pattern, whose values are read where they are needed."""
    if given := given_options(options):
        raise WorkbenchError(
            f"{flag(given[0])} is for one array or particles, and bounds with names are for a dataset: leave one out"
        )
    if not is_several(options.file) and not os.path.exists(options.file):
        raise WorkbenchError(f"there is no file or folder {options.file}: check the path")
    if is_archive(options.file):
        raise WorkbenchError(f"{options.file} is an archive: compress the original it was made from")
    with damage_told_apart(options.file), opened_dataset(options.file) as dataset:
        yield dataset


@contextmanager
def dataset_instead(options: argparse.Namespace, error: WorkbenchError) -> Iterator[Dataset]:
    """The dataset in a file that cannot be opened as one array; that error if it is none, or options were given."""
    if given_options(options):
        raise error
    with ExitStack() as stack:
        try:
            dataset = stack.enter_context(opened_dataset(options.file))
        except WorkbenchError:
            raise error from None
        yield dataset


def may_hold_dataset(file: str) -> bool:
    """Whether this names files, or a folder, that are no archive."""
    return is_several(file) or (os.path.exists(file) and not is_archive(file))


def require_for_datasets(options: argparse.Namespace) -> None:
    """Refuse what makes sense for particles, or for one field, alone."""
    for option, unless in FOR_PARTICLES.items():
        if getattr(options, option) != unless:
            raise WorkbenchError(f"{flag(option)} is for particles; {options.file} holds a dataset: leave it out")
    if options.safeguards:
        raise WorkbenchError(f"--safeguard is for one field; {options.file} holds a dataset: choose a field by --name")


def describe_dataset(dataset: Dataset) -> dict[str, Any]:
    """The arrays of a dataset, and its attributes."""
    return {
        "kind": "dataset",
        "arrays": [_described(name, member, name in dataset.coordinates) for name, member in dataset.items()],
        "attributes": dataset.groups.get("", {}).get("attributes", {}),
    }


def print_dataset(described: Mapping[str, Any], as_json: bool) -> None:
    """Print the description; as text, one line for each array."""
    if as_json:
        print_result(described, True)
        return
    arrays = described["arrays"]
    above = {key: value for key, value in described.items() if key not in ("arrays", "attributes", "next")}
    shown = {f"attribute {name}": value for name, value in described["attributes"].items()}
    print_result({**above, "arrays": len(arrays), **shown}, False)
    print_table([_in_words(array) for array in arrays])
    if "next" in described:
        print_result({"next": described["next"]}, False)


def print_table(rows: list[dict[str, str]]) -> None:
    """Print rows as aligned columns, with their names above.

    >>> print_table([{"name": "T", "units": "K"}, {"name": "salinity", "units": ""}])
    name      units
    T         K
    salinity
    """
    widths = {key: max(len(key), *(len(visible(row[key])) for row in rows)) for key in rows[0]}
    for row in [{key: key for key in widths}, *rows]:
        print("  ".join(visible(row[key]).ljust(width) for key, width in widths.items()).rstrip())


def _described(name: str, member: Any, is_coordinate: bool) -> dict[str, Any]:
    dimensions, units = member.metadata.get("dimensions", []), member.metadata.get("units", "")
    values = _values(member)
    return {
        "name": name, "dimensions": list(dimensions), "shape": list(member.shape), "dtype": _type_of(member.values.dtype),
        "units": str(units), "coordinate": is_coordinate, **_range(values),
        **({} if is_coordinate else _start(member, values)),
    }


def _start(member: Any, values: np.ndarray | None) -> dict[str, float | None]:
    """The bound to begin with, of an array of floating-point numbers; None of one that is not read."""
    if np.dtype(member.values.dtype).kind != "f" or int(np.prod(member.shape)) < LEAST:
        return {}
    return {"start_with": None if values is None else beginning_of_values(values)}


def _range(values: np.ndarray | None) -> dict[str, Any]:
    """The smallest and the largest of some numbers."""
    if values is None or values.dtype.kind not in "fiu":
        return {}
    finite = values[np.isfinite(values)]
    return {"minimum": finite.min().item(), "maximum": finite.max().item()} if finite.size else {}


def _values(member: Any) -> np.ndarray | None:
    """All values that are not masked; None of an array of many numbers."""
    if int(np.prod(member.shape)) > MOST_READ:
        return None
    values = np.asarray(member.values[tuple(slice(0, size) for size in member.shape)])
    return values[~np.asarray(member.mask)] if isinstance(member, Field) and member.mask is not None else values


def _type_of(dtype: np.dtype) -> str:
    return "text" if dtype.kind in "OUS" else str(dtype)


def _in_words(array: Mapping[str, Any]) -> dict[str, str]:
    ends = f"{array['minimum']:.6g} to {array['maximum']:.6g}" if "minimum" in array else ""
    return {
        "name": array["name"], "dimensions": ", ".join(array["dimensions"]),
        "shape": " x ".join(map(str, array["shape"])) or "one value", "type": array["dtype"], "units": array["units"],
        "range": ends,
    }
