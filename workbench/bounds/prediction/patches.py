"""Wavelet coefficients of a few patches of a field, and what SPERR spends on them.

SPERR transforms a field, rounds the coefficients, and tells of ever smaller boxes of them in which bit plane the first one
becomes significant; then follow signs and lower bits. It writes these bits as they are, so they can be counted. The values
that are still off by more than the bound are listed; how many there are follows from the spread of the errors. The
transform (biorthogonal, 9/7) is about orthonormal, so errors of values are those of coefficients.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench import backend
from workbench.bounds.prediction.places import even_places

SHORTEST = 8           # an axis of fewer values is not divided
MOST_LEVELS = 6        # of one that is
MANY_LEVELS = 5        # with so many, all axes of a volume are divided together
SIDES = {2: 32, 3: 16}   # of a patch, at most: by the axes
MARGIN = 4             # of values beside a patch, of which differences at its ends are made
VALUES = 131_072       # in all patches, at most,
SHARE = 8              # and one of so many in a small field,
FEWEST = 32_768        # but at least these
SEEN = 512             # patches of which the roughness is looked at,
PLACES = 8             # at so many places of each
TOGETHER = backend.constant("patches.cu", "TOGETHER")   # lines that the kernel has in its room
MOST_ROWS = 64         # of the rectangle that SPERR folds a line into
STEP = 1.5             # of rounding, in units of the bound
LISTED = 4.0           # bits of a value in the list, besides its place
CORRECTED = 0.75       # of its squared error


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The sizes of coefficients, in single precision and in units of `unit`.

    The first axis goes through the members of the smallest boxes, two along each axis; the next ones through the boxes in
    boxes twice as large, and so on. `members` says how many there are on each level. `starts` are the corners of the
    patches.
    """

    sizes: np.ndarray
    members: tuple[int, ...]
    unit: float = 1.0
    starts: np.ndarray | None = None

    def coded(self, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bits of a value for each bound, and its mean squared error."""
        steps = STEP * limits / self.unit
        places = self._places(steps)
        above = [len(ordered) - place for ordered, place in zip(self._ordered, places, strict=True)]
        planes, there = [found.sum(axis=1) for found in above], [found[:, 0] for found in above]
        bits = planes[0] - self._told(steps)   # of each coefficient one for the sign, and one for each lower plane
        for level, members in enumerate(self.members):   # tests of members, from the first plane of their box to their own
            bits = bits + members * planes[level + 1] - planes[level] + there[level]
        rounding = there[0] * steps * steps / 12
        left = np.array([float(small @ small) for small in (self._ordered[0][:end] for end in places[0][:, 0])])
        squares = (left + rounding) / self.sizes.size * self.unit**2
        lists = [
            _listed(limit / math.sqrt(square)) if square > 0 else (0.0, 0.0)
            for limit, square in zip(limits.tolist(), squares.tolist(), strict=True)
        ]
        listed, corrected = np.array(lists).reshape(-1, 2).T
        return bits / self.sizes.size + listed, squares * (1 - corrected)

    def _places(self, steps: np.ndarray) -> list[np.ndarray]:
        """How many coefficients, and boxes of each level, have fewer than 1, 2, 3 ... bit planes: a row for each step."""
        most = math.frexp(float(self._ordered[0][-1]) / float(steps.min(initial=math.inf)))[1] + 1
        least = (2.0 ** np.arange(max(most, 1)) - 0.5) * steps[:, None]   # the smallest numbers that round to a new plane
        return [np.searchsorted(ordered, least.astype(ordered.dtype), side="right") for ordered in self._ordered]

    def _told(self, steps: np.ndarray) -> np.ndarray:
        """How many boxes have a last member that alone is in the highest plane: it need not be tested."""
        before, last = self._last_ones
        finer = (1 / steps).astype(np.float32)[:, None]
        return np.count_nonzero(_planes(before * finer) < _planes(last * finer), axis=1)

    @functools.cached_property
    def _boxes(self) -> list[np.ndarray]:
        """The sizes, the largest in each of the smallest boxes, in those twice as large, and so on."""
        found = [self.sizes]
        for members in self.members:
            found.append(found[-1].reshape(members, -1).max(axis=0))
        return found

    @functools.cached_property
    def _ordered(self) -> list[np.ndarray]:
        """The same in order of size: what is above a step is then counted for all bounds at once."""
        return [np.sort(found) for found in self._boxes]

    @functools.cached_property
    def _last_ones(self) -> np.ndarray:
        """The last member of each box where it is the largest, and the largest before it."""
        pairs = []
        for members, found in zip(self.members, self._boxes, strict=False):
            inside = found.reshape(members, -1)
            before = inside[:-1].max(axis=0, initial=0)
            larger = inside[-1] > before
            pairs.append(np.stack([before[larger], inside[-1][larger]]))
        return np.concatenate(pairs, axis=1) if pairs else np.zeros((2, 0), np.float32)


def _planes(numbers: np.ndarray) -> np.ndarray:
    """How many bit planes each number in single precision needs when it is rounded."""
    return np.maximum(np.rint(numbers).view(np.int32) >> 23, 126)   # its exponent; 126 for zero


def _listed(reach: float) -> tuple[float, float]:
    """The bits for values that are off by more than so many standard deviations, and their share of the squared error."""
    share = math.erfc(reach / math.sqrt(2))
    if share < 1e-12:
        return 0.0, 0.0
    beyond = share + reach * math.sqrt(2 / math.pi) * math.exp(-reach * reach / 2)
    return share * (LISTED - math.log2(share)), CORRECTED * beyond


def coefficients(values: np.ndarray, rng: np.random.Generator, starts: np.ndarray | None = None) -> Coefficients:
    """The coefficients of patches that are spread over the field, or of those that start at these corners.

    >>> found = coefficients(np.random.default_rng(0).standard_normal((64, 64)), np.random.default_rng(1))
    >>> bits, squares = found.coded(np.array([0.01]))
    >>> round(float(bits[0])), round(float(squares[0] / 0.01**2), 2)
    (9, 0.17)
    """
    grids = _grids(values)
    rounds = rounds_of(grids.shape[1:])
    sides, count = _extent(grids)
    often = map(max, *rounds, [0] * (grids.ndim - 1))
    margins = [MARGIN if more and side < n else 0 for more, side, n in zip(often, sides, grids.shape[1:], strict=True)]
    starts = _starts(grids, sides, count, rng) if starts is None else starts
    patches = _patches(grids, sides, margins, starts)
    patches -= patches.mean()
    unit = max(float(patches.max()), -float(patches.min())) or 1.0
    found = np.divide(patches, unit, out=np.empty(patches.shape, np.float32), casting="same_kind")
    *before, last = rounds
    for times in before:
        found = transformed(found, _of_divided(margins, times), times)
    return replace(in_boxes(found, _of_divided(margins, last), last, unit), starts=starts)


def _of_divided(margins: list[int], times: list[int]) -> list[int]:
    """The margins of axes that are divided."""
    return [margin if often else 0 for margin, often in zip(margins, times, strict=True)]


def levels(length: int) -> int:
    """How often an axis of this length is divided."""
    return min((length // SHORTEST).bit_length(), MOST_LEVELS)


def rounds_of(lengths: Sequence[int]) -> list[list[int]]:
    """How often each axis is divided, in one round after the other.

    Planes are divided as often as their shorter side; so are volumes, together with their first axis if it allows as much,
    or else after it.

    >>> rounds_of((64, 64, 70)), rounds_of((30, 192, 288)), rounds_of((12, 5000))
    ([[4, 4, 4]], [[2, 0, 0], [0, 5, 5]], [[1, 1]])
    """
    plane = levels(min(lengths[-2:]))
    if len(lengths) == 2:
        return [[plane, plane]]
    first = levels(lengths[0])
    if first == plane or min(first, plane) >= MANY_LEVELS:
        return [[min(first, plane)] * 3]
    return [[first, 0, 0], [0, plane, plane]]


def _grids(values: np.ndarray) -> np.ndarray:
    """A field as SPERR takes it, of two or three axes and one before: a line is folded, four axes are cut."""
    if values.ndim == 1:
        rows = max(1, min(MOST_ROWS, math.isqrt(values.size)))
        values = values[: rows * (values.size // rows)].reshape(rows, -1)
    return values if values.ndim == 4 else values[None]


def _extent(grids: np.ndarray) -> tuple[list[int], int]:
    """The sides of patches, and how many there are. A small grid is one patch, made longer by mirrored values."""
    lengths = grids.shape[1:]
    whole = [1 << (n - 1).bit_length() for n in lengths]   # of powers of two, as all patches
    if len(grids) * math.prod(whole) <= FEWEST:
        return whole, len(grids)
    most = SIDES[max(sum(n > 1 for n in lengths), 2)]
    sides = [1 << (min(n, most).bit_length() - 1) for n in lengths]
    return sides, max(1, min(VALUES, max(grids.size // SHARE, FEWEST), grids.size) // math.prod(sides))


def _patches(grids: np.ndarray, sides: list[int], margins: list[int], starts: np.ndarray) -> np.ndarray:
    """Tiles of the grid with margins, stacked. Beyond the ends of an axis, values are mirrored, as in SPERR."""
    lengths = grids.shape[1:]
    found = np.empty((starts.shape[1], *(side + 2 * margin for side, margin in zip(sides, margins, strict=True))))
    for number, (layer, *corner) in enumerate(starts.T.tolist()):
        places = [(at - margin, at + side + margin) for side, margin, at in zip(sides, margins, corner, strict=True)]
        inside = all(first >= 0 and end <= n for (first, end), n in zip(places, lengths, strict=True))
        chosen = tuple(slice(*ends) for ends in places) if inside else np.ix_(*map(_mirrored, places, lengths))
        found[number] = grids[layer][chosen]
    return found


def _mirrored(ends: tuple[int, int], n: int) -> np.ndarray:
    """The places between two ends, those beyond an axis of so many values mirrored."""
    period = max(2 * n - 2, 1)
    around = np.arange(*ends) % period
    return np.minimum(around, period - around) if n > 1 else around


def _starts(grids: np.ndarray, sides: list[int], count: int, rng: np.random.Generator) -> np.ndarray:
    """The corners of so many tiles, one column each: of tiles spread over the grid, every so many in order of roughness.

    Few tiles are transformed, and those of a field may be very different; so the calm and the rough get their shares.
    """
    lengths = np.array(grids.shape)[:, None]
    own = np.array([1, *sides])[:, None]
    if (own[1:] >= lengths[1:]).all():
        return np.arange(len(grids)) * (np.arange(grids.ndim) == 0)[:, None]
    tiles = -(-lengths // own)
    seen = max(min(SEEN, int(tiles.prod())), count)
    starts = np.minimum(own * (even_places(grids.ndim, seen, rng) * tiles).astype(np.int64), lengths - own)
    if seen <= count:
        return starts
    inside = even_places(grids.ndim, PLACES, rng) * own
    places = np.clip(starts[:, :, None] + inside[:, None].astype(np.int64), 0, lengths[:, :, None] - 1)
    here, roughness = grids[tuple(places)].astype(np.float64), np.zeros((seen, PLACES))
    for axis in range(1, grids.ndim):
        beside = [places.copy(), places.copy()]
        beside[0][axis] = np.maximum(places[axis] - 1, 0)
        beside[1][axis] = np.minimum(places[axis] + 1, lengths[axis] - 1)
        roughness += np.abs(here - 0.5 * (grids[tuple(beside[0])].astype(np.float64) + grids[tuple(beside[1])]))
    order = np.argsort(roughness.mean(axis=1), kind="stable")
    return starts[:, order[((np.arange(count) + 0.5) * seen / count).astype(int)]]


def transformed(patches: np.ndarray, margins: list[int], times: list[int]) -> np.ndarray:
    """The wavelet transform along all axes but the first, each so often, without margins; the means come first."""
    sides = _without(patches, margins)
    steps = [np.arange(side) * math.prod(sides[axis + 1 :]) for axis, side in enumerate(sides)]
    found = np.empty((len(patches), *sides), patches.dtype)
    _divide(patches, margins, times, steps, math.prod(sides), found)
    return found


def in_boxes(patches: np.ndarray, margins: list[int], times: list[int], unit: float = 1.0) -> Coefficients:
    """The same, in an order in which the members of boxes of 2, 4, 8 ... coefficients along each axis are apart."""
    sides = _without(patches, margins)
    depths = [side.bit_length() - 1 for side in sides]
    steps, left = [np.zeros(side, np.int64) for side in sides], len(patches) * math.prod(sides)
    members = []
    for level in range(max(depths)):   # the lowest bits of places are the slowest, those of all axes one after the other
        inside = [axis for axis, depth in enumerate(depths) if depth > level]
        members.append(1 << len(inside))
        for axis in inside:
            left //= 2
            steps[axis] += (np.arange(sides[axis]) >> level & 1) * left
    found = np.empty(len(patches) * math.prod(sides), patches.dtype)
    _divide(patches, margins, times, steps, 1, found)
    return Coefficients(np.abs(found, out=found), tuple(members), unit)


def _without(patches: np.ndarray, margins: list[int]) -> list[int]:
    """The sides of patches without their margins."""
    return [whole - 2 * margin for whole, margin in zip(patches.shape[1:], margins, strict=True)]


def _divide(
    patches: np.ndarray, margins: list[int], times: list[int], steps: list[np.ndarray], behind: int, found: np.ndarray
) -> None:
    """Let the kernel put coefficients where the steps along each axis add up to, each patch so far behind the last."""
    more = 4 - patches.ndim   # it takes three axes
    extent, margin, often = (
        np.array([*[one] * more, *given], np.int32)
        for one, given in ((1, patches.shape[1:]), (0, margins), (0, times))
    )
    place = np.concatenate([np.zeros(more, np.int64), *steps])
    values, longest = math.prod(patches.shape[1:]), max(patches.shape[1:])
    backend.kernel("patches", "divide_patches", patches.dtype)(
        len(patches), values, longest, behind, found.size // len(patches), patches.copy(), extent, margin, often, place,
        np.empty(len(patches) * longest * TOGETHER, patches.dtype), found
    )
