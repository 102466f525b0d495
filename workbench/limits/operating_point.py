"""One run of a real codec beside the bound: how far above it is, and what the distance is made of.

A codec with a bound on each value is not built for the mean square error, and should not be blamed for what it never
promised. So the distance is taken apart, from what no such codec can avoid to what its makers could still win:

- *tiles*: what coding tiles apart from each other costs, for codecs that do;
- *pointwise bound*: errors within a bound fill a cube, and balls fill space better; 0.2546 bit once errors are even;
- *documents*: the archive's own description, which matters for small fields;
- *prediction and coding*: the rest.

All of it is by the Gaussian model: a codec below the bound says that the field is not what the model takes it for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from workbench.bounds import Run

TILES = {"zfp": 4}   # the side of what a codec codes apart from everything else
LEVERS = MappingProxyType({
    "tiles": "larger tiles, or coding that looks across their borders",
    "pointwise bound": "a bound on the mean square error, if the science allows it",
    "documents": "larger fields in one archive",
    "prediction and coding": "another predictor or entropy coder",
    "tighter than asked": "a larger error bound: the codec's errors are far below the one it was given",
    "one model for all": "a model for each region",
})
UNASKED = 0.1   # bits a value for being tighter than asked, before it is mentioned first


@dataclass(frozen=True)
class OperatingPoint:
    """Where a codec stands. Rates are in bits for each value that means something."""

    run: Run
    bits: float
    distortion: float            # mean square error
    rate: float                  # of the bound at this distortion
    interval: tuple[float, float]   # the rates that are plausible, given one field
    pointwise: float             # the bound for any code that keeps the same bound on each value
    parts: Mapping[str, float]   # of the gap; they sum to it
    tighter: float               # bits for being better than was asked for
    pooled: float                # bits that one model for all regions would cost

    @property
    def gap(self) -> float:
        """Bits above the bound."""
        return self.bits - self.rate

    @property
    def below(self) -> bool:
        """Whether it is below the bound, beyond what the estimate's uncertainty explains: the model is wrong."""
        return self.bits < self.interval[0]

    @property
    def lever(self) -> str:
        """What would close most of the gap."""
        if self.below:
            return "none: below the bound, so the field is not what the Gaussian model takes it for"
        if self.tighter > max(UNASKED, *self.parts.values()):
            return LEVERS["tighter than asked"]
        return LEVERS[max(self.parts, key=lambda name: self.parts[name])]


def price_of_pointwise(max_error: float, distortion: float) -> float:
    """What errors within a bound cost more than Gaussian ones of the same mean square, in bits: 0.2546 if evenly spread.

    >>> round(price_of_pointwise(0.1, 0.1**2 / 3), 4)
    0.2546
    """
    return max(0.0, 0.5 * math.log2(2 * math.pi * math.e * distortion) - math.log2(2 * max_error))


def taken_apart(gap: float, tiles: float, documents: float, pointwise: float) -> dict[str, float]:
    """The gap in parts. What is explained cannot be more than the gap, so the pointwise price is what is left at most."""
    left = gap - tiles - documents
    priced = min(pointwise, max(left, 0.0))
    parts = {"tiles": tiles, "pointwise bound": priced, "documents": documents, "prediction and coding": left - priced}
    return {name: part for name, part in parts.items() if part != 0.0 or name == "prediction and coding"}
