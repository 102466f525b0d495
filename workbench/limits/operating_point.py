"""One run of a real codec compared with the bound: its distance from the bound, split by cause.

A codec with a bound on each value is not optimised for the mean square error. So its distance from the bound is split,
from costs that no such codec can avoid to costs that a better codec would save:

- *tiles*: the cost of coding tiles independently, for codecs that do;
- *pointwise bound*: errors within a pointwise bound fill a cube, but a ball has the least mean square error for its
  volume; 0.2546 bit for uniform errors;
- *documents*: the description inside the archive, which matters for small fields;
- *prediction and coding*: the rest.

All parts are computed with the Gaussian model. A codec below the bound shows that the model does not describe the field.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from workbench.bounds import Run

LEVERS = MappingProxyType({
    "tiles": "larger tiles, or prediction across their borders",
    "pointwise bound": "a bound on the mean square error, if the science allows it",
    "documents": "larger fields in one archive",
    "prediction and coding": "another predictor or entropy coder",
    "tighter than asked": "a larger error bound: the codec's errors are far below the one it was given",
    "one model for all": "a model for each region",
})
UNASKED = 0.1   # bits per value spent on errors tighter than asked, above which this is named as the lever


@dataclass(frozen=True)
class OperatingPoint:
    """The rate and the distortion of a codec on a field. Rates are in bits per valid value."""

    run: Run
    bits: float
    distortion: float            # mean square error
    rate: float                  # of the bound at this distortion
    interval: tuple[float, float]   # of the rate of Gaussian fields, with 95% confidence
    pointwise: float             # the bound for any code that keeps the same bound on each value
    parts: Mapping[str, float]   # of the gap; their sum is the gap
    tighter: float               # bits spent on errors smaller than asked for
    pooled: float                # bits that one model for all regions would cost

    @property
    def gap(self) -> float:
        """Bits above the bound."""
        return self.bits - self.rate

    @property
    def below(self) -> bool:
        """Whether it is below the bound by more than the uncertainty of the estimate: the model is wrong."""
        return self.bits < self.interval[0]

    @property
    def lever(self) -> str:
        """The change that would close most of the gap."""
        if self.below:
            return "none: below the bound, so the Gaussian model does not describe the field"
        if self.tighter > max(UNASKED, *self.parts.values()):
            return LEVERS["tighter than asked"]
        return LEVERS[max(self.parts, key=lambda name: self.parts[name])]


def price_of_pointwise(max_error: float, distortion: float) -> float:
    """Extra bits of errors within a bound over Gaussian errors of the same mean square: 0.2546 for uniform errors.

    >>> round(price_of_pointwise(0.1, 0.1**2 / 3), 4)
    0.2546
    """
    return max(0.0, 0.5 * math.log2(2 * math.pi * math.e * distortion) - math.log2(2 * max_error))


def taken_apart(gap: float, tiles: float, documents: float, pointwise: float) -> dict[str, float]:
    """Split the gap into parts. The parts cannot exceed the gap, so the pointwise price is at most the remainder."""
    left = gap - tiles - documents
    priced = min(pointwise, max(left, 0.0))
    parts = {"tiles": tiles, "pointwise bound": priced, "documents": documents, "prediction and coding": left - priced}
    return {name: part for name, part in parts.items() if part != 0.0 or name == "prediction and coding"}
