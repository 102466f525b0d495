"""Quantiles of original values, from order statistics of decoded ones.

Where each value moves by at most eb, so does each order statistic: the k-th smallest of lower ends is not above the k-th
smallest original value, nor is that of upper ends below it. A quantile is NumPy's `linear` one: of n values in order, the
number at h = q (n - 1), in proportion between those at its two sides.

A value of a rank is searched in passes. Each pass leaves brackets between which the wanted values are, from ranges: if each
value is replaced by the low end of its range, no order statistic rises. The blocks of `staged` are ranges; decoded values
become ranges of equal numbers. Values in brackets are collected as soon as they are few enough to be held.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from workbench.archive.statistics.chunk_parts import ChunkPart, FieldPart, Ranges
from workbench.archive.statistics.envelopes import lower, upper
from workbench.archive.statistics.sums import Ends, ends_within
from workbench.codecs.staged import Staged
from workbench.errors import WorkbenchError, briefly
from workbench.guarantees import Limit

MOST_HELD = 2**24   # values at once
PIECES = 256        # ranges into which the decoded values of a chunk are divided, for each rank

Pair = tuple[Any, Any]   # two numbers of NumPy between which a value is
Key = Callable[[np.ndarray, Limit | None], np.ndarray]   # a number for each value, which never falls with the value


def quantile_ends(field: FieldPart, shares: Sequence[Fraction]) -> tuple[list[Ends], int]:
    """Between which numbers each quantile of the original values is, and how many values there are."""
    same, limit = field.limit_of_all
    if same:
        search = _Search(field, _as_decoded)
        ranks = _ranks(shares, search.count)
        exact = search.of(ranks)
        ends = {rank: ends_within(Fraction(exact[rank]), limit) for rank in ranks}
        count = search.count
    else:
        searches = [_Search(field, end) for end in (lower, upper)]
        count = searches[0].count
        ranks = _ranks(shares, count)
        low, high = (search.of(ranks) for search in searches)
        ends = {rank: (Fraction(low[rank]), Fraction(high[rank])) for rank in ranks}
    return [_between(ends, share * (count - 1)) for share in shares], count


def shares_of(given: Any) -> list[Fraction]:
    """The shares of quantiles, exactly as their floats are.

    >>> shares_of([0, 0.5])
    [Fraction(0, 1), Fraction(1, 2)]
    """
    shares = list(given) if isinstance(given, list | tuple | np.ndarray) and np.ndim(given) else [given]
    try:
        exact = [Fraction(float(share)) for share in shares]
        if exact and all(0 <= share <= 1 for share in exact):
            return exact
    except (TypeError, ValueError, OverflowError):
        raise WorkbenchError(f"q must be numbers from 0 to 1; got {briefly(given)}") from None
    raise WorkbenchError(f"q must be one number from 0 to 1, or several; got {briefly(given)}")


def _ranks(shares: Sequence[Fraction], count: int) -> list[int]:
    """The ranks of which the values are needed."""
    if not count:
        raise WorkbenchError("statistics need at least one valid value; got none: all cells are masked or not finite")
    places = [share * (count - 1) for share in shares]
    return sorted({rank for place in places for rank in (int(place), -int(-place // 1))})


def _between(ends: dict[int, Ends], place: Fraction) -> Ends:
    """The ends at a place in the order, in proportion between its neighbours."""
    before, after = ends[int(place)], ends[-int(-place // 1)]
    weight = place - int(place)
    low, high = ((1 - weight) * one + weight * other for one, other in zip(before, after, strict=True))
    return low, high


@dataclass(frozen=True, eq=False)
class _Brackets:
    """Disjoint intervals of numbers, in order, with both of their ends."""

    start: np.ndarray
    stop: np.ndarray

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> _Brackets:
        """Intervals that may overlap, joined."""
        joined: list[list[Any]] = []
        for start, stop in sorted(set(pairs)):
            if joined and start <= joined[-1][1]:
                joined[-1][1] = max(joined[-1][1], stop)
            else:
                joined.append([start, stop])
        return cls(*(np.array(column) for column in zip(*joined, strict=True)))

    def places(self, values: np.ndarray) -> np.ndarray:
        """The gap (even) or the interval (odd) of each value, in order."""
        places: np.ndarray = np.searchsorted(self.start, values, "right") + np.searchsorted(self.stop, values, "left")
        return places

    def straddling(self, ranges: Ranges) -> np.ndarray:
        """Which ranges are not within one gap."""
        first, last = self.places(ranges.low), self.places(ranges.high)
        return (first != last) | (first % 2 == 1)

    def below(self, beside: np.ndarray, value: Any) -> int:
        """How many values in gaps are below the interval of a value; `beside` counts them by place."""
        return int(beside[: int(self.places(np.array([value]))[0]) : 2].sum())


class _Search:
    """The values of wanted ranks, by passes over chunks."""

    def __init__(self, field: FieldPart, key: Key) -> None:
        self.field, self.key = field, key
        self._values: np.ndarray | None = None
        if field.cells <= MOST_HELD and not isinstance(field.stored.codec, Staged):
            self._values = np.concatenate(list(field.each(functools.partial(_rest, key))))
            self.count = len(self._values)
        else:
            self._ranges = Ranges.joined(field.each(functools.partial(_first, key)))
            self.count = int(self._ranges.count.sum())

    def of(self, ranks: Sequence[int]) -> dict[int, Any]:
        """The value of each rank, counted from 0."""
        if self._values is not None:
            return _picked(self._values, {rank: rank for rank in ranks})
        ranges, below = self._ranges, dict.fromkeys(ranks, 0)
        exact: dict[int, Any] = {}
        while True:
            pairs = {rank: _pair(ranges, rank - before) for rank, before in below.items()}
            exact |= {rank: start.item() for rank, (start, stop) in pairs.items() if start == stop}
            pairs = {rank: pair for rank, pair in pairs.items() if rank not in exact}
            if not pairs:
                return exact
            brackets = _Brackets.of(pairs.values())
            few = int(ranges.count[brackets.straddling(ranges)].sum()) <= MOST_HELD
            beside = np.zeros(2 * len(brackets.start) + 1, np.int64)
            inner: list[Ranges] = []
            single: list[np.ndarray] = []
            pieces = 0 if few else PIECES * len(pairs)
            for dropped, counted, values in self.field.each(functools.partial(_inside, self.key, brackets, pieces)):
                beside += dropped
                inner.append(counted)
                single.append(values)
            below = {rank: brackets.below(beside, start) for rank, (start, _) in pairs.items()}
            ranges, values = Ranges.joined(inner), np.concatenate(single)
            if values.size:
                values = np.concatenate([values, np.repeat(ranges.low, ranges.count)])
                return exact | _picked(values, {rank: rank - before for rank, before in below.items()})


def _as_decoded(values: np.ndarray, limit: Limit | None) -> np.ndarray:
    return values


def _rest(key: Key, part: ChunkPart) -> np.ndarray:
    return key(part.rest(), part.limit)


def _keyed(key: Key, part: ChunkPart) -> Ranges:
    ranges = part.ranges
    return Ranges(ranges.count, key(ranges.low, part.limit), key(ranges.high, part.limit))


def _first(key: Key, part: ChunkPart) -> Ranges:
    """The ranges of a chunk, and those of its other values."""
    return Ranges.joined([_keyed(key, part), _pieces(key(part.rest(), part.limit), PIECES)])


def _inside(key: Key, brackets: _Brackets, pieces: int, part: ChunkPart) -> tuple[np.ndarray, Ranges, np.ndarray]:
    """How many values of a chunk are in each gap between brackets; those in brackets, as ranges, and others one by one.

    Numbers of a lattice were counted, and each is a range. Given `pieces`, other values become about as many ranges.
    """
    ranges, kinds = _keyed(key, part), 2 * len(brackets.start) + 1
    wanted = brackets.straddling(ranges)
    beside = np.zeros(kinds, np.int64)
    np.add.at(beside, brackets.places(ranges.low[~wanted]), ranges.count[~wanted])
    inner: list[Ranges] = []
    single: list[np.ndarray] = []
    for values, counts in (part.of(wanted), (part.rest(), None)):
        keyed = key(values, part.limit)
        places = brackets.places(keyed)
        beside += np.bincount(places, counts, kinds).astype(np.int64)   # exact in float64, too
        inside = places % 2 == 1
        if counts is not None:
            inner.append(Ranges(counts[inside], keyed[inside], keyed[inside]))
        elif pieces:
            inner.append(_pieces(keyed[inside], pieces))
        else:
            single.append(keyed[inside])
    beside[1::2] = 0
    empty = keyed[:0]
    inner.append(Ranges(np.empty(0, np.int64), empty, empty))
    return beside, Ranges.joined(inner), np.concatenate([empty, *single])


def _pieces(values: np.ndarray, most: int) -> Ranges:
    """Values as a few ranges of about as many each; a number that fills a range by itself has one of its own."""
    ordered = np.sort(values)
    if not ordered.size:
        return Ranges(np.empty(0, np.int64), ordered, ordered)
    cuts = ordered[np.unique(np.linspace(0, len(ordered), most, endpoint=False, dtype=np.int64))]
    starts = np.unique([np.searchsorted(ordered, cuts, side) for side in ("left", "right")])
    starts = starts[starts < len(ordered)]
    stops = np.append(starts[1:], len(ordered))
    return Ranges(stops - starts, ordered[starts], ordered[stops - 1])


def _pair(ranges: Ranges, rank: int) -> Pair:
    """Two numbers between which the value of a rank is: of this rank among the low and the high ends of ranges."""
    pair = []
    for ends in (ranges.low, ranges.high):
        order = np.argsort(ends)
        pair.append(ends[order[np.searchsorted(np.cumsum(ranges.count[order]), rank, "right")]])
    return pair[0], pair[1]


def _picked(values: np.ndarray, places: dict[int, int]) -> dict[int, Any]:
    """The values at some places of the order."""
    ordered = np.partition(values, list(places.values()))
    return {rank: ordered[place].item() for rank, place in places.items()}
