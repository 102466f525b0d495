"""`workbench verify ARCHIVE [ORIGINAL]`: check an archive for damage and, given the original, its guarantees."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from workbench.archive import Archive, Collection, Damaged
from workbench.archive.content.content import Content
from workbench.archive.content.registry import content_of
from workbench.archive.series.opening import is_series
from workbench.cli.failure import failed
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.series import verify_series
from workbench.cli.source import (
    add_archive,
    add_file,
    flag,
    given_options,
    open_archive,
    open_data,
    print_result,
    require_file,
)
from workbench.cli.verify_members import verify_members
from workbench.cli.visible import visible, visible_lines
from workbench.data import Trajectory
from workbench.data.readers import open_trajectory
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees.guarantee import known
from workbench.metrics import Report

ORIGINAL = "ORIGINAL"


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "verify",
        help="check an archive against its checksums and its original",
        description="Decode everything and check it against the checksums and, if given, against the original. The exit "
        "status is 0 when all checks pass, and 1 when something is damaged, a guarantee is broken or ORIGINAL is not the "
        "original of this archive.",
    )
    add_archive(parser, "ARCHIVE")
    add_file(parser, ORIGINAL, "the data from which the archive was made", optional=True, limited=False)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Verify, and print the outcome."""
    require_file(options, ORIGINAL)
    if is_series(options.archive):
        return verify_series(options)
    archive: Any = None
    try:
        archive = open_archive(options)
        if isinstance(archive, Collection):
            return verify_members(archive, options)
        with Progress(options.quiet) as progress:
            report = _report(archive, options, progress)
    except GuaranteeBroken as error:
        return _failed(options, error, archive.damage() if isinstance(archive, Archive) else [])
    if options.json:
        kept = [one for promise in archive.certificate.promises for one in promise.keep if known(one.get("kind"))]
        print_result({**_outcome(options, report), "kept_clusters": kept}, True)
    else:
        print(visible_lines(str(report)))
    return 0


def _report(archive: Archive, options: argparse.Namespace, progress: Progress) -> Report:
    original = None
    if options.file is not None:
        progress(None, f"reading {options.file}")
        original = _frames(options) if archive.kind == "trajectory" else open_data(options)
        _require_alike(archive, original, options.file)
    progress(None, f"verifying {options.archive}")
    return archive.verify(original)


def _frames(options: argparse.Namespace) -> Trajectory:
    """The original of a trajectory, also one of a single frame."""
    if given := given_options(options):
        raise WorkbenchError(f"{flag(given[0])} is not for all frames of a trajectory: leave it out")
    return open_trajectory(options.file)


def _require_alike(archive: Archive, original: Any, file: str) -> None:
    """Data of another kind, shape or type than the archive's are a failed check, not wrong input."""
    content, expected = content_of(original), archive.data.layout
    main = content.arrays(original)[content.data]
    held, given = _in_words(archive.content, expected), _in_words(content, main)
    if given != held:
        raise GuaranteeBroken(f"{file} is not the original: the archive was made from {held}; got {given}")


def _in_words(content: Content, array: Any) -> str:
    return f"{content.words}, {' x '.join(map(str, array.shape))} {array.dtype}"


def _failed(options: argparse.Namespace, error: GuaranteeBroken, damaged: list[Damaged]) -> int:
    """List every damaged chunk on standard output, and report the error on standard error."""
    for found in [] if options.json else damaged:
        print(visible(f"damaged  {found.where}  {found.reason}"))
    return failed(error, options, _outcome(options, None, damaged))


def _outcome(options: argparse.Namespace, report: Report | None, damaged: Sequence[Damaged] = ()) -> dict[str, Any]:
    """The outcome, with the same names in all cases."""
    found = report.to_dict() if report is not None else {}
    return {
        "file": options.archive,
        "original": options.file,
        "ok": report is not None,
        "error": None,
        "status": 0,
        "damaged": [{"chunk": chunk.where, "reason": chunk.reason} for chunk in damaged],
        "figures": found.get("figures", {}),
        "checks": found.get("checks", []),
        "notes": found.get("notes", []),
        "kept_clusters": [],   # filled in after a successful check
    }
