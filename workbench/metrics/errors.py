"""Pointwise errors of values: the maximum, the root mean square and the relative error, and the PSNR.

Differences are taken in float64, because a difference of two float32 values rounded to float32 can lie on the other side
of a bound; differences of integers are exact. The statistics are additive, so that parts of an array can be measured
independently and in any order; and they are computed chunk by chunk, with a few megabytes for an array of any size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.guarantees.whole_numbers import differences, distances, most_allowed
from workbench.metrics.pairs import chunks, field_pair, reshaped, valid_in


@dataclass(frozen=True, slots=True)
class Errors:
    """Error statistics of some values; the statistics of two parts add up to those of both.

    `count` is the number of valid values of the original: finite and not masked. `lost` of them were decoded as NaN,
    infinite or masked, so their error is infinite. The original has `invalid` other values; `invalid_changed` of these
    were not decoded bit for bit, and `nonfinite_changed` of the changed ones are not masked. `exceeding` is the number of
    errors beyond the bound, if one was given. `squares` is the sum of squared errors in units of the largest error, to
    avoid overflow and underflow.

    >>> part = pointwise([0.0, 1.0], [0.0, 1.5])
    >>> (part + pointwise([2.0, 3.0], [2.0, 2.0])).max_error
    1.0
    >>> part.rms_error, part.value_range, round(part.psnr, 4)
    (0.3535533905932738, 1.0, 9.0309)
    """

    count: int = 0
    lost: int = 0
    differing: int = 0
    exceeding: int = 0
    invalid: int = 0
    invalid_changed: int = 0
    nonfinite_changed: int = 0
    total: float = 0.0
    squares: float = 0.0
    max_error: float = 0.0
    max_relative_error: float = 0.0
    lowest: float = math.inf
    highest: float = -math.inf

    def __add__(self, other: Errors) -> Errors:
        peak = max(self.max_error, other.max_error)
        return Errors(
            **{name: getattr(self, name) + getattr(other, name) for name in _ADDED},
            squares=sum(part.squares * _square(part.max_error, peak) for part in (self, other)),
            max_error=peak,
            max_relative_error=max(self.max_relative_error, other.max_relative_error),
            lowest=min(self.lowest, other.lowest),
            highest=max(self.highest, other.highest),
        )

    @property
    def mean_error(self) -> float:
        """The mean of decoded - original, with its sign; NaN when a value was lost."""
        return self.total / self.count if self.count else math.nan

    @property
    def rms_error(self) -> float:
        """The root of the mean squared error; infinite when a value was lost."""
        if not self.count:
            return math.nan
        return self.max_error * math.sqrt(self.squares / self.count) if math.isfinite(self.max_error) else math.inf

    @property
    def value_range(self) -> float:
        """The largest valid value of the original less the smallest."""
        return self.highest - self.lowest if self.count else math.nan

    @property
    def psnr(self) -> float:
        """The peak signal-to-noise ratio in dB, the peak being the range of the original's values."""
        if self.value_range == math.inf:   # values from -1e308 to 1e308
            return psnr(self.highest / 4 - self.lowest / 4, self.rms_error / 4)
        return psnr(self.value_range, self.rms_error)

    @property
    def nrmse(self) -> float:
        """The rms error over the range of the original's values; NaN when that range is zero."""
        if self.value_range == math.inf:   # values from -1e308 to 1e308
            return self.rms_error / 4 / (self.highest / 4 - self.lowest / 4)
        return self.rms_error / self.value_range if self.value_range else math.nan

    @property
    def invalid_kept(self) -> bool:
        """Whether NaN, infinities and masked values are bit-identical."""
        return self.invalid_changed == 0


_ADDED = ("count", "lost", "differing", "exceeding", "invalid", "invalid_changed", "nonfinite_changed", "total")


def _square(part: float, whole: float) -> float:
    return (part / whole) ** 2 if part and math.isfinite(whole) else 0.0


def psnr(peak: float, rms_error: float) -> float:
    """20 log10(peak / rms error) in dB: infinite without an error, NaN without a peak.

    >>> psnr(1.0, 0.001)
    60.0
    """
    if not peak > 0 or math.isnan(rms_error):
        return math.inf if rms_error == 0 else math.nan
    if rms_error in (0.0, math.inf):
        return math.inf if rms_error == 0 else -math.inf
    return 20 * (math.log10(peak) - math.log10(rms_error))


def require_bound(bound: float | None) -> None:
    """Refuse what is no absolute error."""
    if bound is not None and not (_is_number(bound) and 0 <= bound < math.inf):
        raise WorkbenchError(f"bound must be a finite absolute error, not negative; got {bound!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def pointwise(original: Field | Array, decoded: Field | Array, bound: float | None = None) -> Errors:
    """The errors of a field, value by value; `exceeding` counts the errors above `bound`.

    Masked values of the original are not measured. A zero that was changed has an infinite relative error.

    >>> pointwise([1.0, 2.0, float("nan")], [1.0, 2.5, float("nan")], bound=0.25)
    Errors(count=2, lost=0, differing=1, exceeding=1, invalid=1, invalid_changed=0, nonfinite_changed=0, total=0.5,
           squares=1.0, max_error=0.5, max_relative_error=0.25, lowest=1.0, highest=2.0)
    """
    require_bound(bound)
    first, second = (reshaped(field) for field in field_pair(original, decoded))
    found = Errors()
    for part in chunks(first.values):
        found += _of_chunk(first, second, part, bound)
    return found


def _of_chunk(original: Field, decoded: Field, part: slice, bound: float | None) -> Errors:
    x, y = original.values[part], decoded.values[part]
    valid, arrived = valid_in(original, part), valid_in(decoded, part)
    measured = valid & arrived
    if bool(measured.all()):
        return _summary_of(x, y, bound)
    found = _summary_of(x[measured], y[measured], bound)
    masked = None if original.mask is None else original.mask[part]
    return found + _lost(int((valid & ~arrived).sum()), x[valid], bound) + _invalid(x, y, ~valid, masked)


def _summary_of(original: Array, decoded: Array, bound: float | None) -> Errors:
    found = summary(original.astype(np.float64), signed_errors(original, decoded), bound)
    if bound is None or not _alike(original, decoded):
        return found
    beyond = distances(original, decoded) > most_allowed(bound)   # integers: counted before any rounding
    return replace(found, exceeding=int(beyond.sum()))


def signed_errors(original: Array, decoded: Array) -> Array:
    """Decoded minus original in float64; of integers of one type, the exact differences, rounded once where beyond 2^53.

    >>> signed_errors(np.array([2**60]), np.array([2**60 + 1])).tolist()
    [1.0]
    """
    if _alike(original, decoded):
        return differences(original, decoded)
    with np.errstate(over="ignore"):   # an error beyond the largest number is infinite, and reported so
        return decoded.astype(np.float64) - original.astype(np.float64)


def _alike(original: Array, decoded: Array) -> bool:
    return original.dtype == decoded.dtype and original.dtype.kind in "iu"


def summary(reference: Array, error: Array, bound: float | None = None) -> Errors:
    """The statistics of known errors of valid values: float64 arrays of one shape, original values and differences.

    >>> summary(np.array([1.0, 4.0]), np.array([0.0, -0.5])).mean_error
    -0.25
    """
    if not reference.size:
        return Errors()
    xp = backend.namespace(reference, error)
    size = abs(error)
    peak = float(size.max())
    scaled = error / peak if 0 < peak < math.inf else xp.zeros_like(error)
    scaled *= scaled
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative = float(xp.where(size > 0, size / abs(reference), 0.0).max())
        total = float(error.sum())
    return Errors(
        count=reference.size,
        differing=int((size > 0).sum()),
        exceeding=0 if bound is None else int((size > bound).sum()),
        total=total,
        squares=float(scaled.sum()),
        max_error=peak,
        max_relative_error=relative,
        lowest=float(reference.min()),
        highest=float(reference.max()),
    )


def _lost(count: int, valid: Array, bound: float | None) -> Errors:
    """The statistics of lost values. `valid` are all valid values of the original: the range includes the lost ones."""
    if not count:
        return Errors()
    return Errors(
        count=count,
        lost=count,
        differing=count,
        exceeding=0 if bound is None else count,
        total=math.nan,
        max_error=math.inf,
        max_relative_error=math.inf,
        lowest=float(valid.min()),
        highest=float(valid.max()),
    )


def _invalid(original: Array, decoded: Array, invalid: Array, masked: Array | None) -> Errors:
    count = int(invalid.sum())
    if original.dtype == decoded.dtype:
        bits = f"u{original.dtype.itemsize}"
        changed = invalid & (original.view(bits) != decoded.view(bits))
    else:
        changed = invalid   # another type has other bits
    uncovered = changed if masked is None else changed & ~masked
    return Errors(invalid=count, invalid_changed=int(changed.sum()), nonfinite_changed=int(uncovered.sum()))
