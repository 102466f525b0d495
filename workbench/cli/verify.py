"""`workbench verify ARCHIVE [ORIGINAL]`: whether an archive is whole and, given the original, keeps its promise."""

from __future__ import annotations

import argparse
from typing import Any

from workbench.archive import Archive, Damaged
from workbench.archive.clusters import promised
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.source import add_archive, add_file, open_data, print_result, require_file
from workbench.errors import GuaranteeBroken
from workbench.metrics import Report

ORIGINAL = "ORIGINAL"


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "verify",
        help="check an archive against its checksums and its original",
        description="Decode everything and hold it against the checksums and, when it is given, against the original. "
        "The exit status is 0 when all is well, 1 when something is damaged or a promise is broken.",
    )
    add_archive(parser, "ARCHIVE")
    add_file(parser, ORIGINAL, "what the archive was made from", optional=True)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Verify, and print the outcome whatever it is; what is wrong is raised afterwards."""
    require_file(options, ORIGINAL)
    archive = Archive.open(options.archive)
    try:
        with Progress(options.quiet) as progress:
            original = None
            if options.file is not None:
                progress(None, f"reading {options.file}")
                original = open_data(options)
            progress(None, f"verifying {options.archive}")
            report = archive.verify(original)
    except GuaranteeBroken as error:
        _print_failure(options, error, archive.damage())
        raise
    if options.json:
        kept = promised(archive.certificate["positions"]) if archive.kind == "particles" else []
        print_result({**_outcome(options, report), "kept_clusters": kept}, True)
    else:
        print(report)
    return 0


def _print_failure(options: argparse.Namespace, error: GuaranteeBroken, damaged: list[Damaged]) -> None:
    """Name every damaged chunk; the sentence itself goes where errors go."""
    if options.json:
        print_result(_outcome(options, None, str(error), damaged), True)
    for found in [] if options.json else damaged:
        print(f"damaged  {found.where}  {found.reason}")


def _outcome(
    options: argparse.Namespace, report: Report | None, error: str | None = None, damaged: list[Damaged] | None = None
) -> dict[str, Any]:
    """The same names whatever the outcome."""
    found = report.to_dict() if report is not None else {}
    return {
        "file": options.archive,
        "original": options.file,
        "ok": error is None,
        "error": error,
        "damaged": [{"chunk": chunk.where, "reason": chunk.reason} for chunk in damaged or []],
        "figures": found.get("figures", {}),
        "checks": found.get("checks", []),
        "notes": found.get("notes", []),
        "kept_clusters": [],   # until they are found to be kept
    }
