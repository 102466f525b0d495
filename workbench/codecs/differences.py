"""Integers as differences to their neighbours along the axes of a grid: small where the field is smooth, and invertible.

A difference that leaves the range of the integers wraps around, and back again when it is undone.
"""

from __future__ import annotations

import numpy as np

RUNS, RUN = 64, 1024     # numbers in a row, with which the axes are chosen


def differenced(numbers: np.ndarray) -> tuple[np.ndarray, int]:
    """The numbers after differences along each axis that makes them smaller, and which axes those were, a bit each.

    >>> numbers, axes = differenced(np.array([5, 6, 7, 8]))
    >>> numbers.tolist(), axes, summed(numbers, axes).tolist()
    ([5, 1, 1, 1], 1, [5, 6, 7, 8])
    """
    axes, bits = 0, _typical_bits(numbers)
    for axis in range(numbers.ndim):
        fewer = _differences(numbers, axis)
        if (bits_then := _typical_bits(fewer)) < bits:
            numbers, bits, axes = fewer, bits_then, axes | 1 << axis
    return numbers, axes


def summed(numbers: np.ndarray, axes: int) -> np.ndarray:
    """The numbers from their differences, in place."""
    for axis in range(numbers.ndim):
        if axes >> axis & 1:
            np.add.accumulate(numbers, axis=axis, dtype=numbers.dtype, out=numbers)
    return numbers


def _differences(numbers: np.ndarray, axis: int) -> np.ndarray:
    """Each number less the one before it along the axis; the first stays."""
    result = np.empty_like(numbers)
    source, target = np.moveaxis(numbers, axis, 0), np.moveaxis(result, axis, 0)
    target[0] = source[0]
    np.subtract(source[1:], source[:-1], out=target[1:])
    return result


def _typical_bits(numbers: np.ndarray) -> float:
    """About how many bits a number takes: the mean logarithm of its size, over a sample."""
    return float(np.log2(1.0 + abs(runs_of(numbers).astype(np.float64))).mean())


def runs_of(numbers: np.ndarray) -> np.ndarray:
    """A sample: numbers in a row, from several places."""
    flat = numbers.reshape(-1)
    if flat.size <= RUNS * RUN:
        return flat
    starts = np.linspace(0, flat.size - RUN, RUNS).astype(np.int64)
    return flat[(starts[:, None] + np.arange(RUN)).reshape(-1)]
