"""The spectrum of a stationary field on a finite box, on tiles, and on regions of any shape, without its covariance matrix.

A box is diagonalised axis by axis (`axis.py`). This is exact if the covariance is separable, plus a nugget. Otherwise the
variances are the diagonal of the covariance in the product basis, as a transform code in this basis sees it. Their rate is
never below the rate of the true eigenvalues (Schur-Horn theorem), which `dense_spectrum` computes for small boxes.

Independently coded tiles are many boxes. A region is approximated by boxes, too: the rate of a correlated field has a part
per cell and a part per face, so the boxes have as many cells, and as many faces along each axis, as the region. For the
separable recursion at high resolution this is exact if each row and column of the region is one run. Correlation across
holes is ignored, so the rate of a region with holes is too high.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np

from workbench.arguments import grid_shape, whole_number
from workbench.errors import WorkbenchError
from workbench.limits.axis import modes
from workbench.limits.correlation import Autoregressive, Correlation
from workbench.limits.spectrum import LOG2E, Spectrum, require_excess

MOST_VALUES = 2**23    # of a box; in larger ones, nearly equal modes of an axis are merged
MOST_LAGS = 2**28      # of a box whose covariance is not separable
LONGEST = 2**11        # points of an axis for the general eigensolver; a longer untiled axis is treated as several pieces
LONGEST_KNOWN = 2**22  # the same, for eigenvalues in closed form
SLAB = 2**20           # lags at a time
DENSE = 2048           # points of a box whose full matrix is computed
SMALLEST = 1e-16       # of the largest variance: replaces a variance that rounding made negative
NEGATIVE = 1e-9        # of the largest variance: a more negative variance is not a rounding error

Tile = int | Sequence[int] | None
Sides = Iterable[tuple[int, int]]   # lengths along an axis, and the number of pieces of each length


def chunks(length: int, tile: int | None) -> list[tuple[int, int]]:
    """The lengths of the pieces into which tiles cut an axis, and the number of pieces of each length.

    >>> chunks(10, 4), chunks(8, 4), chunks(3, 4), chunks(3, None)
    ([(4, 2), (2, 1)], [(4, 2)], [(3, 1)], [(3, 1)])
    """
    if tile is None or tile >= length:
        return [(length, 1)]
    whole, rest = divmod(length, tile)
    return [(tile, whole)] + ([(rest, 1)] if rest else [])


def block_spectrum(correlation: Correlation, shape: int | Sequence[int]) -> Spectrum:
    """The variances of the product modes of one box.

    >>> line = Autoregressive(1.0, 0.95)
    >>> round(float(np.log2(block_spectrum(line, 8).values).sum()), 6)   # 7 log2(1 - 0.95^2)
    -23.509178
    """
    return lattice_spectrum(correlation, shape)


def lattice_spectrum(correlation: Correlation, shape: int | Sequence[int], tile: Tile = None) -> Spectrum:
    """The variances of all modes of a lattice with independently coded tiles.

    `tile` is one length, or one length per axis. None, or a length above that of the axis, leaves the axis whole.

    >>> field = Autoregressive(1.0, (0.95, 0.95))
    >>> [round(lattice_spectrum(field, (256, 256), tile).rate(0.1), 3) for tile in (4, 64)]
    [0.233, 0.053]
    """
    axes = _box_shape(correlation, shape)
    return _boxes(correlation, [chunks(*pair) for pair in zip(axes, tile_lengths(tile, axes), strict=True)])


def region_spectrum(correlation: Correlation, inside: np.ndarray, tile: Tile = None) -> Spectrum:
    """The variances of all modes of a region of any shape, in independently coded tiles.

    If the cells of a tile in the region form a box, the tile is this box. All other cells are replaced by boxes whose
    sides are the mean chords along each axis, which conserves the numbers of cells and of faces. A fractional side is a
    mixture of the two nearest whole numbers.

    >>> field, rows, columns = Autoregressive(1.0, (0.95, 0.95)), *np.ogrid[-10:11, -10:11]
    >>> region_spectrum(field, rows**2 + columns**2 <= 100).size
    317.0
    """
    inside = _mask(correlation, inside)
    tiles = tile_lengths(tile, inside.shape)
    cells, runs = _cells_and_runs(inside, tiles)
    boxes, others = _box_tiles(cells, runs, tiles)
    parts = [_boxes(correlation, [[(side, 1)] for side in sides], number) for sides, number in boxes]
    if others.any():
        total = int(cells[others].sum())
        sides = [_even(total, int(along[others].sum())) for along in runs]
        parts.append(_boxes(correlation, sides, 1 / total ** (inside.ndim - 1)))
    return Spectrum.joined(parts)


def dense_spectrum(correlation: Correlation, shape: int | Sequence[int]) -> Spectrum:
    """The true eigenvalues of a small box."""
    points = _small_lattice(_box_shape(correlation, shape))
    return _spectrum(np.linalg.eigvalsh(_covariance(correlation, points)), np.ones(len(points)))


def mismatched_dispersion(correlation: Correlation, shape: int | Sequence[int], tile: Tile) -> float:
    """High-resolution dispersion, in bits^2 per sample, of coding correlated tiles independently.

    The description length varies as 1/2 x^T A x, where A is the inverse of the block-diagonal covariance of the tiles. With
    the covariance C of the field, its variance is tr(ACAC) / 2n nats^2: 1/2 for independent tiles, more for others.

    >>> round(mismatched_dispersion(Autoregressive(1.0, 0.95), 1024, 16) / LOG2E**2, 6)
    0.568602
    """
    axes = _box_shape(correlation, shape)
    points = _small_lattice(axes)
    place = points // np.array(tile_lengths(tile, axes))
    _, owner = np.unique(place, axis=0, return_inverse=True)
    covariance = _covariance(correlation, points)
    whitened = np.empty_like(covariance)   # A C
    for one in range(int(owner.max()) + 1):
        mine = np.flatnonzero(owner.ravel() == one)
        whitened[mine] = _solved(covariance[np.ix_(mine, mine)], covariance[mine])
    return 0.5 * LOG2E**2 * float(np.sum(whitened * whitened.T)) / len(points)


def per_tile_excess(eps: float, tiles: int) -> float:
    """The failure probability of each independent tile if the probability that any tile fails is `eps`.

    >>> per_tile_excess(0.01, 1), round(1e6 * per_tile_excess(0.01, 1000), 6)
    (0.01, 10.050285)
    """
    require_excess(eps)
    return -math.expm1(math.log1p(-eps) / whole_number("tiles", tiles, least=1))


def tile_lengths(tile: Tile, shape: Sequence[int]) -> tuple[int, ...]:
    """The length of a tile along each axis; without a tile, the length of the axis.

    >>> tile_lengths(None, (8, 5)), tile_lengths(6, (8, 5)), tile_lengths((2, 4), (8, 5))
    ((8, 5), (6, 5), (2, 4))
    """
    if tile is None:
        return tuple(shape)
    given = tuple(tile) if isinstance(tile, Sequence | np.ndarray) else (tile,) * len(shape)
    if len(given) != len(shape):
        raise WorkbenchError(f"tile must be one length, or one for each of {len(shape)} axes; got {tile!r}")
    return tuple(min(whole_number("tile", side, least=1), points) for side, points in zip(given, shape, strict=True))


def _box_shape(correlation: Correlation, shape: int | Sequence[int]) -> tuple[int, ...]:
    axes = grid_shape(shape)
    if len(axes) != correlation.dimensions:
        raise WorkbenchError(f"shape must have {correlation.dimensions} axes, as the correlation has; got {shape!r}")
    return axes


def _small_lattice(shape: Sequence[int]) -> np.ndarray:
    """The places of all points of a box, one per row."""
    if math.prod(shape) > DENSE:
        raise WorkbenchError(f"shape must have at most {DENSE} points for a matrix of all pairs; got {tuple(shape)}")
    return np.stack(np.unravel_index(np.arange(math.prod(shape)), tuple(shape)), axis=1)


def _covariance(correlation: Correlation, points: np.ndarray) -> np.ndarray:
    """The covariance matrix of these points, nugget included."""
    lags = [np.subtract.outer(place, place) for place in points.T]
    return np.asarray(correlation.at(*lags) + correlation.nugget * np.eye(len(points)))


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The inverse of a covariance matrix times another matrix."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    try:
        return np.asarray(cho_solve(cho_factor(matrix), right))
    except LinAlgError as error:
        raise WorkbenchError(
            "the covariance matrix must be invertible in double precision; got a singular matrix: add a nugget"
        ) from error


def _boxes(correlation: Correlation, sides: Sequence[Sides], times: float = 1) -> Spectrum:
    """The joint spectrum of `times` copies of the boxes of all combinations of sides."""
    limit = _longest(correlation)
    pieces = [
        [(piece, number * many) for side, number in along for piece, many in _even(side, -(-side // limit))]
        for along in sides
    ]
    parts = []
    for combination in product(*pieces):
        box = _box(correlation, [length for length, _ in combination])
        number = math.prod(number for _, number in combination) * times
        parts.append(Spectrum(box.values, box.counts * number))
    return parts[0] if len(parts) == 1 else Spectrum.joined(parts)


def _longest(correlation: Correlation) -> int:
    """The largest number of points of an axis that is diagonalised as a whole."""
    if isinstance(correlation, Autoregressive):
        return LONGEST_KNOWN
    return min(LONGEST, int(MOST_LAGS ** (1 / correlation.dimensions)))


def _even(cells: int, runs: int) -> list[tuple[int, int]]:
    """Split cells into runs of nearly equal length: the lengths, and the number of runs of each length."""
    length, longer = divmod(cells, runs)
    return [(size, number) for size, number in ((length, runs - longer), (length + 1, longer)) if number]


def _box(correlation: Correlation, shape: Sequence[int]) -> Spectrum:
    """The variances of the product modes of a box whose axes are all short enough to diagonalise."""
    axes = [modes(correlation, axis, length) for axis, length in enumerate(shape)]
    if math.prod(shape) > MOST_VALUES:
        classes = int(MOST_VALUES ** (1 / len(shape)))
        axes = [axis.grouped(classes) for axis in axes]
    weights = [axis.weights for axis in axes]
    if correlation.separable:
        values = _contracted(np.full((1,) * len(shape), correlation.signal), weights)
    else:
        values = _over_lags(correlation, weights)
    counts = _contracted(np.ones((1,) * len(shape)), [axis.counts[:, None] for axis in axes])
    return _spectrum(values.ravel() + correlation.nugget, counts.ravel())


def _over_lags(correlation: Correlation, weights: Sequence[np.ndarray]) -> np.ndarray:
    """The sum over all lags of the covariance times the weights of the axes, in slabs of lags of the first axis."""
    first, *others = weights
    lags = [np.arange(weight.shape[1]) for weight in weights]
    thickness = max(1, SLAB // math.prod(lag.size for lag in lags[1:]))
    total = np.zeros([len(weight) for weight in weights])
    for start in range(0, lags[0].size, thickness):
        slab = slice(start, start + thickness)
        table = correlation.at(*np.ix_(lags[0][slab], *lags[1:]))
        inner = _contracted(np.moveaxis(table, 0, -1), others)   # the first axis is in front again
        total += np.tensordot(first[:, slab], inner, 1)
    return total


def _contracted(table: np.ndarray, weights: Sequence[np.ndarray]) -> np.ndarray:
    """Contract the leading axes of a table with weights, one after the other; each new axis goes to the end."""
    for weight in weights:
        table = np.tensordot(table, weight, axes=(0, 1))
    return table


def _spectrum(values: np.ndarray, counts: np.ndarray) -> Spectrum:
    """The spectrum of variances that are positive except for rounding errors."""
    top = float(values.max())
    if values.min() < -NEGATIVE * top:
        raise WorkbenchError(
            f"the correlation must be positive definite; got a variance of {values.min():g} beside one of {top:g}: "
            "taper the table smoothly to zero (multiply it by 1 - lag / lags along each axis), or fit a model"
        )
    return Spectrum.of(np.where(values > 0, values, SMALLEST * top), counts)


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
        runs.append(_tile_sums(first, tiles))
    return _tile_sums(inside, tiles), runs


def _tile_sums(marked: np.ndarray, tiles: Sequence[int]) -> np.ndarray:
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
