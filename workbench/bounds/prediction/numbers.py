"""Prediction errors as whole numbers in units of a limit, as codecs code them, and the entropies of samples of these."""

from __future__ import annotations

import math

import numpy as np

FINE = 48.0            # numbers up to this are counted in a sample; finer bounds add bits that are known
MOST_SIZE = 1e15       # of an error in units of a limit
MOST_NUMBER = 1 << 20  # a rounded prediction error beyond it counts as this: the codec stores such values otherwise
KINDS = 1 << 11        # of numbers that are counted apart; numbers that differ by a multiple of it are too rare to matter


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
    weight = np.full(count, 1 / count) if weights is None else weights.astype(np.float64)   # np.bincount converts slowly
    kind = numbers.astype(np.int64).reshape(-1, count) & (KINDS - 1)
    rows, single = len(kind), weight.astype(np.float32)
    kind += np.arange(0, rows * KINDS, KINDS)[:, None]
    share = np.bincount(kind.reshape(-1), np.tile(weight, rows), rows * KINDS).take(kind).astype(np.float32)
    missed = ((1 / share) @ (single * single) - single @ single) / (2 * math.log(2))
    found: np.ndarray = missed - np.log2(share) @ single
    return found.astype(np.float64).reshape(shape)
