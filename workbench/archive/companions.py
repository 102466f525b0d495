"""The arrays of an archive beside the positions: velocities, ids, masses, and the permutation if it is asked for.

Their chunks are shorter than those of positions, since reading a region needs some of each: a step encodes several that
follow each other. Ids and masses are kept bit for bit, velocities within their bound, if they have one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from workbench import codecs
from workbench.archive.chunk import EncodedChunk, exact_chunk
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
from workbench.archive.in_order import PERMUTATION, VELOCITIES
from workbench.archive.layout import ArrayLayout
from workbench.archive.request import Request
from workbench.archive.writing import Place
from workbench.codecs import Codec, Columns, ParticleCodec
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, Limit
from workbench.guarantees.enforce import Figures
from workbench.ordering import stored_index
from workbench.run.executors import Executor

CHUNK = 2**16   # particles in a chunk of a companion array
VELOCITY_CODEC = "prequantised"   # where the requested codec is only for positions: the same bytes on every machine

Done = tuple[EncodedChunk, Figures | None]   # a chunk without its bytes, and the figures of one that a codec encoded


class Companions(Protocol):
    """The companions of particles, in the order of an archive."""

    @property
    def dtypes(self) -> Mapping[str, np.dtype]:
        """Their types by name, in the order in which archives list them."""

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
    task: Task | None   # of velocities, which a codec encodes

    def encode(self, numbers: range) -> list[Done]:
        """Encode and write chunks that follow each other; returns everything but their bytes."""
        indices = [(number, *[0] * (len(self.layout.shape) - 1)) for number in numbers]
        ranges = [self.layout.chunk_slices(index)[0] for index in indices]
        begin, done = ranges[0].start, []   # type: int, list[Done]
        values = self.companions.read(self.name, begin, ranges[-1].stop)
        for index, rows in zip(indices, ranges, strict=True):
            here = np.ascontiguousarray(values[rows.start - begin : rows.stop - begin])
            ready = None if self.task is None else encode_values(self.task, here)
            chunk = exact_chunk(here) if ready is None else ready.data
            self.place.put(self.layout.chunk_key(index), chunk.data)
            done.append((chunk.without_bytes(), None if ready is None else ready.figures))
        return done


def encode_companions(
    companions: Companions, count: int, dimensions: int, chunk: int, request: Request, place: Place,
    executor: Executor,
) -> Iterator[EncodedArray]:
    """Encode and write all columns, in the order in which archives list them; the arrays are without bytes.

    `chunk` is how many particles a chunk of positions has: no chunk has more.
    """
    few = min(chunk, even_chunks(count, CHUNK))
    dtypes = dict(companions.dtypes)
    if request.store_permutation:
        dtypes[PERMUTATION] = stored_index(count)
    for name, dtype in dtypes.items():
        layout, task = exact_layout(name, (count,), dtype, (few,)), None
        if name == VELOCITIES:
            codec, bound = velocity_codec(request), request.velocities
            layout = layout_for(name, (count, dimensions), dtype, (few, dimensions), codec)
            limit = Limit("absolute", 0.0) if bound is None else companions.limit(name, bound)
            task = Task(layout, codec, bound, limit)
        array, together = _Array(name, layout, companions, place, task), max(1, companions.rows_together // few)
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


def require_velocities(dtypes: Mapping[str, np.dtype], request: Request) -> None:
    """Refuse a bound of velocities where there are none, and velocities that are no floats."""
    if VELOCITIES not in dtypes and request.velocities is not None:
        raise WorkbenchError("velocities= bounds the velocities of particles; these have none")
    if VELOCITIES in dtypes and dtypes[VELOCITIES].name not in ("float32", "float64"):
        got = dtypes[VELOCITIES]
        raise WorkbenchError(f"velocities must be float32 or float64; got {got}: convert with .astype(...)")


def velocity_codec(request: Request) -> Codec:
    """The codec for velocities: the requested one if it takes plain arrays, else one that every machine has."""
    if request.velocities is None:
        return Columns(codecs.get("pcodec"))
    chosen = codec_of_velocities(request.codec)
    return chosen if isinstance(chosen, Columns) else Columns(chosen)


def codec_of_velocities(given: str | Codec) -> Codec:
    """The codec of velocities that have a bound, where this one is requested for positions.

    >>> codec_of_velocities("lattice").id
    'prequantised'
    """
    chosen = codecs.get(VELOCITY_CODEC if given == "auto" else given) if isinstance(given, str) else given
    return codecs.get(VELOCITY_CODEC) if isinstance(chosen, ParticleCodec) else chosen
