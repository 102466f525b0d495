"""`workbench salvage IN OUT`: write the undamaged parts of an archive as a NumPy file, and list the lost ones.

The exit status is 0 when nothing was lost and 1 when something was, although OUT is written in both cases: a script over
many archives must see which of them are damaged.
"""

from __future__ import annotations

import argparse
from typing import Any

from workbench.archive import Archive, Damaged
from workbench.cli.failure import BROKEN, DONE
from workbench.cli.numpy_files import add_numpy_target, require_numpy_target, what_is_written, write_arrays
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.source import add_archive, open_archive, print_result
from workbench.cli.visible import visible
from workbench.errors import GuaranteeBroken


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "salvage",
        help="recover the undamaged parts of a damaged archive",
        description="Decode the undamaged parts, write them as a NumPy file, and list the lost ones. Damaged particles are "
        "left out; lost values of a field are NaN (of integers, zero) and masked. Where the mask is lost, values that hold "
        "the number for missing values are masked; if there is none, all of them, which count as lost. The exit status is "
        "1 when something was lost.",
    )
    add_archive(parser, "IN")
    add_numpy_target(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the archive as far as possible, write the undamaged parts, list the others."""
    require_numpy_target(options)
    archive = _opened(options)
    with Progress(options.quiet) as progress:
        progress(None, f"decoding {options.archive}")
        data, damage = archive.salvage()
        progress(None, f"writing {options.out}")
        written = write_arrays(archive, data, options)
    lost = archive.content.lost(archive, data, damage)
    outcome = {**what_is_written(archive, data, options), **written, "lost": lost}
    if options.json:
        print_result({**outcome, "status": BROKEN if damage else DONE, "damaged": _listed(damage)}, True)
    else:
        print_result(outcome, False)
        for found in damage:
            print(visible(f"damaged  {found.where}  {found.reason}"))
    return BROKEN if damage else DONE


def _opened(options: argparse.Namespace) -> Archive:
    try:
        return open_archive(options)
    except GuaranteeBroken:   # its documents are damaged, or the zip file is truncated
        return open_archive(options, damaged=True)


def _listed(damage: list[Damaged]) -> list[dict[str, str]]:
    return [{"chunk": found.where, "reason": found.reason} for found in damage]
