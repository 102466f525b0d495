"""Particles as an archive: chunks in their own order or along a curve, and companion arrays in the same order.

When the order is free, particles are first sorted along a Morton curve, for every codec: neighbours in space become
neighbours in the file, which most codecs exploit, and a region becomes a few contiguous ranges of the file.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from workbench import backend, codecs, ordering
from workbench.archive import encoding
from workbench.archive.archive import Archive
from workbench.archive.encoding import EncodedArray, Part, Progress, Slices, Task, even_chunks, layout_for, layout_of
from workbench.archive.finer import smallest
from workbench.archive.guaranteed import with_guarantee
from workbench.archive.request import Request, archive_of, require_about
from workbench.archive.verify import checksum_of
from workbench.backend import Array
from workbench.clusters.keep.repair import Step
from workbench.codecs import Codec, Columns, ParticleCodec
from workbench.codecs.curve import Lattice
from workbench.data import Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit
from workbench.guarantees.guarantee import Allowance, Guarantee

COMPANIONS = 2**16     # particles in a chunk of a companion array: small, because reading a region needs some of each
VELOCITY_CODEC = "prequantised"   # where the requested codec is only for positions: the same bytes on every machine
COARSE_CELLS = 2**16   # along the longest axis, for sorting when the codec has no lattice of its own


def compress_particles(particles: Particles, request: Request) -> Archive:
    """The archive of particles."""
    found = _sorted_positions(particles, request)
    order, plan = found.order, found.plan
    few = min(plan.chunk, even_chunks(len(particles), COMPANIONS))
    arrays = [
        found.positions,
        extents_of(found.positions),
        *_velocities(particles, request, few, order),
        *_exact("ids", particles.companions.get("ids"), few, order),
        *_exact("masses", particles.companions.get("masses"), few, order),
    ]
    if request.store_permutation:
        arrays += _exact("permutation", np.arange(len(particles), dtype=np.int32) if order is None else order, few)
    described = plan.described(request, None if order is None else checksum_of(order))
    if isinstance(particles.masses, float):
        described["mass"] = particles.masses
    return archive_of(arrays, described, plan.codec, particles.metadata, request)


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
        codec = _codec_for(particles, request.chosen_codec("lattice"), request.order, limit)
        curve = None if request.order == "keep" else _curve_of(particles, codec, limit)
        chunk = even_chunks(count, (request.chunk_values or codec.chunk_values) // particles.dimensions)
        return cls(count, particles.positions.dtype, particles.box, limit, codec, particles.dimensions, curve, chunk)

    def task(self, part: Callable[[Slices], Array], request: Request) -> Task:
        """The positions to encode; `part` returns those of a chunk, in the order of the archive."""
        shape, chunk = (self.count, self.dimensions), (self.chunk, self.dimensions)
        layout = layout_for("positions", shape, self.dtype, chunk, self.codec)
        return Task(layout, part, self.codec, request.bound, self.limit, self.box, extents=True)

    def described(self, request: Request, permutation: str | None) -> dict[str, Any]:
        """The description of the archive; `permutation` is the checksum of a free order."""
        sorted_along = None if self.curve is None else dataclasses.asdict(self.curve)
        found: dict[str, Any] = {"kind": "particles", "order": request.order, "box": self.box, "curve": sorted_along}
        return found if permutation is None else {**found, "permutation": permutation}


def extents_of(positions: EncodedArray) -> EncodedArray:
    """The extents of the decoded chunks, for reading by region."""
    extents = np.array(positions.ends)
    return encoding.encode_exactly("extents", extents, extents.shape)


@dataclass(frozen=True, eq=False)
class Sorted:
    """Encoded positions, the original index of each particle, and the plan that they follow."""

    positions: EncodedArray
    order: Array | None
    plan: Plan

    @property
    def nbytes(self) -> int:
        """The size of all chunks."""
        return sum(len(chunk.data) for chunk in self.positions.chunks)

    @property
    def added(self) -> int:
        """The bytes that keep clusters."""
        assert self.positions.promise is not None
        return sum(kept["bytes"] for kept in self.positions.promise.keep)


def _sorted_positions(particles: Particles, request: Request) -> Sorted:
    """The positions within the requested bound; within a finer one where keeping clusters takes fewer bytes there."""
    guarantee, limit = guarantee_of(request), request.bound.limit(particles.positions)
    requested = _within(particles, request, limit)
    if guarantee is None:
        return requested

    told = iter([request.progress])   # the first repair is told as it is

    def encode(finer: Limit, allowance: Allowance) -> Sorted:
        trial = None if request.progress is None else _Trial(request.progress)
        progress = next(told, trial)
        found = requested if finer == limit else _within(particles, dataclasses.replace(request, progress=progress), finer)
        kept = with_guarantee(found.positions, particles, found.order, finer, guarantee, progress, allowance)
        return dataclasses.replace(found, positions=kept)

    found = smallest(encode, limit, particles.positions, guarantee.scale(particles))
    assert found.positions.promise is not None
    kept = tuple({**kept, "bytes": found.nbytes - requested.nbytes} for kept in found.positions.promise.keep)
    stated = dataclasses.replace(found.positions.promise, limit=limit, keep=kept)
    return dataclasses.replace(found, positions=dataclasses.replace(found.positions, promise=stated))


@dataclass(frozen=True)
class _Trial:
    """Progress of a trial of a finer bound, after the first one."""

    progress: Progress

    def __call__(self, share: float, text: str) -> None:
        self.progress(1.0, f"clusters: a finer bound, {text.removeprefix('clusters: ')}")

    @property
    def watch(self) -> Callable[[Step], object] | None:
        """What is told every step, with its bound."""
        return getattr(self.progress, "watch", None)


def _within(particles: Particles, request: Request, limit: Limit) -> Sorted:
    """The positions within this limit."""
    plan = Plan.of(particles, len(particles), request, limit)
    curve = plan.curve
    places = None if curve is None else ordering.sort_by_key(curve.keys(particles.positions), curve.key_bits)
    task = plan.task(Part(particles.positions, places), request)
    task = dataclasses.replace(task, decoded=bool(request.keep), on_device=backend.on_device(particles.positions))
    positions = encoding.encode(task, request.progress)
    return Sorted(positions, _final_order(places, positions, len(particles)), plan)


def guarantee_of(request: Request) -> Guarantee | None:
    """The promise beyond the bound, if one is requested."""
    require_about("particles", request.keep)
    if len(request.keep) > 1:
        raise WorkbenchError(
            f"keep takes one wb.KeepClusters, which may have several linking lengths; got {len(request.keep)} of them"
        )
    return request.keep[0] if request.keep else None


def _codec_for(particles: Particles, codec: Codec, order: str, limit: Limit) -> Codec:
    """The codec for positions in this order, prepared for any part of them."""
    if not isinstance(codec, ParticleCodec):
        codec = codec if isinstance(codec, Columns) else Columns(codec)
        return codec.fitted(particles.positions, limit.tolerance)
    codec = codec.prepared(particles, order).fitted(particles.positions, limit.tolerance)
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


def _velocities(particles: Particles, request: Request, chunk: int, order: Array | None) -> list[EncodedArray]:
    """Velocities within their bound or, without one, exact; coded on the host."""
    bound = request.velocities
    if particles.velocities is None:
        if bound is not None:
            raise WorkbenchError("velocities= bounds the velocities of particles; these have none")
        return []
    if particles.velocities.dtype.name not in ("float32", "float64"):
        given = particles.velocities.dtype
        raise WorkbenchError(f"velocities must be float32 or float64; got {given}: convert with .astype(...)")
    codec = velocity_codec(request)
    values, places = (None if array is None else backend.to_host(array) for array in (particles.velocities, order))
    limit = Limit("absolute", 0.0) if bound is None else bound.limit(values)
    layout = layout_of("velocities", particles.velocities, (chunk, particles.dimensions), codec)
    return [encoding.encode(Task(layout, Part(values, places), codec, bound, limit), request.progress)]


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


def _exact(name: str, values: Array | None, chunk: int, order: Array | None = None) -> list[EncodedArray]:
    if values is None:
        return []
    return [encoding.encode_exactly(name, values if order is None else values[order], (chunk,))]


def _final_order(places: Array | None, encoded: EncodedArray, count: int) -> Array | None:
    """The original index of each decoded particle, with reordering inside chunks; None for the original order."""
    if all(order is None for order in encoded.orders):
        return places
    xp = backend.namespace(*[order for order in encoded.orders if order is not None])
    start = xp.arange(count, dtype=xp.int32) if places is None else places
    chunk = encoded.layout.chunk_shape[0]
    pieces = [start[i * chunk : (i + 1) * chunk] for i in range(len(encoded.orders))]
    ordered = zip(pieces, encoded.orders, strict=True)
    return xp.concatenate([piece if order is None else piece[order] for piece, order in ordered])
