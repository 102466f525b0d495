"""What a kind of content must know: its arrays, its rules, the object that a user gives and gets, and its words.

An archive knows arrays, chunks and promises, and asks its content for all that depends on the kind. What only some kinds
offer is refused here, in a sentence. The other defaults suit arrays with the same rows along their first axis.
"""

from __future__ import annotations

import dataclasses
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from workbench.archive.archive import Archive
from workbench.archive.compress import source_of
from workbench.archive.frame import Damaged, as_source
from workbench.archive.layout import ArrayLayout
from workbench.archive.request import Compression, Request, require_about
from workbench.archive.salvage import salvage
from workbench.archive.verify import Examination
from workbench.backend import Array
from workbench.data.readers.source import Source
from workbench.data.readers.tables import Table
from workbench.errors import WorkbenchError
from workbench.run.chunked_field import ChunkedField

Ends = Sequence[tuple[float | None, float | None]]   # of a region, along each axis


class Content(ABC):
    """A kind of content. Its objects have no state; an archive is an argument."""

    kind: ClassVar[str]                       # its name in archives
    words: ClassVar[str]                      # what it is, in messages: "a field"
    data: ClassVar[str]                       # the array whose shape, codec and bound are those of the archive
    beside: ClassVar[tuple[str, ...]] = ()    # other arrays of data that may be there
    classes: ClassVar[tuple[type, ...]]       # of the data that users give; the first is for data in memory
    takes: ClassVar[str] = "nothing"          # what `keep=` takes
    told: ClassVar[tuple[str, ...]] = ()      # attributes of archives of this kind alone that `workbench info` shows
    examination: ClassVar[type[Examination]] = Examination

    # Making.

    def require(self, request: Request) -> None:
        """Refuse a request that makes no sense for this content."""
        if request.velocities is not None or request.store_permutation or request.order == "free":
            raise WorkbenchError(f"velocities, store_permutation and order='free' are for particles; got {self.words}")
        if request.columns:
            raise WorkbenchError(f"columns bounds the columns of particles; got {self.words}")
        require_about(self.kind, request.keep)

    def require_fit(self, data: Any, metadata: Mapping[str, Any], request: Request) -> None:   # noqa: B027
        """Refuse a request that does not fit these data, before any work; by default, every request fits."""

    @abstractmethod
    def compressed(self, call: Compression) -> Archive:
        """The archive that `wb.compress` returns."""

    # Description.

    @abstractmethod
    def contradiction(self, attributes: Mapping[str, Any], layouts: Mapping[str, ArrayLayout], damaged: bool) -> str | None:
        """The contradiction in a description that has the data, if any; when `damaged`, other arrays may be missing."""

    def axes(self, layout: ArrayLayout, about: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The names of the axes of an array, for xarray, which opens a group only if all arrays have them."""
        return (f"{self.kind}_row", *(f"{layout.name}_{axis}" for axis in range(1, len(layout.shape))))

    def shown(self, layout: ArrayLayout, about: Mapping[str, Any]) -> dict[str, str]:
        """Attributes of an array for programs that plot it, such as its units."""
        return {}

    def named(self, layout: ArrayLayout, about: Mapping[str, Any]) -> ArrayLayout:
        """The layout with the names of its axes, and the units of its values; `about` are the attributes of the archive."""
        axes = self.axes(layout, about)
        if layout.role == "model":
            axes = tuple(f"{layout.name}_{axis}" for axis in range(len(layout.shape)))
        return dataclasses.replace(
            layout, attributes={**self.shown(layout, about), **layout.attributes}, dimension_names=axes
        )

    # Decoding.

    def data_names(self, layouts: Mapping[str, ArrayLayout]) -> tuple[str, ...]:
        """The names of arrays that may hold data, the main one first; `layouts` are those of an archive."""
        return (self.data, *self.beside)

    @abstractmethod
    def assembled(self, archive: Archive, arrays: Mapping[str, np.ndarray]) -> Any:
        """The object that a user gets, from decoded arrays."""

    def read(self, archive: Archive, region: Any) -> Any:
        """The data in a region."""
        raise WorkbenchError(f"only particles and fields have regions; this archive holds {self.words}: decompress it")

    def region(self, ends: Ends) -> Any:
        """A region that was given as text, in the form that `read` takes."""
        return ends

    def salvaged(self, archive: Archive) -> tuple[Any, list[Damaged]]:
        """The rows of which nothing is lost, and the damage of the data."""
        values, gone, damage = salvage(archive.data_arrays, 1, self.data)
        return self.assembled(archive, {name: whole[~gone] for name, whole in values.items()}), damage

    def lost(self, archive: Archive, data: Any, damage: Sequence[Damaged]) -> int:
        """How much is missing in what was salvaged."""
        return len(archive) - len(self.arrays(data)[self.data])

    def source(self, archive: Archive) -> Any:
        """The content as the source of another archive."""
        with as_source(archive.store.name):
            return archive.decompress()

    def chunked_field(self, archive: Archive) -> ChunkedField:
        """The field, of which each part is decoded where it is read."""
        raise WorkbenchError(f"the archive must hold a field; got {archive!r}")

    def preview(self, archive: Archive, level: int) -> Any:
        """Every 2**level-th point along each axis."""
        raise WorkbenchError(f"only fields have a preview; this archive holds {self.words}: read a region instead")

    def permutation(self, archive: Archive, original: Any) -> Array:
        """The index of each decoded particle in the original."""
        raise WorkbenchError(f"only particles have a permutation; this archive holds {self.words}")

    def bits_per_particle(self, archive: Archive) -> float:
        """Bits for the position of each particle."""
        raise WorkbenchError(f"bits_per_particle is for particles; this archive holds {self.words}: use bits_per_value")

    def table(self, archive: Archive, source: Source, options: dict[str, Any]) -> Table:
        """The content as rows that are read in chunks."""
        raise WorkbenchError(
            f"{source.name} holds {self.words}, and only particles are read in chunks: open it by wb.open(...)"
        )

    # Verifying.

    def original(self, given: Any) -> Any:
        """The original of an archive of this kind, from all that may be given."""
        named = isinstance(given, str | os.PathLike | list | tuple) or hasattr(given, "chunked_field")
        data = source_of(given) if named else given
        if not isinstance(data, self.classes):
            raise WorkbenchError(f"this archive holds {self.words}; got {type(data).__name__} as its original")
        return data

    @abstractmethod
    def arrays(self, data: Any) -> dict[str, Array]:
        """The arrays of data in memory by their names in archives, the main one first."""

    def combined(self, terms: Sequence[tuple[float, Archive]]) -> Archive:
        """The archive of a linear combination."""
        raise WorkbenchError(f"only fields can be added, subtracted and scaled; got {self.words}: decompress the archive")

    # Words and files.

    def exported(self, data: Any) -> dict[str, Any]:
        """All that a file of NumPy arrays holds of the data."""
        return self.arrays(data)

    @abstractmethod
    def summary(self, data: Any) -> dict[str, Any]:
        """What `workbench info` says about data in memory, beside their metadata."""

    def scale(self, data: Any) -> tuple[dict[str, Any], np.ndarray]:
        """Figures to compare a bound with, and the ends of the values that it is about."""
        values = np.asarray(self.arrays(data)[self.data])
        return {}, np.array([values.min(), values.max()])

    def figures(self, archive: Archive) -> dict[str, float]:
        """Sizes that are usual for this kind alone."""
        return {}

    def size(self, archive: Archive) -> str:
        """What the archive holds, and how much."""
        return f"{self.words} of {len(archive):,} rows"

    def space(self, archive: Archive) -> str:
        """Where the data are, in words, if that is known."""
        return ""
