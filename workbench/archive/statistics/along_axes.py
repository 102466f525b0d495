"""Statistics along axes, such as zonal and time means, and weighted ones: arrays, or numbers, with bounds.

Chunks are decoded one by one, and only sums are kept. Where blocks of the codec `staged` have one place along each kept
axis, as those of planes have along time, the metadata of blocks answer instead: a sum for each place (`by_place.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.archive.statistics.by_place import by_place, has_places
from workbench.archive.statistics.chunk_parts import ChunkPart, FieldPart
from workbench.archive.statistics.figure import FieldStatistic, Statistic
from workbench.archive.statistics.moments import Moments, kept_shape
from workbench.archive.statistics.reductions import statistic
from workbench.archive.statistics.selection import are_names, axes_of, part_of_grid
from workbench.archive.statistics.weights import Weights, weights_of
from workbench.errors import WorkbenchError
from workbench.run.executors import Executor
from workbench.slabs import Slices

if TYPE_CHECKING:
    from workbench.archive.archive import Archive

ARRAYS = 12   # float64, of the shape of the result


def reduced(archive: Archive, name: str, region: Any, axis: Any, weights: Any = None) -> Statistic | FieldStatistic:
    """A statistic of all values of a region, or along axes; names of dimensions may stand in the place of a region."""
    if axis is None and region is not None and (are_names(region) or isinstance(region, int)):
        region, axis = None, region
    if axis is not None:
        return along_axes(archive, name, axis, region, weights)
    return statistic(archive, name, region) if weights is None else weighted(archive, name, region, weights)


def along_axes(archive: Archive, name: str, axis: Any, region: Any = None, weights: Any = None) -> FieldStatistic:
    """A statistic along axes: an array over the other ones.

    >>> import workbench as wb
    >>> archive = wb.compress(np.tile(np.arange(30.0), (40, 1)), wb.Absolute(1e-3))
    >>> bool(np.abs(along_axes(archive, "mean", axis=0).values - np.arange(30)).max() <= 0.001)
    True
    """
    axes_of(archive, axis)   # refuses wrong axes before wrong weights
    return several_along_axes(archive, [name], axis, region, weights_of(archive, name, weights))[0]


def several_along_axes(
    archive: Archive, names: Sequence[str], axis: Any, region: Any = None, weights: Weights | None = None,
    executor: Executor | None = None,
) -> list[FieldStatistic]:
    """Several statistics along axes, from one pass."""
    axes, field = axes_of(archive, axis), FieldPart(archive, part_of_grid(archive, region), executor)
    kept = kept_shape(field.shape, axes)
    archive.data.trust.require_room(8 * ARRAYS * len(names) * math.prod(kept), f"statistics along {len(axes)} axes")
    if weights is None and has_places(field, axes):
        answers = by_place(field, names, axes, kept)
    else:
        answers = [each.result() for each in moments(field, names, axes, weights)]
    shape = [size for number, size in enumerate(field.shape) if number not in axes]
    return [
        FieldStatistic(name, values.reshape(shape), bounds.reshape(shape), *field.reading, int(np.isnan(values).sum()))
        for name, (values, bounds) in zip(names, answers, strict=True)
    ]


def weighted(archive: Archive, name: str, region: Any, weights: Any) -> Statistic:
    """A weighted statistic of all values of a region."""
    field, given = FieldPart(archive, part_of_grid(archive, region)), weights_of(archive, name, weights)
    (sums,) = moments(field, [name], tuple(range(len(field.shape))), given)
    values, bounds = sums.result()
    count = int(sums.arrays["count"].sum())
    if np.isnan(values).any():
        raise WorkbenchError(
            "a weighted statistic needs at least one valid value with a positive weight; got none: other cells are masked, "
            "not finite, or have no weight"
        )
    return Statistic(name, values.item(), bounds.item(), *field.reading, count, field.cells - count)


def moments(field: FieldPart, names: Sequence[str], axes: tuple[int, ...], weights: Weights | None) -> list[Moments]:
    """The sums of a region along axes, for each of some statistics."""
    sums = [Moments(name, kept_shape(field.shape, axes), axes) for name in names]
    for into, several in field.each(functools.partial(_of_chunk, names, axes, weights)):
        for one, more in zip(sums, several, strict=True):
            one.join(more, into)
    return sums


def _of_chunk(
    names: Sequence[str], axes: tuple[int, ...], weights: Weights | None, part: ChunkPart
) -> tuple[Slices, list[Moments]]:
    """Where a chunk is in the region, and its sums."""
    values, valid = part.whole()
    factor = None if weights is None else weights.at(part.in_grid)
    return part.in_region, [Moments.of(name, axes, values, valid, part.limit, factor) for name in names]
