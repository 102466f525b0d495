"""The arrays of an archive beside the positions: velocities, ids, masses, columns, and the permutation if it is asked for.

Their chunks are shorter than those of positions, since reading a region needs some of each: a step encodes several that
follow each other. Ids and masses are kept bit for bit, velocities and columns within their bounds, if they have one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from workbench import codecs
from workbench.archive.choice import is_free
from workbench.archive.chunk import EncodedChunk, exact_chunk, with_checksums
from workbench.archive.encoding import (
    EncodedArray,
    ReadyChunk,
    Task,
    assembled,
    encode_values,
    even_chunks,
    exact_layout,
    exactly,
    layout_for,
)
from workbench.archive.in_order import PERMUTATION
from workbench.archive.layout import ArrayLayout
from workbench.archive.reading import StoredArray
from workbench.archive.request import IN_TIME, Request
from workbench.archive.writing import Place
from workbench.codecs import Codec, Columns, ParticleCodec
from workbench.guarantees import Bound, Limit
from workbench.guarantees.enforce import Figures
from workbench.ordering import stored_index
from workbench.run.executors import Executor

CHUNK = 2**16    # particles in a chunk of a companion array,
BESIDE = 2**18   # and of one that is predicted from positions: particles at the border of a chunk have fewer neighbours
COLUMN_CODEC = "prequantised"   # where the requested codec is only for positions: fast, also for integers

Done = tuple[EncodedChunk, Figures | None]   # a chunk without its bytes, and the figures of one that a codec encoded


class Companions(Protocol):
    """The companions of particles, in the order of an archive."""

    @property
    def dtypes(self) -> Mapping[str, np.dtype]:
        """The type of a row of each by name, in the order in which archives list them."""

    @property
    def rows_together(self) -> int:
        """How many particles a step may hold."""

    def read(self, name: str, begin: int, end: int) -> np.ndarray:
        """A column, or the permutation, between two places."""

    def checksum(self) -> str | None:
        """The checksum of a free order."""

    def limit(self, name: str, bound: Bound) -> Limit:
        """The limit of a bound for all values of a column."""


@dataclass(frozen=True)
class _Array:
    """One column as an array of an archive that is made."""

    name: str
    layout: ArrayLayout
    companions: Companions
    place: Place
    task: Task | None   # where a codec encodes them
    positions: StoredArray | None   # decoded, where the codec predicts from them

    def encode(self, numbers: range) -> list[Done]:
        """Encode and write chunks that follow each other; returns everything but their bytes."""
        indices = [(number, *[0] * (len(self.layout.shape) - 1)) for number in numbers]
        ranges = [self.layout.chunk_slices(index)[0] for index in indices]
        begin, done = ranges[0].start, []   # type: int, list[Done]
        values = self.companions.read(self.name, begin, ranges[-1].stop)
        for index, rows in zip(indices, ranges, strict=True):
            here = np.ascontiguousarray(values[rows.start - begin : rows.stop - begin])
            ready = None if self.task is None else encode_values(self._beside(self.task.of_chunk(index), rows), here)
            chunk = exact_chunk(here) if ready is None else ready.data
            self.place.put(self.layout.chunk_key(index), chunk.data)
            done.append((chunk.without_bytes(), None if ready is None else ready.figures))
        return done

    def _beside(self, task: Task, rows: slice) -> Task:
        """The task for these rows, whose codec may need their positions."""
        if self.positions is None or not task.codec.beside_positions:
            return task
        return replace(task, codec=task.codec.beside(self.positions.rows(rows.start, rows.stop)))


def encode_companions(
    companions: Companions, positions: EncodedArray, request: Request, bounds: Mapping[str, Bound], place: Place,
    executor: Executor,
) -> Iterator[EncodedArray]:
    """Encode and write all columns, in the order in which archives list them; the arrays are without bytes.

    No chunk has more particles than one of positions, whose bytes are in their place. Columns without a bound are exact.
    """
    (count, _), chunk = positions.layout.shape, positions.layout.chunk_shape[0]
    dtypes = dict(companions.dtypes)
    if request.store_permutation:
        dtypes[PERMUTATION] = stored_index(count)
    for name, dtype in dtypes.items():
        bound = bounds.get(name)
        codec = column_codec(dtype, bound, _requested(request, dtype))
        few = min(chunk, even_chunks(count, BESIDE if codec is not None and codec.beside_positions else CHUNK))
        shape, chunks = (count, *dtype.shape), (few, *dtype.shape)
        written = _written(positions, place, request) if codec is not None and codec.beside_positions else None
        if codec is None:
            layout, task = exact_layout(name, shape, dtype.base, chunks), None
        else:
            layout = layout_for(name, shape, dtype.base, chunks, codec)
            limit = Limit("absolute", 0.0) if bound is None else companions.limit(name, bound)
            task = request.in_time(Task(layout, codec, bound, limit))
            layout = task.layout
        array, together = _Array(name, layout, companions, place, task, written), max(1, companions.rows_together // few)
        last = layout.chunk_count
        numbers = [range(start, min(start + together, last)) for start in range(0, last, together)]
        free = task is None or not task.codec.holds_gil
        steps = executor.map(name, _Array.encode, numbers, "group of chunks", shared=array, together=free)
        done = list(itertools.chain(*steps))
        if task is None:
            yield exactly(layout, [chunk for chunk, _ in done])
        else:
            ready = [ReadyChunk(chunk, figures, None, None, None) for chunk, figures in done if figures is not None]
            yield assembled(task, ready)


def _requested(request: Request, dtype: np.dtype) -> str | Codec:
    """The requested codec of a column; where none is, in a series, one that predicts numbers in time."""
    asked = request.column_codec or request.codec
    return codecs.get(IN_TIME) if request.step is not None and is_free(asked) and dtype.base.kind == "f" else asked


def _written(positions: EncodedArray, place: Place, request: Request) -> StoredArray:
    """The positions of an archive that is being written, chunk by chunk: there are no shards yet."""
    return request.written(with_checksums(replace(positions.layout, shard_shape=None), positions.chunks), place)


def column_codec(dtype: np.dtype, bound: Bound | None, requested: str | Codec) -> Codec | None:
    """The codec for rows of this type: the requested one if it takes such arrays, else one that every machine has.

    None is for arrays that are kept bit for bit as they are: numbers without a bound, and flags.

    >>> import workbench as wb
    >>> column_codec(np.dtype(("f4", (3,))), None, "auto"), column_codec(np.dtype("i8"), None, "auto")
    (Columns(codec=PCodec(level=8)), None)
    >>> column_codec(np.dtype(("f4", (3,))), wb.Absolute(1.0), "neighbours")
    Neighbours()
    """
    if bound is None:
        return Columns(codecs.get("pcodec")) if dtype.shape and dtype.base.kind != "b" else None
    if isinstance(requested, Codec) and requested.predicts_in_time and dtype.base.name in requested.dtypes:
        return requested
    chosen = codec_of_columns(requested)
    inner = chosen.codec if isinstance(chosen, Columns) else chosen
    if dtype.base.name not in inner.dtypes:
        inner = codecs.get(COLUMN_CODEC)
    return Columns(inner) if dtype.shape and not inner.beside_positions else inner


def codec_of_columns(given: str | Codec) -> Codec:
    """The codec of velocities and other columns that have a bound, where this one is requested.

    >>> codec_of_columns("lattice").id
    'prequantised'
    """
    chosen = codecs.get(COLUMN_CODEC if is_free(given) else given) if isinstance(given, str) else given
    return codecs.get(COLUMN_CODEC) if isinstance(chosen, ParticleCodec) else chosen
