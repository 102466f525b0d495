"""`workbench audit ORIGINAL LOSSY`: whether a lossy copy of any origin keeps its promise; scripts may go on to `rm`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from workbench.auditing import Audit, audit
from workbench.cli.bounds import add_bounds, chosen_rules
from workbench.cli.failure import BROKEN, DONE
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.source import OPTIONS, READ, flag, print_result
from workbench.cli.target import new_file
from workbench.cli.visible import visible_lines
from workbench.data.readers import open_file
from workbench.data.readers.registry import format_of
from workbench.data.readers.source import Source
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound

OF_RAW = ("format", "kind", "shape", "dtype")   # options of files that no format recognises
KINDS = "a file or folder of any format that the workbench reads, or a pattern in quotes"


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "audit",
        help="check a lossy file of any origin against its original",
        description="Compare a lossy copy with its original, of any two formats: whether every value keeps the bound given "
        "here or stated by the copy, what it does to extremes, masks, gradients, spectra and halos, and what is wrong with "
        "it. The exit status is 0 only if every array is identical or keeps its promise, so that `workbench audit a.nc "
        "b.nc --abs T=0.01 && rm a.nc` is safe; 1 if anything is wrong, or nothing was promised of an array that differs.",
    )
    parser.add_argument("original", metavar="ORIGINAL", help=KINDS)
    parser.add_argument("lossy", metavar="LOSSY", help="its lossy copy, of the same format or another")
    add_bounds(parser)
    group = parser.add_argument_group("opening files of no known format")
    for option in OF_RAW:
        group.add_argument(flag(option), help=OPTIONS[option], type=READ.get(option, str))
    group = parser.add_argument_group("what is measured")
    text = "a limit for a figure of `wb.compare`, at most (of ssim, psnr and the like at least); several times"
    how: dict[str, Any] = {"action": "append", "default": []}
    group.add_argument("--tolerance", type=_tolerance, metavar="[NAME:]FIGURE=LIMIT", help=text, **how)
    text = "only the members of this name, group or pattern; several times"
    group.add_argument("--only", metavar="NAME", help=text, **how)
    group.add_argument("--no-spectra", dest="quick", action="store_true", help="leave out spectra and halos: faster")
    text = "of halos, in mean spacings of the particles; 0.2 unless given"
    group.add_argument("--linking-length", type=float, default=0.2, metavar="B", help=text)
    parser.add_argument("--html", metavar="PAGE", help="also write a page")
    parser.add_argument("--overwrite", action="store_true", help="replace PAGE if it exists")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Audit, print the outcome, and write the page."""
    rules = _rules(options)
    with Progress(options.quiet) as progress:
        found = audit(
            _opened(options.original, options), _opened(options.lossy, options), rules,
            tolerance=_tolerances(options.tolerance), only=options.only,
            quick=options.quick, linking_length=options.linking_length, progress=progress,
        )
    if options.html is not None:
        _write(found, options)
    if options.json:
        status = DONE if found.passed else BROKEN
        print_result({**found.to_dict(), "error": None if found.passed else found.sentence, "status": status}, True)
    else:
        print(visible_lines(str(found)))
    return DONE if found.passed else BROKEN


def _opened(file: str, options: argparse.Namespace) -> Any:
    """The file as it is named; opened with the shape and the type that are given, if no format recognises it."""
    given = {option: getattr(options, option) for option in OF_RAW if getattr(options, option) is not None}
    if not given or not Path(file).is_file():
        return file
    try:
        format_of(Source.at(file), None, {})
    except WorkbenchError:
        return open_file(file, **given)
    return file


def _rules(options: argparse.Namespace) -> Bound | dict[str, Bound] | None:
    """The bounds; one alone as it is, since it is about positions where the files hold particles."""
    if not options.rules:
        return None
    rules = chosen_rules(options)
    return rules.for_members() if rules.of_members or rules.of_all is None else rules.of_all.bound


def _write(found: Audit, options: argparse.Namespace) -> None:
    from workbench.auditing.page import page

    with new_file(options.html, options.overwrite) as file:
        file.write(page(found).encode())


def _tolerance(text: str) -> tuple[str | None, str, float]:
    """A limit: NAME:FIGURE=LIMIT, or FIGURE=LIMIT."""
    named, equals, limit = text.rpartition("=")
    member, colon, figure = named.rpartition(":")
    try:
        value = float(limit)
    except ValueError:
        value = float("nan")
    if not equals or not figure or (colon and not member) or value != value:
        raise argparse.ArgumentTypeError(f"expected FIGURE=LIMIT or NAME:FIGURE=LIMIT, as in T:ssim=0.99; got {text!r}")
    return member if colon else None, figure, value


def _tolerances(given: list[tuple[str | None, str, float]]) -> dict[str, Any]:
    """The limits as `wb.audit` takes them."""
    found: dict[str, Any] = {}
    for member, figure, limit in given:
        place = found if member is None else found.setdefault(member, {})
        if not isinstance(place, dict) or figure in place:
            raise WorkbenchError(f"{figure} must have one tolerance; got two: leave one out")
        place[figure] = limit
    return found
