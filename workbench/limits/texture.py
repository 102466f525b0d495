"""Textures: Gaussian models of the short-range structure of a field, which segmentation compares by description length.

A texture predicts the last corner of a cube of 2 cells a side from the other corners; in 1-D, a value from the three values
before it. Its parameters are a linear regression. So the sums of products, computed once over small blocks of cells,
suffice to fit a texture to any set of blocks and to compute the cost of any block under any texture. The cost is a
description length: a region is justified if it shortens the total.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

SIDE = {1: 64, 2: 8, 3: 4, 4: 3}   # of a block: about 64 cubes
REACH = {1: 3, 2: 1, 3: 1, 4: 1}   # of a cube, from its first corner to its last: four cells in 1-D
FAINTEST = 1e-14                   # the least variance of a texture; the field has a variance of about 1
SLAB = 2**18                       # cells whose cubes are processed together
NOISE = {1: (128_003,), 2: (385, 385), 3: (49, 49, 49), 4: (22, 22, 22, 22)}   # grids of about 2000 blocks
ALIKE = 0.05                       # quantile of the pairs of neighbouring blocks that gives the natural variability
FEWEST_PAIRS, PAIRS = 8, 2000      # numbers of pairs used


def corners(values: np.ndarray) -> list[np.ndarray]:
    """For every cube of cells, its first corner and its differences of all orders, last the mixed difference of all axes.

    Only the last difference contains the last corner, with factor 1.

    >>> [part.tolist() for part in corners(np.array([[1.0, 2.0], [4.0, 9.0]]))]
    [[[1.0]], [[1.0]], [[3.0]], [[4.0]]]
    """
    parts = [values]
    if values.ndim == 1:
        for _ in range(REACH[1]):
            parts = [*(part[:-1] for part in parts), np.diff(parts[-1])]
        return parts
    for axis in range(values.ndim):
        lower, upper = _sides(values.ndim, axis)
        parts = [part for whole in parts for part in (whole[lower], whole[upper] - whole[lower])]
    return parts


def inside(known: np.ndarray) -> np.ndarray:
    """A mask of the cubes whose corners are all known."""
    for axis in [*range(known.ndim)] * REACH[known.ndim]:
        lower, upper = _sides(known.ndim, axis)
        known = known[lower] & known[upper]
    return known


def _sides(dimensions: int, axis: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Slices without the last cell of an axis, and without the first."""
    lower = [slice(None)] * dimensions
    upper = [slice(None)] * dimensions
    lower[axis], upper[axis] = slice(None, -1), slice(1, None)
    return tuple(lower), tuple(upper)


def moments(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """For each block, the matrix of sums of products of (1, `corners`) over its known cubes."""
    side, reach = SIDE[values.ndim], REACH[values.ndim]
    rows = side * max(1, SLAB // (side * max(1, int(np.prod(values.shape[1:])))))
    starts = range(0, max(values.shape[0] - reach, 1), rows)
    slabs = (slice(start, start + rows + reach) for start in starts)
    return np.concatenate([_of_slab(values[slab], known[slab], side) for slab in slabs])


def _of_slab(values: np.ndarray, known: np.ndarray, side: int) -> np.ndarray:
    """The moments of one slab of blocks."""
    parts, whole = corners(values), inside(known)
    grid = tuple(max(1, -(-length // side)) for length in whole.shape)
    table = np.zeros((len(parts) + 1, *(side * blocks for blocks in grid)), np.float32)
    place = tuple(slice(length) for length in whole.shape)
    table[0][place] = whole
    for row, part in zip(table[1:], parts, strict=True):
        row[place] = np.where(whole, part, 0)
    split = table.reshape(len(table), *(number for blocks in grid for number in (blocks, side)))
    block_axes, cell_axes = range(1, split.ndim, 2), range(2, split.ndim, 2)
    blocks = split.transpose(*block_axes, 0, *cell_axes).reshape(-1, len(table), side**values.ndim)
    return np.asarray((blocks @ blocks.transpose(0, 2, 1)).astype(np.float64)).reshape(*grid, len(table), len(table))


@dataclass(frozen=True, eq=False)
class Textures:
    """Several textures: for each, the weights of (1, `corners`) in the prediction error, and the variance of this error.

    `level` and `spread` are the mean and the variance of the values themselves.
    """

    weights: np.ndarray
    variance: np.ndarray
    level: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, sums: np.ndarray) -> Textures:
        """The textures fitted to moments, an array of matrices."""
        cubes = np.maximum(sums[..., 0, 0], 1)
        products, with_last = sums[..., :-1, :-1], sums[..., :-1, -1]
        squares = np.einsum("...ii->...i", products)
        ridge = (1e-9 * squares + 1e-30)[..., None] * np.eye(products.shape[-1])   # negligible for regular matrices
        slopes = np.linalg.solve(products + ridge, with_last[..., None])[..., 0]
        left = sums[..., -1, -1] - np.einsum("...i,...i->...", slopes, with_last)
        level = sums[..., 0, 1] / cubes
        spread = sums[..., 1, 1] / cubes - level**2
        weights = np.concatenate([-slopes, np.ones((*slopes.shape[:-1], 1))], axis=-1)
        return cls(weights, np.maximum(left / cubes, FAINTEST), level, np.maximum(spread, FAINTEST))

    def price_blocks(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cost in nats of each block (rows) under each texture: of all cubes given their corners, and of one value."""
        flat = sums.reshape(len(sums), -1)
        outer = self.weights[:, :, None] * self.weights[:, None, :]
        cubes = sums[:, 0, 0, None]
        given = 0.5 * cubes * np.log(self.variance) + flat @ outer.reshape(len(outer), -1).T / (2 * self.variance)
        squares = sums[:, 1, 1, None] - 2 * self.level * sums[:, 0, 1, None] + self.level**2 * cubes
        alone = 0.5 * np.log(self.spread) + squares / (2 * np.maximum(cubes, 1) * self.spread)
        return given, np.where(cubes > 0, alone, 0.0)

    def price_cubes(self, values: np.ndarray) -> np.ndarray:
        """Cost in nats of the last corner of each cube under each texture, given the other corners."""
        parts = corners(values)
        prices = np.empty((len(self.variance), *parts[-1].shape), np.float32)
        for price, weights, variance in zip(prices, self.weights.astype(np.float32), self.variance, strict=True):
            price[...] = weights[0]
            for weight, part in zip(weights[1:], parts, strict=True):
                price += weight * part
            np.square(price, out=price)
            price *= np.float32(0.5 / variance)
            price += np.float32(0.5 * np.log(variance))
        return prices

    def price_values(self, values: np.ndarray) -> np.ndarray:
        """Cost in nats of each single value under each texture."""
        prices = [
            np.square(values - np.float32(level)) * np.float32(0.5 / spread) + np.float32(0.5 * np.log(spread))
            for level, spread in zip(self.level, self.spread, strict=True)
        ]
        return np.asarray(prices, np.float32)


def unevenness(sums: np.ndarray) -> float:
    """The difference of neighbouring blocks relative to white noise; at least 1.

    Blocks of a real field differ by more than chance, because no texture describes it exactly. The 5% quantile of the
    differences of neighbours is taken as natural variability, and all savings are divided by it.
    """
    found = _contrast(sums)
    return 1.0 if np.isnan(found) else max(1.0, found / _contrast_of_noise(sums.ndim - 2))


@functools.cache
def _contrast_of_noise(dimensions: int) -> float:
    noise = np.random.Generator(np.random.Philox(0)).standard_normal(NOISE[dimensions]).astype(np.float32)
    return _contrast(moments(noise, np.ones(noise.shape, bool)))


def _contrast(sums: np.ndarray) -> float:
    """Nats that two textures save over one for neighbouring blocks, 5% quantile of all pairs; NaN without full blocks."""
    size = sums.shape[-1]
    blocks = np.moveaxis(sums, int(np.argmax(sums.shape[:-2])), 0)
    halves = [blocks[start : len(blocks) // 2 * 2 : 2].reshape(-1, size, size) for start in (0, 1)]
    full = np.flatnonzero(np.minimum(*(half[:, 0, 0] for half in halves)) >= max(0.9 * sums[..., 0, 0].max(), 1))
    if full.size < FEWEST_PAIRS:
        return float("nan")
    first, second = (half[full[:: max(1, full.size // PAIRS)]] for half in halves)
    both, one, other = (part[:, 0, 0] * np.log(Textures.of(part).variance) for part in (first + second, first, second))
    return float(np.quantile(both - one - other, ALIKE)) / 2
