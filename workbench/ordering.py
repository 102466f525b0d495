"""Sorting by integer key, and finding runs of equal keys, on either machine.

Cells, blocks and space-filling curves all come from the same two steps: sort 64-bit keys, then find where they change.
Where a key and the number of its place fit into 64 bits together, as they do for 10^8 particles in usual cells, one word
carries both: less memory is moved, and a sort of words without a payload is the stable sort of the keys. On a GPU the
sort is CuPy's radix sort. NumPy has none for 64-bit keys, so on a CPU it is the one in `kernels/ordering.cu`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array

WORD_BITS = 64
MOST_DIGIT_BITS = 11   # as in kernels/ordering.cu


def stored_index(count: int) -> np.dtype:
    """The type in which checksums take the indices of so many particles, and the labels that are such indices.

    >>> stored_index(10), stored_index(10_000_000_000)
    (dtype('int32'), dtype('int64'))
    """
    return np.dtype("<i4" if count <= 2**31 else "<i8")


def sort_by_key(key: Array, bits: int, scratch: Array | None = None) -> Array:
    """Sort keys (uint64, less than 2**bits) in place; the stable order (int32) that sorts them is returned.

    `scratch` is an array that may be overwritten. If it has 12 bytes per key, only the order is allocated on a CPU;
    on a GPU, CuPy's sort allocates what it needs, and no scratch should be made for it.

    >>> key = np.array([7, 2, 7, 0], np.uint64)
    >>> sort_by_key(key, bits=3).tolist(), key.tolist()
    ([3, 1, 0, 2], [0, 2, 7, 7])
    """
    place_bits = max(len(key) - 1, 1).bit_length()
    in_words = bits + place_bits <= WORD_BITS
    if backend.on_device(key):
        return _device_words(key, place_bits) if in_words else _device_pairs(key)
    return _host_words(key, bits, place_bits, scratch) if in_words else _host_pairs(key, bits, scratch)


def _device_words(key: Array, place_bits: int) -> Array:
    xp = backend.namespace(key)
    order = xp.empty(len(key), xp.int32)
    backend.kernel("ordering", "join_words")(len(key), place_bits, key)
    key.sort()
    backend.kernel("ordering", "split_words")(len(key), place_bits, key, order)
    return order


def _device_pairs(key: Array) -> Array:
    xp = backend.namespace(key)
    order = xp.argsort(key, kind="stable").astype(xp.int32)
    key[...] = key[order]
    return order


def _host_words(key: np.ndarray, bits: int, place_bits: int, scratch: Array | None) -> np.ndarray:
    order = np.arange(len(key), dtype=np.int32) if bits == 0 else np.empty(len(key), np.int32)
    passes, digit_bits = _passes(bits)
    source, target = key, array_in(scratch, len(key), np.uint64)
    place = backend.kernel("ordering", "place_words")
    for number in range(passes):
        joins, splits, shift = number == 0, number == passes - 1, number * digit_bits
        first = _first_of_digits(source, shift if joins else shift + place_bits, digit_bits)
        place(
            _chunks(source), len(key), source, place_bits, int(joins), int(splits), shift + place_bits, 1 << digit_bits,
            first, target, order if splits else order[:0],
        )
        source, target = target, source
    return order


def _host_pairs(key: np.ndarray, bits: int, scratch: Array | None) -> np.ndarray:
    order = np.arange(len(key), dtype=np.int32)
    passes, digit_bits = _passes(bits)
    room = None if scratch is None else scratch.reshape(-1).view(np.uint8)
    source = key, order
    beyond = None if room is None else room[8 * len(key) :]
    target = array_in(room, len(key), np.uint64), array_in(beyond, len(key), np.int32)
    place = backend.kernel("ordering", "place_by_digit")
    for number in range(passes):
        shift = number * digit_bits
        first = _first_of_digits(source[0], shift, digit_bits)
        place(_chunks(key), len(key), *source, shift, 1 << digit_bits, first, *target)
        source, target = target, source
    return order


def _passes(bits: int) -> tuple[int, int]:
    """The number of passes, even so that the result ends where the keys began, and the bits of a digit."""
    passes = 2 * -(-bits // (2 * MOST_DIGIT_BITS))
    return passes, -(-bits // max(passes, 1))


def array_in(memory: Array | None, count: int, dtype: type, xp: Any = np) -> Array:
    """An array of so many numbers, in this memory if it is large enough."""
    size = count * np.dtype(dtype).itemsize
    if memory is None or memory.nbytes < size:
        return xp.empty(count, dtype)
    return memory.reshape(-1).view(np.uint8)[:size].view(dtype)


def _first_of_digits(source: np.ndarray, shift: int, digit_bits: int) -> np.ndarray:
    """Where each chunk places its first number of each digit."""
    chunks, digits = _chunks(source), 1 << digit_bits
    counts = np.empty(digits * chunks, np.int64)
    backend.kernel("ordering", "count_digits")(chunks, len(source), source, shift, digits, counts)
    return _running_sum(counts)


def _chunks(array: np.ndarray) -> int:
    return backend.chunks(len(array), array)


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
    counts = _run_counts(key, shift)
    return _run_starts(key, shift, counts, int(counts.sum()))


def nested_run_starts(key: Array, shifts: tuple[int, int]) -> tuple[Array, int]:
    """The starts of the runs of `key >> shifts[0]`, and how many there are of `key >> shifts[1]`, a larger shift.

    The host waits once for a GPU.

    >>> starts, wider = nested_run_starts(np.array([2, 3, 8, 9, 9], np.uint64), (0, 1))
    >>> starts.tolist(), wider
    ([0, 1, 2, 3, 5], 2)
    """
    xp = backend.namespace(key)
    chunks = backend.chunks(len(key), key)
    counts = xp.empty((2, chunks), xp.int64)
    backend.kernel("ordering", "count_nested_runs")(chunks, len(key), key, *shifts, counts)
    runs, wider = backend.numbers(*counts.sum(axis=1))
    return _run_starts(key, shifts[0], counts[0], runs), wider


def known_run_starts(key: Array, shift: int, runs: int) -> Array:
    """The same as `run_starts` where the number of runs is known.

    >>> known_run_starts(np.array([2, 3, 8, 9, 9], np.uint64), 1, 2).tolist()
    [0, 2, 5]
    """
    return _run_starts(key, shift, _run_counts(key, shift), runs)


def _run_counts(key: Array, shift: int) -> Array:
    """How many runs begin in each chunk."""
    chunks = backend.chunks(len(key), key)
    counts = backend.namespace(key).empty(chunks, np.int64)
    backend.kernel("ordering", "count_runs")(chunks, len(key), key, shift, counts)
    return counts


def _run_starts(key: Array, shift: int, counts: Array, runs: int) -> Array:
    start = backend.namespace(key).empty(runs + 1, np.int32)
    backend.kernel("ordering", "place_runs")(len(counts), len(key), key, shift, _running_sum(counts), start)
    start[runs] = len(key)
    return start


def count_of(flags: Array) -> Array:
    """How many flags (bool) are set: a number where the flags are. NumPy's sum takes several times as long.

    >>> int(count_of(np.array([True, False, True])))
    2
    """
    return np.count_nonzero(flags) if backend.namespace(flags) is np else flags.sum()


def places_of(flags: Array, count: int) -> Array:
    """Where flags (bool) are set, of which it is known how many are: so that the host need not wait for a GPU.

    >>> places_of(np.array([True, False, True]), 2).tolist()
    [0, 2]
    """
    xp = backend.namespace(flags)
    if xp is np:
        return np.flatnonzero(flags)
    if not count:
        return xp.empty(0, np.int64)
    return xp.searchsorted(xp.cumsum(flags, dtype=np.int64), xp.arange(1, count + 1))


def repeated(values: Array, counts: Array, total: int) -> Array:
    """Each of these values so many times, `total` in all: CuPy's `repeat` takes no array, or waits for its sum.

    >>> repeated(np.array([7, 8, 9]), np.array([2, 0, 1]), 3).tolist()
    [7, 7, 9]
    """
    xp = backend.namespace(values, counts)
    if xp is np:
        return np.repeat(values, counts)
    return values[xp.searchsorted(xp.cumsum(counts), xp.arange(total), side="right")]


def _running_sum(counts: Array) -> Array:
    """The exclusive prefix sum."""
    xp = backend.namespace(counts)
    total = xp.cumsum(counts)
    return total - counts
