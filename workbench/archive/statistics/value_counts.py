"""How many original values are in bins or beyond thresholds: certainly, and possibly.

An original value is somewhere in the interval of its decoded one. Where that is inside a bin, the value is in the bin for
certain; where it only touches the bin, possibly. Ranges of values that no cut divides are counted from their metadata.
"""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from workbench.archive.statistics.answer import Answer
from workbench.archive.statistics.chunk_parts import ChunkPart, FieldPart
from workbench.archive.statistics.envelopes import Cut
from workbench.errors import WorkbenchError, briefly
from workbench.guarantees import Limit

MOST_BINS = 2**16
LARGEST = sys.float_info.max


@dataclass(frozen=True)
class Bin:
    """Numbers from `start` on, or above it if `open`, to below `stop`, which is in the bin if `closed`."""

    start: Fraction | float
    stop: Fraction | float
    open: bool = False
    closed: bool = False


@dataclass(frozen=True)
class Count(Answer):
    """How many original values there are of a kind: from `low` to `high`, which is proven; of the decoded ones, `value`.

    >>> print(Count(7, 5, 9, "values", 100, 2000, 512, 0))
    7 (5 to 9)
    """

    value: int
    low: int
    high: int
    stage: str           # what had to be decoded
    bytes_read: int      # of the chunks: those that the answer was computed from
    bytes_stored: int    # of all chunks of the values and of their mask
    count: int           # valid values
    missing: int         # cells that do not count: masked, NaN or infinite

    def __str__(self) -> str:
        return f"{self.value:,}" if self.low == self.high else f"{self.value:,} ({self.low:,} to {self.high:,})"

    @property
    def _line(self) -> str:
        return f"count: {self}"


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Answer):
    """How many original values each bin has: from `low` to `high`, which is proven; of the decoded ones, `values`.

    A bin has its lower edge, and the last one its upper edge, too, as in NumPy.
    """

    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    edges: np.ndarray
    stage: str
    bytes_read: int
    bytes_stored: int
    count: int
    missing: int

    def __repr__(self) -> str:
        return (
            f"Histogram({len(self.values):,} bins from {self.edges[0]:g} to {self.edges[-1]:g}, {self.values.sum():,} of "
            f"{self.count:,} values, from {self.stage}, {self.bytes_read:,} of {self.bytes_stored:,} bytes read)"
        )


def count_between(field: FieldPart, above: float | None, below: float | None) -> Count:
    """How many values are above one number and below another."""
    if above is None and below is None:
        raise WorkbenchError("count takes above=, below= or both; got neither: mean().count is the number of valid values")
    start, stop = _edge("above", above, -math.inf), _edge("below", below, math.inf)
    if start >= stop:
        raise WorkbenchError(f"above must be less than below; got {above!r} and {below!r}")
    (value,), (low,), (high,), count = _counted(field, [Bin(start, stop, open=True)])
    return Count(int(value), int(low), int(high), *field.reading, count, field.cells - count)


def histogram_of(field: FieldPart, edges: np.ndarray) -> Histogram:
    """How many values each bin between these edges has."""
    ends = [Fraction(edge) for edge in edges.tolist()]
    pairs = list(itertools.pairwise(ends))
    bins = [Bin(start, stop, closed=number == len(pairs)) for number, (start, stop) in enumerate(pairs, start=1)]
    values, low, high, count = _counted(field, bins)
    return Histogram(values, low, high, edges, *field.reading, count, field.cells - count)


def edges_of(bins: Any, ends: tuple[float, float] | None) -> np.ndarray:
    """The edges of bins: as given, or so many equal ones between two ends.

    >>> edges_of(4, (0, 2)).tolist()
    [0.0, 0.5, 1.0, 1.5, 2.0]
    """
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        if not 1 <= bins <= MOST_BINS:
            raise WorkbenchError(f"bins must be 1 to {MOST_BINS:,}, or edges; got {bins}")
        edges = _equal_bins(int(bins), ends)
    else:
        try:
            edges = np.asarray(bins, np.float64)
        except (TypeError, ValueError):
            raise WorkbenchError(f"bins must be a number, or increasing edges; got {briefly(bins)}") from None
    rising = edges.ndim == 1 and 2 <= edges.size <= MOST_BINS + 1 and bool((edges[1:] > edges[:-1]).all())
    if not rising or not np.isfinite(edges).all():
        got = f"{briefly(bins)}, range {briefly(ends)}"
        raise WorkbenchError(f"the edges of bins must be finite and increase; got bins {got}")
    return edges


def _equal_bins(count: int, ends: Any) -> np.ndarray:
    """The edges of bins of one width; around a single number as in NumPy, or as wide as numbers of its size need."""
    try:
        start, stop = map(float, ends)
    except (TypeError, ValueError, OverflowError):
        raise WorkbenchError(f"range must be two numbers; got {briefly(ends)}") from None
    if not (math.isfinite(start) and math.isfinite(stop) and start <= stop):
        raise WorkbenchError(f"range must be two finite numbers, the lower one first; got {briefly(ends)}")
    if start == stop:
        half = max(0.5, abs(start) * count * 2.0**-52)
        start, stop = max(start - half, -LARGEST), min(stop + half, LARGEST)
    unit = 4.0 if max(-start, stop) > 2.0**1000 else 1.0   # so that no difference is beyond all numbers
    edges = unit * np.linspace(start / unit, stop / unit, count + 1)
    if not (edges[1:] > edges[:-1]).all():
        raise WorkbenchError(
            f"{count:,} bins from {start!r} to {stop!r} are narrower than float64 resolves there: take fewer"
        )
    return edges


def _edge(name: str, given: float | None, otherwise: float) -> Fraction | float:
    if given is None:
        return otherwise
    try:
        return float(given) if math.isinf(given) else Fraction(float(given))
    except (TypeError, ValueError, OverflowError):
        raise WorkbenchError(f"{name} must be a number; got {briefly(given)}") from None


def _counted(field: FieldPart, bins: Sequence[Bin]) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """The number of decoded values in each bin, the least and the largest number of original ones, and of all values."""
    cuts = {limit: _cuts(bins, limit, field.stored.layout.dtype) for limit in set(field.limits.values())}
    totals = np.zeros((3, len(bins)), np.int64)
    count = 0
    for numbers, valid in field.each(functools.partial(_of_chunk, cuts)):
        totals += numbers
        count += valid
    return totals[0], totals[1], totals[2], count


def _cuts(bins: Sequence[Bin], limit: Limit | None, dtype: np.dtype) -> np.ndarray:
    """The cuts at which decoded values, and both ends of their intervals, enter and leave bins: 3 x 2 x bins."""
    kinds = (lambda edge, _, above: Cut(edge, above), Cut.of_low, Cut.of_high)
    rows = [
        [[kind(one.start, limit, one.open).in_type(dtype) for one in bins],
         [kind(one.stop, limit, one.closed).in_type(dtype) for one in bins]]
        for kind in kinds
    ]
    return np.array(rows, object)


def _of_chunk(cuts_of: Mapping[Limit | None, np.ndarray], part: ChunkPart) -> tuple[np.ndarray, int]:
    """The number of decoded values in each bin, of those that are there certainly and possibly; and of all values."""
    cuts = cuts_of[part.limit]
    beyond, count = _at_least(part, cuts.reshape(-1))
    value, low, high = beyond.reshape(cuts.shape)
    certain = np.where(low[0] >= high[1], low[0] - high[1], 0)   # else the interval is wider than the bin
    return np.stack([value[0] - value[1], certain, high[0] - low[1]]), count


def _at_least(part: ChunkPart, cuts: np.ndarray) -> tuple[np.ndarray, int]:
    """How many values are at least each cut, and how many there are."""
    ranges, dtype = part.ranges, part.ranges.low.dtype
    order = np.array(sorted({cut for cut in cuts if cut != math.inf}), dtype)
    first, last = (np.searchsorted(order, ends, "right") for ends in (ranges.low, ranges.high))
    whole = first == last
    cells = np.zeros(len(order) + 1, np.int64)
    np.add.at(cells, first[whole], ranges.count[whole])
    for values, counts in (part.of(~whole), (part.rest(), None)):
        between = np.searchsorted(order, values, "right")
        cells += np.bincount(between, counts, len(cells)).astype(np.int64)   # exact in float64, too
    from_here = np.append(np.cumsum(cells[::-1])[::-1][1:], 0)   # at least each cut, and infinity
    places = {cut: place for place, cut in enumerate(order.tolist())} | {math.inf: len(order)}
    return np.array([from_here[places[cut]] for cut in cuts], np.int64), int(cells.sum())
