"""`workbench stats ARCHIVE`: statistics of archived fields, each with an interval that is proven for the original."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.archive import Archive, Collection
from workbench.archive.statistics import KNOWN, FieldStatistic, Statistic, quantiles, statistics
from workbench.archive.statistics.along_axes import several_along_axes
from workbench.archive.statistics.answer import in_digits
from workbench.archive.statistics.selection import axes_of
from workbench.cli.members import add_member, chosen_member
from workbench.cli.regions import add_region, along_axes, of_dimensions, region_as_list
from workbench.cli.source import add_archive, open_archive, print_result
from workbench.cli.visible import visible
from workbench.errors import WorkbenchError

SHOWN = 8   # values of an array in words

Figure = Statistic | FieldStatistic


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
    parser.add_argument("--by", metavar="AXES", type=_words, help="a figure for each place along axes: time,lat")
    parser.add_argument("--quantiles", metavar="Q", type=_numbers, help="quantiles, too: 0.01,0.5,0.99")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compute the statistics and print them."""
    if options.by and options.quantiles:
        raise WorkbenchError("--quantiles are of all values; got --by, too: leave one out")
    whole = open_archive(options)
    archive = chosen_member(whole, options, options.archive)
    answers = _of_members(archive, options) if isinstance(archive, Collection) else {"": _of_one(archive, options)}
    if options.json:
        described = {name: {one.name: one.to_dict() for one in figures} for name, figures in answers.items()}
        single = {"statistics": described[""]} if "" in described else {"members": described}
        by = {"by": options.by} if options.by else {}
        print_result({"archive": options.archive, "region": region_as_list(options.region), **by, **single}, True)
        return 0
    for name, figures in answers.items():
        if name:
            print(visible(name))
        print_result(_in_words(figures), False)
    return 0


def _of_one(archive: Archive, options: argparse.Namespace) -> list[Figure]:
    region = None if options.region is None or archive.kind != "field" else along_axes(archive, options.region)
    return _figures(archive, region, options)


def _of_members(collection: Collection, options: argparse.Namespace) -> dict[str, list[Figure]]:
    """Those of all members that are fields and, given a region or axes, have one of its dimensions, and these."""
    region = of_dimensions(options.region)
    answers: dict[str, list[Figure]] = {}
    for name in collection if options.region is None else collection.inside(region):
        archive, names = collection[name], collection.dimensions(name)
        if archive.kind == "field" and set(options.by or ()) < {*names, None}:
            answers[name] = _figures(archive, [region.get(axis) for axis in names], options)
    if not answers:
        along = f" along {', '.join(options.by)} and other axes" if options.by else ""
        raise WorkbenchError(f"statistics are of fields of real numbers{along}; {options.archive} has none there")
    return answers


def _figures(archive: Archive, region: Any, options: argparse.Namespace) -> list[Figure]:
    if options.by:
        kept = axes_of(archive, [int(axis) if axis.isdigit() else axis for axis in options.by])
        axes = tuple(axis for axis in range(len(archive.data.layout.shape)) if axis not in kept)
        return list(several_along_axes(archive, list(KNOWN), axes, region))
    shares = [] if options.quantiles is None else quantiles(archive, options.quantiles, region)
    return [*statistics(archive, list(KNOWN), region), *(shares if isinstance(shares, list) else [shares])]


def _in_words(figures: list[Figure]) -> Mapping[str, Any]:
    one = figures[0]
    read = {"read": f"{one.bytes_read:,} of {one.bytes_stored:,} bytes: {one.stage}"}
    if isinstance(one, FieldStatistic):
        return {figure.name: _places(figure) for figure in figures if isinstance(figure, FieldStatistic)} | read
    missing = f"; {one.missing:,} cells are masked or not finite" if one.missing else ""
    return {**{figure.name: str(figure) for figure in figures}, "values": f"{one.count:,}{missing}", **read}


def _places(figure: FieldStatistic) -> str:
    """The first values, with their bounds."""
    pairs = list(zip(figure.values.flat, np.broadcast_to(figure.bound, figure.values.shape).flat, strict=True))
    shown = [in_digits(float(value), float(bound)) for value, bound in pairs[:SHOWN]]
    return ", ".join(shown) + (f" ... ({len(pairs):,}; all with --json)" if len(pairs) > SHOWN else "")


def _words(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[float]:
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected numbers such as 0.01,0.5,0.99; got {visible(text)!r}") from None
