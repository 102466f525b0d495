"""`--region`: a part of an archive, along the axes in their order or by the names of dimensions."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.archive import Archive, Collection
from workbench.archive.collection.dataset import coordinates_of
from workbench.archive.collection.names import groups_of, require_known
from workbench.archive.content.content import Ends
from workbench.errors import WorkbenchError

Pair = tuple[float | None, float | None]
Region = Ends | Mapping[str, Pair]


def add_region(parser: argparse.ArgumentParser) -> None:
    """Add the choice of a region."""
    text = (
        "decode only this region, lower <= x < upper, in space for particles and in grid points for fields; ends may be "
        "omitted; write --region=-1:1,... if it begins with a minus sign. Or by the names of dimensions, as in "
        "time=0:10,lat=3:5: of a dataset, the arrays that have one of them, and others along their axes"
    )
    parser.add_argument("--region", type=_region, metavar="X0:X1,Y0:Y1,...", help=text)


def read_one(archive: Archive, region: Region | None) -> Any:
    """The contents of an archive of one array, or those in a region of it."""
    if region is None:
        return archive.decompress()
    if isinstance(region, Mapping):
        return archive.read(_of_axes(archive, region))
    return archive.read(archive.content.region(region))


def chosen_members(collection: Collection, member: str | None, region: Region | None) -> list[str]:
    """The names of all members, of those in a region of named dimensions, or of a member and the coordinates around it."""
    if member is not None:
        return [member, *_coordinates_around(collection, member)]
    return list(collection) if region is None else collection.inside(of_dimensions(region))


def of_dimensions(region: Region | None) -> dict[str, tuple[int | None, int | None]]:
    """The region of a dataset, by the names of dimensions."""
    if not isinstance(region, Mapping | None):
        raise WorkbenchError(
            "the region of a dataset must name dimensions, as in --region time=0:10,lat=3:5; or choose a member by --member"
        )
    return {name: _whole_numbers(name, pair) for name, pair in (region or {}).items()}


def along_axes(archive: Archive, region: Region) -> list[slice]:
    """A region of one array as slices along its axes."""
    return list(_of_axes(archive, region) if isinstance(region, Mapping) else archive.content.region(region))


def _coordinates_around(collection: Collection, name: str) -> list[str]:
    """The coordinates in the group of a member, and around it, that have its dimensions."""
    axes, group = collection.dimensions(name), name.rpartition("/")[0]
    around = {"", group, *groups_of(f"{group}/")}
    beside = {
        other for other in coordinates_of(collection.groups) & set(collection)
        if set(collection.dimensions(other)) <= set(axes) and other.rpartition("/")[0] in around
    }
    return [other for other in collection if other in beside - {name}]


def region_as_list(region: Region | None) -> Any:
    """The region as JSON has it."""
    if region is None:
        return None
    if isinstance(region, Mapping):
        return {name: list(pair) for name, pair in region.items()}
    return [list(pair) for pair in region]


def _of_axes(archive: Archive, region: Mapping[str, Pair]) -> list[slice]:
    """A region by names as slices along all axes of one field."""
    names: Sequence[str] = archive.attributes.get("metadata", {}).get("dimensions", [])
    if archive.kind == "particles" or not names:
        raise WorkbenchError("the axes of this archive have no names: give --region X0:X1,Y0:Y1,... in their order")
    for name in region:
        require_known(name, names, "a dimension")
    return [slice(*_whole_numbers(name, region.get(name, (None, None)))) for name in names]


def _whole_numbers(name: str, pair: Pair) -> tuple[int | None, int | None]:
    if not all(end is None or float(end).is_integer() for end in pair):
        words = ":".join("" if end is None else f"{end:g}" for end in pair)
        raise WorkbenchError(f"the region of a field must be whole numbers of grid points; got {name}={words}")
    low, high = (None if end is None else int(end) for end in pair)
    return low, high


def _region(text: str) -> Region:
    """The ends along each axis, or each dimension that has a name; some may be omitted, as in `0:10,:,5:`."""
    try:
        if "=" not in text:
            return tuple(_pair(part) for part in text.split(","))
        named = [part.rpartition("=") for part in text.split(",")]
        ends_of = {name.strip(): _pair(ends) for name, _, ends in named}
        if len(ends_of) < len(named) or not all(ends_of):
            raise ValueError
        return ends_of
    except ValueError:
        expected = "dimension=x0:x1,... with each dimension once" if "=" in text else "x0:x1,y0:y1,z0:z1"
        raise argparse.ArgumentTypeError(f"expected {expected}; got {text!r}") from None


def _pair(text: str) -> Pair:
    low, high = [float(end) if end.strip() else None for end in text.split(":")]
    return low, high
