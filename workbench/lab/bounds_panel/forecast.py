"""What is expected of the codec at other bounds, drawn before anything is compressed: a curve with its interval."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from workbench.bounds import predict
from workbench.bounds.prediction.expert import shipped
from workbench.codecs import Codec
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Relative

BOUNDS = 10
DECADES = (-5.0, -1.3)   # of the range of the values
DECIBELS = 6.02          # for each bit


def _nothing() -> np.ndarray:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class Forecast:
    """PSNR against bits for each value, and the ends of the interval for the PSNR; empty where nothing is predicted."""

    bits: np.ndarray = field(default_factory=_nothing)
    middle: np.ndarray = field(default_factory=_nothing)
    low: np.ndarray = field(default_factory=_nothing)
    high: np.ndarray = field(default_factory=_nothing)


def forecast_of(data: Particles | Field, codec: Codec) -> Forecast:
    """The forecast for a field, by the expert that comes with the package.

    At a given size, the PSNR is uncertain by its own interval and by that of the size, at 6.02 dB for each bit. With the
    options that lower mean errors, a codec is forecast as without them: at ratios of 6 and 12, these changed the PSNR of
    four fields by at most 0.3 dB, and at 25 they added up to 1.3 dB.

    >>> from workbench.data.synthetic import gaussian_field
    >>> from workbench.codecs import get
    >>> len(forecast_of(gaussian_field((32, 32), 3, seed=1), get("sz3")).bits)
    10
    """
    known = shipped().get(codec.id)
    if isinstance(data, Particles) or known is None or codec not in (known.made, known.made.for_mean_errors()):
        return Forecast()
    try:
        rows = predict(data, known.made, [Relative(float(10**power)) for power in np.linspace(*DECADES, BOUNDS)])
    except WorkbenchError:   # of constant values and the like, of which the trial says more
        return Forecast()
    size = 8 * data.values.dtype.itemsize
    ratios = ("ratio", "ratio_low", "ratio_high")
    bits, most, least = (np.array([size / getattr(row, name) for row in rows]) for name in ratios)
    middle, low, high = (np.array([getattr(row, name) for row in rows]) for name in ("psnr", "psnr_low", "psnr_high"))
    up, down = DECIBELS * (bits - least), DECIBELS * (most - bits)
    return Forecast(bits[::-1], middle[::-1], (middle - np.hypot(middle - low, down))[::-1],
                    (middle + np.hypot(high - middle, up))[::-1])

