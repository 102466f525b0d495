"""What is swept, searched and predicted: data in memory, or a field in parts.

A run of a field in parts writes an archive to the scratch folder, decodes it there, and compares. So it takes the steps of
a run in memory, and its figures are the same. A field in a Dask array is computed once, and read from the scratch folder by
every run.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any, Self

import numpy as np

from workbench import backend
from workbench.archive import Archive, document
from workbench.archive.compress import compress
from workbench.archive.fields import surveyed
from workbench.archive.survey import Survey
from workbench.bounds.parts import arrays_of, description_of, digest_of
from workbench.bounds.run import Question
from workbench.data import Field, Particles
from workbench.data.chunked import ChunkedParticles
from workbench.data.labelled import is_labelled
from workbench.errors import WorkbenchError
from workbench.progress import Progress
from workbench.run.chunked_field import ChunkedField, map_parts
from workbench.run.clients import executor_of
from workbench.run.executors import Executor, OnDask
from workbench.run.scratch_files import make_folder
from workbench.subdomains.sources import scratch_folder


@dataclass(frozen=True, eq=False, repr=False)
class FieldInParts:
    """A field, who runs the steps on its parts, and a folder for what they write."""

    field: ChunkedField
    executor: Executor
    folder: Path

    @classmethod
    @contextmanager
    def opened(
        cls, field: ChunkedField, client: Any, scratch: str | Path | None, progress: Progress | None = None,
        read_often: bool = True,
    ) -> Iterator[Self]:
        """The field where all steps can read it: in the scratch folder, if it is in memory or computed and `read_often`."""
        executor = executor_of(client, progress, field)
        with scratch_folder(scratch, executor) as folder:
            executor = executor.within(folder)
            field = field.reachable(executor, folder, "field")
            yield cls(field.saved(executor, folder, "field") if field.on_dask and read_often else field, executor, folder)

    def telling(self, progress: Progress | None) -> Self:
        """The same, with the progress of each step told to another."""
        return dataclasses.replace(self, executor=self.executor.reporting(progress))

    @contextmanager
    def trial(self, progress: Progress | None) -> Iterator[Self]:
        """The same with a folder of its own, which is removed at the end, and with other progress."""
        folder = self.folder / f"trial-{secrets.token_hex(4)}"
        make_folder(folder)
        try:
            yield dataclasses.replace(self.telling(progress), folder=folder)
        finally:
            rmtree(folder, ignore_errors=True)

    @functools.cached_property
    def survey(self) -> Survey:
        """What must be known of all values; reads them."""
        return surveyed(self.field, self.executor)

    @property
    def where(self) -> dict[str, Any]:
        """Where a verb does its steps on this field, as its options."""
        client = self.executor.client if isinstance(self.executor, OnDask) else None
        return {"client": client, "scratch": self.folder, "progress": self.executor.progress}

    def compressed(self, asked: Question, keep: Any = (), out: Any = None) -> Archive:
        """The archive with the codec and the bound of a question, in the folder unless it is to be elsewhere."""
        more: dict[str, Any] = {"chunk_values": asked.chunk_values, **self.where}
        place = out or self.folder / "archive.zarr"
        return compress(self.field, asked.bound, asked.codec, keep, asked.order, out=place, **more)

    def decoded(self, archive: Archive) -> ChunkedField:
        """The decoded field, in the folder."""
        return archive.chunked_field().saved(self.executor, self.folder, "decoded")

    def digest(self) -> str:
        """A digest of the content and of the parts: equal fields in equal parts have equal digests."""
        shape = self.field.chunk_shape
        digests = map_parts(self.executor, "find-digest", _digest, shape, [self.field])
        described = [description_of(self.field), shape, digests]
        return hashlib.blake2b(document.to_bytes({"parts": described}), digest_size=32).hexdigest()

    def __repr__(self) -> str:
        return repr(self.field)


Measured = Particles | Field | FieldInParts


def _digest(number: int, part: Field) -> str:
    return digest_of(part)


def source_of(given: Any, client: Any = None) -> Particles | Field | ChunkedField:
    """Data in memory, or a field whose parts are read where they are measured, as all are with a client.

    >>> source_of(np.zeros((2, 3)))
    Field(2 x 3, float64)
    """
    if isinstance(given, ChunkedParticles):
        raise WorkbenchError(f"particles must be in memory here; got {given.name} in chunks: read them with wb.open(...)")
    if not isinstance(given, Particles) and not (isinstance(given, Field) and client is None):
        field = ChunkedField.of(given)
        if client is not None or field.in_memory is None:
            return field
        given = field.in_memory if isinstance(given, Field | ChunkedField) else Field(given)   # a copy: runs may last
    elif client is not None:
        raise WorkbenchError("client must be None for particles, which are measured here; it is for fields")
    if any(backend.on_device(values) for values in arrays_of(given).values()):
        raise WorkbenchError("data of a sweep must be NumPy arrays; got CuPy: copy them with .get()")
    return given


def opened(
    source: Particles | Field | ChunkedField, client: Any, scratch: str | Path | None, progress: Progress | None
) -> AbstractContextManager[Measured]:
    """Data in memory as they are, or a field in parts where runs can read it."""
    if isinstance(source, ChunkedField):
        return FieldInParts.opened(source, client, scratch, progress)
    return nullcontext(source)


def require_data(given: Any) -> Particles | Field:
    """Data in the memory of this process; an array becomes a field, and anything else is an error."""
    data = given if isinstance(given, Particles | Field) else None
    if isinstance(given, np.ndarray) or is_labelled(given):
        data = Field(given)
    if data is None:
        kind = type(given).__name__
        raise WorkbenchError(f"data must be Particles, a Field or a NumPy array; got {kind}: open files with wb.open(...)")
    found = source_of(data)
    assert not isinstance(found, ChunkedField)
    return found
