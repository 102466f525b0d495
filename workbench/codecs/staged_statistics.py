"""Exact sums of lattice numbers from the metadata of staged blocks alone, and whether these are true.

The sums are of integers, so they are exact, for any number of blocks and in any order. The intervals that follow from them
are in `archive/statistics/sums.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs.staged_blocks import Fact
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


def first_wrong(stream: Stream, decoded: Array, valid: Array, sound: Array) -> int | None:
    """The first block whose metadata are not those of its numbers, or whose numbers do not give its sound values, if any.

    A proven interval rests on both: the values were compared with the original, the numbers and their sums were not. Values
    tell the numbers, unless some are not sound, or the lattice is too fine.
    """
    xp, grid, facts = backend.namespace(decoded), stream.grid, stream.facts
    given = not _told_by_values(stream, decoded.dtype) or bool((valid & ~sound).any())
    numbers = stream.blocks(np.arange(grid.blocks), xp).numbers(grid.whole) if given else xp.empty(0, xp.int64)
    agrees = xp.empty(grid.blocks, xp.uint8)
    backend.kernel("staged_check", "compare_sums", decoded.dtype)(
        grid.blocks, grid.described(xp), n=decoded.size, value=decoded.reshape(-1), given=int(given),
        number=numbers.reshape(-1), valid=valid.reshape(-1).view(xp.uint8), sound=sound.reshape(-1).view(xp.uint8),
        step=stream.lattice.step, offset=stream.lattice.offset, facts=xp.asarray(facts.reshape(-1)), agrees=agrees,
    )
    found = backend.to_host(agrees)
    return None if found.all() else int(np.argmin(found))


def _told_by_values(stream: Stream, dtype: np.dtype) -> bool:
    """Whether a value divided by the step is nearer to its lattice number than to any other, after all roundings."""
    facts, kind = stream.facts.astype(np.float64), np.finfo(dtype)
    ends = facts[Fact.BASE] + facts[[Fact.LOW, Fact.HIGH]] + stream.lattice.offset
    largest = float(np.abs(ends).max())
    return largest < 2.0 ** (kind.nmant - 2) and stream.lattice.step > 4 * float(kind.smallest_subnormal)


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
