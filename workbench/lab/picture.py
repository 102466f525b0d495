"""A still picture of data, with axes and a colour bar: one call, and neither a panel nor a widget."""

from __future__ import annotations

import html
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.arguments import whole_number
from workbench.clusters import Groups, catalogue
from workbench.data import Field, Particles
from workbench.data.units import unit_of_values
from workbench.errors import WorkbenchError
from workbench.lab import levels, projection, slices, static_picture
from workbench.lab.description import Marks, Picture
from workbench.lab.units import density_unit

PIXELS = 400        # along the longer side
RADII = 2           # root mean square radii in the radius of a circle
CIRCLE = "#9fe8ff"
KEPT = "=:/,;+()'!*@$?&.-_~ "   # characters of SVG that a data URL need not quote


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
        target = Path(path)
        if target.suffix != ".svg":
            raise WorkbenchError(f"a picture is written as .svg; got {path}")
        try:
            target.write_text(self.svg, encoding="utf-8")
        except OSError as error:
            raise WorkbenchError(f"the picture must be written into a folder that exists; {error}") from None
        return target

    def __repr__(self) -> str:
        return f"StillPicture({static_picture.described(self.content)})"

    def _repr_html_(self) -> str:
        """An image, since notebooks that are not trusted leave SVG out."""
        return image(self.svg, static_picture.described(self.content), "width: 560px; max-width: 100%")


def image(drawn: str, said: str, style: str) -> str:
    """A drawing as an image of a page; `said` is its text for readers who do not see it."""
    address = html.escape("data:image/svg+xml," + urllib.parse.quote(drawn, safe=KEPT))
    return f'<img src="{address}" alt="{html.escape(said)}" style="{style}">'


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
    seen = projection.Projection.of(particles, axis)
    counts = seen.counts(projection.grid_of(seen.frame, len(seen), PIXELS))
    area = projection.pixel_area(seen.frame, counts.shape)
    low, high = levels.density_range(counts)
    axes, pixels = projection.view_axes(particles, axis), levels.density_bytes(counts, low, high)
    return Picture(
        ", ".join(filter(None, [f"{len(particles):,} particles", axes.depth])), pixels, seen.frame, "density",
        low / area, high / area, logarithmic=True, unit=density_unit(particles), axes=axes, marks=marks,
    )


def _circles(particles: Particles, groups: Groups, axis: int, min_members: int, most: int) -> Marks:
    found = catalogue(particles, groups, min_members)
    across, up = (own for own in range(particles.dimensions) if own != axis or particles.dimensions == 2)
    places = np.column_stack([found.centres[:, [across, up]], RADII * found.radii])[:most]
    label = f"largest of {len(found.members):,} groups" if len(places) < len(found.members) else "groups"
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
