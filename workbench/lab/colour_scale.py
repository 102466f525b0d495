"""Which scale of colours shows the values of a field: a linear one leaves skewed values in a single colour.

The middle half of the values has to have at least a twentieth of the colours. If it has not on a linear scale, a
logarithmic one is taken, provided that no value is negative and the middle half of the positive ones has so many there;
else limits at percentiles, if these leave out at least half of the range.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from workbench import backend
from workbench.data import Field
from workbench.lab.remembered import remembered
from workbench.lab.slices import DECADES

Scale = Literal["linear", "logarithmic", "percentiles"]

MIDDLE = 0.25, 0.75   # the quantiles around the middle half
LEAST = 0.05          # of the colours, for these
LIMITS = 0.01, 0.99   # the percentiles
SAMPLE = 2**18        # values


def scale_of(field: Field, low: float, high: float) -> Scale:
    """The scale of the colours that suits values between these ends; a few values in equal steps stand for all.

    >>> decades = np.geomspace(1.0, 1e6, 100)
    >>> [scale_of(Field(values), values.min(), values.max()) for values in (np.arange(9.0), decades)]
    ['linear', 'logarithmic']
    """
    return remembered(field, "colour scale", "", lambda: _found(field, low, high))


def _found(field: Field, low: float, high: float) -> Scale:
    if not 0 < high - low < math.inf:
        return "linear"
    values = _sampled(field)
    if _between(values, MIDDLE) >= LEAST * (high - low):
        return "linear"
    positive = values[values > 0]
    least = max(float(positive.min(initial=high)), high * 10.0**-DECADES)
    if low >= 0 and least < high:
        logarithms = np.log(np.maximum(positive, least))
        if _between(logarithms, MIDDLE) >= LEAST * math.log(high / least):
            return "logarithmic"
    return "percentiles" if _between(values, LIMITS) <= (high - low) / 2 else "linear"


def _between(values: np.ndarray, quantiles: tuple[float, float]) -> float:
    ends = np.quantile(values, quantiles)
    return float(ends[1] - ends[0])


def _sampled(field: Field) -> np.ndarray:
    step = max(field.values.size // SAMPLE, 1)
    values, valid = (backend.to_host(array.reshape(-1)[::step]) for array in (field.values, field.valid))
    shown = values[valid].astype(np.float64)
    return shown if shown.size else backend.to_host(field.values[field.valid]).astype(np.float64)
