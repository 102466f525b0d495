"""Numbers as the levels of a picture: bytes, or 16 bits where the reader may narrow the limits of the colours.

Levels from 1 are the scale, from `low` to `high`; level 0 means no value.
"""

from __future__ import annotations

import math

import numpy as np

MIDDLE, STEPS = 128, 127     # the byte of zero in a picture of differences, and the number of steps to each side


def bytes_of(
    values: np.ndarray, low: float, high: float, logarithmic: bool = False, levels: type[np.unsignedinteger] = np.uint8
) -> np.ndarray:
    """Values as levels from 1 to the largest (of bytes, 255) from low to high, clipped; 0 where NaN.

    On a logarithmic scale, both ends must be positive; values that are not positive are shown as the low end.

    >>> bytes_of(np.array([[0.0, 1.0, 2.0, np.nan, 9.0]]), 0.0, 2.0).tolist()
    [[1, 128, 255, 0, 255]]
    >>> bytes_of(np.array([[0.0, 1.0, 2.0]]), 0.0, 2.0, levels=np.uint16).tolist()
    [[1, 32768, 65535]]
    """
    top = np.iinfo(levels).max
    shown = values
    if logarithmic:
        shown, low, high = np.log(np.maximum(values, low)), math.log(low), math.log(high)
    scale = (top - 1) / (high - low) if high > low else 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        shown = np.clip((shown - low) * scale + 1.5, 1, top)
    return np.where(np.isnan(shown), 0, shown).astype(levels)


def difference_bytes(values: np.ndarray, most: float) -> np.ndarray:
    """Differences as bytes: 128 is zero, 1 and 255 are -`most` and `most`; 0 where NaN.

    >>> difference_bytes(np.array([[-1.0, 0.0, 0.5, 7.0, np.nan]]), 1.0).tolist()
    [[1, 128, 192, 255, 0]]
    """
    with np.errstate(invalid="ignore", over="ignore"):
        shown = np.clip(np.rint(values * (STEPS / most)), -STEPS, STEPS) + MIDDLE
    return np.where(np.isnan(shown), 0, shown).astype(np.uint8)


def density_bytes(counts: np.ndarray, low: float, high: float, logarithmic: bool = True) -> np.ndarray:
    """Counts as bytes 0 to 255 from low to high. Empty pixels are 0; a single particle is not.

    >>> density_bytes(np.array([[0, 1, 8, 64]]), 0.5, 64.0).tolist()
    [[0, 36, 146, 255]]
    """
    levels = np.arange(min(int(high), int(counts.max(initial=0))) + 2, dtype=np.float64)
    ends = (math.log(low), math.log(high)) if logarithmic else (low, high)
    places = np.log(np.maximum(levels, low)) if logarithmic else levels
    table = np.clip(np.rint((places - ends[0]) * (255 / (ends[1] - ends[0]))), 1, 255).astype(np.uint8)
    table[0] = 0
    return table[np.minimum(counts, len(table) - 1)]


def density_range(counts: np.ndarray, logarithmic: bool = True) -> tuple[float, float]:
    """The ends of a scale for these counts, on which a single particle differs from an empty pixel.

    A linear scale saturates for the densest pixels, one in a thousand; otherwise all others would look empty.
    """
    most = max(int(counts.max(initial=0)), 1)
    return (0.5, float(most)) if logarithmic else (0.0, max(_quantile(counts, 0.999), 1.0))


def difference_range(difference: np.ndarray) -> float:
    """The end of a scale for differences of counts, which covers all but one in a thousand of the nonzero ones."""
    return max(_quantile(np.abs(difference), 0.999), 1.0)


def _quantile(counts: np.ndarray, share: float) -> float:
    """The quantile of the counts of non-empty pixels at this share."""
    often = np.bincount(counts.ravel())
    often[0] = 0
    return float(np.searchsorted(np.cumsum(often), share * often.sum()))

