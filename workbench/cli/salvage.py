"""`workbench salvage IN OUT`: write the undamaged parts of an archive as a NumPy file, and list the lost ones.

The exit status is 0 when nothing was lost and 1 when something was, although OUT is written in both cases: a script over
many archives must see which of them are damaged.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from workbench.archive import Archive, Damaged
from workbench.archive.missing import COMMENT
from workbench.cli.failure import BROKEN, DONE
from workbench.cli.numpy_files import add_numpy_target, main_array, require_numpy_target, write_arrays
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.source import add_archive, open_archive, print_result
from workbench.cli.visible import visible
from workbench.data import Field, Particles
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
        written = write_arrays(data, options)
    lost = _lost(archive, data, damage)
    outcome = {**_outcome(options, archive, data), **written, "lost": lost}
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


def _outcome(options: argparse.Namespace, archive: Archive, data: Particles | Field) -> dict[str, Any]:
    main = main_array(data)
    return {
        "file": options.archive,
        "out": options.out,
        "holds": archive.kind,
        "shape": list(main.shape),
        "dtype": str(main.dtype),
    }


def _lost(archive: Archive, data: Particles | Field, damage: list[Damaged]) -> int:
    """The number of lost particles or, for a field, of the values in damaged chunks, or masked for want of their mask."""
    if isinstance(data, Particles):
        return len(archive) - len(data)
    lost, damaged = np.zeros(data.shape, bool), {found.where for found in damage}
    for layout in (archive.arrays[name].layout for name in ("values", "mask") if name in archive.arrays):
        if layout.name == "values" or COMMENT in archive.data.layout.attributes:
            for index in layout.chunk_indices():
                shard = layout.shard_key(layout.shard_of(index))
                lost[layout.chunk_slices(index)] |= bool(damaged & {shard, layout.chunk_key(index)})
    return int(lost.sum())


def _listed(damage: list[Damaged]) -> list[dict[str, str]]:
    return [{"chunk": found.where, "reason": found.reason} for found in damage]
