"""The spectrum of a stationary field on a finite box and on tiles, without its covariance matrix.

A box is diagonalised axis by axis (`axis.py`). This is exact if the covariance is separable, plus a nugget. Otherwise the
product basis gives the diagonal of the covariance only, as a transform code in this basis sees it, and its rate is never
below that of the true eigenvalues (Schur-Horn theorem). Its standing waves are sums of waves of both signs along each axis,
so where these differ in power (structures across the axes), their mean is split in the ratio of the powers. Small boxes are
diagonalised as they are. What the off-diagonal part changes in them is a matter of their faces, and is carried over to
large boxes in proportion to faces per cell; the `slack` of the spectrum says how far it may be off.

Independently coded tiles are many boxes. Regions of other shapes are the subject of `shapes.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from workbench.arguments import grid_shape, whole_number
from workbench.errors import WorkbenchError
from workbench.limits.axis import Modes, modes
from workbench.limits.correlation import Autoregressive, Correlation, Even
from workbench.limits.quantiles import log_ratios, moved
from workbench.limits.spectrum import LOG2E, Spectrum, require_excess

MOST_VALUES = 2**23    # of a box; in larger ones, nearly equal modes of an axis are merged
MOST_WAVES = 2**18     # the same, where waves of either sign differ
MOST_LAGS = 2**28      # of a box whose covariance is not separable
LONGEST = 2**11        # points of an axis for the general eigensolver; a longer untiled axis is treated as several pieces
LONGEST_KNOWN = 2**22  # the same, for eigenvalues in closed form
SLAB = 2**20           # lags at a time
DENSE_BOX = 1024       # points of a box that is not separable, below which its full matrix is diagonalised
PIECE = {2: 24, 3: 8, 4: 5}   # side of the box in which the product basis is compared with the eigenvalues
UNSURE = 0.5           # share of the correction of a larger box by which it may be wrong
UNSURE_ACROSS = 1.0    # the same for structures across the axes, whose corrections fall more slowly than faces per cell
LEAST_UNSURE = 0.01    # bits that the ratio of the powers of signs may be off beside it
REMEMBERED = 32        # spectra of small boxes
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
    """The variances of the components of one box.

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
    return boxes_spectrum(correlation, [chunks(*pair) for pair in zip(axes, tile_lengths(tile, axes), strict=True)])


def dense_spectrum(correlation: Correlation, shape: int | Sequence[int]) -> Spectrum:
    """The true eigenvalues of a small box."""
    return spectrum_of_points(correlation, _small_lattice(_box_shape(correlation, shape)))


def spectrum_of_points(correlation: Correlation, points: np.ndarray) -> Spectrum:
    """The true eigenvalues of the covariance matrix of these points, one per row.

    >>> spectrum_of_points(Autoregressive(1.0, (0.5,)), np.array([[0], [2]])).values.tolist()
    [0.75, 1.25]
    """
    return _spectrum(np.linalg.eigvalsh(covariance_of_points(correlation, points)), np.ones(len(points)))


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
    covariance = covariance_of_points(correlation, points)
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


def covariance_of_points(correlation: Correlation, points: np.ndarray) -> np.ndarray:
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


def boxes_spectrum(correlation: Correlation, sides: Sequence[Sides], times: float = 1) -> Spectrum:
    """The joint spectrum of `times` copies of the boxes of all combinations of sides."""
    limit = _longest(correlation)
    pieces = [
        [(piece, number * many) for side, number in along for piece, many in even_runs(side, -(-side // limit))]
        for along in sides
    ]
    parts = []
    for combination in product(*pieces):
        box = _box(correlation, [length for length, _ in combination])
        number = math.prod(number for _, number in combination) * times
        parts.append(box.times(number))
    return parts[0] if len(parts) == 1 else Spectrum.joined(parts)


def _longest(correlation: Correlation) -> int:
    """The largest number of points of an axis that is diagonalised as a whole."""
    if isinstance(correlation, Autoregressive):
        return LONGEST_KNOWN
    return min(LONGEST, int(MOST_LAGS ** (1 / correlation.dimensions)))


def even_runs(cells: int, runs: int) -> list[tuple[int, int]]:
    """Split cells into runs of nearly equal length: the lengths, and the number of runs of each length."""
    length, longer = divmod(cells, runs)
    return [(size, number) for size, number in ((length, runs - longer), (length + 1, longer)) if number]


def _box(correlation: Correlation, shape: Sequence[int]) -> Spectrum:
    """The variances of a box whose axes are all short enough to diagonalise."""
    if correlation.separable:
        return product_spectrum(correlation, shape)
    if math.prod(shape) <= DENSE_BOX:
        return _small_box(correlation, tuple(shape))
    whole = product_spectrum(correlation, shape)
    piece = tuple(min(length, PIECE[len(shape)]) for length in shape)
    share = sum(1 / length for length in shape) / sum(1 / length for length in piece)
    ratios = share * log_ratios(_small_box(correlation, piece), product_spectrum(correlation, piece))
    saved = np.cumsum(-ratios[::-1]).max(initial=0.0) / (2 * len(ratios)) * LOG2E   # at most, in bits
    slack = UNSURE * saved if correlation.even else UNSURE_ACROSS * saved + LEAST_UNSURE
    return replace(moved(whole, ratios), slack=float(slack))


@functools.lru_cache(maxsize=REMEMBERED)
def _small_box(correlation: Correlation, shape: tuple[int, ...]) -> Spectrum:
    """The true eigenvalues of a small box."""
    return spectrum_of_points(correlation, _small_lattice(shape))


def product_spectrum(correlation: Correlation, shape: Sequence[int]) -> Spectrum:
    """The variances of the products of the eigenvectors of the axes; of waves, where their signs matter."""
    whole, most = correlation, MOST_VALUES if correlation.even else MOST_WAVES
    correlation = whole if whole.even else Even(whole)
    axes = [modes(correlation, axis, length) for axis, length in enumerate(shape)]
    if math.prod(shape) > most:
        classes = int(most ** (1 / len(shape)))
        axes = [axis.grouped(classes) for axis in axes]
    weights = [axis.weights for axis in axes]
    if correlation.separable:
        values = _contracted(np.full((1,) * len(shape), correlation.signal), weights)
    else:
        values = _over_lags(correlation, weights)
    counts = _contracted(np.ones((1,) * len(shape)), [axis.counts[:, None] for axis in axes])
    if not whole.even:
        ratios = _of_signs(whole, axes)
        values, counts = values * ratios, np.broadcast_to(counts / len(ratios), ratios.shape)
    return _spectrum(values.ravel() + correlation.nugget, counts.ravel())


def _of_signs(correlation: Correlation, axes: Sequence[Modes]) -> np.ndarray:
    """The power of the waves of each combination of signs, over the mean power of all combinations."""
    waves = np.ix_(*(axis.frequencies for axis in axes))
    signs = (np.array((1, *others)) for others in product((1, -1), repeat=len(axes) - 1))
    turned = ([sign * wave for sign, wave in zip(each, waves, strict=True)] for each in signs)
    power = np.stack([correlation.power_at(*each) for each in turned])
    return np.asarray(power / power.mean(axis=0))


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
