"""Sorting by integer key, and finding runs of equal keys, on either machine.

Cells, blocks and space-filling curves all come from the same two steps: sort 64-bit keys, then see where they change.
On a GPU the sort is CuPy's radix sort. NumPy has no radix sort for 64-bit keys, so on a CPU it is the one in
`kernels/ordering.cu`; both are stable, so the order is the same.
"""

from __future__ import annotations

import numpy as np

from workbench import backend
from workbench.backend import Array

DIGIT_BITS = 11   # as in kernels/ordering.cu


def sort_by_key(key: Array, bits: int) -> tuple[Array, Array]:
    """The sorted keys (uint64, less than 2**bits) and the stable order (int32) that sorts them; `key` is used up.

    >>> key, order = sort_by_key(np.array([7, 2, 7, 0], np.uint64), bits=3)
    >>> key.tolist(), order.tolist()
    ([0, 2, 7, 7], [3, 1, 0, 2])
    """
    xp = backend.namespace(key)
    if backend.on_device(key):
        order = xp.argsort(key, kind="stable").astype(xp.int32)
        return key[order], order
    count = len(key)
    chunks = backend.chunks(count, key)
    order = np.arange(count, dtype=np.int32)
    counts = np.empty((1 << DIGIT_BITS) * chunks, np.int64)
    spare_key, spare_order = np.empty_like(key), np.empty_like(order)
    for shift in range(0, bits, DIGIT_BITS):
        backend.kernel("ordering", "count_digits")(chunks, count, key, shift, counts)
        first = _running_sum(counts)
        place = backend.kernel("ordering", "place_by_digit")
        place(chunks, count, key, order, shift, first, spare_key, spare_order)
        key, spare_key = spare_key, key
        order, spare_order = spare_order, order
    return key, order


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
    """The sum of everything before each entry."""
    xp = backend.namespace(counts)
    total = xp.cumsum(counts)
    return total - counts
