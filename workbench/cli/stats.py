"""`workbench stats ARCHIVE`: statistics of archived fields, each with an interval that is proven for the original."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from workbench.archive import Archive, Collection
from workbench.archive.statistics import KNOWN, Statistic, statistics
from workbench.cli.members import add_member, chosen_member
from workbench.cli.regions import add_region, along_axes, of_dimensions, region_as_list
from workbench.cli.source import add_archive, open_archive, print_result
from workbench.cli.visible import visible
from workbench.errors import WorkbenchError


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "stats",
        help="mean, sum, standard deviation and extremes of archived fields, with proven intervals",
        description="Mean, sum, standard deviation and extremes of an archived field, each with an interval that contains "
        "the figure of the original data. Archives of the codec staged answer from the metadata of their blocks; others "
        "are decoded chunk by chunk. Of a dataset, all members that are fields are shown.",
    )
    add_archive(parser, "ARCHIVE")
    add_member(parser, "only this member of an archive of a dataset")
    add_region(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compute the statistics and print them."""
    whole = open_archive(options)
    archive = chosen_member(whole, options, options.archive)
    found = _of_members(archive, options) if isinstance(archive, Collection) else {"": _of_one(archive, options)}
    if options.json:
        described = {name: {one.name: one.to_dict() for one in figures} for name, figures in found.items()}
        single = {"statistics": described[""]} if "" in described else {"members": described}
        print_result({"archive": options.archive, "region": region_as_list(options.region), **single}, True)
        return 0
    for name, figures in found.items():
        if name:
            print(visible(name))
        print_result(_in_words(figures), False)
    return 0


def _of_one(archive: Archive, options: argparse.Namespace) -> list[Statistic]:
    region = None if options.region is None or archive.kind != "field" else along_axes(archive, options.region)
    return statistics(archive, list(KNOWN), region)


def _of_members(collection: Collection, options: argparse.Namespace) -> dict[str, list[Statistic]]:
    """Those of all members that are fields and, given a region, have one of its dimensions."""
    region = of_dimensions(options.region)
    found = {}
    for name in collection if options.region is None else collection.inside(region):
        archive = collection[name]
        if archive.kind == "field":
            ends = [region.get(axis) for axis in collection.dimensions(name)]
            found[name] = statistics(archive, list(KNOWN), ends)
    if not found:
        raise WorkbenchError(f"statistics are of fields of real numbers; {options.archive} has none there")
    return found


def _in_words(figures: list[Statistic]) -> Mapping[str, Any]:
    one = figures[0]
    missing = f"; {one.missing:,} cells are masked or not finite" if one.missing else ""
    return {
        **{figure.name: str(figure) for figure in figures},
        "values": f"{one.count:,}{missing}",
        "read": f"{one.bytes_read:,} of {one.bytes_stored:,} bytes: {one.stage}",
    }
