"""The structure of errors: their distribution, and the correlation between neighbours.

Uniform, uncorrelated errors within a bound do the least harm to quantities computed from the data. Biased or correlated
errors of the same size do not average out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.arguments import positive, whole_number
from workbench.backend import Array
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.metrics.displacements import moves
from workbench.metrics.errors import Errors, pointwise, signed_errors
from workbench.metrics.pairs import chunks, field_pair, require_host, reshaped, tiles, valid_in

LAGS = 10


@dataclass(frozen=True, eq=False)
class ErrorHistogram:
    """How often errors of each size occur: `counts[i]` between `edges[i]` and `edges[i + 1]`, in units of `width`.

    The edges reach from -1 to 1; errors beyond them are counted by `below` and `above`.
    """

    width: float
    edges: np.ndarray
    counts: np.ndarray
    below: int
    above: int

    def __add__(self, other: ErrorHistogram) -> ErrorHistogram:
        """Of two parts with the same edges."""
        counted = self.counts + other.counts, self.below + other.below, self.above + other.above
        return ErrorHistogram(self.width, self.edges, *counted)


def error_histogram(original: Any, decoded: Any, width: float, bins: int = 64, order: Any = None) -> ErrorHistogram:
    """The histogram of decoded - original, of a field's valid values or of particles' coordinates.

    `width` is the unit: the error bound or, without one, the largest error.

    >>> error_histogram([0.0, 0.0, 0.0], [-0.1, 0.05, 0.3], width=0.2, bins=4)
    ErrorHistogram(width=0.2, edges=array([-1. , -0.5,  0. ,  0.5,  1. ]), counts=array([0, 1, 1, 0]), below=0, above=1)
    """
    width, bins = positive("width", width), whole_number("bins", bins, least=1)
    counts, below, above = np.zeros(bins, np.int64), 0, 0
    for error in _errors(original, decoded, order):
        with np.errstate(over="ignore"):
            scaled = error.reshape(-1) / width
        counts += np.histogram(scaled, bins, (-1.0, 1.0))[0]
        below, above = below + int((scaled < -1).sum()), above + int((scaled > 1).sum())
    return ErrorHistogram(width, np.linspace(-1.0, 1.0, bins + 1), counts, below, above)


def _errors(original: Any, decoded: Any, order: Any) -> Iterator[Array]:
    """All errors in float64, chunk by chunk."""
    if isinstance(original, Particles):
        require_host("a histogram", original.positions)
        yield from (error for _, error in moves(original, decoded, order))
        return
    first, second = (reshaped(field) for field in field_pair(original, decoded))
    require_host("a histogram", first.values)
    for part in chunks(first.values):
        valid = valid_in(first, part) & valid_in(second, part)
        yield signed_errors(first.values[part][valid], second.values[part][valid])


def error_autocorrelation(
    original: Field | Array, decoded: Field | Array, lags: int = LAGS
) -> np.ndarray:
    """The autocorrelation of errors at lags 1, 2, ... `lags` along each axis: rows are axes, columns lags.

    For each lag the mean of (e - m)(e' - m) over all valid pairs, over the variance of all errors e with mean m: 1 for
    equal errors, 0 for unrelated ones. NaN where no pair is that far apart; all 0 when all errors are equal.

    >>> checkerboard = 0.1 * (-1.0) ** np.arange(1000)
    >>> error_autocorrelation(np.zeros(1000), checkerboard, lags=3).round(6).tolist()
    [[-1.0, 1.0, -1.0]]
    """
    pair, lags = field_pair(original, decoded), whole_number("lags", lags, least=1)
    require_host("an autocorrelation", pair[0].values)
    errors = pointwise(*pair)
    require_all_back(errors)
    return AutocorrelationSums.of(*pair, errors, lags).means(errors)


@dataclass(frozen=True, eq=False)
class AutocorrelationSums:
    """Sums over pairs of errors by axis (rows) and lag (columns), in units of the largest error; those of parts add up."""

    products: np.ndarray
    pairs: np.ndarray
    squares: float

    @classmethod
    def of(
        cls, original: Field, decoded: Field, errors: Errors, lags: int = LAGS, own: Sequence[int] | None = None
    ) -> AutocorrelationSums:
        """The sums of the pairs whose first point is one of the first `own` points along each axis, by default all.

        `errors` are those of the whole, whose mean and largest error are needed.
        """
        shape = original.shape
        products, pairs = np.zeros((2, len(shape), lags))
        squares, mean, peak = 0.0, errors.mean_error, errors.max_error
        for place, points in tiles(shape, lags):
            ends = (min(part.start + size, end) for part, size, end in zip(place, points, own or shape, strict=True))
            inside = tuple(max(end - part.start, 0) for part, end in zip(place, ends, strict=True))
            error, valid = _centred((original, decoded), place, mean, peak)
            squares += _own_sum(error, error, inside)
            for axis, lag in np.ndindex(*products.shape):
                near, far = _pairs_of(inside, error.shape, axis, lag + 1)
                products[axis, lag] += _product(error[near], error[far])
                pairs[axis, lag] += error[near].size if valid is None else int((valid[near] & valid[far]).sum())
        return cls(products, pairs, squares)

    def __add__(self, other: AutocorrelationSums) -> AutocorrelationSums:
        return AutocorrelationSums(self.products + other.products, self.pairs + other.pairs, self.squares + other.squares)

    def means(self, errors: Errors) -> np.ndarray:
        """The autocorrelation, as `error_autocorrelation` returns it."""
        means, variance = np.full(self.products.shape, np.nan), self.squares / max(errors.count, 1)
        np.divide(self.products, self.pairs, out=means, where=self.pairs > 0)
        known = variance > 1e-24   # in units of the largest error
        return means / variance if known else np.where(self.pairs > 0, 0.0, np.nan)


def require_all_back(errors: Errors) -> None:
    """Refuse non-finite or masked decoded values where the original's are valid: infinite errors have no structure."""
    if errors.lost or not math.isfinite(errors.max_error):
        raise WorkbenchError(
            f"decoded values must be finite, and not masked, wherever the original ones are; {errors.lost:,} are not, "
            f"and the largest error is {errors.max_error}"
        )


def _centred(pair: tuple[Field, Field], place: Any, mean: float, peak: float) -> tuple[np.ndarray, np.ndarray | None]:
    """The errors of a tile less their mean, in units of the largest, 0 if invalid; and the mask of valid ones, or None."""
    if not peak > 0:
        return np.zeros(pair[0].values[place].shape), None
    valid = valid_in(pair[0], place)
    with np.errstate(invalid="ignore"):   # NaN and infinities, which are set to 0 below
        error = (signed_errors(pair[0].values[place], pair[1].values[place]) - mean) / peak
    if valid.all():
        return error, None
    error[~valid] = 0
    return error, valid


def _own_sum(a: np.ndarray, b: np.ndarray, own: tuple[int, ...]) -> float:
    within = tuple(slice(points) for points in own)
    return _product(a[within], b[within])


def _product(a: np.ndarray, b: np.ndarray) -> float:
    """The sum of products, without a temporary array and on one thread, so that no figure depends on their number."""
    axes = list(range(a.ndim))
    return float(np.einsum(a, axes, b, axes, []))


def _pairs_of(own: tuple[int, ...], wide: tuple[int, ...], axis: int, lag: int) -> tuple[tuple[slice, ...], ...]:
    """The slices of both points of all pairs at a `lag` along an axis whose first point is a tile's own."""
    count = max(0, min(own[axis], wide[axis] - lag))
    within = [slice(points) for points in own]
    ends = []
    for start in (0, lag):
        within[axis] = slice(start, start + count)
        ends.append(tuple(within))
    return tuple(ends)
