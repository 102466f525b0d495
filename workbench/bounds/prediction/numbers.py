"""Prediction errors as whole numbers in units of a limit, as codecs code them, and the entropies of samples of these."""

from __future__ import annotations

import numpy as np

from workbench import backend

FINE = 48.0            # numbers up to this are counted in a sample; finer bounds add bits that are known
MOST_SIZE = 1e15       # of an error in units of a limit
MOST_NUMBER = backend.constant("imitation.cu", "MOST_NUMBER")
KINDS = backend.constant("imitation.cu", "KINDS")   # of numbers that are told apart


def in_limits(errors: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Errors in units of each limit, a row for each; far too large ones count as `MOST_SIZE`."""
    return np.clip(errors[..., None, :] / limits[:, None], -MOST_SIZE, MOST_SIZE).astype(np.float32)


def rounded(sizes: np.ndarray) -> np.ndarray:
    """The whole numbers that a codec codes."""
    return np.clip(np.rint(sizes), -MOST_NUMBER, MOST_NUMBER)


def entropies(numbers: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The entropy along the last axis in bits, with the correction of Miller and Madow for numbers that a sample misses.

    Weights add up to one; without them, all numbers count alike.

    >>> entropies(np.arange(4.0).repeat(1000)).round(2).tolist()
    2.0
    """
    shape, count = numbers.shape[:-1], numbers.shape[-1]
    weight = np.full(count, 1 / count) if weights is None else weights.astype(np.float64, copy=False)
    whole = np.ascontiguousarray(numbers, np.int32).reshape(-1, count)
    bits = np.empty(len(whole))
    backend.kernel("imitation", "count_rows")(1, len(whole), count, whole, weight, *table(count), bits)
    return bits.reshape(shape)


def table(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Room in which a kernel counts so many numbers of a row, then those of the next."""
    return np.empty(count, np.uint16), np.empty(KINDS)
