"""The tiles of a field, one by one, for codes that give each tile a number of bits of its own and keep the error in each.

A code for the whole field may let a difficult tile borrow bits, and errors, from an easy one. A code of fixed rate per tile
cannot: each tile must keep the error by itself, and all of them together may fail with the probability allowed to the
field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from workbench.errors import WorkbenchError
from workbench.limits.blocks import DENSE, Tile, block_spectrum, mismatched_dispersion, per_tile_excess, tile_lengths
from workbench.limits.correlation import Correlation
from workbench.limits.shapes import region_spectrum, tile_sums
from workbench.limits.spectrum import Spectrum

Kinds = list[tuple[Spectrum, float]]   # the components of one tile, and the number of such tiles
Bound = Callable[[Spectrum, float, float], float]


def tile_kinds(
    labels: np.ndarray, covariances: Sequence[Correlation | None], tile: Tile, one_texture: bool = False
) -> Kinds:
    """The tiles of a map of regions (-1: no sample; None: constant). Tiles cut by a border are replaced by their mean.

    In a tile of `one_texture`, each region is a share of a homogeneous tile.

    >>> from workbench.limits.correlation import Autoregressive
    >>> [(tile.size, number) for tile, number in tile_kinds(np.zeros((8, 10), int), [Autoregressive(1.0, (0.5, 0.5))], 4)]
    [(16.0, 4.0), (8.0, 2.0)]
    """
    sides = tile_lengths(tile, labels.shape)
    cells = np.stack([tile_sums(labels == each, sides) for each in range(len(covariances))])
    whole = cells == math.prod(sides)
    kinds: Kinds = []
    for each, covariance in enumerate(covariances):
        if whole[each].any():
            one = Spectrum.of(0.0, math.prod(sides)) if covariance is None else block_spectrum(covariance, sides)
            kinds.append((one, float(whole[each].sum())))
    mixed = (cells.sum(axis=0) > 0) & ~whole.any(axis=0)
    if mixed.any():
        number, parts = int(mixed.sum()), []
        there = _on_cells(mixed, labels.shape, sides)
        for each, covariance in enumerate(covariances):
            inside = there & (labels == each)
            if inside.any():
                parts.append(_part(covariance, inside, sides, one_texture).times(1 / number))
        kinds.append((Spectrum.joined(parts), float(number)))
    return kinds


def _part(covariance: Correlation | None, inside: np.ndarray, sides: Sequence[int], one_texture: bool) -> Spectrum:
    """The components of the cells of one region in tiles."""
    if covariance is None:
        return Spectrum.of(0.0, inside.sum())
    if not one_texture:
        return region_spectrum(covariance, inside, tuple(sides))
    whole = block_spectrum(covariance, sides)
    return whole.times(float(inside.sum()) / whole.size)


def of_each_tile(bound: Bound, kinds: Kinds, distortion: float, eps: float) -> float:
    """A bound in bits per sample if every tile keeps the distortion, except with probability eps for all tiles together.

    >>> from workbench.limits.converse import converse
    >>> tiles = [(Spectrum.of(1.0, 64), 1000.0)]
    >>> round(of_each_tile(converse, tiles, 0.25, 0.01) - 1, 5)
    0.47758
    """
    each = per_tile_excess(eps, max(1, round(sum(number for _, number in kinds))))
    samples = sum(tile.size * number for tile, number in kinds)
    return sum(bound(tile, distortion, each) * tile.size * number for tile, number in kinds) / samples


def dispersion_of_true_field(covariance: Correlation, shape: Sequence[int], tile: Tile) -> float:
    """The dispersion at fine distortions if tiles are coded independently but are not independent, in bits squared."""
    sides = tile_lengths(tile, shape)
    room = [max(side, int(DENSE ** (1 / len(shape))) // side * side) for side in sides]
    lattice = [min(length, most) for length, most in zip(shape, room, strict=True)]
    if math.prod(lattice) > DENSE:
        raise WorkbenchError(f"tile must have at most {DENSE} points for the dispersion of a mismatched code; got {sides}")
    return mismatched_dispersion(covariance, lattice, sides)


def _on_cells(tiles: np.ndarray, shape: Sequence[int], sides: Sequence[int]) -> np.ndarray:
    """A mask of tiles as a mask of cells."""
    grid = tiles.reshape([-(-length // side) for length, side in zip(shape, sides, strict=True)])
    for axis, (length, side) in enumerate(zip(shape, sides, strict=True)):
        grid = np.repeat(grid, side, axis).take(range(length), axis)
    return np.asarray(grid)
