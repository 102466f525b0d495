"""How far particles moved: along each axis, and in space.

In a periodic box a particle that crosses a face has hardly moved: differences are taken to the nearest image, axis by axis.
If the particles were decoded in another order, the caller must give it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workbench import backend
from workbench.backend import Array
from workbench.data import Particles
from workbench.data.periodic import nearest_image
from workbench.metrics.errors import Errors, psnr, require_bound, summary
from workbench.metrics.pairs import check_particles, checked_order, chunks


@dataclass(frozen=True, slots=True)
class Displacements:
    """How far particles moved; the displacements of two parts of a set can be added.

    `coordinates` are the errors along the axes. PSNR and NRMSE are relative to the longest side of the box or, in an
    open space, of the smallest box around the original.

    >>> moved = displacements(Particles([[0.0, 0.5]], box=1.0), Particles([[0.75, 0.5]], box=1.0))
    >>> moved.coordinates.max_error, moved.max_distance, round(moved.psnr, 3)
    (0.25, 0.25, 15.051)
    """

    coordinates: Errors
    max_distance: float
    dimensions: int
    longest_side: float

    def __add__(self, other: Displacements) -> Displacements:
        farthest = max(self.max_distance, other.max_distance)
        return Displacements(self.coordinates + other.coordinates, farthest, self.dimensions, self.longest_side)

    @property
    def rms_distance(self) -> float:
        """The root of the mean squared distance between where particles were and where they are."""
        return self.coordinates.rms_error * math.sqrt(self.dimensions)

    @property
    def psnr(self) -> float:
        """The peak signal-to-noise ratio of the coordinates in dB, the peak being the longest side."""
        return psnr(self.longest_side, self.coordinates.rms_error)

    @property
    def nrmse(self) -> float:
        """The rms error of the coordinates over the longest side; NaN when all particles are in one place."""
        return self.coordinates.rms_error / self.longest_side if self.longest_side else math.nan


def displacements(
    original: Particles, decoded: Particles, order: Any = None, bound: float | None = None
) -> Displacements:
    """How far each particle moved; `decoded[i]` is `original[order[i]]` when an order is given.

    >>> first, second = Particles([[0.0, 0.0], [3.0, 4.0]]), Particles([[3.0, 4.5], [0.0, 0.0]])
    >>> displacements(first, second, order=[1, 0]).max_distance
    0.5
    """
    check_particles(original, decoded)
    require_bound(bound)
    found = Displacements(Errors(), 0.0, original.dimensions, max(original.lengths))
    for reference, error in moves(original, decoded, order):
        coordinates = summary(reference, error, bound)
        farthest = _longest(error, coordinates.max_error)
        found += Displacements(coordinates, farthest, original.dimensions, found.longest_side)
    return found


def moves(original: Particles, decoded: Particles, order: Any = None) -> Iterator[tuple[Array, Array]]:
    """Chunk by chunk, where particles were and by how much each coordinate changed, in float64."""
    check_particles(original, decoded)
    indices = checked_order(order, original)
    for part in chunks(decoded.positions):
        came_from = part if indices is None else indices[part]
        reference = original.positions[came_from].astype("f8")
        yield reference, nearest_image(decoded.positions[part].astype("f8") - reference, original.box)


def _longest(moved: Array, peak: float) -> float:
    """The length of the longest row; computed in units of the largest entry, whose square might overflow."""
    if not 0 < peak < math.inf:
        return peak
    xp = backend.namespace(moved)
    scaled = moved / peak
    return peak * float(xp.sqrt((scaled * scaled).sum(axis=1)).max())
