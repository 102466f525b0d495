"""Which scale of colours shows the values of a field: a linear one leaves skewed values in a single colour.

Most values, eight in ten, have to have at least a tenth of the colours. A linear scale is kept if they have; else a
logarithmic one is taken, if no value is negative and they have so many there; else the limits are percentiles.
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

MOST = 0.1, 0.9     # the quantiles between which most values are
LEAST = 0.1         # of the colours, for these
SAMPLE = 2**18      # values


def scale_of(field: Field, low: float, high: float) -> Scale:
    """The scale of the colours that suits values between these ends; a few values in equal steps stand for all.

    >>> skewed = [np.array([1.0, 2.0, 4.0, 8.0, 2000.0]), np.array([-1.0, 1.0, 2.0, 3.0, 2000.0])]
    >>> [scale_of(Field(np.repeat(values, 9)), values.min(), values.max()) for values in skewed]
    ['logarithmic', 'percentiles']
    """
    return remembered(field, "colour scale", "", lambda: _found(field, low, high))


def _found(field: Field, low: float, high: float) -> Scale:
    if not 0 < high - low < math.inf:
        return "linear"
    values = _sampled(field)
    ends = np.quantile(values, MOST)
    if ends[1] - ends[0] >= LEAST * (high - low):
        return "linear"
    if low >= 0:
        least = max(float(values.min(initial=high, where=values > 0)), high * 10.0**-DECADES)
        ends = np.log(np.maximum(ends, least))
        if ends[1] - ends[0] >= LEAST * math.log(high / least):
            return "logarithmic"
    return "percentiles"


def _sampled(field: Field) -> np.ndarray:
    step = max(field.values.size // SAMPLE, 1)
    values, valid = (backend.to_host(array.reshape(-1)[::step]) for array in (field.values, field.valid))
    shown = values[valid].astype(np.float64)
    return shown if shown.size else backend.to_host(field.values[field.valid]).astype(np.float64)
