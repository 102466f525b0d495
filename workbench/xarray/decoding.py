"""Members of archives as variables of xarray, whose values are decoded where they are used."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import xarray
from xarray.backends import BackendArray
from xarray.core import indexing

from workbench.archive.archive import Archive
from workbench.archive.collection.dataset import plain_values
from workbench.archive.collection.reports import has_errors
from workbench.archive.content.variable import form_of
from workbench.data import Field
from workbench.data.xarray_variables import decoded_dates, dimensions_of, to_variable, without_packing


class ArchivedValues(BackendArray):
    """The values of a member, decoded by region; those that are masked are NaN."""

    def __init__(self, archive: Archive, around: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        if archive.kind == "variable":
            form = form_of(archive)
            self.shape, self.dtype = form.shape, form.numpy
        else:
            self.shape, self.dtype = archive.data.layout.shape, archive.data.layout.dtype
            if "mask" in archive.arrays and self.dtype.kind in "iu":
                self.dtype = np.dtype(np.float64)
        self.archive, self.around = archive, around

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of the chunks, where these are parts of the array as it is."""
        layout = self.archive.data.layout
        return layout.chunk_shape if layout.shape == self.shape else None

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._at)

    def _at(self, key: tuple[int | slice, ...]) -> np.ndarray:
        """The values at integers and slices."""
        pairs = list(zip(key, self.shape, strict=True))
        spans = [
            range(*part.indices(size)) if isinstance(part, slice) else range(int(part), int(part) + 1)
            for part, size in pairs
        ]
        if not all(spans):
            return np.empty(self.shape, self.dtype)[key]
        ends = [(min(span[0], span[-1]), max(span[0], span[-1]) + 1) for span in spans]
        values = plain_values(self.read(ends))
        for axis, (span, (low, _)) in enumerate(zip(spans, ends, strict=True)):
            if span.step != 1:
                values = values.take(np.array(span) - low, axis)
        whole = tuple(slice(None) if isinstance(part, slice) else 0 for part in key)
        return np.asarray(values[whole], self.dtype)

    def read(self, ends: list[tuple[int, int]]) -> Any:
        """The field or the variable between these ends of each axis."""
        with self.around():
            return self.archive.read(ends) if ends else self.archive.decompress()


class SalvagedValues(ArchivedValues):
    """The undamaged values of a member that is damaged; all of it is decoded for every part."""

    def __init__(self, archive: Archive, dtype: np.dtype) -> None:
        super().__init__(archive)
        self.dtype = dtype   # of floats where integers are lost

    @property
    def chunks(self) -> None:
        """None: the whole array is one part."""
        return None

    def read(self, ends: list[tuple[int, int]]) -> Any:
        """The field between these ends; lost values are masked."""
        field = self.archive.salvage()[0]
        place = tuple(slice(*pair) for pair in ends)
        return Field(field.values[place], mask=None if field.mask is None else field.mask[place])


def lazy_variable(
    name: str, archive: Archive, values: ArchivedValues | None = None, packed: bool = False
) -> xarray.Variable:
    """A member as a variable. It has the encoding of the source, but for packing that would round it beyond its bound.

    With `packed`, it has that, too: who writes it must compare.
    """
    values = ArchivedValues(archive) if values is None else values
    metadata = archive.attributes.get("metadata", {})
    empty = to_variable(name, np.broadcast_to(np.zeros((), values.dtype), values.shape), {
        **metadata, "dimensions": dimensions_of(name, values.shape, metadata), "calendar_coded": False,
    })
    if has_errors(archive) and not packed:
        empty.encoding = without_packing(empty.encoding, empty.dtype)
    if values.chunks is not None:
        empty.encoding["preferred_chunks"] = dict(zip(empty.dims, values.chunks, strict=True))
    lazy = xarray.Variable(empty.dims, indexing.LazilyIndexedArray(values), empty.attrs, empty.encoding)
    return decoded_dates(name, lazy) if metadata.get("calendar_coded") else lazy
