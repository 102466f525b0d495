"""The density pictures of particles: both on one grid and one scale, so that they differ only where the particles do.

The scale is particles per area, the same for every window and size of pixels.

Counting millions of particles is too slow for every slider step, so it is done once for each set, axis and window, in the
background where possible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.data import Particles
from workbench.lab.description import PIXELS, Window
from workbench.lab.levels import density_bytes
from workbench.lab.projection import Projection, density_scale, frame_of, grid_of, pixel_area
from workbench.lab.remembered import remembered


@dataclass(frozen=True, eq=False)
class Density:
    """The picture of the original, with its axis, window and scale in particles per area."""

    pixels: np.ndarray
    axis: int
    window: Window
    low: float
    high: float

    def of(self, decoded: Particles) -> np.ndarray:
        """The picture of other particles, on the same grid and scale; the same array as long as nothing changes."""
        axis, window, low, high, shape = self.axis, self.window, self.low, self.high, self.pixels.shape

        def made() -> np.ndarray:
            area = pixel_area(window, shape)
            return density_bytes(Projection.of(decoded, axis).within(window).counts(shape), low * area, high * area)

        return remembered(decoded, "density", (axis, window, low, high, shape), made)


def density_of(particles: Particles, axis: int, window: Window | None, most: int = PIXELS) -> Density:
    """The density of the original, seen along an axis: in a window, or whole."""
    seen = window or frame_of(particles, axis)

    def made() -> Density:
        inside = Projection.of(particles, axis).within(seen)
        counts = inside.counts(grid_of(seen, len(inside), most))
        low, high = density_scale(particles, axis)
        area = pixel_area(seen, counts.shape)
        return Density(density_bytes(counts, low * area, high * area), axis, seen, low, high)

    return remembered(particles, "density", (axis, seen, most), made)


def shown_axes(particles: Particles, axis: int) -> list[int]:
    """The horizontal and the vertical axis of a view along this axis; of two axes, both.

    >>> shown_axes(Particles([[0.0, 0.0, 0.0]]), 1)
    [0, 2]
    """
    return [own for own in range(particles.dimensions) if particles.dimensions == 2 or own != axis]
