"""Wavelet coefficients of a few patches of a field, and what SPERR spends on them.

SPERR transforms a field, rounds the coefficients, and tells of ever smaller boxes of them in which bit plane the first one
becomes significant; then follow signs and lower bits. It writes these bits as they are, so they can be counted. The values
that are still off by more than the bound are listed; how many there are follows from the spread of the errors. The
transform (biorthogonal, 9/7) is about orthonormal, so errors of values are those of coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.bounds.prediction.places import even_places

LIFTING = ((-1.586134342059924, -0.052980118572961), (0.882911075530934, 0.443506852043971))   # of odd, of even places
SCALE = 1.149604398860241
SHORTEST = 8           # an axis of fewer values is not divided
MOST_LEVELS = 6        # of one that is
MANY_LEVELS = 5        # with so many, all axes of a volume are divided together
SIDES = {2: 32, 3: 16}   # of a patch, at most: by the axes
MARGIN = 8             # of values beside a patch, of which differences at its ends are made
VALUES = 131_072       # in all patches, at most,
SHARE = 8              # and one of so many in a small field,
FEWEST = 32_768        # but at least these
SEEN = 512             # patches of which the roughness is looked at,
PLACES = 8             # at so many places of each
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

    def coded(self, limit: float) -> tuple[float, float]:
        """The bits of a value for this bound, and its mean squared error."""
        step = STEP * limit / self.unit
        own = _planes(self.sizes, step)
        bits = int(own.sum(dtype=np.int64))   # one for the sign, and one for each lower plane
        finer = own
        for members in self.members:
            inside = finer.reshape(members, -1)
            before = inside[:-1].max(axis=0, initial=0)
            finer = np.maximum(before, inside[-1])
            there = finer > 0
            tests = members * (finer + 1) - np.maximum(inside, 1).sum(axis=0, dtype=np.int16)   # in planes down to its own
            told = before < finer   # then the last one need not be tested
            bits += int(tests[there].sum(dtype=np.int64)) - int(np.count_nonzero(told))
        left = self.sizes * (own == 0)
        squares = (float(left @ left) + np.count_nonzero(own) * step * step / 12) / own.size * self.unit**2
        listed, corrected = _listed(limit / math.sqrt(squares)) if squares > 0 else (0.0, 0.0)
        return bits / own.size + listed, squares * (1 - corrected)


def _planes(sizes: np.ndarray, step: float) -> np.ndarray:
    """How many bit planes each size needs when it is rounded to steps."""
    whole = np.rint(sizes * np.float32(1 / step))
    return np.maximum((whole.view(np.int32) >> 23) - 126, 0).astype(np.int16)   # the exponent of a single, zero for zero


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
    >>> bits, squares = found.coded(0.01)
    >>> round(bits), round(float(squares / 0.01**2), 2)
    (9, 0.17)
    """
    grids = _grids(values)
    rounds = rounds_of(grids.shape[1:])
    margins = [MARGIN if often else 0 for often in map(max, *rounds, [0] * (grids.ndim - 1))]
    sides, count = _extent(grids)
    starts = _starts(grids, sides, count, rng) if starts is None else starts
    patches = _patches(grids, sides, margins, starts)
    patches -= patches.mean()
    unit = float(np.abs(patches).max()) or 1.0
    found = (patches / unit).astype(np.float32)
    for times in rounds:
        found = transformed(found, [margin if often else 0 for margin, often in zip(margins, times, strict=True)], times)
    return replace(_in_boxes(found, unit), starts=starts)


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
    """The sides of patches, and how many there are."""
    lengths = grids.shape[1:]
    most = SIDES[max(sum(n > 1 for n in lengths), 2)]
    sides = [1 << (min(n, most).bit_length() - 1) for n in lengths]
    return sides, max(1, min(VALUES, max(grids.size // SHARE, FEWEST), grids.size) // math.prod(sides))


def _patches(grids: np.ndarray, sides: list[int], margins: list[int], starts: np.ndarray) -> np.ndarray:
    """Tiles of the grid with margins, stacked. Beyond the ends of an axis, values are mirrored, as in SPERR."""
    lengths = grids.shape[1:]
    found = np.empty((starts.shape[1], *(side + 2 * margin for side, margin in zip(sides, margins, strict=True))))
    for number, (layer, *corner) in enumerate(starts.T.tolist()):
        places = []
        for n, side, margin, start in zip(lengths, sides, margins, corner, strict=True):
            period = max(2 * n - 2, 1)
            around = np.arange(start - margin, start + side + margin) % period
            places.append(np.minimum(around, period - around) if n > 1 else around)
        found[number] = grids[layer][np.ix_(*places)]
    return found


def _starts(grids: np.ndarray, sides: list[int], count: int, rng: np.random.Generator) -> np.ndarray:
    """The corners of so many tiles, one column each: of tiles spread over the grid, every so many in order of roughness.

    Few tiles are transformed, and those of a field may be very different; so the calm and the rough get their shares.
    """
    lengths = np.array(grids.shape)[:, None]
    own = np.array([1, *sides])[:, None]
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
    sides = [whole - 2 * margin for whole, margin in zip(patches.shape[1:], margins, strict=True)]
    found, part = np.empty((len(patches), *sides), patches.dtype), patches
    margin, left = list(margins), list(times)
    while True:
        divides = [more > 0 and side > 1 for more, side in zip(left, sides, strict=True)]
        inside, means = [], []
        for axis, (side, beside) in enumerate(zip(sides, margin, strict=True)):
            whole = part.shape[axis + 1]
            if not divides[axis]:
                inside.append(np.arange(beside, beside + side))
                means.append(slice(0, whole))
                continue
            part = _divided(part, axis + 1)
            half = np.arange(beside // 2, (beside + side) // 2)
            inside.append(np.concatenate([half, whole // 2 + half]))
            margin[axis] = beside // 2 if beside > 2 else 0   # an odd one cannot be divided
            off = beside // 2 - margin[axis]
            means.append(slice(off, whole // 2 - off))
        found[(slice(None), *(slice(0, side) for side in sides))] = part[np.ix_(np.arange(len(part)), *inside)]
        if not any(divides):
            return found
        part = part[(slice(None), *means)]
        sides = [side // 2 if divided else side for side, divided in zip(sides, divides, strict=True)]
        left = [more - divided for more, divided in zip(left, divides, strict=True)]


def _divided(values: np.ndarray, axis: int) -> np.ndarray:
    """Means and differences along one axis, by lifting, mirrored at both ends."""
    moved = np.moveaxis(values, axis, 0)
    even, odd = moved[::2].copy(order="K"), moved[1::2].copy(order="K")
    for of_odd, of_even in LIFTING:
        odd[:-1] += of_odd * (even[:-1] + even[1:])
        odd[-1] += 2 * of_odd * even[-1]
        even[1:] += of_even * (odd[1:] + odd[:-1])
        even[0] += 2 * of_even * odd[0]
    even *= SCALE
    odd *= 1 / SCALE
    half = len(even)
    found = np.empty_like(values)
    parts = np.moveaxis(found, axis, 0)
    parts[:half], parts[half:] = even, odd
    return found


def _in_boxes(found: np.ndarray, unit: float = 1.0) -> Coefficients:
    """The sizes in an order in which the members of boxes of 2, 4, 8 ... coefficients along each axis are apart."""
    depths = [side.bit_length() - 1 for side in found.shape[1:]]
    shape, place = [len(found)], 1
    inside = [list[int]() for _ in range(max(depths))]
    for depth in depths:
        shape += [2] * depth
        for level in range(depth):
            inside[depth - 1 - level].append(place + level)
        place += depth
    order = [*(axis for level in inside for axis in level), 0]
    sizes = np.abs(found).reshape(shape).transpose(order).ravel()
    return Coefficients(sizes, tuple(1 << len(level) for level in inside), unit)
