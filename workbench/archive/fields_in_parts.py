"""Fields as archives, chunk by chunk: each is encoded, checked and written where it is read.

The bytes are those of `wb.compress` of the whole field. A relative bound needs the range of all values, so the field
is read twice; for the other bounds once, and what the notes in the certificate need is collected on the way. A run that was
killed, or failed, leaves the chunks that are done and a record of each, from which the same call goes on.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from workbench.archive import Archive, provenance
from workbench.archive.choice import Speed
from workbench.archive.chunk import EncodedChunk, exact_chunk
from workbench.archive.encoded import RECORDS, put_hidden, recalled, record_of, token_of
from workbench.archive.encoding import (
    EncodedArray,
    ReadyChunk,
    Slices,
    Task,
    assembled,
    encode_values,
    exact_layout,
    exactly,
)
from workbench.archive.fields import MASK, Plan, codec_for, settled
from workbench.archive.key import ROOT
from workbench.archive.layout import ArrayLayout
from workbench.archive.plausibility import Statistics, notes_on_spread
from workbench.archive.request import Request, documents_for, promises, require_storable
from workbench.archive.writing import Draft
from workbench.codecs import Codec
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, Relative
from workbench.run.chunked_field import ChunkedField, map_parts, parts_at
from workbench.run.clients import executor_of
from workbench.run.executors import Executor, Progress
from workbench.subdomains.sources import scratch_folder


@dataclass(frozen=True)
class Survey:
    """What must be known of all values: the smallest and largest valid ones, statistics, and whether any is masked."""

    ends: np.ndarray
    statistics: Statistics
    masked: bool

    @classmethod
    def of(cls, part: Field) -> Self:
        """The survey of a part."""
        valid = part.values[part.valid]
        ends = np.array([valid.min(), valid.max()], valid.dtype) if valid.size else valid
        return cls(ends, Statistics.of(part.values, part.mask), part.mask is not None)

    def __add__(self, other: Survey) -> Survey:
        ends = np.concatenate([self.ends, other.ends])
        both = np.array([ends.min(), ends.max()], ends.dtype) if ends.size else ends
        return Survey(both, self.statistics + other.statistics, self.masked or other.masked)


@dataclass(frozen=True)
class Chunk:
    """A chunk that is encoded: of the values, and of the mask if there is one. The survey is of its values."""

    values: ReadyChunk
    mask: EncodedChunk | None
    survey: Survey | None


def compress_field(
    given: Any,
    bound: Bound,
    codec: str | Codec,
    keep: Any,
    order: str,
    *,
    out: str | os.PathLike[str],
    client: Any,
    chunk_values: int | None,
    overwrite: bool,
    scratch: str | Path | None,
    metadata: Mapping[str, Any] | None,
    progress: Progress | None,
    speed: Speed = "small",
) -> Archive:
    """`wb.distributed.compress` for fields."""
    request = Request(bound, codec, promises(keep), order, chunk_values=chunk_values, speed=speed)
    if order == "free":
        raise WorkbenchError("order='free' is for particles; got a field")
    field = ChunkedField.of(given)
    if metadata is not None:
        field = ChunkedField(field.values, field.spacing, field.name, field.mask, metadata)
    require_storable(field.metadata)
    request = dataclasses.replace(request, bound=request.bound.for_data(field.described))
    fitting_codec(field, request)
    executor = executor_of(client, progress, field)
    draft = Draft(out, overwrite, _token(field, request))
    with draft.continued(), scratch_folder(scratch, executor) as folder:
        return Archive.open(written(field.reachable(executor, folder, "field"), request, draft, executor))


def written(field: ChunkedField, request: Request, draft: Draft, executor: Executor) -> Path:
    """Write the archive of a field; returns where it is."""
    codec = fitting_codec(field, request)
    known = surveyed(field, executor) if isinstance(request.bound, Relative) or field.masks_itself else None
    plan = plan_for(field, codec, request, known, executor)
    mask = mask_layout(plan, field.mask is not None or (known is not None and known.masked))
    encode = functools.partial(_encode, plan.task(elsewhere), mask, known is None, draft, _begin(plan))
    chunks = map_parts(executor, "encode-chunks", encode, plan.layout.chunk_shape, [field])
    arrays = arrays_of(plan, mask, chunks)
    documents = documents_of_field(field, plan, arrays, together(chunks) if known is None else known)
    root = documents.pop(ROOT)
    for key, data in documents.items():
        draft.put(key, data)
    layouts = [array.layout for array in arrays]
    return draft.commit(root, [layout.chunk_key(index) for layout in layouts for index in layout.chunk_indices()])


def fitting_codec(field: ChunkedField, request: Request) -> Codec:
    """The codec; a promise that needs the whole field at once is refused."""
    codec = codec_for(field, field.dtype, request)
    for kept in request.keep:
        if kept.needs_neighbours:
            raise WorkbenchError(f"{kept!r} needs the whole field as one chunk: use wb.compress(...) in one process")
    return codec


def surveyed(field: ChunkedField, executor: Executor) -> Survey:
    """The survey of all values; reads them."""
    return functools.reduce(Survey.__add__, map_parts(executor, "find-range", _survey, field.chunk_shape, [field]))


def plan_for(field: ChunkedField, codec: Codec, request: Request, known: Survey | None, executor: Executor) -> Plan:
    """The plan; the survey is needed for a relative bound alone."""
    limit = request.bound.limit(np.empty(0, field.dtype) if known is None else known.ends)
    codec, request = settled(codec, request, field.shape, field.dtype, limit, functools.partial(_values, executor, field))
    return Plan.of(field.shape, field.dtype, codec, limit, request, field)


def _values(executor: Executor, field: ChunkedField, place: Slices) -> tuple[np.ndarray, np.ndarray | None]:
    (part,) = parts_at(executor, field, [place])
    return part.values, part.mask


def mask_layout(plan: Plan, masked: bool) -> ArrayLayout | None:
    """The layout of the mask, if there is one: its chunks are those of the values."""
    return exact_layout(MASK, plan.layout.shape, np.dtype(bool), plan.layout.chunk_shape) if masked else None


def arrays_of(plan: Plan, mask: ArrayLayout | None, chunks: list[Chunk]) -> list[EncodedArray]:
    """The arrays of the archive, from all its chunks."""
    arrays = [assembled(plan.task(elsewhere), [chunk.values for chunk in chunks])]
    if mask is not None:
        arrays.append(exactly(mask, [chunk.mask for chunk in chunks if chunk.mask is not None]))
    return arrays


def documents_of_field(
    field: ChunkedField, plan: Plan, arrays: list[EncodedArray], survey: Survey
) -> dict[str, bytes]:
    """The documents of the archive, by key."""
    notes = notes_on_spread("values", survey.statistics.spread, plan.request.bound)
    return documents_for(arrays, plan.described(field), plan.codec, field.metadata, notes, plan.request.choice)


def together(chunks: list[Chunk]) -> Survey:
    """The survey of all chunks."""
    return functools.reduce(Survey.__add__, [chunk.survey for chunk in chunks if chunk.survey is not None])


def encoded(task: Task, mask: ArrayLayout | None, survey: bool, part: Field) -> Chunk:
    """One chunk, decoded and checked."""
    hidden = None if mask is None else _hidden(part)
    ready = encode_values(task, part.values, hidden)
    return Chunk(ready, None if hidden is None else exact_chunk(hidden), Survey.of(part) if survey else None)


def _encode(
    task: Task, mask: ArrayLayout | None, survey: bool, draft: Draft, begin: int, number: int, part: Field
) -> Chunk:
    """Encode, check and write one chunk, unless an earlier run did; returns everything but its bytes."""
    index = tuple(int(place) for place in np.unravel_index(number, task.layout.chunk_grid))
    key, record, source = task.layout.chunk_key(index), draft.partial / RECORDS / str(number), _checksum(begin, part)
    if (before := recalled(record, draft.partial / key, source)) is not None:
        hidden = None if mask is None else exact_chunk(_hidden(part))
        done = Chunk(before.ready, hidden, Survey.of(part) if survey else None)
    else:
        done = encoded(task, mask, survey, part)
        draft.put(key, done.values.data.data)
        put_hidden(record, record_of(done.values, source, done.values.data.data))
    if mask is not None and done.mask is not None:
        draft.put(mask.chunk_key(index), done.mask.data)
    return weightless(done)


def _hidden(part: Field) -> np.ndarray:
    """The mask of a part of a field that has masks."""
    return np.zeros(part.shape, bool) if part.mask is None else part.mask


def _begin(plan: Plan) -> int:
    """A checksum of how chunks are encoded: from it, those of their sources go on."""
    task = plan.task(elsewhere)
    kept = [one.to_dict() for one in task.keep]
    stated = [task.codec.to_dict(), provenance.versions(task.codec), repr(task.limit), task.layout.chunk_shape, kept]
    return zlib.crc32(json.dumps(stated, sort_keys=True).encode())


def _checksum(begin: int, part: Field) -> int:
    """The checksum of a part and its mask."""
    found = zlib.crc32(np.ascontiguousarray(part.values).data, begin)
    return found if part.mask is None else zlib.crc32(np.ascontiguousarray(part.mask).data, found)


def _token(field: ChunkedField, request: Request) -> str:
    """A name for this call: the same for the same arguments and fields of the same shape and type."""
    codec = request.chosen_codec("pcodec")
    return token_of({
        "bound": request.bound.to_dict(), "codec": [str(request.codec), codec.to_dict()], "chunk": request.chunk_values,
        "keep": [kept.to_dict() for kept in request.keep], "versions": provenance.versions(codec), "shape": field.shape,
        "dtype": str(field.dtype), "masked": field.mask is not None,
    })


def weightless(chunk: Chunk) -> Chunk:
    """The chunk without its bytes."""
    values = dataclasses.replace(chunk.values, data=EncodedChunk(b"", chunk.values.data.checksum))
    return Chunk(values, None if chunk.mask is None else EncodedChunk(b"", chunk.mask.checksum), chunk.survey)


def _survey(number: int, part: Field) -> Survey:
    return Survey.of(part)


def elsewhere(place: Any) -> np.ndarray:
    """The part of a task whose values are given to each step."""
    raise AssertionError("the values of a chunk are given to the worker that encodes it")
