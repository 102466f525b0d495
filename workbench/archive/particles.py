"""Particles as an archive: chunks in their own order or along a curve, and companion arrays in the same order.

When the order is free, particles are first sorted along a Morton curve, for every codec: neighbours in space become
neighbours in the file, which most codecs exploit, and a region becomes a few contiguous ranges of the file.

Where the particles are decides who encodes them: all in memory (`particles_in_memory.py`), or in chunks that this process
or workers read (`particles_in_chunks.py`). The bytes are the same.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from workbench.archive import encoding
from workbench.archive.archive import Archive
from workbench.archive.chunking import WHOLE
from workbench.archive.companions import CHUNK, Companions, encode_companions
from workbench.archive.encoding import EncodedArray, Task, even_chunks, layout_for
from workbench.archive.finer import smallest
from workbench.archive.layout import ROLE
from workbench.archive.request import IN_TIME, Request, archive_of, require_about
from workbench.archive.sharding import MOST_CHUNKS
from workbench.archive.writing import Place
from workbench.codecs import Codec, Columns, ParticleCodec
from workbench.codecs.curve import Lattice
from workbench.data import Particles
from workbench.data.outline import Outlined
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, Limit
from workbench.guarantees.guarantee import Allowance, Guarantee
from workbench.run.executors import Executor

COARSE_CELLS = 2**16   # along the longest axis, for sorting when the codec has no lattice of its own


class Supply(Protocol):
    """The particles of an archive, and who encodes them."""

    @property
    def outline(self) -> Outlined:
        """Their number, extent and box."""

    @property
    def mass(self) -> float | None:
        """The mass of each particle, where all have the same."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Anything else."""

    @property
    def guarantee(self) -> Guarantee | None:
        """The promise beyond the bound, if one is requested."""

    def limit(self) -> Limit:
        """The limit of the requested bound for these particles."""

    @property
    def bounds(self) -> Mapping[str, Bound]:
        """The bounds of velocities and columns, as far as they have one."""

    def notes(self) -> tuple[str, ...]:
        """What is unusual about the request for these particles."""

    def encoded(self, limit: Limit, place: Place) -> Positions:
        """The positions within this limit."""

    def kept(self, place: Place, finer: Limit, allowance: Allowance) -> Positions:
        """The positions within this limit, corrected so that the guarantee is true; raises TooExpensive."""

    def write(self, chosen: Positions, place: Place) -> None:
        """Bring the chunks of positions to the archive, as far as they are not there."""


@dataclass(frozen=True, eq=False)
class Positions:
    """Encoded positions within one limit, and the companions in the same order."""

    plan: Plan
    array: EncodedArray
    nbytes: int
    companions: Companions
    source: Any = None   # what the supply needs to know about them

    @property
    def added(self) -> int:
        """The bytes of the correction."""
        return 0 if self.array.promise is None else sum(kept["bytes"] for kept in self.array.promise.keep)


def compress_particles(supply: Supply, request: Request, place: Place, executor: Executor) -> Archive:
    """The archive of particles, whose parts go to this place."""
    limit = supply.limit()
    chosen = supply.encoded(limit, place)
    if supply.guarantee is not None:
        chosen = _kept(supply, chosen, supply.guarantee, limit, place)
    supply.write(chosen, place)
    plan, extents = chosen.plan, extents_of(chosen.array)
    for key, data in extents.entries():
        place.put(key, data)
    checksum = chosen.companions.checksum()
    others = encode_companions(chosen.companions, chosen.array, request, supply.bounds, place, executor)
    described = {**plan.described(request, checksum), "mass": supply.mass, **request.about_step}
    arrays = [chosen.array, extents, *others, *indexes_of(request, place)]
    return archive_of(arrays, described, plan.codec, supply.metadata, place, executor, supply.notes())


def _kept(
    supply: Supply, requested: Positions, guarantee: Guarantee, limit: Limit, place: Place
) -> Positions:
    """The positions within the requested bound, or within a finer one where the guarantee takes fewer bytes there."""
    outline = supply.outline
    shape = np.broadcast_to(np.zeros((), requested.plan.dtype), (len(outline), outline.dimensions))
    chosen = smallest(functools.partial(supply.kept, place), limit, shape, guarantee.scale(outline))
    stated = chosen.array.promise
    assert stated is not None
    kept = tuple({**kept, "bytes": chosen.nbytes - requested.nbytes} for kept in stated.keep)
    array = dataclasses.replace(chosen.array, promise=dataclasses.replace(stated, limit=limit, keep=kept))
    return dataclasses.replace(chosen, array=array)


@dataclass(frozen=True)
class Plan:
    """What is decided about positions before any is encoded; it depends on their number and extent alone."""

    count: int
    dtype: np.dtype
    box: tuple[float, ...] | None
    limit: Limit
    codec: Codec
    dimensions: int
    curve: Lattice | None   # along which the particles are sorted
    chunk: int              # particles in a chunk

    @classmethod
    def of(cls, particles: Particles, count: int, request: Request, limit: Limit | None = None) -> Self:
        """The plan for `count` particles. Those given may be fewer, if they have the extent of all of them.

        `limit` may be finer than that of the requested bound.
        """
        limit = request.bound.limit(particles.positions) if limit is None else limit
        codec = _codec_for(particles, request.chosen_codec(usual_codec(request)), request.order)
        curve = None if request.order == "keep" else _curve_of(particles, codec, limit)
        chunk = particles_in_chunk(count, particles.dimensions, request, codec)
        return cls(count, particles.positions.dtype, particles.box, limit, codec, particles.dimensions, curve, chunk)

    def task(self, request: Request, decoded: bool = False) -> Task:
        """The positions to encode; `decoded` says that the decoded ones are needed, too."""
        shape, chunk = (self.count, self.dimensions), (self.chunk, self.dimensions)
        layout = layout_for("positions", shape, self.dtype, chunk, self.codec)
        task = Task(layout, self.codec, request.bound, self.limit, self.box, extents=True, decoded=decoded)
        return request.in_time(task)

    def described(self, request: Request, permutation: str | None) -> dict[str, Any]:
        """The description of the archive; `permutation` is the checksum of a free order."""
        sorted_along = None if self.curve is None else dataclasses.asdict(self.curve)
        found: dict[str, Any] = {"kind": "particles", "order": request.order, "box": self.box, "curve": sorted_along}
        return found if permutation is None else {**found, "permutation": permutation}


def usual_codec(request: Request) -> str:
    """The codec of positions for which none is requested: in a series in kept order, one that predicts in time."""
    return "lattice" if request.step is None or request.order == "free" else IN_TIME


def particles_in_chunk(count: int, dimensions: int, request: Request, codec: Codec) -> int:
    """How many particles a chunk of positions has; refused where an array would have too many chunks."""
    chunk = even_chunks(count, (request.chunk_values or codec.chunk_values) // dimensions)
    if isinstance(request.chunks, int):
        chunk = count if request.chunks == WHOLE else min(request.chunks, count)
    least = min(chunk, CHUNK)
    if -(-count // least) > MOST_CHUNKS:
        raise WorkbenchError(
            f"an array must have at most {MOST_CHUNKS:,} chunks; {count:,} particles in chunks of {least:,} have more: "
            "give larger chunks, or divide the particles"
        )
    return chunk


def extents_of(positions: EncodedArray) -> EncodedArray:
    """The extents of the decoded chunks, for reading by region."""
    extents = np.array(positions.ends)
    return encoding.encode_exactly("extents", extents, extents.shape)


def indexes_of(request: Request, place: Place) -> Iterator[EncodedArray]:
    """The arrays that a step of a series keeps beside its data, as they are written."""
    for name, values in ({} if request.step is None else request.step.indexes).items():
        array = encoding.encode_exactly(name, values, values.shape)
        layout = dataclasses.replace(array.layout, attributes={**array.layout.attributes, ROLE: "index"})
        for key, data in array.entries():
            place.put(key, data)
        yield dataclasses.replace(array, layout=layout, promise=None)


def guarantee_of(request: Request) -> Guarantee | None:
    """The promise beyond the bound, if one is requested."""
    require_about("particles", request.keep)
    if len(request.keep) > 1:
        raise WorkbenchError(
            f"keep takes one wb.KeepClusters, which may have several linking lengths; got {len(request.keep)} of them"
        )
    return request.keep[0] if request.keep else None


def _codec_for(particles: Particles, codec: Codec, order: str) -> Codec:
    """The codec for positions in this order, prepared for any part of them."""
    if not isinstance(codec, ParticleCodec):
        return codec if isinstance(codec, Columns) else Columns(codec)
    codec = codec.prepared(particles, order)
    if order == "keep" and codec.reorders:
        raise WorkbenchError(f"{codec.id} returns particles in another order: use order='free', or another codec")
    return codec


def _curve_of(particles: Particles, codec: Codec, limit: Limit) -> Lattice:
    """The lattice whose Morton curve the particles are sorted along: the codec's own, if it has one."""
    own = codec.curve(particles.positions, limit.tolerance) if isinstance(codec, ParticleCodec) else None
    if own is not None:
        return own
    step = max(*particles.lengths, float(np.finfo(particles.positions.dtype).tiny)) / COARSE_CELLS
    lower, upper = particles.lower, particles.upper
    cells = [int((high - low) // step) for low, high in zip(lower, upper, strict=True)]
    return Lattice(tuple(lower.tolist()), step, tuple(cells), tuple(upper.tolist()))


