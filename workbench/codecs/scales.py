"""The scales of numbers without neighbours: of rows, columns and runs of them, and which of these are worth their bits.

Where neighbours do not predict a number, they still tell how large it is: rows of weights and channels of embeddings have
scales of their own, columns of a table also offsets, and zeros come in runs. Numbers are taken in segments of equal length
and in columns; the product of both scales is that of a number. Which segments and columns pay is estimated, on a sample,
from the entropy of geometric distributions with these scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench import backend

LOWEST = backend.constant("scaled.cu", "LOWEST")
HIGHEST = 255            # of the levels
GAP = np.iinfo(np.int64).min   # a number in place of a missing one
SEGMENTS = (16, 64, 256)   # lengths that are tried beside those of rows, and none
TRIED = 2**16            # numbers, with which segments and columns are chosen,
TRIED_RUN = 2**12        # at least so many of them in a row, where rows are too long
LEAST_IN_COLUMN = 16     # numbers for which a scale of its own may pay
SMALL = 2**14            # or fewer numbers are always tried with a single scale, too
WORTH = 0.99             # of the estimate for a single scale, at which more of them are tried
NEARLY, DOUBT = 1.03, 0.1   # times and bits by which estimates may exceed what another coder takes
SIDE_BITS = 2            # that a scale takes beside its entropy, about,
FEW_SEGMENTS = 256       # if there are no more than these: many are coded by pcodec, and few deflated
FEW_ROWS = 256           # that offsets are estimated from
CLEAR = 0.25             # of the mean magnitude, from which on an offset is stored


@dataclass(frozen=True)
class Layout:
    """How many numbers have a scale in common: those of a segment, and those of a column; whether columns have offsets."""

    segment: int
    columns: int
    centred: bool = True

    @property
    def uncentred(self) -> Layout:
        """The same without offsets: equal numbers then have the same meaning in all columns, such as pixels."""
        return replace(self, centred=False)


@dataclass(frozen=True, eq=False)
class Scales:
    """The levels (4 log2 of mean magnitudes) of segments and of columns, which add up, and the offsets of columns."""

    layout: Layout
    of_segment: np.ndarray   # int32
    of_column: np.ndarray    # int32
    offset: np.ndarray       # int64

    @classmethod
    def of(cls, numbers: np.ndarray, layout: Layout) -> Scales:
        """The scales of these numbers (int64, one axis); columns fit into them, and gaps count as zeros."""
        table = numbers.reshape(-1, layout.columns)
        offset = _offsets(table) if layout.centred else np.zeros(layout.columns, np.int64)
        sizes = _sizes(table, offset).reshape(-1)
        of_column = np.zeros(layout.columns, np.int32)
        of_segment = _levels_of_segments(sizes, layout.segment)
        if layout.columns > 1:
            within = _over(sizes, _repeated(of_segment, layout.segment, len(sizes)))
            of_column = _levels(within.reshape(table.shape).mean(axis=0), len(table))
            of_segment = _levels_of_segments(_over(sizes, of_column), layout.segment)
        return cls(layout, of_segment, of_column, offset)

    def levels(self, count: int) -> np.ndarray:
        """The level of each number."""
        rows = _repeated(self.of_segment, self.layout.segment, count).reshape(-1, self.layout.columns)
        return (rows + self.of_column).reshape(-1)

    @property
    def arguments(self) -> dict[str, Any]:
        """These as arguments of kernels."""
        return {
            "segment": self.layout.segment, "columns": self.layout.columns, "of_segment": self.of_segment,
            "of_column": self.of_column, "offset": self.offset,
        }


def _offsets(table: np.ndarray) -> np.ndarray:
    """A middle value of each column, or zero where it is small beside the magnitudes about it."""
    few = table[:: max(len(table) // FEW_ROWS, 1)]
    there = few != GAP
    counts = there.sum(axis=0)
    ordered = np.sort(np.where(there, few, np.iinfo(np.int64).max), axis=0)
    middle = np.where(counts, np.take_along_axis(ordered, counts[None] // 2 % len(few), axis=0)[0], 0)
    spread = _sizes(few, middle).sum(axis=0) / np.maximum(counts, 1)
    return np.where(np.abs(middle.astype(np.float64)) > CLEAR * spread, middle, 0)


def _sizes(table: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """The distances of numbers from the offsets of their columns; none for gaps."""
    sizes = np.abs((table - offset).astype(np.float64))
    sizes[table == GAP] = 0.0
    return sizes


def _levels(means: np.ndarray, count: Any) -> np.ndarray:
    """The levels of these mean magnitudes, each of so many numbers: zero is less certain of few."""
    return np.clip(np.rint(4 * np.log2(means + 0.02 / count)), LOWEST, HIGHEST).astype(np.int32)


def _levels_of_segments(sizes: np.ndarray, segment: int) -> np.ndarray:
    begin = np.arange(0, len(sizes), segment)
    count = np.diff(begin, append=len(sizes))
    return _levels(np.add.reduceat(sizes, begin) / count, count)


def _over(sizes: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Magnitudes over those of these levels, which repeat."""
    return (sizes.reshape(-1, len(levels)) * np.exp2(levels / -4.0)).reshape(-1)


def _repeated(of_segment: np.ndarray, segment: int, count: int) -> np.ndarray:
    return np.repeat(of_segment, segment)[:count]


def layouts(shape: Sequence[int]) -> list[Layout]:
    """The layouts that are tried for numbers of this shape; the first has a single scale.

    >>> [(layout.segment, layout.columns) for layout in layouts((100, 64))][:5]
    [(6400, 1), (16, 1), (64, 1), (256, 1), (16, 64)]
    """
    count = int(np.prod(shape, dtype=np.int64))
    inner = {int(np.prod(shape[axis:], dtype=np.int64)) for axis in range(1, len(shape))}
    rows = sorted({count, *SEGMENTS, *inner} - {1})
    columns = sorted({1, *(row for row in inner if row * LEAST_IN_COLUMN <= count)})
    found = [Layout(row, column) for column in columns for row in rows if row <= count]
    single = Layout(count, 1)
    return [single, *(layout for layout in found if layout != single)]


def promising(numbers: np.ndarray, most: float) -> Layout | None:
    """The layout with which these numbers should take the fewest bits; None where that is hardly below `most` for each.

    Of many numbers, that is so where no more than one scale pays.
    """
    part, shape = _part(numbers)
    tried = layouts(shape)
    bits = [_expected_bits(part, layout, part.size / numbers.size) for layout in tried]
    best = int(np.argmin(bits))
    if bits[best] > (NEARLY * most + DOUBT) * part.size or (bits[best] > WORTH * bits[0] and numbers.size > SMALL):
        return None
    chosen = tried[best]
    return Layout(numbers.size, chosen.columns) if chosen.segment == part.size else chosen


def _part(numbers: np.ndarray) -> tuple[np.ndarray, tuple[int, ...]]:
    """A sample and its shape: rows from all over the numbers, or where rows are too long, runs."""
    row = numbers[0].size
    if numbers.size <= TRIED:
        part = numbers
    elif numbers.ndim > 1 and row * LEAST_IN_COLUMN <= TRIED:
        part = numbers[_evenly(len(numbers), TRIED // row)]
    else:
        runs = numbers.reshape(-1)[: numbers.size // TRIED_RUN * TRIED_RUN].reshape(-1, TRIED_RUN)
        part = runs[_evenly(len(runs), TRIED // TRIED_RUN)].reshape(-1)
    return part.reshape(-1).astype(np.int64), part.shape


def _evenly(count: int, most: int) -> np.ndarray:
    """At most so many places among so many."""
    return np.linspace(0, count - 1, min(most, count)).astype(np.int64)


def _expected_bits(numbers: np.ndarray, layout: Layout, share: float) -> float:
    """The bits that geometric distributions with these scales take, with the scales; columns are of more numbers."""
    scales = Scales.of(numbers, layout)
    counts = np.bincount(np.clip(scales.levels(len(numbers)) - LOWEST, 0, HIGHEST))
    mean = np.exp2((np.arange(len(counts)) + LOWEST) / 4.0)
    each = (1 + mean) * np.log2(1 + mean) - mean * np.log2(mean) + mean / (1 + mean)
    return float(counts @ each) + _bits_of(scales.of_segment) + share * _bits_of(scales.of_column)


def _bits_of(levels: np.ndarray) -> float:
    """About how many bits these levels take."""
    counts = np.bincount(levels - levels.min())
    return SIDE_BITS * min(len(levels), FEW_SEGMENTS) + float(counts @ np.log2(len(levels) / np.maximum(counts, 1)))
