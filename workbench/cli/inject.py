"""`workbench inject SCRIPT.py:NAME DATA`: faults in a pipeline, one's own or ready-made, or in a language model."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.cli import inject_model
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.source import add_file, add_trust, open_data, print_result
from workbench.cli.visible import visible
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.propagation import Pipeline, Until, campaign, strata
from workbench.propagation import ready as ready_made
from workbench.propagation.campaign_result import Campaign
from workbench.propagation.names import require_known
from workbench.propagation.number_format import STORED
from workbench.propagation.tolerance import within
from workbench.propagation.trials import OUTCOMES

WITHOUT_DATA = ("kuramoto_sivashinsky", "linear_operator")
REASONS = 5   # for crashes, that are printed
READY = tuple(name for name in ready_made.__all__ if name not in WITHOUT_DATA)


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "inject",
        help="flip bits in a pipeline and count the outcomes",
        description="Run a fault-injection campaign: flip bits at the sites of a pipeline, and count how many faults are "
        "masked, benign, silent, detected, or crash it. The script is executed.",
    )
    text = f"a pipeline in a Python file, or a function of the data that returns one; or one of {', '.join(READY)}"
    parser.add_argument("pipeline", metavar="SCRIPT.py:NAME", nargs="?", help=text)
    add_file(parser, "DATA", optional=True)
    add_trust(parser)
    inject_model.add(parser)
    group = parser.add_argument_group("faults")
    text = "fields (default), each, any, or names of fields and numbers of bits, separated by commas"
    group.add_argument("--bits", type=_bits, default="fields", help=text)
    group.add_argument("--sites", type=_names, metavar="A[,B...]", help="only at these sites (by default all but results)")
    group.add_argument("--stuck-at", type=int, choices=(0, 1), help="bits that are stuck at this value, instead of flips")
    text = "round float32 values to this format, and change its bits"
    group.add_argument("--number-format", choices=STORED, help=text)
    group = parser.add_argument_group("how many")
    group.add_argument("--trials", type=int, metavar="N", help="exactly N trials in all")
    text = "until all 95%% intervals are at most this wide to each side (default 0.05)"
    group.add_argument("--half-width", type=float, metavar="W", help=text)
    group.add_argument("--seed", type=int, default=0, help="of the random numbers (default 0)")
    text = "how much of its size a result may be off (default: that of the pipeline, or 0.01)"
    group.add_argument("--tolerance", type=float, metavar="SHARE", help=text)
    group.add_argument("--workers", type=int, help="threads (default: all cores); the outcomes are the same")
    text = "each trial in a process of its own, for at most so many seconds of processor time: for stages that may crash"
    group.add_argument("--isolate-trials", type=float, metavar="SECONDS", help=text)
    group.add_argument("--log", metavar="FILE", help="write trials to this file, and continue where it ends")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Load the pipeline, open the data, run the campaign, print its table."""
    until = _until(options)
    if options.model is not None or options.repeat is not None:
        return inject_model.run(options, until)
    if options.pipeline is None or options.file is None:
        raise WorkbenchError("inject needs a pipeline and its data, or a language model: SCRIPT.py:NAME DATA, or --model")
    with Progress(options.quiet) as progress, _importable_beside(options.pipeline):
        progress(None, f"reading {options.file}")
        data = open_data(options)
        pipeline = _pipeline(options.pipeline, data)
        progress(None, "the unperturbed run")
        unperturbed = pipeline.run(data)
        kind: Any = "flip" if options.stuck_at is None else f"stuck at {options.stuck_at}"
        perturbations = strata(pipeline, unperturbed, options.bits, options.sites, kind, options.number_format)
        found = campaign(
            pipeline, unperturbed, perturbations, options.seed, until,
            tolerance=None if options.tolerance is None else within(options.tolerance),
            path=options.log, isolate=options.isolate_trials, workers=options.workers, progress=progress,
        )
    if options.json:
        print_result({"file": options.file, "pipeline": pipeline.name, **found.to_dict()}, True)
    else:
        _print(found)
    return 0


def _until(options: argparse.Namespace) -> Until | int | None:
    if options.trials is not None and options.half_width is not None:
        raise WorkbenchError("--trials and --half-width exclude each other: give one")
    return options.trials if options.half_width is None else Until(half_width=options.half_width)


def _pipeline(named: str, data: Particles | Field) -> Pipeline:
    """The pipeline of this name, made for the data where a function makes it."""
    path, colon, name = named.rpartition(":")
    if not colon:
        found = getattr(ready_made, require_known("pipeline", named, READY))
    else:
        names = _executed(Path(path))
        given = [each for each in names if not each.startswith("_")]
        found = names[require_known(f"pipeline in {path} named", name, given)]
    if not isinstance(found, Pipeline) and callable(found):
        found = found(data)
    if not isinstance(found, Pipeline):
        raise WorkbenchError(
            f"{named} must be a Pipeline, or a function of the data that returns one; got {type(found).__name__}: "
            "a function of an array becomes one by wb.propagation.from_function(function, data.values)"
        )
    return found


@contextmanager
def _importable_beside(named: str) -> Iterator[None]:
    """Let a script, and processes that are started meanwhile, import what lies beside it, as `python SCRIPT.py` does."""
    path, colon, _ = named.rpartition(":")
    folder = [str(Path(path).resolve().parent)] if colon else []
    sys.path[:0] = folder
    try:
        yield
    finally:
        for each in folder:
            sys.path.remove(each)


def _executed(script: Path) -> dict[str, Any]:
    """The names that a script defines."""
    if not script.is_file():
        raise WorkbenchError(f"{script} must be a Python file; there is none: give SCRIPT.py:NAME")
    try:
        return runpy.run_path(str(script), run_name="lossbench_script")
    except WorkbenchError:
        raise
    except Exception as error:
        raise WorkbenchError(f"{script} must run without an error; it raised {type(error).__name__}: {error}") from error


def _print(found: Campaign) -> None:
    """The table, one line for each stratum."""
    rows: list[list[str]] = [["site", "bits", "trials", *OUTCOMES, "silent, 95%"]]
    for each in found.rows():
        interval = f"{each['silent_low']:.3f} to {each['silent_high']:.3f}"
        counts = [f"{each[name]:,}" for name in ("trials", *OUTCOMES)]
        rows.append([each["site"], each["bits"], *counts, interval])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        names = [text.ljust(width) for text, width in zip(row[:2], widths[:2], strict=True)]
        numbers = [text.rjust(width) for text, width in zip(row[2:], widths[2:], strict=True)]
        print(visible("  ".join([*names, *numbers])))
    print(visible(f"all faults alike: silent {found.rate('silent')}, detected {found.rate('detected')}"))
    for reason, count in list(found.reasons("crash").items())[:REASONS]:
        print(visible(f"{count:,} crashed: {reason}"))
    print(visible(f"tolerance: {found.tolerance}"))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _bits(text: str) -> str | list[str | int]:
    if text in ("fields", "each", "any"):
        return text
    return [int(part) if part.isdigit() else part for part in _names(text)]
