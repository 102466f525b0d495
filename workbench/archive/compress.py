"""`wb.compress`: particles or a field, a bound and a codec in; an archive whose promise was checked out.

When the order of particles is free they are sorted along a Morton curve first, whatever the codec: neighbours in space
become neighbours in the file, which most codecs reward, and a region is a few stretches of the file. All that belongs to a
particle moves with it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench import backend, codecs, ordering
from workbench.archive import document, encoding, provenance
from workbench.archive.archive import Archive
from workbench.archive.certificate import Certificate
from workbench.archive.encoding import EncodedArray, Progress, Task, even_chunks, layout_of
from workbench.backend import Array
from workbench.codecs import Codec, CodecFailed, Columns, ParticleCodec, Tolerance
from workbench.codecs.curve import Lattice
from workbench.codecs.lattice import LatticeCodec
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, Limit, Safeguard

ORDERS = ("keep", "free")
COARSE_CELLS = 2**16   # along the longest axis, for sorting when the codec has no lattice of its own


def compress(
    data: Particles | Field | np.ndarray,
    bound: Bound,
    codec: str | Codec = "auto",
    keep: Sequence[Any] = (),
    order: str = "keep",
    progress: Progress | None = None,
    *,
    velocities: Bound | None = None,
    store_permutation: bool = False,
    chunk_values: int | None = None,
) -> Archive:
    """Compress particles or a field so that the bound holds for every value, decoded and checked before this returns.

    `codec` is a name or a codec with options; "auto" takes the house codec for particles and SZ3, if it is installed, for
    fields. `order="free"` lets particles come back sorted along a curve, which is much smaller; `store_permutation` then
    stores which is which. `velocities` bounds the error of velocities, which are exact otherwise; ids always are.
    `progress` is called with the share that is done and what is being done. Arrays count as fields.

    >>> import workbench as wb
    >>> snapshot = wb.synthetic.cosmic_web(n=16, seed=1)
    >>> archive = wb.compress(snapshot, wb.Absolute(0.01), order="free")
    >>> decoded = archive.decompress()
    >>> order = archive.permutation(snapshot)
    >>> bool(abs(decoded.positions - snapshot.positions[order]).max() <= 0.01)
    True
    """
    if not isinstance(bound, Bound):
        kinds = "wb.Absolute(...), wb.Relative(...) or wb.PointwiseRelative(...)"
        raise WorkbenchError(f"bound must be {kinds}; got {bound!r}")
    if order not in ORDERS:
        raise WorkbenchError(f"order must be 'keep' or 'free'; got {order!r}")
    if chunk_values is not None and chunk_values < 1:
        raise WorkbenchError(f"chunk_values must be at least 1; got {chunk_values}")
    if isinstance(data, Particles):
        return _compress_particles(
            data, bound, codec, tuple(keep), order, progress, velocities, store_permutation, chunk_values
        )
    if velocities is not None or store_permutation or order == "free":
        raise WorkbenchError("velocities, store_permutation and order='free' are for particles; got a field")
    field = data if isinstance(data, Field) else Field(data)
    return _compress_field(field, bound, codec, tuple(keep), progress, chunk_values)


def _compress_field(
    field: Field,
    bound: Bound,
    codec: str | Codec,
    keep: tuple[Any, ...],
    progress: Progress | None,
    chunk_values: int | None,
) -> Archive:
    chosen = _codec(codec, "sz3" if "sz3" in codecs.available() else "prequantised")
    if isinstance(chosen, ParticleCodec):
        raise WorkbenchError(f"{chosen.id} is for particles; got {field!r}")
    if strangers := [kept for kept in keep if not isinstance(kept, Safeguard)]:
        raise WorkbenchError(f"keep of a field takes wb.Safeguard(...); got {strangers[0]!r}")
    whole = any(kept.needs_neighbours for kept in keep)
    shape = field.shape if whole else _block_shape(field.shape, chunk_values or chosen.chunk_values)
    layout = layout_of("values", field.values, shape, chosen, **provenance.plain(_named(units=field.metadata.get("units"))))
    limit = bound.limit(field.values, field.valid)
    task = Task(layout, lambda slices: field.values[slices], chosen, bound, limit, mask=field.mask, keep=keep)
    arrays = [encoding.encode(task, progress)]
    if field.mask is not None:
        arrays.append(encoding.encode_exactly("mask", field.mask, shape))
    described = {"kind": "field", "spacing": list(field.spacing), "name": field.name}
    return _archive(arrays, described, chosen, field.metadata)


def _compress_particles(
    particles: Particles,
    bound: Bound,
    codec: str | Codec,
    keep: tuple[Any, ...],
    order: str,
    progress: Progress | None,
    velocities: Bound | None,
    store_permutation: bool,
    chunk_values: int | None,
) -> Archive:
    if keep:
        raise WorkbenchError(f"safeguards are for fields; got particles, and {keep[0]!r}")
    limit = bound.limit(particles.positions)
    chosen = _particle_codec(_codec(codec, "lattice"), order, particles, limit)
    if order == "keep" and isinstance(chosen, ParticleCodec) and chosen.reorders:
        raise WorkbenchError(f"{chosen.id} returns particles in another order: use order='free', or another codec")
    curve = None if order == "keep" else curve_of(particles, chosen, limit)
    places = None if curve is None else along(curve, particles.positions)
    chunk = even_chunks(len(particles), (chunk_values or chosen.chunk_values) // particles.dimensions)
    layout = layout_of("positions", particles.positions, (chunk, particles.dimensions), chosen)
    part, on_device = _picked(particles.positions, places), backend.on_device(particles.positions)
    task = Task(layout, part, chosen, bound, limit, particles.box, extents=True, on_device=on_device)
    positions = encoding.encode(task, progress)
    final = _final_order(places, positions, len(particles))
    extents = np.array(positions.ends)
    arrays = [positions, encoding.encode_exactly("extents", extents, extents.shape)]
    arrays += _riders(particles, final, chunk, velocities, progress)
    if store_permutation:
        stored = np.arange(len(particles), dtype=np.int32) if final is None else backend.to_host(final)
        arrays.append(encoding.encode_exactly("permutation", stored, (chunk,)))
    described = {"kind": "particles", "order": order, "box": particles.box, "curve": curve and dataclasses.asdict(curve)}
    return _archive(arrays, described, chosen, particles.metadata)


def _riders(
    particles: Particles, order: Array | None, chunk: int, bound: Bound | None, progress: Progress | None
) -> list[EncodedArray]:
    """Velocities and ids, in the order of the positions."""
    found = []
    if particles.velocities is not None:
        if particles.velocities.dtype.name not in ("float32", "float64"):
            given = particles.velocities.dtype
            raise WorkbenchError(f"velocities must be float32 or float64; got {given}: convert with .astype(...)")
        fine = codecs.get("sz3" if bound and "sz3" in codecs.available() else "prequantised" if bound else "pcodec")
        limit = Limit("absolute", 0.0) if bound is None else bound.limit(particles.velocities)
        codec = Columns(fine)
        layout = layout_of("velocities", particles.velocities, (chunk, particles.dimensions), codec)
        values, places = (None if a is None else backend.to_host(a) for a in (particles.velocities, order))   # host codecs
        task = Task(layout, _picked(values, places), codec, bound, limit)
        found.append(encoding.encode(task, progress))
    elif bound is not None:
        raise WorkbenchError("velocities= bounds the velocities of particles; these have none")
    if particles.ids is not None:
        found.append(encoding.encode_exactly("ids", particles.ids if order is None else particles.ids[order], (chunk,)))
    return found


def _codec(given: str | Codec, auto: str) -> Codec:
    if not isinstance(given, Codec):
        return codecs.get(auto if given == "auto" else given)
    described = document.plain(given.to_dict(), f"the options of codec {given.id}")
    try:
        known = codecs.from_dict(described)
    except WorkbenchError as error:
        raise WorkbenchError(f"nobody could decode what {given!r} encodes: {error}") from error
    if known != given:
        raise WorkbenchError(f"nobody could decode what {given!r} encodes: by its description it is {known!r}")
    return given


def _particle_codec(codec: Codec, order: str, particles: Particles, limit: Limit) -> Codec:
    """The codec for positions: in this order, and with the lattice of all of them where it has one."""
    if not isinstance(codec, ParticleCodec):
        return codec if isinstance(codec, Columns) else Columns(codec)
    if any(field.name == "order" for field in dataclasses.fields(codec)):
        codec = dataclasses.replace(codec, order=order)   # type: ignore[call-arg]
    if isinstance(codec, LatticeCodec):   # one lattice for all chunks
        lower, upper = tuple(particles.lower.tolist()), tuple(particles.upper.tolist())
        codec = dataclasses.replace(codec, lower=lower, upper=upper, box=particles.box)
    return codec


def curve_of(particles: Particles, codec: Codec, limit: Limit) -> Lattice:
    """The lattice whose Morton curve the particles are sorted along: the codec's own, if it has one."""
    if isinstance(codec, LatticeCodec) and limit.value > 0:
        try:
            return codec.lattice(particles.positions, _aim(limit))
        except CodecFailed:   # too fine for a lattice: the values are kept exactly, in the order of a coarse curve
            pass
    step = max(*particles.lengths, float(np.finfo(particles.positions.dtype).tiny)) / COARSE_CELLS
    lower, upper = particles.lower, particles.upper
    cells = [int((high - low) // step) for low, high in zip(lower, upper, strict=True)]
    return Lattice(tuple(lower.tolist()), step, tuple(cells), tuple(upper.tolist()))


def along(curve: Lattice, positions: Array) -> Array:
    """The order (int32) that sorts positions along a curve: stable, so that it follows from the positions alone."""
    return ordering.sort_by_key(curve.keys(positions), curve.key_bits)


def _aim(limit: Limit) -> Tolerance:
    return Tolerance(relative=limit.value) if limit.relative else Tolerance(absolute=limit.value)


def _picked(values: Array, order: Array | None) -> Callable[[tuple[slice, ...]], Array]:
    """How to get the rows of a chunk."""
    if order is None:
        return lambda slices: values[slices]
    return lambda slices: ordering.gather_rows(values, order[slices[0]])


def _final_order(places: Array | None, encoded: EncodedArray, count: int) -> Array | None:
    """Which particle each decoded one is, once codecs have reordered inside their chunks; None is the original order."""
    if all(order is None for order in encoded.orders):
        return places
    xp = backend.namespace(*[order for order in encoded.orders if order is not None])
    start = xp.arange(count, dtype=xp.int32) if places is None else places
    chunk = encoded.layout.chunk_shape[0]
    pieces = [start[i * chunk : (i + 1) * chunk] for i in range(len(encoded.orders))]
    ordered = zip(pieces, encoded.orders, strict=True)
    return xp.concatenate([piece if order is None else piece[order] for piece, order in ordered])


def _block_shape(shape: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Blocks of a grid with at most so many values: the longest side is halved until they fit."""
    block = list(shape)
    while np.prod(block, dtype=np.float64) > most:
        longest = int(np.argmax(block))
        block[longest] = -(-block[longest] // 2)
    return tuple(block)


def _named(**values: Any) -> dict[str, Any]:
    """Those that say something."""
    return {name: value for name, value in values.items() if value is not None}


def _archive(
    arrays: Sequence[EncodedArray], described: Mapping[str, Any], codec: Codec, metadata: Mapping[str, Any]
) -> Archive:
    certificate = Certificate(tuple(a.promise for a in arrays if a.promise is not None and a.layout.name != "extents"))
    attributes = {
        **described,
        "certificate": certificate.to_dict(),
        "provenance": provenance.of(codec),
        "metadata": provenance.plain(metadata),
    }
    return Archive.of(arrays, attributes)
