"""The centre of mass of archived particles, with a proven bound along each axis.

In open space it is the mean position, weighted by mass, which moves by at most the bound of positions; masses are kept as
they are.

In a periodic box it is the direction of the mean of unit vectors, of angle 2 pi x / L for each coordinate. Each moves by at
most the angle of the bound, and the direction of a mean of length R by at most the arcsine of the sum of these over R.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.archive.statistics.answer import Answer, in_digits
from workbench.archive.statistics.particle_counts import ROUNDED, Cubes, limit_of, require_particles
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from workbench.archive.archive import Archive

ROW = 256                 # numbers whose sum is rounded; the sums of rows are added exactly
SHARE = 2.0**-42          # more than the rounding of a product and of the sum of a row, as a share of the magnitudes


@dataclass(frozen=True, eq=False)
class CentreOfMass(Answer):
    """The centre of mass of the original particles: along each axis, at most `bound` away from `value`.

    A bound of half a periodic box says that nothing is known along this axis.
    """

    value: np.ndarray
    bound: np.ndarray
    particles: int
    weighted: bool   # by masses; otherwise all particles count the same

    def __str__(self) -> str:
        return ", ".join(map(in_digits, self.value.tolist(), self.bound.tolist()))

    @property
    def _line(self) -> str:
        return f"centre of mass: {self}"


def centre_of_mass(archive: Archive) -> CentreOfMass:
    """The centre of mass of all particles.

    >>> import workbench as wb
    >>> positions = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]])
    >>> print(centre_of_mass(wb.compress(wb.Particles(positions, masses=[1.0, 1.0, 2.0]), wb.Absolute(0.25))))
    1.250 ± 0.251, 2.500 ± 0.251
    """
    require_particles(archive, "centre_of_mass")
    stored, limit = archive.arrays.get("masses"), limit_of(archive)
    sums = _Sums(archive.box, archive.whole("extents"))
    for index, positions in archive.data.chunks():
        masses = np.ones(len(positions)) if stored is None else stored.chunk(index[:1]).astype(np.float64)
        sums.add(Cubes.around(positions, limit, archive.box), masses)
    if not sums.mass > 0:
        raise WorkbenchError("a centre of mass needs a total mass above zero; the masses of these particles have none")
    value, bound = sums.centre()
    return CentreOfMass(value, bound, len(archive), stored is not None)


class _Sums:
    """Sums over chunks, from which the centre follows."""

    def __init__(self, box: tuple[float, ...] | None, extents: np.ndarray) -> None:
        self.lengths = None if box is None else np.asarray(box)
        self.low, self.high = extents[:, 0].min(axis=0), extents[:, 1].max(axis=0)
        self.origin = (self.low + self.high) / 2
        axes = len(self.origin)
        self.mass = 0.0
        self.moments = np.zeros((1 if box is None else 2, axes))   # of coordinates, or of cosines and sines
        self.moments_error = np.zeros(axes)                        # of each, by rounding
        self.moved = np.zeros(axes)                                # at least the sum of mass times how far each can be

    def add(self, cubes: Cubes, masses: np.ndarray) -> None:
        """Take in a chunk."""
        size = math.fsum(_rows(masses))
        self.mass += size
        if self.lengths is None:
            arms = cubes.positions - self.origin
            waves, reach, rounded = [arms], cubes.reach, ROUNDED * np.abs(np.stack([self.low, self.high])).max(axis=0)
        else:
            angles = cubes.positions * (2 * np.pi / self.lengths)
            waves, reach = [np.cos(angles), np.sin(angles)], cubes.reach * (2 * np.pi / self.lengths)
            rounded = np.full(len(self.lengths), ROUNDED)
        weights = masses[:, None]
        for row, wave in enumerate(waves):
            self.moments[row] += [math.fsum(_rows(column)) for column in (weights * wave).T]
            self.moments_error += SHARE * (weights * np.abs(wave)).sum(axis=0) + size * rounded
        self.moved += (weights * reach).sum(axis=0) * (1 + SHARE)

    def centre(self) -> tuple[np.ndarray, np.ndarray]:
        """The centre along each axis, and how far that of the original particles can be from it."""
        error = (self.moved + self.moments_error) * (1 + SHARE)
        if self.lengths is None:
            value = self.origin + self.moments[0] / self.mass
            largest = np.maximum(np.abs(self.low), np.abs(self.high))   # the sum of masses is rounded, too
            return value, error / self.mass * (1 + SHARE) + 2 * SHARE * largest
        norm = np.hypot(*self.moments)
        share = np.minimum(error / np.where(norm > 0, norm, 1.0) * (1 + SHARE), 1.0)
        angle = np.mod(np.arctan2(self.moments[1], self.moments[0]), 2 * np.pi)
        known = (norm > 0) & (share < 1)
        bound = np.where(known, np.arcsin(share) / (2 * np.pi) * (1 + SHARE) + ROUNDED, 0.5) * self.lengths
        return angle / (2 * np.pi) * self.lengths, bound


def _rows(values: np.ndarray) -> list[float]:
    """The sums of rows of values."""
    whole = len(values) // ROW * ROW
    return [*values[:whole].reshape(-1, ROW).sum(axis=1).tolist(), float(values[whole:].sum())]
