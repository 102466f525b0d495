"""`workbench decompress IN OUT`: decode an archive, a member or a region of it, into a file of many kinds."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from workbench.archive import Archive, Collection
from workbench.cli.decoded_files import (
    add_decoded_target,
    holds_names,
    require_decoded_target,
    require_fitting_target,
    without_notes,
    write_dataset_of_one,
    write_frames,
    write_members,
    write_one,
    write_tensors,
)
from workbench.cli.decoded_variables import dataset_of_one, groups_of_members
from workbench.cli.frames import add_frames, chosen_frames, require_for_frames
from workbench.cli.members import add_member, chosen_member
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.regions import add_region, read_one, region_as_list
from workbench.cli.series import add_step, open_archive_or_step
from workbench.cli.source import add_archive, print_result
from workbench.data.readers.paths import nbytes_of


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "decompress",
        help="decode an archive into a file of NumPy, NetCDF or Zarr, or of a trajectory",
        description="Decode an archive, or a region of it, and write it as a file of NumPy, NetCDF-4 or Zarr, or as a "
        "trajectory.",
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what says which values are decoded, and into which file."""
    add_archive(parser, "IN")
    add_decoded_target(parser)
    add_member(parser, "decode only this member of a dataset; into NetCDF or Zarr with its coordinates")
    add_step(parser, "decode this step of a series, from 0; -1 is the last")
    add_region(parser)
    add_frames(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Open the archive, decode it, write the file, print a summary."""
    require_decoded_target(options)
    whole = open_archive_or_step(options)
    archive = chosen_member(whole, options, options.archive)
    require_fitting_target(archive, options)
    require_for_frames(archive, options)
    with Progress(options.quiet) as progress:
        progress(None, f"decoding {options.archive} into {options.out}")
        start = time.perf_counter()
        if isinstance(archive, Archive) and archive.kind == "trajectory":
            written = write_frames(archive, chosen_frames(archive, options), options)
        elif isinstance(archive, Collection) and not holds_names(options.out):
            written = write_tensors(archive, options)
        elif isinstance(whole, Collection) and holds_names(options.out):
            written = write_members(whole, groups_of_members(whole, options.member, options.region), options)
        elif holds_names(options.out):
            written = write_dataset_of_one(archive, *dataset_of_one(archive, options.region), options)
        else:
            written = write_one(archive, read_one(archive, options.region), options)
        seconds = time.perf_counter() - start
    region = {} if archive.kind == "trajectory" else {"region": region_as_list(options.region)}
    own = {**region, "bytes": nbytes_of(Path(options.out)), "seconds": round(seconds, 4)}
    print_result(without_notes({**written, **own}, options.json), options.json)
    return 0
