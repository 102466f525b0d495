"""Wavelet coefficients of a few patches of a field, and what SPERR spends on them.

SPERR transforms a field, rounds the coefficients, and tells of ever smaller boxes of them in which bit plane the first one
becomes significant; then follow signs and lower bits. It writes these bits as they are, so they can be counted. The values
that are still off by more than the bound are listed; how many there are follows from the spread of the errors. The
transform (biorthogonal, 9/7) is about orthonormal, so errors of values are those of coefficients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

LIFTING = ((-1.586134342059924, -0.052980118572961), (0.882911075530934, 0.443506852043971))   # of odd, of even places
SCALE = 1.149604398860241
SHORTEST = 8           # an axis of fewer values is not divided
MOST_LEVELS = 6        # of one that is
SIDE = 32              # of a patch, at most
MARGIN = 8             # of values beside a patch, of which differences at its ends are made
VALUES = 131_072       # in all patches, at most,
SHARE = 8              # and one of so many in a small field,
FEWEST = 32_768        # but at least these
MOST_ROWS = 64         # of the rectangle that SPERR folds a line into
STEP = 1.5             # of rounding, in units of the bound
LISTED = 4.0           # bits of a value in the list, besides its place
CORRECTED = 0.75       # of its squared error


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Coefficients in an order in which boxes are consecutive.

    `sizes` are those of the coefficients, and of the largest in boxes of 2, 4, 8 ... along each axis; `members` says how
    many of one level are in a box of the next.
    """

    sizes: tuple[np.ndarray, ...]
    members: tuple[int, ...]

    def coded(self, limit: float) -> tuple[float, float]:
        """The bits of a value for this bound, and its mean squared error."""
        step = STEP * limit
        planes = [np.frexp(np.rint(size / step))[1] for size in self.sizes]   # 0: no plane, 1: the lowest
        own = planes[0]
        bits = float(own.sum())   # one for the sign, and one for each lower plane
        for finer, coarser, members in zip(planes[:-1], planes[1:], self.members, strict=True):
            inside = finer.reshape(-1, members)
            tests = coarser[:, None] - np.maximum(inside, 1) + 1   # from the plane of the box to that of the member
            told = (inside[:, :-1].max(axis=1) < coarser) & (coarser > 0)   # then the last one need not be tested
            bits += float(tests[coarser > 0].sum()) - float(told.sum())
        squares = float(np.where(own > 0, step**2 / 12, np.minimum(self.sizes[0], step) ** 2).mean())
        listed, corrected = _listed(limit / math.sqrt(squares)) if squares > 0 else (0.0, 0.0)
        return bits / own.size + listed, squares * (1 - corrected)


def _listed(reach: float) -> tuple[float, float]:
    """The bits for values that are off by more than so many standard deviations, and their share of the squared error."""
    share = math.erfc(reach / math.sqrt(2))
    if share < 1e-12:
        return 0.0, 0.0
    beyond = share + reach * math.sqrt(2 / math.pi) * math.exp(-reach * reach / 2)
    return share * (LISTED - math.log2(share)), CORRECTED * beyond


def coefficients(values: np.ndarray, rng: np.random.Generator) -> Coefficients:
    """The coefficients of random patches.

    >>> found = coefficients(np.random.default_rng(0).standard_normal((64, 64)), np.random.default_rng(1))
    >>> bits, squares = found.coded(0.01)
    >>> round(bits), round(squares / 0.01**2, 2)
    (9, 0.17)
    """
    grids = _grids(values)
    times = [levels(n) for n in grids.shape[1:]]
    margins = [MARGIN if often else 0 for often in times]
    patches = _patches(grids, margins, rng)
    patches -= patches.mean()
    return _in_boxes(transformed(patches, margins, times))


def levels(length: int) -> int:
    """How often an axis of this length is divided."""
    return min((length // SHORTEST).bit_length(), MOST_LEVELS)


def _grids(values: np.ndarray) -> np.ndarray:
    """A field as SPERR takes it, of two or three axes and one before: a line is folded, four axes are cut."""
    if values.ndim == 1:
        rows = max(1, min(MOST_ROWS, math.isqrt(values.size)))
        values = values[: rows * (values.size // rows)].reshape(rows, -1)
    return values if values.ndim == 4 else values[None]


def _patches(grids: np.ndarray, margins: list[int], rng: np.random.Generator) -> np.ndarray:
    """Random tiles of the grid with margins, stacked. Beyond the ends of an axis, values are mirrored, as in SPERR."""
    lengths = grids.shape[1:]
    sides = [1 << (min(n, SIDE).bit_length() - 1) for n in lengths]
    count = max(1, min(VALUES, max(grids.size // SHARE, FEWEST), grids.size) // math.prod(sides))
    found = np.empty((count, *(side + 2 * margin for side, margin in zip(sides, margins, strict=True))))
    for number in range(count):
        places = []
        for n, side, margin in zip(lengths, sides, margins, strict=True):
            start = min(side * int(rng.integers(-(-n // side))), n - side)
            period = max(2 * n - 2, 1)
            around = np.arange(start - margin, start + side + margin) % period
            places.append(np.minimum(around, period - around) if n > 1 else around)
        found[number] = grids[int(rng.integers(len(grids)))][np.ix_(*places)]
    return np.where(np.isfinite(found), found, 0.0)


def transformed(patches: np.ndarray, margins: list[int], times: list[int]) -> np.ndarray:
    """The wavelet transform along all axes but the first, each so often, without margins; the means come first."""
    sides = [whole - 2 * margin for whole, margin in zip(patches.shape[1:], margins, strict=True)]
    found, part, margin, left = np.empty((len(patches), *sides)), patches, list(margins), list(times)
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
    moved = np.moveaxis(values, axis, -1)
    even, odd = moved[..., ::2].copy(), moved[..., 1::2].copy()
    for of_odd, of_even in LIFTING:
        odd += of_odd * (even + np.concatenate([even[..., 1:], even[..., -1:]], axis=-1))
        even += of_even * (odd + np.concatenate([odd[..., :1], odd[..., :-1]], axis=-1))
    return np.moveaxis(np.concatenate([SCALE * even, odd / SCALE], axis=-1), -1, axis)


def _in_boxes(found: np.ndarray) -> Coefficients:
    """The sizes in an order in which each box of 2, 4, 8 ... coefficients along each axis is consecutive."""
    depths = [side.bit_length() - 1 for side in found.shape[1:]]
    shape, place = [len(found)], 1
    inside = [list[int]() for _ in range(max(depths))]
    for depth in depths:
        shape += [2] * depth
        for level in range(depth):
            inside[depth - 1 - level].append(place + level)
        place += depth
    order = [0, *(axis for level in reversed(inside) for axis in level)]
    sizes = [np.abs(found).reshape(shape).transpose(order).ravel()]
    members = [1 << len(level) for level in inside]
    for count in members:
        sizes.append(sizes[-1].reshape(-1, count).max(axis=1))
    return Coefficients(tuple(sizes), tuple(members))
