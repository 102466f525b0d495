"""A field as an archive: blocks of the grid, and the mask beside them.

Each chunk is encoded, checked and written where it is read, by this process or by workers: an array in memory is the case
of a source that is all there. A relative bound needs the range of all values, so a field that is not in memory is read
twice for it; for the other bounds once, and what the notes in the certificate need is collected on the way. A run that was
killed, or failed, leaves the chunks that are done and a record of each in the draft, from which the same call goes on.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from workbench import backend
from workbench.archive import choice, portable, provenance
from workbench.archive.archive import Archive
from workbench.archive.certificate import Promise
from workbench.archive.chunk import EncodedChunk, exact_chunk
from workbench.archive.chunking import axes_of, chunk_shape
from workbench.archive.encoded import RECORDS, token_of, written
from workbench.archive.encoding import (
    EncodedArray,
    ReadyChunk,
    Task,
    assembled,
    exact_layout,
    exactly,
    layout_for,
)
from workbench.archive.layout import ArrayLayout, Index
from workbench.archive.plausibility import notes_on, notes_on_spread, on_earlier_loss
from workbench.archive.request import Request, archive_of
from workbench.archive.slices import limits_of_slices, sample_of
from workbench.archive.survey import Survey
from workbench.archive.writing import Place
from workbench.backend import Array
from workbench.codecs import Codec, ParticleCodec
from workbench.codecs.portable import OffLattice, Portable
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit, Limits, PerSlice, PointwiseRelative, Relative, SliceLimits
from workbench.run.chunked_field import ChunkedField, map_parts, parts_at
from workbench.run.executors import Executor
from workbench.slabs import Slices

if TYPE_CHECKING:
    from workbench.archive.documents import Outline

MASK = "mask"

Values = tuple[Array, Array | None]   # and where they are masked
Promised = Callable[[EncodedArray, Place], Promise]


def compress_field(
    field: ChunkedField, request: Request, place: Place, executor: Executor, folder: Path,
    about: Mapping[str, Any] = MappingProxyType({}), promised: Promised | None = None,
) -> Archive:
    """The archive of a field, whose parts go to this place; for workers, an array in memory is written to the folder.

    `about` is what its description says of another kind of content, which is stored as this field; `promised` is what is
    promised of it, when the chunks are in their place.
    """
    codec = codec_for(field, request)
    known = KnownValues.of(field, request, executor)
    field = field.reachable(executor, folder, "field")
    plan = plan_for(field, codec, request, known, executor)

    def encoded_by(plan: FieldPlan) -> list[FieldChunk]:
        step = functools.partial(
            _write_chunk, plan.task(), mask_layout(plan, known.masked), known.notes is None, place, _begin(plan)
        )
        together = not plan.codec.holds_gil
        return map_parts(executor, "encode-chunks", step, plan.layout.chunk_shape, [field], together=together)

    try:
        chunks = encoded_by(plan)
    except OffLattice:   # as one chunk has NaN, which no sample showed
        plan = plan.rounding()
        chunks = encoded_by(plan)
    mask, notes = mask_layout(plan, known.masked), known.notes
    if notes is None:
        survey = functools.reduce(Survey.__add__, (one.survey for one in chunks if one.survey is not None))
        notes = notes_on_survey(field, request, survey)
    arrays = arrays_of(plan, mask, chunks)
    if promised is not None:
        arrays[0] = dataclasses.replace(arrays[0], promise=promised(arrays[0], place))
    described, choice = {**plan.described(field), **about, **request.about_step}, plan.request.choice
    return archive_of(arrays, described, plan.codec, field.metadata, place, executor, notes, choice)


@dataclass(frozen=True)
class KnownValues:
    """What must be known of all values before any is encoded; `notes` are None if these follow with the chunks."""

    limit: Limits
    masked: bool
    notes: tuple[str, ...] | None

    @classmethod
    def of(cls, field: ChunkedField, request: Request, executor: Executor) -> Self:
        """It follows from the array, if that is in memory; otherwise from a pass over the parts, where it needs one."""
        bound = request.bound
        if isinstance(bound, PerSlice):
            limits, masked = limits_of_slices(bound, field, executor)
            return cls(limits, masked, ())
        if (whole := field.in_memory) is not None:
            return cls(bound.limit(whole.values, whole.valid), whole.mask is not None, notes_on(whole, bound))
        if not (isinstance(bound, Relative) or field.masks_itself):
            return cls(bound.limit(np.empty(0, field.dtype)), field.mask is not None, None)
        survey = surveyed(field, executor)
        masked = field.mask is not None or survey.masked
        return cls(bound.limit(survey.ends), masked, notes_on_survey(field, request, survey))


def surveyed(field: ChunkedField, executor: Executor) -> Survey:
    """The survey of all values; reads them."""
    return functools.reduce(Survey.__add__, map_parts(executor, "find-range", _survey, field.chunk_shape, [field]))


def notes_on_survey(field: ChunkedField, request: Request, survey: Survey) -> tuple[str, ...]:
    """Notes on a bound that is unusual for the values of this survey."""
    earlier = on_earlier_loss(field.described, request.bound, survey.ends)
    return (*earlier, *notes_on_spread("values", survey.statistics.spread, request.bound))


@dataclass(frozen=True)
class FieldChunk:
    """A chunk that is encoded: of the values, and of the mask if there is one. The survey is of its values."""

    values: ReadyChunk
    mask: EncodedChunk | None
    survey: Survey | None


@dataclass(frozen=True)
class FieldPlan:
    """What is decided about a field before any value is encoded; it depends on shape, type and limit alone."""

    layout: ArrayLayout
    codec: Codec
    limit: Limits
    request: Request

    @classmethod
    def of(
        cls, shape: tuple[int, ...], dtype: np.dtype, codec: Codec, limit: Limits, request: Request,
        field: ChunkedField | Outline,
    ) -> Self:
        """The plan for a field of this shape and type."""
        chunks = chunks_of(shape, codec, request, field, limit)
        codec = codec.in_chunks(chunks)
        units = field.metadata.get("units")
        attributes = provenance.plain({} if units is None else {"units": units})
        return cls(layout_for("values", shape, dtype, chunks, codec, **attributes), codec, limit, request)

    def rounding(self) -> Self:
        """The plan without a lattice, which does not hold all values."""
        assert isinstance(self.codec, Portable)
        codec, layout = self.codec.rounding(), self.layout
        rest = layout_for(layout.name, layout.shape, layout.dtype, layout.chunk_shape, codec, **layout.attributes)
        choice = f"{self.request.choice}; rounding in place of a lattice, which cannot hold all values"
        return dataclasses.replace(
            self, codec=codec, layout=rest, request=dataclasses.replace(self.request, choice=choice)
        )

    def task(self) -> Task:
        """The values to encode, which are given chunk by chunk."""
        _, typical = sample_of(self.layout.shape, self.limit)
        slices = self.limit if isinstance(self.limit, SliceLimits) else None
        task = Task(self.layout, self.codec, self.request.bound, typical, keep=self.request.keep, slices=slices)
        return self.request.in_time(task, may_stay=True)

    def described(self, field: ChunkedField | Outline) -> dict[str, Any]:
        """The description of the archive."""
        spacing = {} if set(field.spacing) == {1.0} else {"spacing": list(field.spacing)}
        return {"kind": "field", **spacing, "name": field.name}


def codec_for(chunked: ChunkedField, request: Request) -> Codec:
    """The codec of a field; refused if it cannot do what is requested."""
    dtype, field = chunked.dtype, chunked if chunked.in_memory is None else chunked.in_memory
    chosen = request.chosen_codec(choice.usual(dtype, request.speed))
    if isinstance(chosen, ParticleCodec):
        raise WorkbenchError(f"{chosen.id} is for particles; got {field!r}")
    if chosen.bare and request.keep:
        raise WorkbenchError(f"profile='portable' keeps bounds alone; got keep={request.keep[0]!r}: leave one out")
    if dtype.kind in "iu":
        _require_for_integers(field, dtype, request, chosen)
    blocks = chunks_of(chunked.shape, chosen, request, chunked)
    ArrayLayout("values", chunked.shape, blocks, dtype)   # refuses more chunks than an archive can have
    return chosen


def chunks_of(
    shape: tuple[int, ...], codec: Codec, request: Request, field: ChunkedField | Outline, limit: Limits | None = None
) -> tuple[int, ...]:
    """The shape of the chunks of a field with these limits."""
    asked = None if request.chunks is None else axes_of(request.chunks, shape, field.metadata.get("dimensions"))
    chunks = chunk_shape(shape, request.chunk_values or codec.chunk_values, asked, limit)
    if not any(kept.needs_neighbours for kept in request.keep):
        return chunks
    whole = chunk_shape(shape, math.prod(shape), asked, limit)
    if whole != shape:
        raise WorkbenchError(f"{request.keep[0]!r} needs the whole field in one chunk; got chunks of the shape {whole}")
    return shape


def settled(
    codec: Codec, request: Request, shape: tuple[int, ...], dtype: np.dtype, known: KnownValues,
    part: Callable[[Slices], Values],
) -> tuple[Codec, Request]:
    """The codec after trials on the middle of a field, and the request with what came of them in words."""
    place, limit = sample_of(shape, known.limit)
    if isinstance(codec, Portable):
        values, mask = part(place)
        if backend.on_device(values):
            raise WorkbenchError("profile='portable' works on NumPy arrays; got a CuPy array: use array.get()")
        lattice = not known.masked and isinstance(known.limit, Limit)
        found = portable.chosen(codec, values, mask, limit, lattice)
        price = {portable.OWN: math.ceil(found.own_bits * math.prod(shape) / 8)}
        return found.codec, dataclasses.replace(request, choice=found.words, price=price)
    on_trial = choice.needs_trial(request.codec, request.speed, dtype, limit)
    if not on_trial and type(codec).tuned is Codec.tuned:
        return codec, request
    values, mask = part(place)
    if not on_trial or backend.on_device(values):
        codec, words = choice.worthwhile(codec, values, mask, limit, math.prod(shape))
        return choice.tuned(codec, values, mask, limit), dataclasses.replace(request, choice=words)
    earlier = None if request.step is None else request.step.sample("values", shape, dtype, place)
    codec, words = choice.chosen(values, mask, limit, earlier)
    return codec, dataclasses.replace(request, choice=words)


def plan_for(field: ChunkedField, codec: Codec, request: Request, known: KnownValues, executor: Executor) -> FieldPlan:
    """The plan of a field of which this is known; the middle of it is read where trials are needed."""

    def part(place: Slices) -> Values:
        (found,) = parts_at(executor, field, [place])
        return found.values, found.mask

    codec, request = settled(codec, request, field.shape, field.dtype, known, part)
    return FieldPlan.of(field.shape, field.dtype, codec, known.limit, request, field)


def mask_layout(plan: FieldPlan, masked: bool) -> ArrayLayout | None:
    """The layout of the mask, if there is one: its chunks are those of the values."""
    if not masked:
        return None
    return exact_layout(MASK, plan.layout.shape, np.dtype(bool), plan.layout.chunk_shape, mask_codec(plan.codec))


def mask_codec(codec: Codec) -> Codec | None:
    """The codec of the mask beside values of this codec; None for the coder of masks."""
    return Portable(shuffle="bitshuffle", chunk=codec.chunk) if isinstance(codec, Portable) else None


def arrays_of(plan: FieldPlan, mask: ArrayLayout | None, chunks: Sequence[FieldChunk]) -> list[EncodedArray]:
    """The arrays of the archive, from all its chunks."""
    values = assembled(plan.task(), [chunk.values for chunk in chunks])
    assert values.promise is not None
    figures = {**values.promise.figures, **plan.request.price}
    arrays = [dataclasses.replace(values, promise=dataclasses.replace(values.promise, figures=figures))]
    if mask is not None:
        arrays.append(exactly(mask, [chunk.mask for chunk in chunks if chunk.mask is not None]))
    return arrays


def write_chunk(
    task: Task, mask: ArrayLayout | None, place: Place, index: Index, part: Field, survey: bool = False,
    record: Path | None = None, source: int = 0,
) -> FieldChunk:
    """Encode, check and write one chunk, unless an earlier run did; returns everything but its bytes."""
    hidden = None if mask is None else _hidden(part)
    values, mask_chunk = written(task, index, part.values, place, record, source, hidden).ready, None
    if mask is not None:
        mask_chunk = exact_chunk(backend.to_host(hidden), mask_codec(task.codec))
        place.put(mask.chunk_key(index), mask_chunk.data)
        mask_chunk = mask_chunk.without_bytes()
    return FieldChunk(values, mask_chunk, Survey.of(part.values, part.mask) if survey else None)


def token_for(field: ChunkedField, request: Request) -> str:
    """A name for this call: the same for the same arguments and fields of the same shape and type."""
    codec = request.chosen_codec("pcodec")
    return token_of({
        "bound": request.bound.to_dict(), "codec": [str(request.codec), request.speed, codec.to_dict()],
        "chunk": request.chunk_values, "chunks": request.chunks,
        "keep": [kept.to_dict() for kept in request.keep], "versions": provenance.versions(codec), "shape": field.shape,
        "dtype": str(field.dtype), "masked": field.mask is not None, **request.step_token,
    })


def _write_chunk(
    task: Task, mask: ArrayLayout | None, survey: bool, place: Place, begin: int, number: int, part: Field
) -> FieldChunk:
    """Write the chunk of this number."""
    index = task.layout.index_of(number)
    record, source = None, 0
    if place.unfinished is not None:
        record, source = place.unfinished / RECORDS / str(number), _checksum(begin, part)
    return write_chunk(task.of_chunk(index), mask, place, index, part, survey, record, source)


def _hidden(part: Field) -> Array:
    """The mask of a part of a field that has masks."""
    return backend.namespace(part.values).zeros(part.shape, bool) if part.mask is None else part.mask


def _begin(plan: FieldPlan) -> int:
    """A checksum of how chunks are encoded: from it, those of their sources go on."""
    task = plan.task()
    kept = [one.to_dict() for one in task.keep]
    stated = [
        task.codec.to_dict(), provenance.versions(task.codec), repr(plan.limit), task.layout.chunk_shape, kept,
        *plan.request.step_token.values(),
    ]
    return zlib.crc32(json.dumps(stated, sort_keys=True).encode())


def _checksum(begin: int, part: Field) -> int:
    """The checksum of a part and its mask."""
    found = zlib.crc32(np.ascontiguousarray(part.values).data, begin)
    return found if part.mask is None else zlib.crc32(np.ascontiguousarray(part.mask).data, found)


def _survey(number: int, part: Field) -> Survey:
    return Survey.of(part.values, part.mask)


def _require_for_integers(field: Any, dtype: np.dtype, request: Request, codec: Codec) -> None:
    """Refuse options that are only for floating-point numbers."""
    convert = "or convert with field.values.astype('float32')"
    if dtype.name not in codec.dtypes:
        raise WorkbenchError(
            f"{codec.id} does not take integers; got {field!r}: use codec='auto', 'prequantised' or 'pcodec', {convert}"
        )
    bounds = request.bound.different if isinstance(request.bound, PerSlice) else (request.bound,)
    if any(isinstance(bound, PointwiseRelative) and bound.eb > 0 for bound in bounds):
        got = f"got {request.bound!r}: use one of them, {convert}"
        raise WorkbenchError(f"the bound of integers must be wb.Absolute or wb.Relative; {got}")
    if request.keep:
        raise WorkbenchError(f"keep must be empty for integers; got {request.keep[0]!r}: leave it out, {convert}")

