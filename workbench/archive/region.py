"""Reading a region of an archive by decoding only the chunks that hold it.

If the order of particles was free, a region is a few key ranges of the curve. The stored extents of the chunks exclude
those whose decoded particles lie elsewhere; within a chunk of the built-in codec, the keys exclude blocks. Of a field whose
codec decodes parts (`Codec.part`), a chunk is decoded where the region touches it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.archive.frame import Damaged
from workbench.archive.layout import ArrayLayout, Index
from workbench.archive.reading import StoredArray, remember
from workbench.codecs.codec import Blocks, Codec, CodecFailed, ParticleCodec
from workbench.codecs.curve import Lattice
from workbench.codecs.lattice_stream import Stretches
from workbench.data.extent import inside
from workbench.errors import WorkbenchError, briefly
from workbench.guarantees.correction import apply_correction
from workbench.guarantees.sections import CODE, FIX, INFORMATIVE
from workbench.ordering import gather_rows
from workbench.slabs import Slices

Box = tuple[float, ...] | None
Cuboid = tuple[np.ndarray, np.ndarray]   # lower <= x < upper

LEAST_SAVED = 2   # times as many values as are wanted has a chunk of which only a part is decoded


def cuboids(region: Any, dimensions: int, box: Box) -> list[Cuboid]:
    """A region of space, given by (lower, upper) along each axis, as cuboids inside the box.

    >>> [(low.tolist(), high.tolist()) for low, high in cuboids([(-1, 1), (0, 4)], 2, (10.0, 10.0))]
    [([9.0, 0.0], [10.0, 4.0]), ([0.0, 0.0], [1.0, 4.0])]
    """
    try:
        ends = np.array([[float(low), float(high)] for low, high in region])
    except (TypeError, ValueError):
        raise WorkbenchError(f"region must be {dimensions} pairs (lower, upper); got {region!r}") from None
    if len(ends) != dimensions or not np.isfinite(ends).all() or (ends[:, 0] >= ends[:, 1]).any():
        raise WorkbenchError(f"region must be {dimensions} pairs (lower, upper) with lower < upper; got {region!r}")
    lengths = (None,) * dimensions if box is None else box
    axes = [_intervals(low, high, length) for (low, high), length in zip(ends.tolist(), lengths, strict=True)]
    return [(np.array([a for a, _ in parts]), np.array([b for _, b in parts])) for parts in itertools.product(*axes)]


def particles_in(positions: StoredArray, extents: np.ndarray, wanted: Sequence[Cuboid]) -> tuple[np.ndarray, np.ndarray]:
    """The decoded positions in these cuboids, and the index of each in the archive, in increasing order."""
    parts, stretches = [], []
    meets = np.array([((extents[:, 0] < b) & (extents[:, 1] >= a)).all(axis=1) for a, b in wanted])   # cuboid by chunk
    for number in np.flatnonzero(meets.any(axis=0)).tolist():
        index, (low, high) = (number, 0), extents[number]
        near = [cuboid for cuboid, met in zip(wanted, meets[:, number], strict=True) if met]
        # Clipped to the particles: a region may be as large as the largest float, and its ends become cell numbers.
        clipped = [(np.clip(a, low, high), np.clip(b, low, high)) for a, b in near]
        start = positions.layout.chunk_slices(index)[0].start
        if (found := _stretches(positions, index, clipped)) is not None:
            stretches.append((found, start))
        else:
            values = positions.chunk(index)
            chosen = np.flatnonzero(inside(values, wanted))
            parts.append((values[chosen], chosen + start))
        held = sum(len(found) for _, found in parts) + sum(int(found.sizes.sum()) for found, _ in stretches)
        positions.trust.require_room(positions.nbytes_of((held, positions.layout.shape[1])), "the region")
    dtype = positions.layout.dtype
    parts += [_along_curve(list(same), dtype, wanted) for _, same in itertools.groupby(stretches, _lattice_of)]
    if not parts:
        return np.empty((0, positions.layout.shape[1]), dtype), np.empty(0, np.int64)
    if len(parts) == 1:
        return parts[0]
    values, places = (np.concatenate(column) for column in zip(*parts, strict=True))
    rising = np.argsort(places, kind="stable")   # the parts of whole chunks come before those of key ranges
    return values[rising], places[rising]


def slices_of(region: Any, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """A region of a grid: for each axis a slice, a pair (start, stop), or None for all of it, even if that is nothing.

    >>> slices_of([(2, 4), None], (10, 5))
    (slice(2, 4, None), slice(0, 5, None))
    """
    parts = list(region) if isinstance(region, list | tuple) else [region]
    if len(parts) != len(shape):
        raise WorkbenchError(f"region must have {len(shape)} parts, one for each axis; got {len(parts)}: {briefly(region)}")
    found = []
    for part, size in zip(parts, shape, strict=True):
        try:
            start, stop, step = (part if isinstance(part, slice) else slice(*(part or (None,)))).indices(size)
        except (TypeError, ValueError):
            raise WorkbenchError(f"region takes slices, pairs (start, stop) or None; got {part!r}") from None
        if step != 1 or (start >= stop and not (part is None and size == 0)):
            raise WorkbenchError(f"region must select points of each axis of {shape}, in steps of 1; got {region!r}")
        found.append(slice(start, stop))
    return tuple(found)


def grid_part(stored: StoredArray, slices: tuple[slice, ...]) -> np.ndarray:
    """The values of an array at these grid points."""
    layout = stored.layout
    stored.trust.require_room(stored.nbytes_of(part.stop - part.start for part in slices), "the region")
    part: np.ndarray | None = None

    def placed(index: Index, into: Slices, values: np.ndarray) -> None:
        nonlocal part
        part = np.empty([s.stop - s.start for s in slices], layout.dtype) if part is None else part
        part[into] = values

    whole = []
    for index in chunks_in(layout, slices):
        into, out_of = common(slices, layout.chunk_slices(index))
        values = _alone(stored, index, out_of)
        if values is None:
            whole.append(index)
        else:
            placed(index, into, values)
    for index, values in stored.chunks(whole):
        into, out_of = common(slices, layout.chunk_slices(index))
        placed(index, into, values[out_of])
    assert part is not None   # slices select at least one point
    return part


def chunks_in(layout: ArrayLayout, slices: Slices) -> list[Index]:
    """The chunks that have cells in a part of the grid."""
    pairs = zip(slices, layout.chunk_shape, strict=True)
    return list(itertools.product(*(range(part.start // step, -(-part.stop // step)) for part, step in pairs)))


def chunk_part(stored: StoredArray, index: Index, slices: Slices, saved: float = LEAST_SAVED) -> np.ndarray:
    """The values of a part of a chunk, given by places in it; the rest is not decoded where that saves so much."""
    values = _alone(stored, index, slices, saved)
    return stored.chunk(index)[slices] if values is None else values


def inside_chunk(layout: ArrayLayout, index: Index, wanted: Slices) -> Slices:
    """The wanted part of the grid as places in a chunk."""
    return common(wanted, layout.chunk_slices(index))[1]


def common(wanted: Slices, chunk: Slices) -> tuple[Slices, Slices]:
    """What a chunk and the wanted part have in common, as places in the part and in the chunk."""
    pairs = list(zip(wanted, chunk, strict=True))
    common = [(max(a.start, b.start), min(a.stop, b.stop)) for a, b in pairs]
    into = tuple(slice(low - a.start, high - a.start) for (low, high), (a, _) in zip(common, pairs, strict=True))
    return into, tuple(slice(low - b.start, high - b.start) for (low, high), (_, b) in zip(common, pairs, strict=True))


def _alone(stored: StoredArray, index: Index, slices: Slices, saved: float = LEAST_SAVED) -> np.ndarray | None:
    """A part of a chunk, decoded without the rest; None where only the whole chunk can be decoded, or most is wanted."""
    shape = stored.layout.chunk_extent(index)
    few = saved * math.prod(part.stop - part.start for part in slices) <= math.prod(shape)
    if not (few and stored.decodes_in_parts and type(stored.codec).part is not Codec.part):
        return None
    frame = stored.frame(index, lazy=(CODE,))
    known = {CODE, FIX} | INFORMATIVE
    if CODE not in frame.sections or not set(frame.sections) <= known or frame.shape != shape:
        return None
    try:
        part = stored.codec.part(frame.sections[CODE], shape, stored.layout.dtype, slices)
        if part is None or FIX not in frame.sections:
            return part
        whole = np.zeros(shape, stored.layout.dtype)   # corrections name places in the whole chunk
        whole[slices] = part
        return apply_correction(whole, bytes(frame.sections[FIX]))[slices]
    except WorkbenchError as error:
        raise Damaged(stored.layout.chunk_key(index), str(error)) from error


def _intervals(low: float, high: float, length: float | None) -> list[tuple[float, float]]:
    """An interval as one or two intervals inside the periodic box."""
    if length is None:
        return [(low, high)]
    if high - low >= length:
        return [(0.0, length)]
    start, stop = (_wrapped(end, length) for end in (low, high))   # separately, so that touching regions still touch
    if start < stop or (start == stop and high - low < length / 2):   # equal after rounding: nearly empty, or nearly full
        return [(start, stop)]
    return [(start, length), (0.0, stop)]


def _wrapped(end: float, length: float) -> float:
    """The periodic image of an end inside the box. Rounding can give the upper face itself, which is kept."""
    return min(max(end - math.floor(end / length) * length, 0.0), length)


def _stretches(positions: StoredArray, index: Index, wanted: Sequence[Cuboid]) -> Stretches | None:
    """Key ranges of a chunk that cover the cuboids; None where only the whole chunk can be decoded."""
    try:
        blocks = blocks_of(positions, index)
        return None if blocks is None else blocks.stretches(wanted)
    except (CodecFailed, OverflowError) as error:   # extents can be forged, too
        raise Damaged(positions.layout.chunk_key(index), str(error)) from error


def blocks_of(positions: StoredArray, index: Index) -> Blocks | None:
    """A chunk as blocks that can be decoded alone; None where only the whole chunk can be decoded."""
    codec = positions.codec
    if not isinstance(codec, ParticleCodec) or not codec.in_blocks or not positions.decodes_in_parts:
        return None   # blocks have checksums of their bytes, but not of their values: whole chunks are compared
    return positions.opened.get(index) or _blocks(positions, codec, index)


def _blocks(positions: StoredArray, codec: ParticleCodec, index: Index) -> Blocks | None:
    """A chunk as blocks, cached because regions are often read one after another."""
    frame = positions.frame(index, lazy=(CODE,))
    if CODE not in frame.sections or not set(frame.sections) - {CODE} <= INFORMATIVE:   # corrections are of a whole chunk
        return None
    blocks = codec.blocks(frame.sections[CODE], frame.shape)
    if blocks is not None:
        remember(positions.opened, index, blocks)
    return blocks


def _lattice_of(stretch: tuple[Stretches, int]) -> Lattice:
    return stretch[0].lattice


def _along_curve(
    stretches: Sequence[tuple[Stretches, int]], dtype: np.dtype, wanted: Sequence[Cuboid]
) -> tuple[np.ndarray, np.ndarray]:
    """The positions in the cuboids and their indices, from key ranges of one lattice and the start of each chunk."""
    found = [one for one, _ in stretches]
    keys, low = np.concatenate([one.keys for one in found]), np.concatenate([one.low for one in found])
    values = found[0].lattice.positions(keys, low, dtype)
    sizes = np.concatenate([one.sizes for one in found])
    ahead = np.concatenate([one.starts + start for one, start in stretches]) - (np.cumsum(sizes) - sizes)
    chosen = np.flatnonzero(inside(values, wanted)).astype(np.int32)
    return gather_rows(values, chosen), np.repeat(ahead, sizes)[chosen] + chosen
