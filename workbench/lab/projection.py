"""Particles seen along an axis: how many are in each pixel of a window.

Densities are particles per area on one scale for all windows, so that neither the size of a pixel nor zooming changes them.
Row 0 of a picture is at its top, and the vertical axis points up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.arguments import whole_number
from workbench.data import Particles
from workbench.data.units import unit_of_length
from workbench.lab.description import PIXELS, Axes, Window
from workbench.lab.levels import density_range
from workbench.lab.remembered import remembered
from workbench.lab.units import axis_names

FEWEST_PIXELS = 64
PARTICLES_PER_PIXEL = 1.0   # on average, at least: smaller pixels show dust


@dataclass(frozen=True, eq=False)
class Projection:
    """Particles seen along an axis: the horizontal and vertical place of each in the picture, and the frame around all.

    The other two of three axes keep their order: along z, x points right and y up.
    """

    across: np.ndarray
    up: np.ndarray
    frame: Window

    @classmethod
    def of(cls, particles: Particles, axis: int = 2) -> Projection:
        """The projection of these particles, cached as long as they exist. Particles in 2-D have only one."""

        def made() -> Projection:
            positions = backend.to_host(particles.positions)
            across, up = (np.ascontiguousarray(positions[:, own]) for own in shown_axes(particles, axis))
            return cls(across, up, frame_of(particles, axis))

        return remembered(particles, "projection", axis, made)

    def __len__(self) -> int:
        return len(self.across)

    def within(self, window: Window) -> Projection:
        """The particles in a window, ends included; the window need not lie in the frame."""
        left, right, bottom, top = window
        if left <= self.frame[0] and self.frame[1] <= right and bottom <= self.frame[2] and self.frame[3] <= top:
            return Projection(self.across, self.up, window)
        inside = (self.across >= left) & (self.across <= right)
        inside &= self.up >= bottom
        inside &= self.up <= top
        chosen = np.flatnonzero(inside)
        return Projection(self.across[chosen], self.up[chosen], window)

    def counts(self, shape: tuple[int, int]) -> np.ndarray:
        """How many are in each pixel of the frame; all must be in it."""
        height, width = shape
        left, right, bottom, top = self.frame
        pixel = _pixels(self.up, bottom, top, height)
        pixel *= np.int32(width)
        pixel += _pixels(self.across, left, right, width)
        return np.bincount(pixel, minlength=height * width).reshape(shape)[::-1]

    def count_at(self, window: Window, shape: tuple[int, int], x: float, y: float) -> int | None:
        """How many are in the pixel at a place of the picture of a window; None beyond it."""
        (height, width), (left, right, bottom, top) = shape, window
        row, column = math.floor((y - bottom) / (top - bottom) * height), math.floor((x - left) / (right - left) * width)
        if not (0 <= row < height and 0 <= column < width):
            return None
        wide, high = (right - left) / width, (top - bottom) / height
        near = self.within((left + (column - 1) * wide, left + (column + 2) * wide,
                            bottom + (row - 1) * high, bottom + (row + 2) * high))
        part = Projection(near.across, near.up, near.frame).within(window)
        here = _pixels(part.up, bottom, top, height) == row
        here &= _pixels(part.across, left, right, width) == column
        return int(here.sum())


def view_axes(particles: Particles, axis: int = 2) -> Axes:
    """The names of the axes of particles seen along an axis, and how far is seen.

    >>> view_axes(Particles([[0.5, 0.5, 0.5]], box=48.0, metadata={"units": "Mpc/h"}))
    Axes(across='x', up='y', unit='Mpc/h', depth='all 48 Mpc/h along z')
    """
    names, unit = axis_names(particles), unit_of_length(particles.metadata)
    across, up = shown_axes(particles, axis)
    depth = ""
    if particles.dimensions == 3:
        depth = " ".join(filter(None, ("all", f"{particles.lengths[axis]:.4g}", unit, f"along {names[axis]}")))
    return Axes(names[across], names[up], unit, depth)


def density_scale(particles: Particles, axis: int = 2, logarithmic: bool = True) -> tuple[float, float]:
    """The ends of a scale of particles per area, for all windows: those of the picture of all particles."""

    def made() -> tuple[float, float]:
        seen = Projection.of(particles, axis)
        counts = seen.counts(grid_of(seen.frame, len(seen)))
        low, high = density_range(counts, logarithmic)
        area = pixel_area(seen.frame, counts.shape)
        return low / area, high / area

    return remembered(particles, "density scale", (axis, logarithmic), made)


def pixel_area(window: Window, shape: tuple[int, ...]) -> float:
    """The area of a pixel of a picture of this shape.

    >>> pixel_area((0.0, 4.0, 0.0, 1.0), (4, 8))
    0.125
    """
    left, right, bottom, top = window
    return (right - left) / shape[1] * ((top - bottom) / shape[0])


def frame_of(particles: Particles, axis: int = 2) -> Window:
    """The box seen along an axis or, in open space, the extent of the particles; never of zero size.

    >>> frame_of(Particles([[1.0, 2.0, 3.0], [3.0, 2.0, 5.0]]), axis=2)
    (1.0, 3.0, 1.0, 3.0)
    """
    own = list(shown_axes(particles, axis))
    if particles.box is not None:
        return 0.0, particles.box[own[0]], 0.0, particles.box[own[1]]
    low, high = particles.lower[own], particles.upper[own]
    thin = high - low <= 1e-6 * max(float((high - low).max()), float(np.abs([low, high]).max()) * 1e-6)
    room = float((high - low).max()) / 2 or float(np.abs(low).max()) / 2 or 0.5
    low, high = np.where(thin, low - room, low), np.where(thin, high + room, high)
    return float(low[0]), float(high[0]), float(low[1]), float(high[1])


def grid_of(window: Window, count: int, pixels: int = PIXELS) -> tuple[int, int]:
    """The height and width of a picture with square pixels; fewer pixels for few particles.

    >>> grid_of((0.0, 4.0, 0.0, 1.0), 2_000_000), grid_of((0.0, 1.0, 0.0, 1.0), 10_000)
    ((256, 1024), (100, 100))
    """
    width, height = window[1] - window[0], window[3] - window[2]
    fine = min(max(round(math.sqrt(count / PARTICLES_PER_PIXEL)), FEWEST_PIXELS), pixels)
    size = max(width, height) / fine
    return max(round(height / size), 1), max(round(width / size), 1)


def shown_axes(particles: Particles, axis: int) -> tuple[int, int]:
    """The horizontal and the vertical axis of a view along this axis; of two axes, both.

    >>> shown_axes(Particles([[0.0, 0.0, 0.0]]), 1)
    (0, 2)
    """
    if particles.dimensions == 2:
        return 0, 1
    whole_number("axis", axis, 0, 2)
    across, up = (own for own in range(3) if own != axis)
    return across, up


def _pixels(places: np.ndarray, low: float, high: float, count: int) -> np.ndarray:
    """The pixel of each place, computed in the precision of the places."""
    real = places.dtype.type
    scaled = places - real(low)
    scaled *= real(count / (high - low))
    np.clip(scaled, 0, count - 1, out=scaled)   # places on the far edge, or rounded beyond it
    return scaled.astype(np.int32)

