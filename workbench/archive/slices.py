"""The limits of the slices of a field, from its values where bounds are relative; and a typical part of it, for trials."""

from __future__ import annotations

import functools

from workbench.archive import choice
from workbench.data import Field
from workbench.guarantees import Limit, Limits, PerSlice, SliceLimits
from workbench.guarantees.slice_ends import SliceEnds
from workbench.run.chunked_field import ChunkedField, grid, map_parts
from workbench.run.executors import Executor
from workbench.slabs import Slices


def limits_of_slices(bound: PerSlice, field: ChunkedField, executor: Executor) -> tuple[Limits, bool]:
    """The limit of each slice, and whether the field has masked values; it is read where that does not follow."""
    assert isinstance(bound.axis, int)   # since `for_data`
    axis, count = bound.axis, field.shape[bound.axis]
    if (whole := field.in_memory) is not None:
        ends = SliceEnds.of(whole.values, axis, whole.valid) if bound.needs_ranges else None
        return bound.limits(count, ends), whole.mask is not None
    if not (bound.needs_ranges or field.masks_itself):
        return bound.limits(count), field.mask is not None
    parts = map_parts(executor, "find-range", functools.partial(_ends, axis), field.chunk_shape, [field])
    ends = joined_ends(axis, field, [part for part, _ in parts])
    return bound.limits(count, ends), field.mask is not None or any(masked for _, masked in parts)


def joined_ends(axis: int, field: ChunkedField, parts: list[SliceEnds], shape: tuple[int, ...] | None = None) -> SliceEnds:
    """The ends of all slices, from those of all parts; of this shape, or that of the source."""
    starts = [place[axis].start for place in grid(field.shape, shape or field.chunk_shape)]
    return SliceEnds.joined(field.shape[axis], zip(starts, parts, strict=True))


def sample_of(shape: tuple[int, ...], limits: Limits) -> tuple[Slices, Limit]:
    """The middle of a field, and its limit; where slices have limits, the middle of a chunk whose limit is typical."""
    if not isinstance(limits, SliceLimits):
        return choice.middle(shape), limits
    axis, thickness = limits.axis, limits.thickness
    start = limits.typical // thickness * thickness
    size = min(thickness, shape[axis] - start)
    place = list(choice.middle((*shape[:axis], size, *shape[axis + 1 :])))
    place[axis] = slice(start + place[axis].start, start + place[axis].stop)
    return tuple(place), limits.at(tuple(place))


def _ends(axis: int, number: int, part: Field) -> tuple[SliceEnds, bool]:
    return SliceEnds.of(part.values, axis, None if part.mask is None else ~part.mask), part.mask is not None
