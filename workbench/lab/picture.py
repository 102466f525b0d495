"""A still picture of data, with axes and a colour bar: one call, and neither a panel nor a widget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from workbench.arguments import whole_number
from workbench.clusters import Groups, catalogue
from workbench.data import Field, Particles
from workbench.data.units import unit_of_values
from workbench.errors import WorkbenchError
from workbench.lab import levels, slices, static_picture
from workbench.lab.density import density_picture
from workbench.lab.description import Marks, Picture
from workbench.lab.projection import shown_axes
from workbench.text_files import write_text

PIXELS = 400        # along the longer side
RADII = 2           # root mean square radii in the radius of a circle
CIRCLE = "#9fe8ff"


@dataclass(frozen=True, eq=False, repr=False)
class StillPicture:
    """A picture that notebooks show, and that is written as SVG."""

    content: Picture

    @property
    def svg(self) -> str:
        """The picture with its title, axes, colour bar and legend."""
        return static_picture.complete(self.content)

    def save(self, path: str | Path) -> Path:
        """Write it as an SVG file; returns its path."""
        return write_text(path, self.svg, "a picture", ".svg")

    def __repr__(self) -> str:
        return f"StillPicture({static_picture.described(self.content)})"

    def _repr_html_(self) -> str:
        """An image, since notebooks that are not trusted leave SVG out."""
        return static_picture.image(self.svg, static_picture.described(self.content), "width: 560px; max-width: 100%")


def picture(
    data: Particles | Field, groups: Groups | None = None, *, axis: int | None = None, min_members: int = 20, most: int = 60
) -> StillPicture:
    """The density of particles along an axis (by default the last); the middle slice of a field across one (the first).

    With `groups` of the particles, circles stand around the `most` largest that have at least `min_members`: their radius
    is twice the root mean square distance of the members from the centre.

    >>> particles = Particles(np.random.default_rng(1).uniform(0, 8, (1000, 3)), box=8.0, metadata={"units": "Mpc/h"})
    >>> picture(particles)
    StillPicture(1,000 particles, all 8 Mpc/h along z: from 32 to 192 particles per (Mpc/h)², logarithmic)
    """
    if isinstance(data, Particles):
        sight = whole_number("axis", data.dimensions - 1 if axis is None else axis, 0, data.dimensions - 1)
        circles = () if groups is None else (_circles(data, groups, sight, min_members, most),)
        return StillPicture(_density(data, sight, circles))
    if groups is not None:
        raise WorkbenchError("groups belong to particles; got them with a field: leave them out")
    return StillPicture(_slice(data, 0 if axis is None else axis))


def _density(particles: Particles, axis: int, marks: tuple[Marks, ...]) -> Picture:
    shown, _ = density_picture(particles, axis, most=PIXELS)
    title = ", ".join(filter(None, [f"{len(particles):,} particles", shown.axes.depth]))
    return replace(shown, title=title, marks=marks)


def _circles(particles: Particles, groups: Groups, axis: int, min_members: int, most: int) -> Marks:
    halos = catalogue(particles, groups, min_members)
    places = np.column_stack([halos.centres[:, shown_axes(particles, axis)], RADII * halos.radii])[:most]
    label = f"largest of {len(halos.members):,} groups" if len(places) < len(halos.members) else "groups"
    return Marks("circles", places, CIRCLE, label)


def _slice(field: Field, axis: int) -> Picture:
    if not 2 <= len(field.shape) <= 4:
        raise WorkbenchError(f"a picture needs a field of two to four axes; got shape {field.shape}")
    across = whole_number("axis", axis, 0, 2 if len(field.shape) > 2 else 0)
    index = field.shape[-3:][across] // 2 if len(field.shape) > 2 else 0
    cut = slices.Cut(across, index, pixels=PIXELS)
    low, high = slices.slice_range(field, cut)
    raster, axes = slices.slice_raster(field, cut), cut.axes(field)
    title = ", ".join(filter(None, [field.name or "field", axes.depth]))
    return Picture(
        title, levels.bytes_of(raster.values, low, high), raster.window, "values", low, high, unit=unit_of_values(field),
        empty=True, axes=axes, quantity=field.name or "value",
    )
