"""A coarse view of an archived field: the mean of each block, with a bound for the original data.

The codec `staged` keeps the sum and the number of valid cells of its blocks, so that no value is decoded where the wanted
blocks are made of these. Of other codecs, and of chunks with corrected values, values are decoded one chunk after the
other. Blocks begin anew in each chunk, as those of the codec do.

A mean differs from that of the original values by at most the mean of their errors. Rounding is at most so many units of
the largest size as there are operations: 16 for a block of the codec, one for each number that is added.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.archive.layout import ArrayLayout
from workbench.archive.statistics.chunk_parts import ChunkPart, FieldPart
from workbench.archive.statistics.figure import FieldStatistic
from workbench.archive.statistics.moments import Bounded
from workbench.archive.statistics.operators import share_of_decoded
from workbench.archive.statistics.selection import part_of_grid
from workbench.arguments import whole_number
from workbench.codecs.staged import Staged
from workbench.codecs.staged_blocks import Fact, Grid
from workbench.codecs.staged_statistics import means
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit
from workbench.rounding import ABOVE

if TYPE_CHECKING:
    from workbench.archive.archive import Archive

SIDE = 8          # of blocks where the codec has none
UNIT = 2.0**-52   # twice the share that one rounding changes
ROUNDINGS = 16    # from the facts of a block to its mean

Sides = int | Sequence[int] | None


@dataclass(frozen=True, eq=False, repr=False)
class BlockMeans(FieldStatistic):
    """The means of the blocks of a field; a block without a valid cell is NaN.

    Block k along an axis has the grid points from `edges[axis][k]` up to the next edge.
    """

    sides: tuple[int, ...]           # of a block along each axis
    edges: tuple[np.ndarray, ...]    # where blocks begin along each axis, and the end of the grid


def block_means(archive: Archive, sides: Sides = None) -> BlockMeans:
    """The means of blocks with these sides: by default, of the blocks of the codec, or 8 along each axis.

    >>> import workbench as wb
    >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "staged")
    >>> blocks = block_means(archive, 32)
    >>> blocks.values.round(3).tolist(), blocks.sides, blocks.edges[0].tolist()
    ([[0.246, 0.254], [0.746, 0.754]], (32, 32), [0, 32, 64])
    """
    field = FieldPart(archive, part_of_grid(archive, None))
    layout, promise = field.stored.layout, archive.certificate[field.stored.layout.name]
    chosen = _sides(archive, sides)
    edges = _edges(layout, chosen)
    steps = [-(-size // side) for size, side in zip(layout.chunk_shape, chosen, strict=True)]
    values, bounds = (np.full([len(each) - 1 for each in edges], np.nan) for _ in range(2))
    for index, (averages, errors) in zip(field.indices, field.each(functools.partial(_of_chunk, chosen)), strict=True):
        into = tuple(
            slice(at * step, at * step + count) for at, step, count in zip(index, steps, averages.shape, strict=True)
        )
        values[into], bounds[into] = averages, errors
    missing, equal = int(np.isnan(values).sum()), isinstance(promise.limit, Limit) and not promise.limit.relative
    equal = (equal or promise.limit is None) and missing < values.size and not np.isinf(values).any()
    return BlockMeans(
        "block means", values, float(np.nanmax(bounds)) if equal else bounds, *field.reading, missing, chosen, edges
    )


def _of_chunk(sides: Sequence[int], part: ChunkPart) -> Bounded:
    """The means of the blocks of a chunk, and their bounds."""
    return _from_metadata(part, sides) or _from_values(part, sides)


def _sides(archive: Archive, given: Sides) -> tuple[int, ...]:
    """The sides of blocks along each axis."""
    layout, codec = archive.data.layout, archive.codec
    count, shape = len(layout.shape), layout.chunk_shape
    if given is None:
        if not isinstance(codec, Staged):
            return (SIDE,) * count
        logs: Any = None if codec.sides is None else tuple(side.bit_length() - 1 for side in codec.sides)
        return Grid.of(shape, logs).sides_along(shape) or (SIDE,) * count
    several = list(given) if isinstance(given, list | tuple) else [given] * count
    if len(several) != count:
        raise WorkbenchError(f"sides must be one number, or one for each of {count} axes; got {given!r}")
    return tuple(whole_number("the side of a block", side, least=1) for side in several)


def _edges(layout: ArrayLayout, sides: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Where blocks begin along each axis, and the end."""
    return tuple(
        np.array([*itertools.chain(*(range(at, min(at + step, size), side) for at in range(0, size, step))), size])
        for size, step, side in zip(layout.shape, layout.chunk_shape, sides, strict=True)
    )


def _from_metadata(part: ChunkPart, sides: Sequence[int]) -> Bounded | None:
    """The means of a chunk from the facts of its blocks; None where values must be decoded."""
    chunk, limit = part.staged, part.limit
    if chunk is None or limit is None or limit.relative:
        return None
    stream, dtype = chunk.stream, chunk.dtype
    own = stream.grid.sides_along(chunk.shape)
    if own is None or any(side % each for side, each in zip(sides, own, strict=True)):
        return None
    if chunk.corrected_blocks().size:   # of which the lattice says nothing
        return None
    facts, step = stream.facts, stream.lattice.step
    numbers = facts[Fact.BASE] + stream.lattice.offset
    largest = step * float(np.abs([numbers, numbers + facts[Fact.LOW], numbers + facts[Fact.HIGH]]).max())
    share, least = (2.0**-23, 2.0**-148) if dtype == np.float32 else (UNIT, 2.0**-1070)   # of the values, as decoded
    off = limit.value + share * largest + least
    counts = [-(-size // side) for size, side in zip(chunk.shape, own, strict=True)]
    averages, count = means(stream).reshape(counts), facts[Fact.COUNT].reshape(counts)
    ratio = [side // each for side, each in zip(sides, own, strict=True)]
    roundings = ROUNDINGS
    if max(ratio) > 1:
        sums, count = (_summed(array, ratio) for array in (np.where(count > 0, averages * count, 0.0), count))
        averages, roundings = _over(sums, count), ROUNDINGS + math.prod(ratio)
    bounds = np.where(count > 0, (off + roundings * UNIT * largest) * ABOVE, np.nan)
    return averages, bounds


def _from_values(part: ChunkPart, sides: Sequence[int]) -> Bounded:
    """The means of a chunk from its values."""
    limit, (given, known) = part.limit, part.whole()
    values, valid = given.astype(np.float64), np.ones(given.shape, bool) if known is None else known
    values[~valid] = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        count = _summed(valid.astype(np.int64), sides)
        averages = _over(_summed(values, sides), count)
        averages[np.isnan(averages) & (count > 0)] = np.inf   # sums of both signs beyond all numbers
        size = _over(_summed(np.abs(values), sides), count)
        error = 0.0 if limit is None else share_of_decoded(limit.value) * size if limit.relative else limit.value
        bounds = (error + (count + 2) * UNIT * size + 2.0**-1070) * ABOVE
    return averages, np.where(np.isinf(averages), np.inf, np.where(count > 0, bounds, np.nan))


def _summed(array: np.ndarray, sides: Sequence[int]) -> np.ndarray:
    """The sums of blocks with these sides."""
    for axis, side in enumerate(sides):
        if side > 1:
            array = np.add.reduceat(array, np.arange(0, array.shape[axis], side), axis=axis)
    return array


def _over(sums: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Means; NaN where nothing counts."""
    return np.divide(sums, count, out=np.full(sums.shape, np.nan), where=count > 0)
