"""A series of steps in commands: `--step N` chooses one, `info` describes all, and `verify` checks all."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.archive import Series
from workbench.archive.collection.reports import Reports
from workbench.archive.series.opening import is_series
from workbench.cli.damaged import damage_told_apart
from workbench.cli.failure import BROKEN, DONE, failed
from workbench.cli.notes import warnings_as_notes
from workbench.cli.progress import Progress
from workbench.cli.source import given_options, given_trust, open_archive, print_result
from workbench.cli.visible import visible, visible_lines
from workbench.data.readers import open_series
from workbench.errors import GuaranteeBroken, WorkbenchError


def add_step(parser: argparse.ArgumentParser, text: str) -> None:
    """Add the choice of a step."""
    parser.add_argument("--step", type=int, metavar="N", help=text)


def open_archive_or_step(options: argparse.Namespace) -> Any:
    """The named archive, or the chosen step of a series."""
    if not is_series(options.archive):
        if options.step is not None:
            raise WorkbenchError(f"--step is for series; {options.archive} is one archive: leave it out")
        return open_archive(options)
    series = open_whole(options)
    if not len(series):
        raise WorkbenchError(f"{options.archive} is a series without steps: append one by workbench compress --series")
    if options.step is None:
        raise WorkbenchError(f"{options.archive} is a series of {len(series)} steps: choose one by --step N, from 0")
    if not -len(series) <= options.step < len(series):
        raise WorkbenchError(f"--step must be from 0 to {len(series) - 1}; got {options.step}")
    return series[options.step]


def open_whole(options: argparse.Namespace) -> Series:
    """The named series."""
    with damage_told_apart(options.archive), warnings_as_notes():
        return Series(options.archive, **given_trust(options))


def describe_series(series: Series) -> dict[str, Any]:
    """What is in a series, and what each step costs."""
    return {
        "kind": "series", "steps": len(series), "times": list(series.times), "original_bytes": series.original_nbytes,
        "archive_bytes": series.nbytes, "ratio": series.ratio, "certificate": series.certificate.to_dict(),
    }


def print_series(described: Mapping[str, Any], series: Series, options: argparse.Namespace) -> None:
    """Print a description; as text, with a line for each step."""
    if options.json:
        print_result(described, True)
        return
    print_result({name: value for name, value in described.items() if name not in ("certificate", "times")}, False)
    print(visible_lines(str(series.certificate)))


def verify_series(options: argparse.Namespace) -> int:
    """Check every step, against the snapshots of a pattern or a folder if one is given."""
    try:
        series = open_whole(options)
        given = {name: getattr(options, name) for name in given_options(options)}
        snapshots = None if options.file is None else open_series(options.file, **given)
        originals = None if snapshots is None else snapshots if given else snapshots.places
        with Progress(options.quiet) as progress:
            progress(None, f"verifying {options.archive}")
            reports = series.verify(originals)
    except GuaranteeBroken as error:
        return failed(error, options, {"file": options.archive, "original": options.file, "ok": False})
    return _passed(reports, options)


def salvage_series(options: argparse.Namespace) -> int:
    """Copy the steps that can be read into a new folder, and list the others."""
    if Path(options.out).suffix or options.member is not None or options.overwrite:
        raise WorkbenchError(
            f"{options.archive} is a series, and OUT a new folder without a suffix; got {options.out}: give such a name "
            "alone, or choose a step by --step N"
        )
    with Progress(options.quiet) as progress:
        progress(None, f"reading {options.archive}")
        series = open_whole(options)
        lost = series.salvage(options.out)
    kept = [path.name for path in sorted(Path(options.out).expanduser().iterdir()) if path.suffix == ".zip"]
    outcome = {"file": options.archive, "out": options.out, "holds": "series", "steps": len(kept), "lost": len(lost)}
    if options.json:
        damaged = [{"chunk": one.where, "reason": one.reason} for one in lost]
        print_result({**outcome, "status": BROKEN if lost else DONE, "damaged": damaged}, True)
    else:
        print_result(outcome, False)
        for one in lost:
            print(visible(f"damaged  {one.where}  {one.reason}"))
    return BROKEN if lost else DONE


def _passed(reports: Reports, options: argparse.Namespace) -> int:
    if options.json:
        described = {"file": options.archive, "original": options.file, "ok": True, "error": None, "status": 0}
        print_result({**described, "steps": reports.to_dict()}, True)
        return 0
    print(visible_lines(str(reports)))
    if options.file is None:
        print("without the originals, only checksums were checked")
    return 0
