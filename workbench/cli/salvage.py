"""`workbench salvage IN OUT`: write the undamaged parts of an archive as a file, and list the lost ones.

The exit status is 0 when nothing was lost and 1 when something was, although OUT is written in both cases: a script over
many archives must see which of them are damaged.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from workbench.archive import Archive, Collection, Damaged
from workbench.archive.collection.dataset import plain_values
from workbench.archive.series.opening import is_series
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
)
from workbench.cli.decoded_variables import groups_of_members
from workbench.cli.failure import BROKEN, DONE
from workbench.cli.members import add_member, chosen_member
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.series import add_step, open_archive_or_step, salvage_series
from workbench.cli.single_field import as_dataset, name_of
from workbench.cli.source import add_archive, open_archive, print_result
from workbench.cli.visible import visible
from workbench.data import Field
from workbench.errors import GuaranteeBroken


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "salvage",
        help="recover the undamaged parts of a damaged archive",
        description="Decode the undamaged parts, write them as a file, and list the lost ones. Damaged particles are left "
        "out; lost values of a field are NaN (of integers, zero) and masked. Where the mask is lost, values that hold the "
        "number for missing values are masked; if there is none, all of them, which count as lost. Members of a dataset of "
        "which nothing is left are not in the file. Of a series, OUT is a new folder with all steps that can be read. The "
        "exit status is 1 when something was lost.",
    )
    add_archive(parser, "IN")
    add_decoded_target(parser)
    add_member(parser, "recover only this member of a dataset")
    add_step(parser, "of a series, recover this step alone as a file, from 0; -1 is the last")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the archive as far as possible, write the undamaged parts, list the others."""
    if options.step is None and is_series(options.archive):
        return salvage_series(options)
    require_decoded_target(options)
    archive = chosen_member(_opened(options), options, options.archive)
    require_fitting_target(archive, options)
    with Progress(options.quiet) as progress:
        outcome, damage = (_many if isinstance(archive, Collection) else _one)(archive, options, progress)
    if options.json:
        print_result({**outcome, "status": BROKEN if damage else DONE, "damaged": _listed(damage)}, True)
    else:
        print_result(without_notes(outcome, False), False)
        for found in damage:
            print(visible(f"damaged  {found.where}  {found.reason}"))
    return BROKEN if damage else DONE


def _one(archive: Archive, options: argparse.Namespace, progress: Progress) -> tuple[dict[str, Any], list[Damaged]]:
    progress(None, f"decoding {options.archive}")
    data, damage = archive.salvage()
    progress(None, f"writing {options.out}")
    if archive.kind == "trajectory":
        written = write_frames(archive, data, options)
    elif holds_names(options.out):
        name = name_of(archive)
        written = write_dataset_of_one(archive, name, as_dataset(name, data), options)
    else:
        written = write_one(archive, data, options)
    return {**written, "lost": archive.content.lost(archive, data, damage)}, damage


def _many(collection: Collection, options: argparse.Namespace, progress: Progress) -> tuple[dict[str, Any], list[Damaged]]:
    """Each member as far as it can be read; `lost` are the values of each that cannot."""
    damage, lost = collection.damaged_documents(), {}   # type: list[Damaged], dict[str, int]
    left: dict[str, np.dtype | None] = {}
    for number, name in enumerate(collection):
        progress(number / len(collection), f"decoding {name}")
        if not collection.damage_of(name):
            left[name] = None
            continue
        archive, (data, parts) = collection[name], collection.salvage_member(name)
        damage += parts
        if data is None:
            lost[name] = math.prod(archive.data.layout.shape)
            continue
        left[name] = plain_values(data).dtype if isinstance(data, Field) else None
        if own := archive.content.lost(archive, data, [collection.within(name, one) for one in parts]):
            lost[name] = own
    if not left:
        raise GuaranteeBroken(f"nothing of {options.archive} can be read: {len(damage)} parts are damaged")
    progress(None, f"writing {options.out}")
    written = write_members(collection, groups_of_members(collection, left=left), options)
    return {**written, "lost": sum(lost.values()), "lost_of_members": lost}, damage


def _opened(options: argparse.Namespace) -> Any:
    if options.step is not None:
        return open_archive_or_step(options)
    try:
        return open_archive(options)
    except GuaranteeBroken:   # its documents are damaged, or the zip file is truncated
        return open_archive(options, damaged=True)


def _listed(damage: list[Damaged]) -> list[dict[str, str]]:
    return [{"chunk": one.where, "reason": one.reason} for one in damage]
