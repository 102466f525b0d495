"""The input of every baseline: original positions, decoded positions within a bound, and a linking length."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.friends import absolute_linking_length
from workbench.data import Particles
from workbench.data.periodic import nearest_image
from workbench.errors import WorkbenchError

ROUNDING = 1e-6   # relative tolerance of xi, since wrapping positions at a face of the box rounds them


@dataclass(frozen=True, eq=False)
class Problem:
    """Decoded positions, each coordinate within `xi` of the original one, whose clusters should be the original's."""

    original: Particles
    decoded: Array
    xi: float
    linking_length: float

    def __post_init__(self) -> None:
        wanted, got = self.original.positions, self.decoded
        if backend.on_device(wanted) or backend.on_device(got):
            raise WorkbenchError("the baselines work on NumPy arrays; got a CuPy array: use array.get()")
        if not isinstance(got, np.ndarray) or (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
            raise WorkbenchError(
                f"decoded positions must be {wanted.dtype} of shape {wanted.shape}, like the original; got "
                f"{getattr(got, 'dtype', type(got).__name__)} of shape {np.shape(got)}"
            )
        if not (math.isfinite(self.xi) and self.xi > 0):
            raise WorkbenchError(f"xi must be positive and finite; got {self.xi}")
        absolute_linking_length(self.original, self.linking_length, unit="length")
        error = self.largest_error(got)
        if not error <= 1 + ROUNDING:
            raise WorkbenchError(f"decoded positions must lie within xi of the original; got an error of {error:.9g} xi")

    @property
    def reach(self) -> float:
        """The most that the distance of two particles can change."""
        return 2 * math.sqrt(self.original.dimensions) * self.xi

    @functools.cached_property
    def exact(self) -> np.ndarray:
        """The original positions in float64."""
        return self.original.positions.astype(np.float64)

    @functools.cached_property
    def start(self) -> np.ndarray:
        """The decoded positions in float64, each as the periodic image nearest to the original."""
        difference = self.decoded - self.exact
        return self.decoded + (nearest_image(difference, self.original.box) - difference)

    def largest_error(self, positions: np.ndarray) -> float:
        """The largest error of these positions along any axis, in units of `xi`."""
        return float(np.abs(nearest_image(positions - self.exact, self.original.box)).max()) / self.xi
