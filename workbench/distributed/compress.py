"""`wb.distributed.compress`: an archive whose chunks are encoded, checked and written by workers.

The bytes are those of `wb.compress` for the same chunks, in both orders. Each worker writes its chunks to a hidden folder;
the description comes last, and then one renaming makes it an archive (`archive/writing.py`).
"""

from __future__ import annotations

import dataclasses
import functools
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive import Archive
from workbench.archive.chunk import EncodedChunk
from workbench.archive.encoding import ReadyChunk, Slices, Task, assembled, encode_chunk
from workbench.archive.key import ROOT
from workbench.archive.particles import Plan, extents_of
from workbench.archive.plausibility import notes_on_outline
from workbench.archive.request import Request, documents_for, promises
from workbench.archive.writing import Draft
from workbench.codecs import Codec
from workbench.data import Field, Particles
from workbench.data.chunked import ChunkedParticles
from workbench.distributed.clients import executor_of
from workbench.distributed.curve_order import SortedParts, sort_along
from workbench.distributed.executors import Executor
from workbench.distributed.fields import ChunkedField
from workbench.distributed.fields_compress import compress_field
from workbench.distributed.sources import PART, Given, chunked, outline_of, sample_of, scratch_folder
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound, Relative


def compress(
    source: Given | ChunkedField | Field,
    bound: Bound,
    codec: str | Codec = "auto",
    keep: Any = (),
    order: str = "keep",
    *,
    out: str | os.PathLike[str],
    client: Any = None,
    chunk_values: int | None = None,
    overwrite: bool = False,
    scratch: str | Path | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Archive:
    """Compress the positions of particles in chunks, or a field, into a folder on a Dask cluster; the archive is opened.

    A field is a `wb.distributed.ChunkedField` over an array of Dask, Zarr or h5py, or a `wb.Field`.
    `client` is a Dask client or the address of a scheduler; without one, the work is done in this process. `out` must be on
    a file system that all workers see, and so must `scratch`, which is needed for `order="free"`.

    >>> import tempfile
    >>> from workbench.data.synthetic import cosmic_web
    >>> folder = tempfile.TemporaryDirectory()
    >>> compress(cosmic_web(n=16, seed=1), Absolute(0.01), out=f"{folder.name}/snapshot.zarr").verify().passed
    True
    >>> folder.cleanup()
    """
    if isinstance(source, ChunkedField | Field):
        return compress_field(
            source, bound, codec, keep, order, out=out, client=client, chunk_values=chunk_values, overwrite=overwrite,
            scratch=scratch, metadata=metadata,
        )
    if promises(keep):
        raise WorkbenchError("keep= is not available on a cluster yet: compress in one process with wb.compress(...)")
    if not isinstance(bound, Absolute | Relative):
        raise WorkbenchError(f"the bound must be wb.Absolute(...) or wb.Relative(...) on a cluster; got {bound!r}")
    request = Request(bound, codec, order=order, chunk_values=chunk_values)
    executor, draft = executor_of(client), Draft(out, overwrite)
    try:
        with scratch_folder(scratch, executor) as folder:
            return Archive.open(_written(source, request, draft, executor, folder, metadata or {}))
    except BaseException:
        draft.discard()
        raise


def _written(
    given: Given, request: Request, draft: Draft, executor: Executor, folder: Path, metadata: Mapping[str, Any]
) -> Path:
    """Write the archive; returns where it is."""
    source = chunked(given, executor, folder)
    outline = outline_of(source, executor)
    plan = Plan.of(Particles(outline.corners, outline.box), len(outline), request)
    rows: Rows | SortedParts = Rows(source)
    if plan.curve is not None:
        parts = max(1, round(len(source) / PART))
        rows = sort_along(plan.curve, source, sample_of(source, executor), parts, folder, executor)
    task = plan.task(rows, request)
    indices = list(task.layout.chunk_indices())
    positions = assembled(task, executor.map("encode-chunks", functools.partial(_encode, task, draft), indices))
    extents = extents_of(positions)
    for key, data in extents.entries():
        draft.put(key, data)
    permutation = checksum_of_parts(rows) if isinstance(rows, SortedParts) else None
    notes = notes_on_outline(outline, request.bound)
    described = plan.described(request, permutation)
    documents = documents_for([positions, extents], described, plan.codec, metadata, notes)
    root = documents.pop(ROOT)
    for key, data in documents.items():
        draft.put(key, data)
    return draft.commit(root)


@dataclass(frozen=True)
class Rows:
    """The positions of a chunk of the archive, from the chunks of the source."""

    source: ChunkedParticles

    def __call__(self, slices: Slices) -> np.ndarray:
        """The positions at these places."""
        begin, end, starts = slices[0].start, slices[0].stop, self.source.starts
        first, last = np.searchsorted(starts, begin, side="right") - 1, np.searchsorted(starts, end)
        pieces = [
            self.source.chunk(chunk).positions[max(begin - starts[chunk], 0) : end - starts[chunk]]
            for chunk in range(int(first), int(last))
        ]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def checksum_of_parts(rows: SortedParts) -> str:
    """The checksum of the order of all particles, as `archive.verify.checksum_of` computes it."""
    value = 0
    for part in range(rows.parts):
        value = zlib.crc32(np.ascontiguousarray(rows.order(part), "<i4").data, value)
    return f"{value:08x}"


def _encode(task: Task, draft: Draft, index: tuple[int, ...]) -> ReadyChunk:
    """Encode, check and write one chunk; returns everything but its bytes."""
    ready = encode_chunk(task, index)
    if ready.order is not None:
        raise WorkbenchError(f"{task.codec.id} returns particles in an order of its own: use another codec")
    draft.put(task.layout.chunk_key(index), ready.data.data)
    return dataclasses.replace(ready, data=EncodedChunk(b"", ready.data.checksum))
