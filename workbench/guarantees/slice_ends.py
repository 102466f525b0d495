"""The smallest and the largest value of each slice of a field along one axis; those of parts of the field join."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench import backend
from workbench.backend import Array


@dataclass(frozen=True, eq=False)
class SliceEnds:
    """The ends of some slices that follow each other; of a slice without finite, valid values, zeros.

    >>> SliceEnds.of(np.array([[1.0, 3.0], [np.nan, 5.0]]), axis=0).between(0)
    (1.0, 3.0)
    """

    low: np.ndarray
    high: np.ndarray
    filled: np.ndarray   # which slices have a finite, valid value

    @classmethod
    def of(cls, values: Array, axis: int, valid: Array | None = None) -> Self:
        """Those of an array; only finite values that are `valid` (by default all) count."""
        xp = backend.namespace(values)
        counted = xp.isfinite(values) if valid is None else xp.isfinite(values) & valid
        others = tuple(other for other in range(values.ndim) if other != axis)
        first, last = _extremes(values.dtype)
        low = xp.where(counted, values, last).min(axis=others)
        high = xp.where(counted, values, first).max(axis=others)
        return cls(*map(backend.to_host, (low, high, counted.any(axis=others))))

    @classmethod
    def joined(cls, count: int, parts: Iterable[tuple[int, SliceEnds]]) -> Self:
        """Those of all slices, from parts of a field and where these begin along the axis."""
        whole: Self | None = None
        for start, part in parts:
            if whole is None:
                first, last = _extremes(part.low.dtype)
                whole = cls(*(np.full(count, value) for value in (last, first, np.False_)))
            here = slice(start, start + len(part.low))
            np.minimum(whole.low[here], part.low, out=whole.low[here])
            np.maximum(whole.high[here], part.high, out=whole.high[here])
            whole.filled[here] |= part.filled
        assert whole is not None   # a field has at least one part
        return whole

    def __len__(self) -> int:
        return len(self.low)

    def between(self, slice_number: int) -> tuple[float, float]:
        """The ends of one slice; of integers, as `int`."""
        if not self.filled[slice_number]:
            return 0.0, 0.0
        return self.low[slice_number].item(), self.high[slice_number].item()


def _extremes(dtype: np.dtype) -> tuple[np.generic, np.generic]:
    """The least and the greatest number of a type."""
    if dtype.kind == "f":
        return dtype.type(-np.inf), dtype.type(np.inf)
    return dtype.type(np.iinfo(dtype).min), dtype.type(np.iinfo(dtype).max)
