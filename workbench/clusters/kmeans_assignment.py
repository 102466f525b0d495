"""The assignment step of k-means: the nearest centre of every point.

The kernels compare rounded scores, and squared distances where scores do not decide, so that labels are those of the plain
definition (`kernels/kmeans.cu`). What depends on the points alone is computed once: their sizes, and their checksums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.kmeans_faults import ProductFlips

# A checksum differs when it is off by more than this many times the typical round-off of a sum of products.
SENSITIVITY = 16.0


@dataclass(frozen=True)
class Counts:
    """What happened in an assignment step.

    The labels that changed, and those that squared distances decided; checksums that found wrong products, and
    products that were different when they were computed again.
    """

    changed: int
    decided: int
    detected: int
    corrected: int


class Assignment:
    """Finds the nearest of `k` centres for each of the same points, again and again."""

    def __init__(self, points: Array, k: int, protect: bool) -> None:
        xp = backend.namespace(points)
        place = "GPU" if backend.on_device(points) else "CPU"
        self._rows = backend.constant("kmeans.cu", f"ROWS_ON_{place}")
        self._lanes = backend.constant("kmeans.cu", f"LANES_ON_{place}")
        self._points, self._k, self._protect = points, k, protect
        (count, axes), real = points.shape, points.dtype
        self._blocks = -(-count // self._rows)
        self._size = xp.empty(count, real)
        self._sums, self._spread = xp.empty((self._blocks, axes)), xp.empty(self._blocks)
        backend.kernel("kmeans", "summarise_points", real)(
            self._blocks, n=count, axes=axes, point=points, size=self._size, block_sum=self._sums, block_spread=self._spread
        )

    @property
    def checks(self) -> int:
        """How many checksums are compared in each step."""
        return self._blocks * self._k if self._protect else 0

    def run(self, centres: Array, labels: Array, flips: ProductFlips | None = None) -> Counts:
        """Replace the labels by the numbers of the nearest centres."""
        xp = backend.namespace(self._points, centres, labels)
        counted = xp.empty((self._blocks, 4), xp.int32)
        problem = {**self._problem(centres), "label": labels, "counted": counted}
        if flips is not None:
            struck = flips.arguments(self._points, self._rows, self._blocks)
            problem |= {**struck, **self._checksums(centres), "checked": int(self._protect)}
            name = "assign_struck"
        elif self._protect:
            problem |= self._checksums(centres)
            name = "assign_and_check"
        else:
            name = "assign"
        backend.kernel("kmeans", name, self._points.dtype)(self._blocks, problem)
        return Counts(*(int(column) for column in counted.sum(axis=0)))

    def _problem(self, centres: Array) -> dict[str, Any]:
        """What every variant of the kernel takes."""
        xp, real = backend.namespace(centres), self._points.dtype
        count, axes = self._points.shape
        padded = self._lanes * -(-self._k // self._lanes)
        table = xp.zeros((padded, axes), real)
        table[: self._k] = centres
        squares = (centres.astype(xp.float64) ** 2).sum(axis=1)
        half = xp.full(padded, xp.inf, real)
        half[: self._k] = (squares / 2).astype(real)
        precision, exact = float(np.finfo(real).eps) / 2, float(np.finfo(np.float64).eps) / 2
        return {
            "n": count,
            "axes": axes,
            "clusters": self._k,
            "padded": padded,
            "point": self._points,
            "centre": centres,
            "tile": xp.ascontiguousarray(table.reshape(-1, self._lanes, axes).transpose(0, 2, 1)),
            "half_square": half,
            "size": self._size,
            "largest": 1.000001 * float(squares.max()) ** 0.5,
            # Products, half squares and scores are rounded; so are the squared distances of the definition.
            "rounding": 1.05 * ((axes / 4 + 2) * precision + (axes + 4) * exact),
            "smallest": 4.0 * (axes + 2) * float(np.finfo(real).smallest_subnormal),
        }

    def _checksums(self, centres: Array) -> dict[str, Any]:
        """What the checked variant takes in addition.

        The threshold follows the variance of round-off in sums of products of independent sign. Were the rounding errors of
        a block alike, they could exceed it; then the products are computed again, and found to be right.
        """
        xp, (_, axes) = backend.namespace(centres), self._points.shape
        padded = self._lanes * -(-self._k // self._lanes)
        adding = 4 * self._rows * float(np.finfo(np.float64).eps) / 2   # the checksums themselves, far from the origin
        size = xp.zeros(padded)
        size[: self._k] = xp.sqrt((centres.astype(xp.float64) ** 2).sum(axis=1))
        typical = float(np.finfo(self._points.dtype).eps) / 2 * (1 + axes**0.5 / 4)
        return {
            "block_sum": self._sums,
            "block_spread": self._spread,
            "centre_size": size,
            "sensitivity": SENSITIVITY * typical + adding,
        }
