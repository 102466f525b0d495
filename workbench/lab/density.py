"""The density pictures of particles, of all panels: those of one view are on one grid and one scale.

So they differ only where the particles do. The scale is particles per area, the same for every window and size of pixels.
Counting millions of particles is too slow for every slider step, so it is done once for each set and view, in the
background where possible.
"""

from __future__ import annotations

import numpy as np

from workbench.data import Particles
from workbench.lab.description import PIXELS, Picture, Window
from workbench.lab.levels import density_bytes
from workbench.lab.projection import Projection, density_scale, grid_of, pixel_area, view_axes
from workbench.lab.remembered import remembered
from workbench.lab.units import density_unit


def density_picture(
    particles: Particles, axis: int = 2, window: Window | None = None, most: int = PIXELS, logarithmic: bool = True
) -> tuple[Picture, np.ndarray]:
    """The picture "original" of these particles seen along an axis, in a window or whole, and how many are in each pixel.

    >>> picture, counts = density_picture(Particles([[0.1, 0.1, 0.5], [0.9, 0.9, 0.5]], box=1.0))
    >>> picture.window, int(counts.sum())
    ((0.0, 1.0, 0.0, 1.0), 2)
    """

    def made() -> tuple[Picture, np.ndarray]:
        seen = Projection.of(particles, axis)
        part = seen.within(window or seen.frame)
        counts = part.counts(grid_of(part.frame, len(part), most))
        low, high = density_scale(particles, axis, logarithmic)
        area = pixel_area(part.frame, counts.shape)
        pixels = density_bytes(counts, low * area, high * area, logarithmic)
        unit, axes = density_unit(particles), view_axes(particles, axis)
        picture = Picture("original", pixels, part.frame, "density", low, high, logarithmic, unit, axes=axes)
        return picture, counts.astype(np.int32)

    return remembered(particles, "density", (axis, window, most, logarithmic), made)


def density_pixels(original: Picture, counts: np.ndarray) -> np.ndarray:
    """The pixels of a density picture for other numbers of particles, on its scale."""
    area = pixel_area(original.window, counts.shape)
    return density_bytes(counts, original.low * area, original.high * area, original.logarithmic)


def pixels_of(other: Particles, axis: int, original: Picture) -> np.ndarray:
    """The pixels of other particles in the view of a density picture; the same array as long as nothing changes."""
    view = axis, original.window, original.low, original.high, original.pixels.shape, original.logarithmic

    def made() -> np.ndarray:
        counts = Projection.of(other, axis).within(original.window).counts(original.pixels.shape)
        return density_pixels(original, counts)

    return remembered(other, "density", view, made)
