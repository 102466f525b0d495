"""Integers as differences to their neighbours along the axes of a grid: small where the field is smooth, and invertible.

A difference that leaves the range of the integers wraps around, and back again when it is undone.
"""

from __future__ import annotations

import math

import numpy as np

RUNS, RUN = 64, 1024     # numbers in a row, with which the axes are chosen
AT_ONCE = 2**16          # numbers that are subtracted together


def differenced(numbers: np.ndarray) -> tuple[np.ndarray, int]:
    """The numbers after differences along each axis that makes them smaller, and which axes those were, a bit each.

    >>> numbers, axes = differenced(np.array([5, 6, 7, 8]))
    >>> numbers.tolist(), axes, summed(numbers, axes).tolist()
    ([5, 1, 1, 1], 1, [5, 6, 7, 8])
    """
    places = _sampled(numbers.size)
    axes, bits, changed = 0, _typical_bits(numbers.reshape(-1)[places]), numbers
    for axis in range(numbers.ndim):
        if (bits_then := _typical_bits(_differences_at(changed, axis, places))) < bits:
            changed = numbers.copy() if changed is numbers else changed
            _subtract_before(changed, axis)
            bits, axes = bits_then, axes | 1 << axis
    return changed, axes


def summed(numbers: np.ndarray, axes: int) -> np.ndarray:
    """The numbers from their differences, in place."""
    for axis in range(numbers.ndim):
        if axes >> axis & 1:
            np.add.accumulate(numbers, axis=axis, dtype=numbers.dtype, out=numbers)
    return numbers


def _differences_at(numbers: np.ndarray, axis: int, places: np.ndarray) -> np.ndarray:
    """Each number at these places less the one before it along the axis; the first stays."""
    flat, stride = numbers.reshape(-1), math.prod(numbers.shape[axis + 1 :])
    found = flat[places]
    later = places // stride % numbers.shape[axis] > 0
    found[later] -= flat[places[later] - stride]
    return found


def _subtract_before(numbers: np.ndarray, axis: int) -> None:
    """Subtract from each number the one before it along the axis, in place: the last first, a part at a time."""
    length, inner = numbers.shape[axis], math.prod(numbers.shape[axis + 1 :])
    lines = numbers.reshape(-1, length, inner)
    rows, outer = max(AT_ONCE // inner, 1), max(AT_ONCE // (length * inner), 1)
    for stop in range(length, 1, -rows):
        start = max(stop - rows, 1)
        for first in range(0, len(lines), outer):
            lines[first : first + outer, start:stop] -= lines[first : first + outer, start - 1 : stop - 1]


def _typical_bits(sample: np.ndarray) -> float:
    """About how many bits one of these numbers takes: the mean logarithm of its size."""
    return float(np.log2(1.0 + abs(sample.astype(np.float64))).mean())


def runs_of(numbers: np.ndarray) -> np.ndarray:
    """A sample: numbers in a row, from several places."""
    return numbers.reshape(-1)[_sampled(numbers.size)]


def _sampled(count: int) -> np.ndarray:
    """The places of a sample of so many numbers."""
    if count <= RUNS * RUN:
        return np.arange(count)
    starts = np.linspace(0, count - RUN, RUNS).astype(np.int64)
    return (starts[:, None] + np.arange(RUN)).reshape(-1)
