"""One axis of a lattice: the vectors that make its covariance matrix diagonal, and what they see of each distance.

On a box, a product of such vectors, one per axis, is the natural transform: exact where the covariance is a product, too.
Then all that is needed of a vector v is its variance. Otherwise it is its autocorrelation, the sum of v[i] v[i + lag]: the
variance of a product of vectors is the covariance at each lag times the product of their autocorrelations, summed over
lags. So nothing larger than one axis is ever diagonalised.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from workbench.limits.correlation import Autoregressive, Correlation

REMEMBERED = 8   # axes; each may take tens of megabytes


@dataclass(frozen=True, eq=False)
class Modes:
    """The eigenvectors of an axis by ascending variance (of unit signal), and the weight that each gives to each lag.

    A mode that stands for several has their mean weights. The weights are the variance itself, one column, where the
    covariance is a product.
    """

    variances: np.ndarray
    weights: np.ndarray   # (mode, lag)
    counts: np.ndarray

    def grouped(self, classes: int) -> Modes:
        """Modes of nearly equal variance made one, in so many classes of equal width on a logarithmic scale."""
        if self.variances.size <= classes:
            return self
        logs = np.log(np.maximum(self.variances, 1e-16 * self.variances[-1]))
        place = np.searchsorted(np.linspace(logs[0], logs[-1], classes + 1)[1:-1], logs)
        first = np.flatnonzero(np.diff(place, prepend=-1))
        counts = np.add.reduceat(self.counts, first)
        variances = np.add.reduceat(self.variances * self.counts, first) / counts
        weights = np.add.reduceat(self.weights * self.counts[:, None], first) / counts[:, None]
        return Modes(variances, weights, counts)


def modes(correlation: Correlation, axis: int, length: int) -> Modes:
    """The modes of an axis of so many points."""
    if isinstance(correlation, Autoregressive):
        variances = _recursion_variances(length, abs(correlation.rhos[axis]))
        return Modes(variances, variances[:, None], np.ones(length))
    column = correlation.along(axis, length) / correlation.signal
    if correlation.separable:
        variances = _toeplitz_variances(column.tobytes())
        return Modes(variances, variances[:, None], np.ones(length))
    return _toeplitz_modes(column.tobytes(), correlation.reach(axis, length))


def sine_frequencies(length: int, rho: float, ends: int = 2) -> np.ndarray:
    """The frequencies of the sines that diagonalise the recursion x[i] = rho x[i-1] + noise on so many points, ascending.

    Kac, Murdock & Szego (1953): w solves (length + 1) w + ends * arg(1 - rho exp(-iw)) = pi j, for rho in [0, 1). A
    stationary recursion is free at both ends, one that starts at zero at one. The left side is concave and increasing, so
    that Newton's method, started below the roots, climbs to all of them at once.
    """
    target = np.pi * np.arange(1, length + 1)
    frequency = (target - np.pi) / (length + 1)
    while True:
        half = 2 * np.sin(frequency / 2) ** 2   # 1 - cos(frequency), with all its digits
        phase = np.arctan2(rho * np.sin(frequency), 1 - rho + rho * half)
        slope = length + 1 + ends * rho * (1 - rho - half) / ((1 - rho) ** 2 + 2 * rho * half)
        step = (target - (length + 1) * frequency - ends * phase) / slope
        frequency = frequency + step
        if (np.abs(step) <= 1e-9 * frequency).all():   # digits double with each step
            return frequency


@functools.lru_cache(maxsize=REMEMBERED)
def _recursion_variances(length: int, rho: float) -> np.ndarray:
    """The eigenvalues of the matrix rho^|i - j|, ascending; the sign of rho does not change them."""
    frequency = sine_frequencies(length, rho)[::-1]
    return np.asarray((1 - rho) * (1 + rho) / ((1 - rho) ** 2 + 4 * rho * np.sin(frequency / 2) ** 2))


@functools.lru_cache(maxsize=REMEMBERED)
def _toeplitz_variances(column: bytes) -> np.ndarray:
    """The eigenvalues of the symmetric Toeplitz matrix with this first column, ascending."""
    from scipy.linalg import eigvalsh

    return np.sort(np.concatenate([eigvalsh(part) for part in _halves(np.frombuffer(column)) if part.size]))


@functools.lru_cache(maxsize=REMEMBERED)
def _toeplitz_modes(column: bytes, lags: int) -> Modes:
    """The eigenvalues of the symmetric Toeplitz matrix, and the autocorrelations of its eigenvectors."""
    from scipy.fft import irfft, rfft

    values, vectors = _toeplitz_eigenvectors(np.frombuffer(column))
    power = np.abs(rfft(vectors, 2 * values.size, axis=0)) ** 2
    weights = 2 * irfft(power, 2 * values.size, axis=0)[:lags]   # each distance but 0 goes to both sides
    weights[0] = 1
    return Modes(values, np.ascontiguousarray(weights.T), np.ones(values.size))


def _toeplitz_eigenvectors(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, and eigenvectors in columns: each is its own mirror image, or the opposite of it."""
    from scipy.linalg import eigh

    length, half = column.size, column.size // 2
    values, vectors = np.empty(length), np.zeros((length, length))
    alike, opposite = _halves(column)
    values[half:], inner = eigh(alike)
    vectors[:half, half:], vectors[half : length - half, half:] = inner[:half] / np.sqrt(2), inner[half:]
    vectors[length - half :, half:] = vectors[:half, half:][::-1]
    if half:
        values[:half], inner = eigh(opposite)
        vectors[:half, :half] = inner / np.sqrt(2)
        vectors[length - half :, :half] = -vectors[:half, :half][::-1]
    order = np.argsort(values)
    return values[order], vectors[:, order]


def _halves(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A symmetric Toeplitz matrix on the vectors that equal their mirror image, and on those that are its opposite.

    A matrix that looks the same from both ends mixes the two never: two problems of half the size cost a quarter.
    """
    from scipy.linalg import toeplitz

    length, half = column.size, column.size // 2
    matrix = toeplitz(column)
    near, far = matrix[:half, :half], matrix[:half, length - half :][:, ::-1]
    middle = np.sqrt(2) * matrix[:half, half : length - half]
    return np.block([[near + far, middle], [middle.T, matrix[half : length - half, half : length - half]]]), near - far
