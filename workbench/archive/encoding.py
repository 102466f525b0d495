"""From arrays to the parts of an archive: chunk by chunk, each checked before the next.

Codecs that release Python's lock encode several chunks at once. Results do not depend on this: chunks are independent.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend, ordering
from workbench.archive import missing, provenance
from workbench.archive.certificate import SHARE, Promise, share_of, summed
from workbench.archive.chunk import EncodedChunk, exact_chunk, guarded_chunk, with_checksums
from workbench.archive.decoded_chunks import ChunksOfMember
from workbench.archive.layout import ArrayLayout, Index
from workbench.archive.reading import Before
from workbench.backend import Array
from workbench.codecs import Codec, CodecFailed
from workbench.codecs.pcodec import PCodec
from workbench.codecs.together import Pieces
from workbench.data.extent import extent, extents
from workbench.guarantees import Bound, Limit, Safeguard, SliceLimits, encode_guarded, encode_guarded_pieces
from workbench.guarantees.check import Period
from workbench.guarantees.enforce import Figures, unchanged
from workbench.progress import Progress
from workbench.slabs import Slices

MOST_TOGETHER = 2**26   # coordinates that a GPU encodes at once, in about 40 bytes each


@dataclass(frozen=True)
class EncodedArray:
    """An array of an archive, ready to be written: its document, its chunks, and its promise."""

    layout: ArrayLayout
    chunks: Sequence[EncodedChunk]
    promise: Promise | None = None
    orders: Sequence[Array | None] = ()              # where a codec reorders points: the permutation of each chunk
    ends: Sequence[tuple[np.ndarray, np.ndarray] | None] = ()   # the smallest and largest decoded coordinates of each chunk
    decoded: Sequence[Array] = ()                    # the decoded values of each chunk, if requested

    def entries(self) -> Iterator[tuple[str, bytes]]:
        """The chunks by key."""
        for index, chunk in zip(self.layout.chunk_indices(), self.chunks, strict=True):
            yield self.layout.chunk_key(index), chunk.data


@dataclass(frozen=True, eq=False)
class Part:
    """The values of any chunk of an array, whose rows may be taken in another order; can be pickled.

    >>> Part(np.arange(6.0).reshape(3, 2), np.array([2, 0, 1], np.int32))((slice(0, 2),)).tolist()
    [[4.0, 5.0], [0.0, 1.0]]
    """

    values: Array
    order: Array | None = None

    def __call__(self, slices: Slices) -> Array:
        """The values of the chunk at these places."""
        return self.values[slices] if self.order is None else ordering.gather_rows(self.values, self.order[slices[0]])


@dataclass(frozen=True)
class Task:
    """How an array is encoded, and its promise."""

    layout: ArrayLayout
    codec: Codec
    bound: Bound | None
    limit: Limit
    period: Period = None
    keep: tuple[Safeguard, ...] = ()
    extents: bool = False     # whether to record the extent of the positions of each chunk
    decoded: bool = False     # whether to keep the decoded values
    slices: SliceLimits | None = None   # the limits of all slices, where they differ: `limit` is a typical one
    earlier: Before | None = None       # the array at earlier steps of a series, from which the codec predicts
    kept: ChunksOfMember | None = None   # where decoded chunks are kept for the next step
    chunk: Index | None = None          # that this task is about
    before: Array | None = None         # its values a step before, where they may be the same and are kept exactly

    def of_chunk(self, index: Index) -> Task:
        """The same for one chunk: with its limit, and the codec that knows its values at earlier steps."""
        if self.slices is None and self.earlier is None and self.kept is None:
            return self
        codec, limit, before = self.codec, self.limit_of(index), None
        if self.earlier is not None:
            known = self.earlier.at(self.layout.chunk_slices(index))
            if self.limit.value > 0:
                codec = codec.following(known)
            else:
                before = known.values[0]
        return dataclasses.replace(self, limit=limit, codec=codec, chunk=index, before=before)

    def limit_of(self, index: Index) -> Limit:
        """The limit of one chunk."""
        return self.limit if self.slices is None else self.slices.at(self.layout.chunk_slices(index))


@dataclass(frozen=True, eq=False)
class ReadyChunk:
    """An encoded chunk. Its decoded values may be large, and are kept only on request."""

    data: EncodedChunk
    figures: Figures
    order: Array | None
    ends: tuple[np.ndarray, np.ndarray] | None
    decoded: Array | None
    hidden: missing.Hidden | None = None   # where there is a mask


def encode(task: Task, part: Part, progress: Progress | None = None) -> EncodedArray:
    """All chunks of an array in memory, each decoded and checked."""
    return assembled(task, list(_reported(_chunks(task, part), task.layout, progress)))


def encode_values(task: Task, values: Array, mask: Array | None = None) -> ReadyChunk:
    """The values of one chunk, decoded and checked."""
    guarded = None if task.before is None else unchanged(values, task.before, mask)
    if guarded is None:
        guarded = encode_guarded(task.codec, values, task.limit, period=task.period, mask=mask, keep=task.keep)
    ends = extent(guarded.decoded) if task.extents else None
    decoded = guarded.decoded if task.decoded else None
    hidden = None if mask is None else missing.Hidden.of(guarded.decoded, mask)
    data = guarded_chunk(guarded, task.codec.bare)
    if task.kept is not None and task.chunk is not None:
        task.kept.put(task.layout, task.chunk, data.checksum, backend.to_host(guarded.decoded))
    return ReadyChunk(data, guarded.figures, guarded.permutation, ends, decoded, hidden)


def encode_together(task: Task, values: Array, rows: int) -> Iterator[ReadyChunk]:
    """The values of several chunks of so many rows, decoded and checked together where codec and bound allow it."""
    assert task.earlier is None   # whose chunks each have their own codec
    found = encode_guarded_pieces(task.codec, values, rows, task.limit, task.period)
    if found is None:
        yield from (encode_values(task, values[piece]) for piece in Pieces.of(len(values), rows))
        return
    chunks, decoded = found
    ends = [(lower, upper) for lower, upper in extents(decoded, rows)] if task.extents else [None] * len(chunks)
    for guarded, own in zip(chunks, ends, strict=True):
        kept = guarded.decoded if task.decoded else None
        yield ReadyChunk(guarded_chunk(guarded), guarded.figures, guarded.permutation, own, kept)


def assembled(task: Task, chunks: Sequence[ReadyChunk]) -> EncodedArray:
    """The array that consists of these chunks, given in its order."""
    _require_working(task, chunks)
    kept, figures = tuple(kept.to_dict() for kept in task.keep), summed(chunk.figures for chunk in chunks)
    if task.slices is not None:
        pairs = zip(task.layout.chunk_indices(), chunks, strict=True)
        figures[SHARE] = max(share_of(chunk.figures.largest_error, task.limit_of(index)) for index, chunk in pairs)
    promise = Promise(task.layout.name, task.bound, task.slices or task.limit, kept, figures)
    data, orders, ends = ([getattr(chunk, name) for chunk in chunks] for name in ("data", "order", "ends"))
    decoded = [chunk.decoded for chunk in chunks] if task.decoded else ()
    hidden = missing.attributes(chunk.hidden for chunk in chunks if chunk.hidden is not None)
    warns = {missing.WARNS: True} if missing.COMMENT in hidden else {}
    layout = dataclasses.replace(
        task.layout, attributes={**task.layout.attributes, **hidden}, configuration={**task.layout.configuration, **warns}
    )
    return EncodedArray(with_checksums(layout, data), data, promise, orders, ends, decoded)


def encode_exactly(name: str, values: Array, chunk_shape: Sequence[int]) -> EncodedArray:
    """An array that is kept bit for bit."""
    values = backend.to_host(values)
    layout = exact_layout(name, values.shape, values.dtype, chunk_shape)
    return exactly(layout, [exact_chunk(values[layout.chunk_slices(index)]) for index in layout.chunk_indices()])


def exact_layout(
    name: str, shape: tuple[int, ...], dtype: np.dtype, chunk_shape: Sequence[int], codec: Codec | None = None
) -> ArrayLayout:
    """The layout of an array that is kept bit for bit, by this codec if it has no frames."""
    return layout_for(name, shape, dtype, chunk_shape, codec if codec is not None and codec.bare else PCodec())


def exactly(layout: ArrayLayout, chunks: Sequence[EncodedChunk]) -> EncodedArray:
    """The array that consists of these chunks, kept bit for bit."""
    return EncodedArray(with_checksums(layout, chunks), chunks, Promise(layout.name, None, None))


def layout_for(
    name: str, shape: tuple[int, ...], dtype: np.dtype, chunk_shape: Sequence[int], codec: Codec, **attributes: Any
) -> ArrayLayout:
    """The layout of an array of this shape and type."""
    options = {name: value for name, value in codec.to_dict().items() if value is not None}   # as they are if left out
    made_with = {provenance.VERSIONS: provenance.versions(codec), provenance.STREAM: provenance.stream(codec)}
    configuration = {"codec": options, **made_with}
    return ArrayLayout(name, shape, tuple(chunk_shape), dtype, configuration, attributes).in_shards()


def even_chunks(size: int, most: int) -> int:
    """The length of equal pieces, none longer than `most`.

    >>> even_chunks(10, 4), even_chunks(10, 100)
    (4, 10)
    """
    return -(-size // -(-size // max(most, 1)))


def _require_working(task: Task, chunks: Sequence[ReadyChunk]) -> None:
    """Refuse a codec that raised for every chunk and also raises for plain values: wrong options, or a broken codec."""
    if not all(chunk.figures.codec_raised for chunk in chunks):
        return
    shape = [min(size, 8) for size in task.layout.shape]
    plain = np.linspace(0, 1, math.prod(shape)).astype(task.layout.dtype).reshape(shape)
    tried = encode_guarded(task.codec, plain, Limit("absolute", 0.1)).figures
    if tried.codec_raised:   # else it may not take plain values, so the trial shows nothing
        every = f"all {len(chunks):,} chunks" if len(chunks) > 1 else "the only chunk"
        raise CodecFailed(f"{tried.stored_exactly} ({every} of {task.layout.name} failed): check its options")


def _chunks(task: Task, part: Part) -> Iterator[ReadyChunk]:
    if task.extents and backend.on_device(part.values) and task.earlier is None:
        return _on_device(task, part)
    indices = list(task.layout.chunk_indices())

    def work(index: Index) -> ReadyChunk:
        return encode_values(task.of_chunk(index), part(task.layout.chunk_slices(index)))

    return map(work, indices) if task.codec.holds_gil else backend.side_by_side(work, indices)


def _on_device(task: Task, part: Part) -> Iterator[ReadyChunk]:
    """The chunks of positions on a GPU: as many together as its memory surely holds."""
    (count, axes), rows = task.layout.shape, task.layout.chunk_shape[0]
    for several in Pieces.of(count, max(MOST_TOGETHER // (rows * axes), 1) * rows):
        yield from encode_together(task, part((several, slice(0, axes))), rows)


def _reported(chunks: Iterable[ReadyChunk], layout: ArrayLayout, progress: Progress | None) -> Iterator[ReadyChunk]:
    for done, chunk in enumerate(chunks, start=1):
        yield chunk
        if progress is not None:
            progress(done / layout.chunk_count, layout.name)


