"""What a pass over values finds: their ends, their statistics, and whether any is masked; those of parts add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench import backend
from workbench.archive.plausibility import Statistics
from workbench.backend import Array


@dataclass(frozen=True)
class Survey:
    """The smallest and largest valid value, statistics, and whether any value is masked.

    >>> both = Survey.of(np.array([1.0, np.nan])) + Survey.of(np.array([3.0]))
    >>> both.ends.tolist(), both.statistics.mean
    ([1.0, 3.0], 2.0)
    """

    ends: np.ndarray
    statistics: Statistics
    masked: bool

    @classmethod
    def of(cls, values: Array, mask: Array | None = None) -> Self:
        """The survey of some values."""
        finite = backend.namespace(values).isfinite(values)
        valid = values[finite if mask is None else finite & ~mask]
        ends = np.array([valid.min(), valid.max()], valid.dtype) if valid.size else np.empty(0, values.dtype)
        return cls(ends, Statistics.of(values, mask), mask is not None)

    def __add__(self, other: Survey) -> Survey:
        ends = np.concatenate([self.ends, other.ends])
        both = np.array([ends.min(), ends.max()], ends.dtype) if ends.size else ends
        return Survey(both, self.statistics + other.statistics, self.masked or other.masked)
