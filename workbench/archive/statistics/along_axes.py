"""Statistics along axes, such as zonal and time means, and weighted ones: arrays, or numbers, with bounds.

Chunks are decoded one by one, and only sums are kept. Where blocks of the codec `staged` have one place along each kept
axis, as those of planes have along time, the metadata of blocks answer instead: a sum for each place (`by_place.py`).
"""

from __future__ import annotations

import math
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
    axes, field = axes_of(archive, axis), FieldPart(archive, part_of_grid(archive, region))
    kept = kept_shape(field.shape, axes)
    archive.data.trust.require_room(8 * ARRAYS * math.prod(kept), f"the {name} along {len(axes)} axes")
    given = weights_of(archive, name, weights)
    if given is None and has_places(field, axes):
        values, bounds = by_place(field, name, axes, kept)
    else:
        values, bounds = moments(field, name, axes, given).result()
    shape = [size for number, size in enumerate(field.shape) if number not in axes]
    values, bounds = values.reshape(shape), bounds.reshape(shape)
    return FieldStatistic(name, values, bounds, *field.reading, int(np.isnan(values).sum()))


def weighted(archive: Archive, name: str, region: Any, weights: Any) -> Statistic:
    """A weighted statistic of all values of a region."""
    field, given = FieldPart(archive, part_of_grid(archive, region)), weights_of(archive, name, weights)
    sums = moments(field, name, tuple(range(len(field.shape))), given)
    values, bounds = sums.result()
    count = int(sums.arrays["count"].sum())
    if np.isnan(values).any():
        raise WorkbenchError(
            "a weighted statistic needs at least one valid value with a positive weight; got none: other cells are masked, "
            "not finite, or have no weight"
        )
    return Statistic(name, values.item(), bounds.item(), *field.reading, count, field.cells - count)


def moments(field: FieldPart, name: str, axes: tuple[int, ...], weights: Weights | None) -> Moments:
    """The sums of a region along axes."""
    sums = Moments(name, kept_shape(field.shape, axes), axes)

    def work(part: ChunkPart) -> tuple[ChunkPart, np.ndarray, np.ndarray | None]:
        return part, *part.whole()

    for part, values, valid in field.each(work):
        factor = None if weights is None else weights.at(part.in_grid)
        sums.add(part.in_region, values, valid, part.limit, factor)
    return sums
