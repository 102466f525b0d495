"""A field in parts as runs see it: each run writes an archive to the scratch folder, decodes it there, and compares.

So a run of a field that does not fit into memory takes the steps of one that does, and its figures are the same. A field in
a Dask array is computed once, and read from the scratch folder by every run.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any, Self

from workbench.archive import Archive, document
from workbench.archive.fields_in_parts import Survey, surveyed
from workbench.archive.particles_in_parts import compress
from workbench.bounds.parts import description_of, digest_of
from workbench.bounds.run import Question
from workbench.data import Field, Particles
from workbench.data.chunked import ChunkedParticles
from workbench.errors import WorkbenchError
from workbench.run.chunked_field import ChunkedField, map_parts
from workbench.run.clients import executor_of
from workbench.run.executors import Executor, InProcess, OnDask, Progress
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
            field = field.reachable(executor, folder, "field")
            yield cls(field.saved(executor, folder, "field") if field.on_dask and read_often else field, executor, folder)

    def telling(self, progress: Progress | None) -> Self:
        """The same, with the progress of each step told to another."""
        executor = OnDask(self.executor.client, progress) if isinstance(self.executor, OnDask) else InProcess(progress)
        return dataclasses.replace(self, executor=executor)

    @contextmanager
    def trial(self, progress: Progress | None) -> Iterator[Self]:
        """The same with a folder of its own, which is removed at the end, and with progress told to another, too."""
        listeners = [each for each in (progress, self.executor.progress) if each is not None]

        def tell(share: float, what: str) -> None:
            for listener in listeners:
                listener(share, what)

        folder = self.folder / f"trial-{secrets.token_hex(4)}"
        folder.mkdir()
        try:
            yield dataclasses.replace(self.telling(tell), folder=folder)
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

    def compressed(self, asked: Question) -> Archive:
        """The archive with the codec and the bound of a question, in the folder."""
        more: dict[str, Any] = {"chunk_values": asked.chunk_values, **self.where}
        return compress(self.field, asked.bound, asked.codec, out=self.folder / "archive.zarr", **more)

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


def _digest(number: int, part: Field) -> str:
    return digest_of(part)


def field_in_parts(given: Any, client: Any) -> ChunkedField | None:
    """The field, if its parts are to be read and measured one by one; None for data in memory, without a client.

    >>> field_in_parts([1.0, 2.0], client=None) is None
    True
    """
    if isinstance(given, ChunkedParticles):
        raise WorkbenchError(f"particles must be in memory here; got {given.name} in chunks: read them with wb.open(...)")
    if isinstance(given, Particles):
        if client is not None:
            raise WorkbenchError("client must be None for particles, which are measured here; it is for fields")
        return None
    field = ChunkedField.of(given)
    return field if client is not None or field.in_memory is None else None
