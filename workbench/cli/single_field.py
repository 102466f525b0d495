"""An archive of one field or variable as a dataset, with the coordinates that it carries."""

from __future__ import annotations

from typing import Any

from workbench.archive import Archive, Dataset
from workbench.data import Field
from workbench.data.labelled import FILLS, PACKING

UNNAMED = "values"


def as_dataset(archive: Archive, data: Any) -> tuple[str, Dataset]:
    """The name of the array, and the dataset of it and of its coordinates.

    >>> import numpy as np, workbench as wb
    >>> archive = wb.compress(wb.Field(np.zeros((2, 3)), metadata={"dimensions": ["lat", "lon"]}), wb.Absolute(0.1))
    >>> as_dataset(archive, archive.decompress())
    ('values', Dataset(values: Field('values', 2 x 3, float64)))
    """
    name = (data.name or UNNAMED).replace("/", "_")
    if not isinstance(data, Field):
        return name, Dataset({name: data})
    array = data.to_xarray()
    of_file = (*FILLS, *PACKING) if data.metadata.get("scaled") else FILLS   # of values that are unpacked and masked now
    array.attrs = {key: value for key, value in array.attrs.items() if key not in of_file}
    return name, Dataset.of(array.to_dataset(name=name))
