"""Exact sums of lattice numbers from the metadata of staged blocks alone, and whether these are true.

The sums are of integers, so they are exact, for any number of blocks and in any order. The intervals that follow from them
are in `archive/statistics/sums.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.codecs.staged_blocks import Fact, Grid
from workbench.codecs.staged_stream import Stream


@dataclass(frozen=True, slots=True)
class Totals:
    """The number of valid cells, and exact sums and extremes of their lattice numbers; the extremes of none are None."""

    count: int
    sum: int
    squares: int
    low: int | None
    high: int | None


NOTHING = Totals(0, 0, 0, None, None)


def totals(stream: Stream, chosen: np.ndarray | None = None) -> Totals:
    """The totals of these blocks, or of all."""
    facts = stream.facts if chosen is None else stream.facts[:, chosen]
    count, base = facts[Fact.COUNT], facts[Fact.BASE]
    there = count > 0
    if not there.any():
        return NOTHING
    if stream.lattice.wide:
        count, base = count.astype(object), base.astype(object)
    squares = facts[Fact.SQUARES] if not stream.lattice.wide else _joined(facts[Fact.SQUARES_ABOVE], facts[Fact.SQUARES])
    sums = facts[Fact.SUM].astype(base.dtype)
    total, cells = exact_sum(sums + count * base), int(facts[Fact.COUNT].sum())
    total_squares = exact_sum(squares + 2 * base * sums + count * base * base)
    offset = stream.lattice.offset   # sums less the offset fit into 64 bits, so it is added last
    low, high = ((facts[fact] + facts[Fact.BASE])[there] for fact in (Fact.LOW, Fact.HIGH))
    return Totals(
        cells, total + cells * offset, total_squares + 2 * offset * total + cells * offset**2,
        int(low.min()) + offset, int(high.max()) + offset,
    )


def first_wrong(stream: Stream, decoded: np.ndarray, valid: np.ndarray, sound: np.ndarray) -> int | None:
    """The first block whose metadata are not those of its numbers, or whose numbers do not give its sound values, if any.

    A proven interval rests on both: the values were compared with the original, the numbers and their sums were not.
    """
    grid, facts = stream.grid, stream.facts
    numbers = np.asarray(stream.blocks(np.arange(grid.blocks)).numbers(grid.whole)).reshape(grid.size)
    given = (numbers.astype(np.float64) * stream.lattice.step).astype(decoded.dtype)
    other = (given != decoded.reshape(grid.size)) & (valid & sound).reshape(grid.size)
    numbers, there, other = (_by_blocks(array, grid) for array in (numbers, valid.reshape(grid.size), other))
    relative = np.where(there, numbers - stream.lattice.offset - facts[Fact.BASE][:, None], 0)
    count, most = there.sum(axis=1), np.iinfo(np.int64).max
    low, high = np.where(there, relative, most).min(axis=1), np.where(there, relative, -most).max(axis=1)
    exact = relative.astype(object) if stream.lattice.wide else relative
    squares = (exact * exact).sum(axis=1)
    stated = _joined(facts[Fact.SQUARES_ABOVE], facts[Fact.SQUARES]) if stream.lattice.wide else facts[Fact.SQUARES]
    some = count > 0
    wrong = other.any(axis=1) | (count != facts[Fact.COUNT]) | (
        some & ((relative.sum(axis=1) != facts[Fact.SUM]) | (squares != stated).astype(bool))
    ) | (some & ((low != facts[Fact.LOW]) | (high != facts[Fact.HIGH])))
    return int(np.argmax(wrong)) if wrong.any() else None


def _by_blocks(cells: np.ndarray, grid: Grid) -> np.ndarray:
    """The cells of each block in a row, zero beyond the grid."""
    sides = (1, *grid.sides)
    padding = [(0, count * side - size) for count, side, size in zip(grid.counts, sides, grid.size, strict=True)]
    split = [n for pair in zip(grid.counts, sides, strict=True) for n in pair]
    return np.pad(cells, padding).reshape(split).transpose(0, 2, 4, 6, 1, 3, 5, 7).reshape(grid.blocks, -1)


def means(stream: Stream) -> np.ndarray:
    """The mean of each block, NaN where no cell is valid: a coarse picture, shaped as the blocks are."""
    count, sums = stream.facts[Fact.COUNT], stream.facts[Fact.SUM]
    with np.errstate(invalid="ignore", divide="ignore"):
        numbers = stream.facts[Fact.BASE] + stream.lattice.offset + sums / count
    return np.where(count > 0, numbers * stream.lattice.step, np.nan).reshape(stream.grid.counts)


def exact_sum(numbers: np.ndarray) -> int:
    """The sum of integers (int64, or Python's), which may need more than 64 bits.

    >>> exact_sum(np.full(4, 2**62))
    18446744073709551616
    """
    if numbers.dtype == object:
        return int(numbers.sum())
    above, below = numbers >> 32, numbers & 0xFFFFFFFF
    return (int(above.sum()) << 32) + int(below.sum())


def _joined(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Numbers of 128 bits from their halves, as Python's integers."""
    return (above.astype(object) << 64) + below.view(np.uint64).astype(object)
