"""Eigenvectors of the covariance matrix of one axis, with their variances and autocorrelations.

On a box, products of these vectors, one per axis, form the natural transform basis. It diagonalises a separable covariance
exactly; then only the variance of each vector v is needed. For other covariances its autocorrelation, the sum of
v[i] v[i + lag], is needed: the variance of a product of vectors is the sum over all lags of the covariance times the
product of the autocorrelations. So no matrix larger than one axis is diagonalised.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from workbench.limits.correlation import Autoregressive, Correlation

REMEMBERED = 8   # axes; each may take tens of megabytes


@dataclass(frozen=True, eq=False)
class Modes:
    """The eigenvectors of an axis by ascending variance (for unit signal), and the weight of each lag in each of them.

    A mode that represents several has their mean weights. For a separable covariance, `weights` has one column, which is
    the variance itself.
    """

    variances: np.ndarray
    weights: np.ndarray   # (mode, lag)
    counts: np.ndarray

    @property
    def frequencies(self) -> np.ndarray:
        """About the angular frequency of each: those of larger variance are longer waves."""
        above = self.counts[::-1].cumsum()[::-1]
        return np.asarray(np.pi * (above - 0.5 * self.counts) / self.counts.sum())

    def grouped(self, classes: int) -> Modes:
        """Merge modes of nearly equal variance into at most `classes` logarithmic classes of equal width."""
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
    """The modes of an axis of `length` points."""
    if isinstance(correlation, Autoregressive):
        variances = _recursion_variances(length, abs(correlation.rhos[axis]))
        return Modes(variances, variances[:, None], np.ones(length))
    column = correlation.along(axis, length) / correlation.signal
    if correlation.separable:
        variances = _toeplitz_variances(column.tobytes())
        return Modes(variances, variances[:, None], np.ones(length))
    return _toeplitz_modes(column.tobytes(), correlation.reach(axis, length))


def sine_frequencies(length: int, rho: float, ends: int = 2) -> np.ndarray:
    """Ascending frequencies of the sines that diagonalise the recursion x[i] = rho x[i-1] + noise on `length` points.

    Kac, Murdock & Szego (1953): w solves (length + 1) w + ends * arg(1 - rho exp(-iw)) = pi j, for rho in [0, 1). A
    stationary recursion has two free ends; a recursion that starts at zero has one. The left side is concave and
    increasing, so Newton's method converges from below to all roots at once.
    """
    target = np.pi * np.arange(1, length + 1)
    frequency = (target - np.pi) / (length + 1)
    while True:
        half = 2 * np.sin(frequency / 2) ** 2   # 1 - cos(frequency), without cancellation
        phase = np.arctan2(rho * np.sin(frequency), 1 - rho + rho * half)
        slope = length + 1 + ends * rho * (1 - rho - half) / ((1 - rho) ** 2 + 2 * rho * half)
        step = (target - (length + 1) * frequency - ends * phase) / slope
        frequency = frequency + step
        if (np.abs(step) <= 1e-9 * frequency).all():   # Newton converges quadratically
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
    weights = 2 * irfft(power, 2 * values.size, axis=0)[:lags]   # each lag except 0 occurs with both signs
    weights[0] = 1
    return Modes(values, np.ascontiguousarray(weights.T), np.ones(values.size))


def _toeplitz_eigenvectors(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, and eigenvectors in columns: each is symmetric or antisymmetric."""
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
    """A symmetric Toeplitz matrix restricted to symmetric vectors, and to antisymmetric vectors.

    The matrix is centrosymmetric and never mixes the two subspaces. Two problems of half the size cost a quarter.
    """
    from scipy.linalg import toeplitz

    length, half = column.size, column.size // 2
    matrix = toeplitz(column)
    near, far = matrix[:half, :half], matrix[:half, length - half :][:, ::-1]
    middle = np.sqrt(2) * matrix[:half, half : length - half]
    return np.block([[near + far, middle], [middle.T, matrix[half : length - half, half : length - half]]]), near - far
