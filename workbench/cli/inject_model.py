"""`workbench inject --model`: a campaign of faults in a language model, printed by bits, layers and parts of blocks."""

from __future__ import annotations

import argparse
from typing import Any, get_args

from workbench.cli.progress import Progress
from workbench.cli.source import print_result
from workbench.cli.visible import visible
from workbench.errors import WorkbenchError
from workbench.propagation import CampaignPlan, language_model
from workbench.propagation.campaign_result import Campaign
from workbench.propagation.executor import Threads
from workbench.propagation.language import divergence, faults, harmful, pooled, recorded
from workbench.propagation.language.study import SITES, Group
from workbench.propagation.trials import OUTCOMES

TRIALS = 384   # of which a share is known to 5% with 95% confidence


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of models to the command."""
    group = parser.add_argument_group("a language model instead of SCRIPT.py:NAME and DATA")
    text = "the model of this GGUF file; without one, SmolLM2-135M if it is installed"
    group.add_argument("--model", nargs="?", const="", metavar="FILE.gguf", help=text)
    text = "what it reads; faults are put into arrays of all its blocks, of which --sites names some, such as down,keys"
    group.add_argument("--text", help=text)
    text = "how many nats the probabilities of the next token may diverge (default 0.01)"
    group.add_argument("--divergence", type=float, metavar="NATS", default=0.01, help=text)
    text = "run the campaign that this file holds again, instead of a new one"
    group.add_argument("--repeat", metavar="FILE", help=text)


def run(options: argparse.Namespace, until: Any) -> int:
    """Load the model, run the campaign, print its tables."""
    given = {"SCRIPT.py:NAME": options.pipeline, "--stuck-at": options.stuck_at, "--tolerance": options.tolerance}
    if strangers := [name for name, value in given.items() if value is not None]:
        raise WorkbenchError(f"--model excludes {' and '.join(strangers)}: leave it out; the text is given by --text")
    if (options.text is None) == (options.repeat is None):
        raise WorkbenchError("--model needs --text TEXT, what the model reads, or --repeat FILE, a campaign to run again")
    with Progress(options.quiet) as progress:
        progress(None, "reading the model")
        model = language_model(options.model or None)
        plan = recorded(options.repeat, model) if options.repeat else _plan(options, model, until)
        found = plan.run(None if options.workers is None else Threads(options.workers), progress)
    if options.json:
        tables = {by: _shares(found, by) for by in get_args(Group)}
        print_result({"model": model.name, "tolerance": found.tolerance, "trials": len(found.trials), **tables}, True)
    else:
        _print(found)
    return 0


def _plan(options: argparse.Namespace, model: Any, until: Any) -> CampaignPlan:
    pipeline = model.pipeline(last=True)
    bits = "each" if options.bits == "fields" else ["any"] if options.bits == "any" else options.bits
    flips = faults(pipeline, options.sites or SITES, bits=bits, format=options.number_format)
    return CampaignPlan(
        pipeline, options.text, flips, options.seed, TRIALS if until is None else until,
        tolerance=divergence(options.divergence), path=options.log, isolate=options.isolate_trials,
    )


def _shares(found: Campaign, by: Group) -> dict[str, dict[str, list[float]]]:
    return {
        str(group): {outcome: [rate.estimate, rate.low, rate.high] for outcome, rate in rates.items()}
        for group, rates in pooled(found, by).items()
    }


def _print(found: Campaign) -> None:
    """A table for each way to group the faults."""
    for by in get_args(Group):
        groups = pooled(found, by)
        if by != "all" and len(groups) < 2:
            continue
        print(visible(f"{'' if by == 'all' else by:16}{'trials':>8}" + "".join(f"{outcome:>10}" for outcome in OUTCOMES)
                      + "  harmful, 95%"))
        for group, rates in groups.items():
            harm = harmful(rates)
            shares = "".join(f"{rates[outcome].estimate:>10.3f}" for outcome in OUTCOMES)
            print(visible(f"{group!s:16}{harm.trials:>8}{shares}  {harm.low:.3f} to {harm.high:.3f}"))
        print()
    print(visible(f"tolerance: {found.tolerance}"))
