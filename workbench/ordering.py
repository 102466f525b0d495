"""Sorting by integer key, and finding runs of equal keys, on either machine.

Cells, blocks and space-filling curves all come from the same two steps: sort 64-bit keys, then find where they change.
On a GPU the sort is CuPy's radix sort. NumPy has no radix sort for 64-bit keys, so on a CPU it is the one in
`kernels/ordering.cu`; both are stable, so the order is the same.
"""

from __future__ import annotations

import numpy as np

from workbench import backend
from workbench.backend import Array

MOST_DIGIT_BITS = 11   # as in kernels/ordering.cu


def sort_by_key(key: Array, bits: int, scratch: Array | None = None) -> Array:
    """Sort keys (uint64, less than 2**bits) in place; the stable order (int32) that sorts them is returned.

    `scratch` is an array that may be overwritten. If it has 12 bytes per key, only the order is allocated on a CPU;
    on a GPU, CuPy's sort allocates what it needs, and no scratch should be made for it.

    >>> key = np.array([7, 2, 7, 0], np.uint64)
    >>> sort_by_key(key, bits=3).tolist(), key.tolist()
    ([3, 1, 0, 2], [0, 2, 7, 7])
    """
    xp = backend.namespace(key)
    if backend.on_device(key):
        order = xp.argsort(key, kind="stable").astype(xp.int32)
        key[...] = key[order]
        return order
    order = np.arange(len(key), dtype=np.int32)
    target = _scratch(scratch, len(key))
    source = (key, order)
    passes = 2 * -(-bits // (2 * MOST_DIGIT_BITS))   # after an even number, the result is in `key`
    digit_bits = -(-bits // max(passes, 1))
    for number in range(passes):
        _sort_by_digit(source, target, number * digit_bits, digit_bits)
        source, target = target, source
    return order


def _scratch(memory: Array | None, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Room for as many keys and values."""
    if memory is None or memory.nbytes < 12 * count:
        return np.empty(count, np.uint64), np.empty(count, np.int32)
    room = memory.reshape(-1).view(np.uint8)
    return room[: 8 * count].view(np.uint64), room[8 * count : 12 * count].view(np.int32)


def _sort_by_digit(
    source: tuple[np.ndarray, np.ndarray], target: tuple[np.ndarray, np.ndarray], shift: int, digit_bits: int
) -> None:
    """Sort keys and values by one digit of the keys, from source to target."""
    count, digits = len(source[0]), 1 << digit_bits
    chunks = backend.chunks(count, source[0])
    counts = np.empty(digits * chunks, np.int64)
    backend.kernel("ordering", "count_digits")(chunks, count, source[0], shift, digits, counts)
    place = backend.kernel("ordering", "place_by_digit")
    place(chunks, count, *source, shift, digits, _running_sum(counts), *target)


def gather_rows(table: Array, order: Array, out: Array | None = None) -> Array:
    """The rows of a table (N, 2) or (N, 3) of floats in another order (int32); into `out` when given.

    >>> gather_rows(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1, 0], np.int32)).tolist()
    [[2.0, 3.0], [0.0, 1.0]]
    """
    xp = backend.namespace(table)
    gathered = xp.empty((len(order), table.shape[1]), table.dtype) if out is None else out
    backend.kernel("ordering", "gather_rows", table.dtype, table.shape[1])(len(order), table, order, gathered)
    return gathered


def run_starts(key: Array, shift: int = 0) -> Array:
    """Where `key >> shift` changes in sorted keys: the first index of every run (int32), then the length of `key`.

    >>> run_starts(np.array([2, 3, 8, 9, 9], np.uint64), shift=1).tolist()
    [0, 2, 5]
    """
    xp = backend.namespace(key)
    chunks = backend.chunks(len(key), key)
    counts = xp.empty(chunks, xp.int64)
    backend.kernel("ordering", "count_runs")(chunks, len(key), key, shift, counts)
    first = _running_sum(counts)
    runs = int(first[-1] + counts[-1])
    start = xp.empty(runs + 1, xp.int32)
    backend.kernel("ordering", "place_runs")(chunks, len(key), key, shift, first, start)
    start[runs] = len(key)
    return start


def _running_sum(counts: Array) -> Array:
    """The exclusive prefix sum."""
    xp = backend.namespace(counts)
    total = xp.cumsum(counts)
    return total - counts
