"""`workbench combine A B OUT --coefficients=1,-1`: a linear combination of archived fields, as an archive."""

from __future__ import annotations

import argparse
import contextlib
import copy
import time
from typing import Any

from workbench.archive import Archive, Collection, linear_combination
from workbench.archive.linear_combination import EXTRA
from workbench.cli.archives import describe_archive, print_archive, sizes
from workbench.cli.compress import SHOWN, require_target
from workbench.cli.members import add_member, chosen_member
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.source import add_most_bytes, add_trust, open_archive
from workbench.cli.target import add_target
from workbench.cli.visible import visible
from workbench.cli.workers import add_workers, wants_workers, workers_of
from workbench.errors import WorkbenchError


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "combine",
        help="sums, differences and averages of archived fields, with a promise for those of the originals",
        description="Write the archive of a linear combination of archived fields on one grid: their sum, unless "
        "coefficients are given. Its certificate states what each archive promises, and what the combination adds.",
    )
    parser.add_argument("archives", metavar="ARCHIVE", nargs="+", help="archives of fields of floats on one grid")
    add_target(parser, "archive to write: one file if it ends in .zip, a folder if in .zarr or nothing")
    text = "a number for each archive, as --coefficients=1,-1 for the first less the second (default: 1 for all)"
    parser.add_argument("--coefficients", metavar="C,C", type=_numbers, help=text)
    text = f"how much encoding may add, as a share of the summed bounds (default {EXTRA})"
    parser.add_argument("--extra", type=float, default=EXTRA, metavar="X", help=text)
    add_member(parser, "combine this member of each archive of a dataset")
    add_most_bytes(add_trust(parser), "decode at most N bytes")
    add_workers(parser, "ARCHIVE")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the archives, combine them here or on workers, print the outcome."""
    paths = options.archives
    coefficients = [1.0] * len(paths) if options.coefficients is None else options.coefficients
    if len(coefficients) != len(paths):
        raise WorkbenchError(f"--coefficients must be a number for each archive; got {len(coefficients)} for {len(paths)}")
    for path in paths:
        require_target(argparse.Namespace(file=path, out=options.out, overwrite=options.overwrite))
    terms = [(factor, _opened(options, path)) for factor, path in zip(coefficients, paths, strict=True)]
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(Progress(options.quiet))
        client = stack.enter_context(workers_of(options, progress)) if wants_workers(options) else None
        start = time.perf_counter()
        made = linear_combination(
            terms, extra=options.extra, out=options.out, overwrite=options.overwrite, client=client,
            scratch=options.scratch, progress=progress,
        )
        seconds = round(time.perf_counter() - start, 4)
    described = describe_archive(made)
    outcome = {"archives": paths, "coefficients": coefficients, "out": options.out, "seconds": seconds}
    shown = {name: described[name] for name in SHOWN} | sizes(made) | {"certificate": described["certificate"]}
    print_archive(outcome | shown, made, options)
    return 0


def _opened(options: argparse.Namespace, path: str) -> Archive:
    """The archive at a path, or the member of it that was asked for."""
    one = copy.copy(options)
    one.archive = path
    archive = chosen_member(open_archive(one), options, path)
    if isinstance(archive, Collection):
        raise WorkbenchError(f"{visible(path)} is an archive of {len(archive)} members: choose one with --member NAME")
    chosen: Archive = archive
    return chosen


def _numbers(text: str) -> list[float]:
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected numbers such as 1,-1; got {visible(text)!r}") from None
