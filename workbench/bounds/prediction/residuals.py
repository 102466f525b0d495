"""Residuals of interpolation beside the sizes of those around them: what `interpolation` knows before it codes one.

The codec foresees the scale of each residual from its surroundings, and codes those of one scale with one table. So they
take the entropy of those with like surroundings, which is less than that of all. The codec also leaves out axes along which
interpolation does not help, such as the levels of an atmosphere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.bounds.prediction.numbers import FINE, entropies, in_limits, rounded

OF_TABLES = 1000    # bytes of weights and tables, of which there are about as many in small fields as in large ones
SCALES = 12          # of residuals, which are told apart
NUMBERS = 1 << 7     # that are told apart in each; FINE keeps nearly all in this range


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals of cubic and of linear interpolation, a row each, the usual size of those around, and weights of places.

    `noise` is what a bound of 1 adds; `share` is that of the values which are interpolated.
    """

    here: np.ndarray
    around: np.ndarray
    noise: np.ndarray
    weight: np.ndarray
    share: float

    def bits(self, limits: np.ndarray, alone: np.ndarray) -> np.ndarray:
        """The bits of a value within each limit, with the better interpolation; `alone` are those of values without.

        >>> rng = np.random.default_rng(0)
        >>> scale = np.tile([[0.1, 10.0]], 2000)
        >>> here, even = scale * rng.standard_normal((2, 4000)), np.full(4000, 1 / 4000)
        >>> known, unknown = (Residuals(here, 0 * here + around, 0 * even, even, 1.0) for around in (scale, 1.0))
        >>> limit, none = np.array([0.1]), np.zeros(1)
        >>> bool(known.bits(limit, none)[0] < unknown.bits(limit, none)[0] - 0.3)
        True
        """
        far = np.quantile(np.abs(self.here), 0.9, axis=1)[:, None]
        finer = limits / np.maximum(limits, far / FINE)
        seen = in_limits(self.here, limits) + self.noise.astype(np.float32)
        numbers = rounded(seen * (0.5 * finer[:, :, None]).astype(np.float32)).astype(np.int64)
        scales = self._scales
        known = entropies(scales, self.weight)[:, None]
        both = entropies((scales * NUMBERS)[:, None] + (numbers & (NUMBERS - 1)), self.weight)
        found: np.ndarray = (both - known - np.log2(finer)).min(axis=0)
        return self.share * found + (1 - self.share) * alone

    @property
    def _scales(self) -> np.ndarray:
        """The number of each residual's scale, of which all have about the same weight."""
        order = np.argsort(self.around, axis=1)
        before = np.cumsum(self.weight[order], axis=1) - 0.5 * self.weight[order]
        found = np.empty(order.shape, np.int64)
        np.put_along_axis(found, order, np.minimum((before * SCALES).astype(np.int64), SCALES - 1), axis=1)
        return found
