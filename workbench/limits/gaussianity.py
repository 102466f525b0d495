"""A surrogate-data test of whether a field is Gaussian.

The bounds hold for a Gaussian field with the fitted covariance. The residuals of linear prediction are white noise for
such a field; for a real field they have outliers and bursts. The test measures both in boxes without holes, one in each
part of the field, and compares them with phase-randomised surrogates, which have the same spectrum but are Gaussian
(Theiler et al. 1992). It states how many values it has looked at, and which excess kurtosis it would have seen.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

SURROGATES = 99
LEAST = 1 / (SURROGATES + 1)   # smallest possible probability: no surrogate deviates as much
PARTS = {1: 4, 2: 2, 3: 2, 4: 1}   # parts of each axis, each with a box
FEWEST = 64          # values of a box
AROUND = 5          # cells along each axis that give a local variance
ALONE = 2.0          # times the extent of a part: shorter axes are not divided
NINE_IN_TEN = 1.28   # standard errors above the threshold at which a deviation is found nine times out of ten
MOST_CELLS = 2**14   # of the tested box
TALKS = 0.05         # deviation of a figure from the surrogates above which a warning is given


@dataclass(frozen=True)
class Gaussianity:
    """Figures of the innovations, 0 for a Gaussian field, and the probability of deviations as large by chance."""

    outliers: float      # excess kurtosis
    lopsidedness: float   # skewness
    bursts: float        # correlation of the squares of neighbours
    probability: float   # from the rank of the most extreme figure of any box among those of the surrogates: at least LEAST
    cells: int           # in all boxes
    boxes: int = 1
    seen: float = float("nan")   # the excess kurtosis of a whole box that is found nine times out of ten
    saved: float = 0.0   # bits per value that codes would save that know the distribution and local variances

    @property
    def visibly_not(self) -> bool:
        """Whether no Gaussian surrogate deviates as much, and the deviation is large enough for a warning."""
        notable = max(abs(self.outliers), abs(self.lopsidedness), abs(self.bursts)) > TALKS
        return self.probability <= LEAST and notable

    def __str__(self) -> str:
        figures = f"excess kurtosis {self.outliers:+.2f}, skewness {self.lopsidedness:+.2f}, bursts {self.bursts:+.2f}"
        looked = f"{self.cells:,} values in {self.boxes} box{'es' if self.boxes > 1 else ''}"
        power = "" if math.isnan(self.seen) else f"; would see an excess kurtosis of {self.seen:.2g}"
        return f"{figures} (chance of as much: {self.probability:.2g}; {looked}{power})"


def gaussianity(residuals: np.ndarray, seed: int = 0) -> Gaussianity | None:
    """Test standardised innovations, NaN where there are none; None without a box of at least 64 innovations.

    The figures are those of the box that deviates most.
    """
    inside = np.isfinite(residuals)
    cuts = [residuals[part][largest_box(inside[part])] for part in _parts(residuals.shape)]
    cuts = [cut for cut in cuts if cut.size >= FEWEST and float(np.ptp(cut)) > 0]
    if not cuts:
        return None
    random = np.random.default_rng(seed)
    found = np.array([_figures(cut) for cut in cuts])
    others = np.array([[_figures(_surrogate(cut, random)) for _ in range(SURROGATES)] for cut in cuts])
    middle, spread = others.mean(axis=1), others.std(axis=1)
    deviations = np.abs(found - middle) / spread
    highest = np.max(np.abs(others - middle[:, None]) / spread[:, None], axis=(0, 2))   # of each set of surrogates
    probability = float(np.count_nonzero(highest >= deviations.max()) + 1) / (SURROGATES + 1)
    worst = int(np.argmax(deviations.max(axis=1)))
    outliers, lopsidedness, bursts = map(float, found[worst])
    seen = float(np.median(spread[:, 0])) * (float(highest.max()) + NINE_IN_TEN)
    cells = sum(cut.size for cut in cuts)
    return Gaussianity(outliers, lopsidedness, bursts, probability, cells, len(cuts), max(seen, TALKS),
                       float(np.average([_saved(cut) for cut in cuts], weights=[cut.size for cut in cuts])))


def _parts(shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """Parts of the field, as many as are large enough for a box of their own."""
    most = max(8, round(MOST_CELLS ** (1 / len(shape))))
    axes = []
    for length in shape:
        number = max(1, min(PARTS[len(shape)], int(length / most * ALONE)))
        ends = np.linspace(0, length, number + 1).round().astype(int)
        axes.append([slice(int(first), int(last)) for first, last in itertools.pairwise(ends)])
    return list(itertools.product(*axes))


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
    squares = values * values   # powers would take several times as long
    lopsidedness, outliers = float((squares * values).mean()), float((squares * squares).mean()) - 3
    squares -= squares.mean()
    pairs = [float((squares.take(range(length - 1), axis) * squares.take(range(1, length), axis)).mean())
             for axis, length in enumerate(values.shape) if length > 1]
    return np.array([outliers, lopsidedness, float(np.mean(pairs) / squares.var())])


def _saved(residuals: np.ndarray) -> float:
    """The negentropy of prediction errors in units of those around them, with the change of their unit (bits)."""
    from scipy.ndimage import uniform_filter
    from scipy.stats import differential_entropy

    squares, window = residuals**2, [min(AROUND, length) for length in residuals.shape]
    many = float(np.prod(window))
    near = np.maximum((many * uniform_filter(squares, window) - squares) / max(many - 1, 1), 1e-12 * squares.mean())
    with np.errstate(divide="ignore"):   # among equal values
        entropy = float(differential_entropy((residuals / np.sqrt(near)).ravel(), base=2))
    of_gaussian = 0.5 * math.log2(2 * math.pi * math.e * float(squares.mean()))
    return max(0.0, of_gaussian - entropy - 0.5 * float(np.log2(near).mean()))


def _surrogate(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The same power at each frequency, with the phases of white noise."""
    amplitudes = np.abs(np.fft.rfftn(values))
    noise = np.fft.rfftn(random.standard_normal(values.shape))
    axes = range(values.ndim)
    return np.asarray(np.fft.irfftn(amplitudes * noise / np.abs(noise), values.shape, axes))
