"""A surrogate-data test of whether a field is Gaussian.

The bounds hold for a Gaussian field with the fitted covariance. The residuals of linear prediction are white noise for
such a field; for a real field they have outliers and bursts. The test measures both in the largest box without holes and
compares them with phase-randomised surrogates, which have the same spectrum but are Gaussian (Theiler et al. 1992).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SURROGATES = 99
LEAST = 3 / (SURROGATES + 1)   # smallest possible probability: no surrogate deviates as much, in one of three figures
MOST_CELLS = 2**14   # of the tested box
TALKS = 0.05         # deviation of a figure from the surrogates above which a warning is given


@dataclass(frozen=True)
class Gaussianity:
    """Figures of the innovations, 0 for a Gaussian field, and the probability of deviations as large by chance."""

    outliers: float      # excess kurtosis
    lopsidedness: float   # skewness
    bursts: float        # correlation of the squares of neighbours
    probability: float   # from the rank among the surrogates, for the most extreme of three figures: at least LEAST
    cells: int

    @property
    def visibly_not(self) -> bool:
        """Whether no Gaussian surrogate deviates as much, and the deviation is large enough for a warning."""
        notable = max(abs(self.outliers), abs(self.lopsidedness), abs(self.bursts)) > TALKS
        return self.probability <= LEAST and notable

    def __str__(self) -> str:
        figures = f"excess kurtosis {self.outliers:+.2f}, skewness {self.lopsidedness:+.2f}, bursts {self.bursts:+.2f}"
        return f"{figures} (chance of as much: {self.probability:.2g})"


def gaussianity(residuals: np.ndarray, seed: int = 0) -> Gaussianity | None:
    """Test standardised innovations, NaN where there are none; None without a box of at least 64 innovations."""
    box = largest_box(np.isfinite(residuals))
    cut = residuals[box]
    if cut.size < 64:
        return None
    found = _figures(cut)
    random = np.random.default_rng(seed)
    others = np.array([_figures(_surrogate(cut, random)) for _ in range(SURROGATES)])
    beyond = (np.abs(others - others.mean(axis=0)) >= np.abs(found - others.mean(axis=0))).sum(axis=0)
    probability = min(1.0, len(found) * float(beyond.min() + 1) / (SURROGATES + 1))   # Bonferroni: the smallest of three
    outliers, lopsidedness, bursts = map(float, found)
    return Gaussianity(outliers, lopsidedness, bursts, probability, cut.size)


def largest_box(inside: np.ndarray) -> tuple[slice, ...]:
    """A large box without holes, found by a fast heuristic and cut to the size that the test needs.

    >>> largest_box(np.array([[0, 1, 1, 1], [0, 1, 1, 1]], bool))
    (slice(0, 2, None), slice(1, 4, None))
    """
    from scipy.ndimage import distance_transform_cdt

    padded = np.pad(inside, 1)
    depth = distance_transform_cdt(padded, "chessboard")
    centre = np.unravel_index(int(np.argmax(depth)), depth.shape)
    reach = int(depth[centre]) - 1
    low = [int(place) - 1 - reach for place in centre]
    high = [int(place) + reach for place in centre]
    most = max(8, round(MOST_CELLS ** (1 / inside.ndim)))
    for axis in range(inside.ndim):   # grown along each axis while it has no hole, then cut down
        low[axis], high[axis] = _grown(inside, low, high, axis)
        surplus = max(0, high[axis] - low[axis] - most)
        low[axis], high[axis] = low[axis] + surplus // 2, high[axis] - (surplus - surplus // 2)
    return tuple(slice(first, last) for first, last in zip(low, high, strict=True))


def _grown(inside: np.ndarray, low: list[int], high: list[int], axis: int) -> tuple[int, int]:
    ends = enumerate(zip(low, high, strict=True))
    across = tuple(slice(None) if each == axis else slice(first, last) for each, (first, last) in ends)
    others = tuple(each for each in range(inside.ndim) if each != axis)
    holes = np.flatnonzero(~inside[across].all(axis=others))
    below, above = holes[holes < low[axis]], holes[holes >= high[axis]]
    return int(below[-1]) + 1 if below.size else 0, int(above[0]) if above.size else inside.shape[axis]


def _figures(residuals: np.ndarray) -> np.ndarray:
    values = (residuals - residuals.mean()) / residuals.std()
    squares = values**2
    squares -= squares.mean()
    pairs = [squares.take(range(length - 1), axis) * squares.take(range(1, length), axis)
             for axis, length in enumerate(values.shape) if length > 1]
    bursts = float(np.mean([pair.mean() for pair in pairs]) / squares.var())
    return np.array([float((values**4).mean()) - 3, float((values**3).mean()), bursts])


def _surrogate(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The same power at each frequency, with the phases of white noise."""
    amplitudes = np.abs(np.fft.rfftn(values))
    noise = np.fft.rfftn(random.standard_normal(values.shape))
    axes = range(values.ndim)
    return np.asarray(np.fft.irfftn(amplitudes * noise / np.abs(noise), values.shape, axes))
