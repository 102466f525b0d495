"""Whether decoded values keep what was promised: the one place that decides it.

The comparison is exact: |x - y| <= eb is decided without rounding, to the last bit and at both ends of the range
(`kernels/bounds.cu` says how). A check that rounds would accept a codec that breaks its bound by half a bit, or refuse one
that does not, and two checkers could disagree about the same archive.

Values without an error measure (NaN with its payload, infinities, masked values) must be bit-identical, and so must all
values under a limit of zero. Integers are compared as integers (`whole_numbers.py`). In a periodic box the distance is the
shorter way round, and decoded positions must lie in the box, as every other program expects.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.guarantees import whole_numbers
from workbench.guarantees.bounds import Limit

Period = Sequence[float] | None   # the lengths of a periodic box, one for each column of (N, D) positions


@dataclass(frozen=True, eq=False)
class Check:
    """Where a promise is broken (flat indices, int64, increasing), and the largest error anywhere.

    The error is in the unit of the limit: of the values, or relative to each. It is rounded, but never to more than the
    limit of a promise that is kept. It is infinite where a value is missing (not finite, or masked) on either side and
    the bits differ.
    """

    broken: Array
    largest_error: float

    @property
    def holds(self) -> bool:
        """Whether the promise is kept everywhere."""
        return int(self.broken.size) == 0


def check(original: Array, decoded: Array, limit: Limit, period: Period = None, mask: Array | None = None) -> Check:
    """Compare decoded values with the original ones; where `mask` is true, they must be bit-identical.

    >>> check(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.5, 3.25]), Limit("absolute", 0.25))
    Check(broken=array([1]), largest_error=0.5)
    """
    _check_alike(original, decoded, mask)
    lengths = _lengths(period, original.shape)
    xp = backend.namespace(original, decoded)
    original, decoded = (xp.ascontiguousarray(array).reshape(-1) for array in (original, decoded))
    if original.dtype.kind in "iu":
        return Check(*whole_numbers.broken(original, decoded, limit, None if mask is None else mask.reshape(-1)))
    periods = xp.asarray(lengths, dtype=xp.float64)
    if mask is None:
        return _compare(original, decoded, limit, periods)
    mask, zero = mask.reshape(-1), original.dtype.type(0)
    shown = _compare(xp.where(mask, zero, original), xp.where(mask, zero, decoded), limit, periods)
    changed = xp.flatnonzero(mask & (bits_of(original) != bits_of(decoded)))
    broken = xp.sort(xp.concatenate([shown.broken, changed]))
    return Check(broken, math.inf if changed.size else shown.largest_error)


def check_pieces(
    original: Array, decoded: Array, rows: int, limit: Limit, period: Period = None
) -> tuple[np.ndarray, np.ndarray]:
    """How many values break the promise in each piece of so many rows of floats, and the largest error of each piece.

    >>> counts, errors = check_pieces(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.5, 3.5]), 2, Limit("absolute", 0.25))
    >>> counts.tolist(), errors.tolist()
    ([1, 1], [0.5, 0.5])
    """
    _check_alike(original, decoded, None)
    xp = backend.namespace(original, decoded)
    piece = min(rows, len(original)) * (original.size // len(original))
    lengths = xp.asarray(_lengths(period, original.shape), dtype=xp.float64)
    original, decoded = (xp.ascontiguousarray(array).reshape(-1) for array in (original, decoded))
    counts, largest, _ = _counted(original, decoded, limit, lengths, piece)
    pieces = -(-original.size // piece)
    found = xp.stack([counts.reshape(pieces, -1).sum(axis=1).astype(xp.float64), largest.reshape(pieces, -1).max(axis=1)])
    host = backend.to_host(found)
    return host[0].astype(np.int64), host[1]


def bits_of(values: Array) -> Array:
    """The bits of numbers, as unsigned integers of the same width."""
    return values.view(f"u{values.dtype.itemsize}")


def _compare(original: Array, decoded: Array, limit: Limit, periods: Array) -> Check:
    """The check of two flat arrays: broken values are counted first, and located only if there are any."""
    counts, largest, given = _counted(original, decoded, limit, periods, max(original.size, 1))
    xp = backend.namespace(original)
    ends = xp.cumsum(counts)
    broken, error = backend.to_host(xp.stack([ends[-1].astype(xp.float64), largest.max()])).tolist()   # the host waits once
    index = xp.empty(int(broken), xp.int64)
    if index.size:
        backend.kernel("bounds", "place_broken", original.dtype)(len(counts), *given, ends - counts, index)
    return Check(index, error)


def _counted(
    original: Array, decoded: Array, limit: Limit, periods: Array, piece: int
) -> tuple[Array, Array, tuple[Any, ...]]:
    """How many values of each chunk are broken, and the largest error of each; and what the kernels are given.

    Every piece of so many values has equally many chunks.
    """
    xp, size = backend.namespace(original), original.size
    parts = backend.chunks(min(piece, size), original)
    chunks = parts * max(-(-size // piece), 1)
    counts, largest = xp.empty(chunks, xp.int64), xp.empty(chunks, xp.float64)
    given = original, decoded, limit.value, int(limit.relative), periods.size, periods
    backend.kernel("bounds", "count_broken", original.dtype)(chunks, parts, size, piece, *given, counts, largest)
    return counts, largest, (size, *given)


def _check_alike(original: Array, decoded: Array, mask: Array | None) -> None:
    if original.dtype not in (np.float32, np.float64) and original.dtype.kind not in "iu":
        raise WorkbenchError(f"original values must be float32, float64 or integers; got {original.dtype}")
    if original.shape != decoded.shape or original.dtype != decoded.dtype:
        raise WorkbenchError(
            f"decoded values must be {original.dtype} of shape {tuple(original.shape)}, as the original ones are; "
            f"got {decoded.dtype} of shape {tuple(decoded.shape)}"
        )
    shape = tuple(original.shape)
    if mask is not None and (mask.dtype != bool or mask.shape != shape):
        raise WorkbenchError(f"mask must be boolean of shape {shape}; got {mask.dtype} of shape {tuple(mask.shape)}")


def _lengths(period: Period, shape: tuple[int, ...]) -> list[float]:
    """One period for each column of the values; a single zero means that there is none."""
    if period is None:
        return [0.0]
    lengths = [float(length) for length in period]
    if len(shape) != 2 or len(lengths) != shape[1] or not all(0 < length < math.inf for length in lengths):
        raise WorkbenchError(f"period must be one positive length for each column of {tuple(shape)} values; got {lengths}")
    return lengths
