"""What part of a field a statistic is of, and along which axes: by number, or by the names of dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.archive import region as regions
from workbench.errors import WorkbenchError, briefly
from workbench.guarantees.per_slice import axis_of
from workbench.slabs import Slices

if TYPE_CHECKING:
    from workbench.archive.archive import Archive


def require_field(archive: Archive) -> None:
    """Refuse archives without a grid of real numbers."""
    if archive.kind != "field":
        dtype = archive.attributes.get("dtype")
        what = archive.content.words if dtype is None else f"{dtype} values"
        instead = "count_particles, density, centre_of_mass or halo_masses" if archive.kind == "particles" else "decompress"
        raise WorkbenchError(f"this statistic is of fields of real numbers; the archive holds {what}: use {instead}")


def part_of_grid(archive: Archive, region: Any) -> Slices:
    """The part of the grid: slices, pairs (start, stop) or None for each axis, or such by the names of dimensions."""
    require_field(archive)
    shape = archive.data.layout.shape
    if isinstance(region, Mapping):
        axes = {axis_of(axis, len(shape), dimensions(archive)): part for axis, part in region.items()}
        region = [axes.get(axis) for axis in range(len(shape))]
    return regions.slices_of((None,) * len(shape) if region is None else region, shape)


def dimensions(archive: Archive) -> list[str] | None:
    """The names of the axes, if the data had some."""
    given = archive.attributes.get("metadata", {}).get("dimensions")
    return given if isinstance(given, list) and len(given) == len(archive.data.layout.shape) else None


def axes_of(archive: Archive, given: Any) -> tuple[int, ...]:
    """The numbers of axes that are given by number or name: one, or several."""
    require_field(archive)
    several = list(given) if isinstance(given, list | tuple) else [given]
    if not several or not all(isinstance(axis, str | int) and not isinstance(axis, bool) for axis in several):
        raise WorkbenchError(f"axis must be numbers of axes or names of dimensions; got {briefly(given)}")
    names, count = dimensions(archive), len(archive.data.layout.shape)
    axes = sorted(axis_of(axis, count, names) for axis in several)
    if len(set(axes)) < len(axes):
        raise WorkbenchError(f"axis must name each axis once; got {briefly(given)}")
    return tuple(axes)


def are_names(given: Any) -> bool:
    """Whether this is the name of a dimension, or several, rather than a region.

    >>> are_names("time"), are_names([(0, 2), None])
    (True, False)
    """
    several = given if isinstance(given, list | tuple) else [given]
    return bool(several) and all(isinstance(name, str) for name in several)
