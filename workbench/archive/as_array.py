"""The values of an archived field as an array that is decoded where it is read: a source like any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.data import Field
from workbench.slabs import Slices

if TYPE_CHECKING:
    from workbench.archive.archive import Archive



@dataclass(frozen=True)
class ArchivedArray:
    """The values of an archive of a field, decoded and checked where they are read."""

    archive: Archive

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values along each axis."""
        return self.archive.data.layout.shape

    @property
    def dtype(self) -> np.dtype:
        """Their type."""
        return self.archive.data.layout.dtype

    @property
    def whole_chunks(self) -> tuple[int, ...]:
        """The shape of chunks: one is decoded as a whole, for any part of it."""
        return self.archive.data.layout.chunk_shape

    @property
    def is_masked(self) -> bool:
        """Whether parts may have masks."""
        return "mask" in self.archive.arrays

    def __getitem__(self, place: Slices) -> Any:
        found = self.archive.read([(part.start, part.stop) for part in place])
        assert isinstance(found, Field)
        return found.values if found.mask is None else np.ma.MaskedArray(found.values, found.mask)
