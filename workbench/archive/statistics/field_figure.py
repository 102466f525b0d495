"""What an operator on a field gives, as a user gets it: an array of values, each with a proven bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False, repr=False)
class FieldStatistic:
    """Figures of the original data on a grid: each is at most its bound away from its value, which is proven.

    `bound` is a number where it is the same for all values, else an array of their shape, perhaps one that repeats a row.
    Values that need a masked or non-finite cell are NaN. Those beyond the largest number are infinite, as is their bound.

    >>> FieldStatistic("laplacian", np.zeros((3, 4)), 0.5, "values", 100, 2000, 2)
    FieldStatistic(laplacian of 3 x 4, float64, bound 0.5, from values, 100 of 2,000 bytes read, 2 missing)
    """

    name: str
    values: np.ndarray
    bound: float | np.ndarray
    stage: str           # what had to be decoded
    bytes_read: int      # of the chunks: those that the answer was computed from
    bytes_stored: int    # of all chunks of the values and of their mask
    missing: int         # values that are NaN

    @property
    def low(self) -> np.ndarray:
        """The lower end of each interval."""
        return self._end(-1)

    @property
    def high(self) -> np.ndarray:
        """The upper end of each interval."""
        return self._end(1)

    def _end(self, sign: int) -> np.ndarray:
        """The end on one side, rounded away from the value."""
        with np.errstate(over="ignore", invalid="ignore"):
            exact = self.values.astype(np.float64) + sign * np.asarray(self.bound, np.float64)
            end = np.nextafter(exact.astype(self.values.dtype), self.values.dtype.type(sign * np.inf))
        return np.where(np.isinf(self.bound) & ~np.isnan(self.values), sign * np.inf, end).astype(self.values.dtype)

    def __repr__(self) -> str:
        shape, missing = " x ".join(map(str, self.values.shape)), f", {self.missing:,} missing" if self.missing else ""
        return (
            f"FieldStatistic({self.name} of {shape}, {self.values.dtype}, bound {self._bounds()}, from {self.stage}, "
            f"{self.bytes_read:,} of {self.bytes_stored:,} bytes read{missing})"
        )

    def _bounds(self) -> str:
        if isinstance(self.bound, float):
            return f"{self.bound:.4g}"
        return f"{np.nanmin(self.bound):.4g} to {np.nanmax(self.bound):.4g}" if not np.isnan(self.bound).all() else "nan"
