"""The spectrum of a region of any shape: with holes, thin or ragged, whole or in tiles.

A box is a product and has its own formulas (`blocks.py`). Other regions come in three kinds. Those of up to two thousand
cells, and tiles, are diagonalised as they are. Of larger ones, a compact region is replaced by boxes: the rate of a
correlated field has a part per cell and a part per face, so the boxes have as many of both, along each axis. For the
separable recursion at high resolution this is exact if each row and column of the region is one run.

It is wrong where the field correlates across gaps or around corners, as with missing values, stripes or a coast with
islands. There, the local density of states is computed in windows of the region, with the holes and without them: the share
that a cell has in each eigenvector of its window. What the holes change is carried over to the spectrum of the lattice
without holes, quantile by quantile.

At fine distortions only the determinant counts. It is a product over small blocks of cells, each given the blocks before
it, of which only the nearest cells matter. This is computed for any shape, nearly exactly. The quantiles are shifted to
agree with it, and boxes whose determinant is another one are not used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.errors import WorkbenchError
from workbench.limits.blocks import (
    Tile,
    boxes_spectrum,
    covariance_of_points,
    even_runs,
    lattice_spectrum,
    spectrum_of_points,
    tile_lengths,
)
from workbench.limits.correlation import Correlation
from workbench.limits.quantiles import log_ratios, moved, with_mean_log
from workbench.limits.spectrum import LOG2E, Spectrum

DENSE = 2048                           # cells of a region that is diagonalised as it is
SMALL_TILE = 1024                      # cells of a tile of which the same is true
WORK = 5e8                             # sum of the cubes of the cells of the tiles that are diagonalised
WINDOWS = {1: 512, 2: 32, 3: 8, 4: 5}   # sides of windows
MARGIN = {1: 64, 2: 8, 3: 1, 4: 1}     # cells at the sides of a window that are surroundings only
MOST_WINDOWS = {1: 12, 2: 10, 3: 16, 4: 8}
CORES = {1: (256,), 2: (12, 12), 3: (5, 5, 5), 4: (3, 3, 3, 3)}   # sides of blocks whose determinants are computed
PAST = {1: 64, 2: 8, 3: 3, 4: 2}   # cells around such a block whose values are given, if they are in blocks before it
MOST_CORES = 48
LEAST_NOISE = (1e-14, 1e-13, 1e-12, 1e-10, 1e-8)   # of the variance: more is added only where less is not enough
ACROSS = 0.008    # bits per cell that neighbours tell each other across gaps: more is not ignored
THIN = 0.5        # correlation lengths: the mean chord of a region that boxes do not describe
COMPACT = 0.008   # bits per cell by which the boxes of a compact region may cost too much at coarse distortions
CARRIED = {1: 0.01, 2: 0.015, 3: 0.03, 4: 0.05}   # the same for windows, which are narrow in 3-D
UNLIKE = 0.05     # nats per cell between the determinants of a region and of its boxes: with more, it is not compact


def region_spectrum(correlation: Correlation, inside: np.ndarray, tile: Tile = None) -> Spectrum:
    """The variances of all modes of a region of any shape, in independently coded tiles.

    If the cells of a tile in the region form a box, the tile is this box. `slack` is 0 where the result is exact.

    >>> from workbench.limits.correlation import Autoregressive
    >>> field, rows, columns = Autoregressive(1.0, (0.95, 0.95)), *np.ogrid[-10:11, -10:11]
    >>> region_spectrum(field, rows**2 + columns**2 <= 100).size
    317.0
    """
    inside = _mask(correlation, inside)
    tiles = tile_lengths(tile, inside.shape)
    cells, runs = _cells_and_runs(inside, tiles)
    boxes, others = _box_tiles(cells, runs, tiles)
    parts = [boxes_spectrum(correlation, [[(side, 1)] for side in sides], number) for sides, number in boxes]
    if others.any():
        parts.append(_odd_shapes(correlation, inside, tiles, cells, runs, others))
    return Spectrum.joined(parts)


def _odd_shapes(
    correlation: Correlation,
    inside: np.ndarray,
    tiles: Sequence[int],
    cells: np.ndarray,
    runs: Sequence[np.ndarray],
    others: np.ndarray,
) -> Spectrum:
    """The variances of the tiles whose cells form no box; a region without tiles is one tile."""
    if cells.size == 1 and cells[0] <= DENSE:
        return spectrum_of_points(correlation, np.argwhere(inside))
    if cells.size > 1 and math.prod(tiles) <= SMALL_TILE:
        return _small_tiles(correlation, inside, tiles, cells, others)
    chords = chord_spectrum(correlation, inside.ndim, cells[others], [along[others] for along in runs])
    compact = not _correlates_across_gaps(correlation, inside) and not _is_thin(correlation, cells[others], runs, others)
    if compact and (cells.size > 1 or correlation.separable):
        return replace(chords, slack=chords.slack + COMPACT)
    mean, error = _mean_log_variance(correlation, inside)
    unlike = abs(mean - _mean_log(chords)) if compact else math.inf
    if unlike < UNLIKE:
        return replace(with_mean_log(chords, mean), slack=chords.slack + 2 * error + COMPACT)
    whole = lattice_spectrum(correlation, inside.shape)
    ratios, scatter = _changes_by_holes(correlation, inside)
    ratios += mean - _mean_log(whole) - ratios.mean()
    if cells.size > 1:
        whole = lattice_spectrum(correlation, inside.shape, tiles)
    found = moved(whole, ratios).times(float(cells[others].sum()) / whole.size)
    slack = whole.slack + 2 * max(error, scatter) + CARRIED[inside.ndim] + (COMPACT if compact else 0)
    return replace(found, slack=slack)


def _mean_log(spectrum: Spectrum) -> float:
    return float(np.log(spectrum.values) @ spectrum.counts) / spectrum.size


def chord_spectrum(
    correlation: Correlation, dimensions: int, cells: np.ndarray, runs: Sequence[np.ndarray]
) -> Spectrum:
    """The variances of boxes whose sides are mean chords, which conserves the numbers of cells and of faces.

    `cells` and `runs` are those of each tile. A fractional side is a mixture of the two nearest whole numbers.
    """
    total = int(cells.sum())
    sides = [even_runs(total, int(along.sum())) for along in runs]
    return boxes_spectrum(correlation, sides, 1 / total ** (dimensions - 1))


def _small_tiles(
    correlation: Correlation, inside: np.ndarray, tiles: Sequence[int], cells: np.ndarray, others: np.ndarray
) -> Spectrum:
    """The true eigenvalues of tiles, or of a sample of them, evenly spread over their numbers of cells."""
    grid = [-(-length // side) for length, side in zip(inside.shape, tiles, strict=True)]
    sorted_by_cells = np.flatnonzero(others)[np.argsort(cells[others], kind="stable")]
    most = int(max(16, WORK / math.prod(tiles) ** 3))
    groups = np.array_split(sorted_by_cells, min(most, sorted_by_cells.size))
    parts, spreads = [], []
    for group in groups:
        place = np.unravel_index(int(group[len(group) // 2]), grid)
        points = np.argwhere(inside[_cut([int(step) * side for step, side in zip(place, tiles, strict=True)], tiles)])
        found = spectrum_of_points(correlation, points)
        parts.append(found.times(float(cells[group].sum()) / found.size))
        spreads.append(0.5 * LOG2E * float(np.log(found.values).mean()))
    sampled = len(groups) < sorted_by_cells.size
    error = float(np.abs(np.diff(spreads)).mean()) / math.sqrt(len(spreads)) if sampled and len(spreads) > 1 else 0.0
    return replace(Spectrum.joined(parts), slack=2 * error)


def _correlates_across_gaps(correlation: Correlation, inside: np.ndarray) -> bool:
    """Whether cells next to gaps know much about the cells beyond: more than `ACROSS` bits per cell of the region."""
    bits = 0.0
    for axis, length in enumerate(inside.shape):
        known = 0.5 * np.log2(1 / np.maximum(1 - (correlation.along(axis, length) / correlation.variance) ** 2, 1e-12))
        line, place = np.nonzero(np.moveaxis(inside, axis, -1).reshape(-1, length))
        steps = np.diff(place)[np.diff(line) == 0]
        bits += float(known[steps[steps > 1]].sum())
    return bool(bits > ACROSS * np.count_nonzero(inside))


def _is_thin(correlation: Correlation, cells: np.ndarray, runs: Sequence[np.ndarray], others: np.ndarray) -> bool:
    """Whether the region is thin compared with the correlation length, so that it goes round corners."""
    for axis, along in enumerate(runs):
        chord = float(cells.sum()) / float(along[others].sum())
        reach = max(1, math.ceil(chord / THIN))
        if correlation.along(axis, reach + 1)[-1] > correlation.variance / math.e:
            return True
    return False


def _mean_log_variance(correlation: Correlation, inside: np.ndarray) -> tuple[float, float]:
    """The mean logarithm of the variances of a region, and its standard error in bits.

    The determinant is a product over blocks, each given those before it, of which only the nearest cells matter. Blocks are
    a sample if there are many.
    """
    core = CORES[inside.ndim]
    starts = list(_starts(inside.shape, core))
    cells = tile_sums(inside, core)
    order = np.argsort(cells, kind="stable")
    ends, used = np.cumsum(cells[order]), int(np.count_nonzero(cells))
    number = min(MOST_CORES, used)
    chosen = order[np.searchsorted(ends, ends[-1] * (np.arange(number) + 0.5) / number, side="right")]
    if number == used:
        chosen = np.flatnonzero(cells)
    blocks = _Blocks.of(correlation, inside)
    logs = np.array([blocks.log_determinant(starts[place]) for place in chosen]) / cells[chosen]
    if number == used:
        return float(np.average(logs, weights=cells[chosen])), 0.0
    return float(logs.mean()), 0.5 * LOG2E * float(np.std(logs)) / math.sqrt(number)


@dataclass(frozen=True, eq=False)
class _Blocks:
    """The blocks of a region, for determinants; those of the same surroundings are computed once."""

    inside: np.ndarray
    lags: np.ndarray   # the covariance of all lags between a block and the cells near it, that of 0 in the middle
    nugget: float
    known: dict[bytes, float]

    @classmethod
    def of(cls, correlation: Correlation, inside: np.ndarray) -> _Blocks:
        """The blocks of this region."""
        furthest = [length + 2 * PAST[inside.ndim] - 1 for length in CORES[inside.ndim]]
        lags = np.ogrid[tuple(slice(-lag, lag + 1) for lag in furthest)]
        return cls(inside, np.asarray(correlation.at(*lags)), correlation.nugget, {})

    def log_determinant(self, start: Sequence[int]) -> float:
        """The logarithm of the determinant of the covariance of a block, given the cells near it in blocks before it."""
        core, margin = np.array(CORES[self.inside.ndim]), PAST[self.inside.ndim]
        low = np.maximum(np.array(start) - margin, 0)
        points = np.argwhere(self.inside[tuple(map(slice, low, start + core + margin))]) + (low - start)
        ahead = np.zeros(len(points), np.int64)   # the sign of the first axis on which the blocks differ
        for block in (points // core).T:
            ahead = np.where(ahead == 0, np.sign(block), ahead)
        ordered = np.concatenate([points[ahead < 0], points[ahead == 0]])
        surroundings = ordered.tobytes()
        if surroundings not in self.known:
            steps = (np.subtract.outer(place, place) for place in ordered.T)
            covariance = self.lags[tuple(step + length // 2 for step, length in zip(steps, self.lags.shape, strict=True))]
            covariance[np.diag_indices(len(ordered))] += self.nugget
            scales = _cholesky(covariance).diagonal()[np.count_nonzero(ahead < 0):]
            self.known[surroundings] = 2 * float(np.log(scales).sum())
        return self.known[surroundings]


def _cholesky(covariance: np.ndarray) -> np.ndarray:
    """The triangular factor, with the least noise that makes the covariance of a very smooth field invertible."""
    variance = float(covariance[0, 0])
    for noise in (0.0, *LEAST_NOISE):
        try:
            return np.linalg.cholesky(covariance + noise * variance * np.eye(len(covariance)))
        except np.linalg.LinAlgError:
            continue
    raise WorkbenchError(f"the correlation must be positive definite; adding {LEAST_NOISE[-1]:g} of the variance as noise "
                         "does not make it so: taper the table smoothly to zero, or fit a model")


def _changes_by_holes(correlation: Correlation, inside: np.ndarray) -> tuple[np.ndarray, float]:
    """What the holes of a region change in its spectrum, as ratios of quantiles, and the error of the mean in bits."""
    dimensions = inside.ndim
    margin = MARGIN[dimensions]
    side = [min(WINDOWS[dimensions], length) for length in inside.shape]
    core = [max(1, length - 2 * margin) for length in side]
    full = covariance_of_points(correlation, np.stack(np.unravel_index(np.arange(math.prod(side)), side), axis=1))
    whole = np.linalg.eigh(full)
    every = [_Window.at(inside, start, core, margin) for start in _starts(inside.shape, core)]
    cut = sorted((each for each in every if each.cells and each.holes), key=lambda each: each.cells)
    ends = np.cumsum([each.cells for each in cut])
    number = min(MOST_WINDOWS[dimensions], len(cut))
    chosen = np.searchsorted(ends, ends[-1] * (np.arange(number) + 0.5) / number)
    changed = [cut[place].density(full, side) for place in chosen]
    plain = [cut[place].plain_density(full, side, whole) for place in chosen]
    gains = [_mean_log(one) - _mean_log(other) for one, other in zip(changed, plain, strict=True)]
    share = float(ends[-1]) / np.count_nonzero(inside)
    if share < 1:
        untouched = _Window(np.ones(side, bool), np.ones(side, bool))
        rest = untouched.plain_density(full, side, whole).times((1 - share) / share * number)
        changed, plain = [*changed, rest], [*plain, rest]
    error = 0.5 * LOG2E * share * float(np.std(gains)) / math.sqrt(number)
    return log_ratios(Spectrum.joined(changed), Spectrum.joined(plain)), error


@dataclass(frozen=True, eq=False)
class _Window:
    """A part of the lattice: the cells in the middle, and surroundings."""

    inside: np.ndarray    # the cells in the region
    middle: np.ndarray    # those of them that are not in the margin

    @classmethod
    def at(cls, inside: np.ndarray, start: Sequence[int], core: Sequence[int], margin: int) -> _Window:
        """The window around a core."""
        low = [max(0, first - margin) for first in start]
        place = tuple(slice(first, begin + length + margin) for first, begin, length in zip(low, start, core, strict=True))
        known = inside[place]
        middle = np.zeros(known.shape, bool)
        within = tuple(slice(begin - first, begin - first + length)
                       for first, begin, length in zip(low, start, core, strict=True))
        middle[within] = known[within]
        return cls(known, middle)

    @property
    def cells(self) -> int:
        """How many cells of the region are in the middle."""
        return int(np.count_nonzero(self.middle))

    @property
    def holes(self) -> bool:
        """Whether a cell of the window is not in the region."""
        return not bool(self.inside.all())

    def density(self, full: np.ndarray, side: Sequence[int]) -> Spectrum:
        """The local density of states of the cells in the middle, of total 1; `full` is that of a whole window."""
        cells = np.flatnonzero(self.inside)
        numbers = np.ravel_multi_index(np.unravel_index(cells, self.inside.shape), tuple(side))
        return self._shares(np.linalg.eigh(full[np.ix_(numbers, numbers)]), self.middle.ravel()[cells])

    def plain_density(self, full: np.ndarray, side: Sequence[int], whole: tuple[np.ndarray, np.ndarray]) -> Spectrum:
        """The same without holes; `whole` has the eigenvectors of a whole window."""
        if self.inside.shape != tuple(side):   # at the end of the lattice
            return replace(self, inside=np.ones(self.inside.shape, bool)).density(full, side)
        return self._shares(whole, self.middle.ravel())

    def _shares(self, eigen: tuple[np.ndarray, np.ndarray], middle: np.ndarray) -> Spectrum:
        values, vectors = eigen
        weights = np.square(vectors[middle]).sum(axis=0) / max(self.cells, 1)
        used = weights > 1e-15
        return Spectrum.of(np.maximum(values[used], 1e-16 * values[-1]), weights[used])


def _starts(shape: Sequence[int], core: Sequence[int]) -> itertools.product[tuple[int, ...]]:
    return itertools.product(*(range(0, length, step) for length, step in zip(shape, core, strict=True)))


def _cut(start: Sequence[int], sides: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(first, first + side) for first, side in zip(start, sides, strict=True))


def _mask(correlation: Correlation, inside: np.ndarray) -> np.ndarray:
    inside = np.asarray(inside)
    if inside.dtype != bool or inside.ndim != correlation.dimensions or not inside.any():
        raise WorkbenchError(
            f"inside must be a boolean array of {correlation.dimensions} axes, true somewhere; "
            f"got {inside.dtype} of shape {inside.shape}"
        )
    return inside


def _cells_and_runs(inside: np.ndarray, tiles: Sequence[int]) -> tuple[np.ndarray, list[np.ndarray]]:
    """For each tile, the number of its cells in the region, and the number of their runs along each axis."""
    runs = []
    for axis, tile in enumerate(tiles):
        first = inside.copy()
        line, here = np.moveaxis(first, axis, 0), np.moveaxis(inside, axis, 0)
        line[1:] &= ~here[:-1]
        line[::tile] = here[::tile]   # a tile begins here
        runs.append(tile_sums(first, tiles))
    return tile_sums(inside, tiles), runs


def tile_sums(marked: np.ndarray, tiles: Sequence[int]) -> np.ndarray:
    """The number of marked cells of each tile, as a flat array."""
    sums: np.ndarray = marked
    for axis, tile in enumerate(tiles):
        sums = np.add.reduceat(sums, np.arange(0, sums.shape[axis], tile), axis=axis, dtype=np.int64)
    return sums.ravel()


def _box_tiles(
    cells: np.ndarray, runs: Sequence[np.ndarray], tiles: Sequence[int]
) -> tuple[list[tuple[list[int], int]], np.ndarray]:
    """Sides and number of the tiles whose cells form a box, and a mask of the tiles with other shapes.

    The product of the chords, cells / runs, is at most the number of cells, with equality only for a box
    (Loomis-Whitney inequality). A rectangle has up to three kinds of tiles per axis, so only the 3^axes most frequent
    kinds of boxes are treated separately.
    """
    occupied = np.maximum(cells, 1)
    sides = np.stack([occupied // np.maximum(along, 1) for along in runs])
    whole = np.logical_and.reduce([along * side == cells for along, side in zip(runs, sides, strict=True)])
    boxes = (cells > 0) & whole & (np.prod(sides, axis=0) == cells)
    kinds = np.ravel_multi_index(tuple(sides[:, boxes] - 1), tuple(tiles))
    found, numbers = np.unique(kinds, return_counts=True)
    common = np.argsort(-numbers, kind="stable")[: 3 ** len(runs)]
    singled = np.zeros(cells.size, bool)
    singled[boxes] = np.isin(kinds, found[common])
    shapes = np.stack(np.unravel_index(found[common], tuple(tiles)), axis=1) + 1
    return list(zip(shapes.tolist(), numbers[common].tolist(), strict=True)), (cells > 0) & ~singled
