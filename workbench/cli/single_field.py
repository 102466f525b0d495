"""An array of one archive as a dataset of xarray, with the coordinates that it carries."""

from __future__ import annotations

from typing import Any

from workbench.archive import Archive, Dataset
from workbench.data import Field
from workbench.data.labelled import FILLS, PACKING

UNNAMED = "values"


def name_of(archive: Archive) -> str:
    """The name of the array in a file."""
    return (archive.attributes.get("name") or UNNAMED).replace("/", "_")


def as_dataset(name: str, data: Any) -> Any:
    """The dataset of a field, or a variable, with its coordinates.

    >>> import numpy as np, workbench as wb
    >>> as_dataset("T", wb.Field(np.zeros((2, 3)), metadata={"dimensions": ["lat", "lon"]})).sizes["lon"]
    3
    """
    if not isinstance(data, Field):
        return Dataset({name: data}).to_xarray()
    array = data.to_xarray()
    of_file = (*FILLS, *PACKING) if data.metadata.get("scaled") else FILLS   # of values that are unpacked and masked now
    array.attrs = {key: value for key, value in array.attrs.items() if key not in of_file}
    return Dataset.of(array.to_dataset(name=name)).to_xarray()
