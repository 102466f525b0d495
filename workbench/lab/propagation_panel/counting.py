"""The campaign of the panel: all sites and bits, counted, with the trials so far shown while the others run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from workbench import backend
from workbench.lab.jobs import Job
from workbench.lab.propagation_panel.state import CampaignChoices, Kind, PropagationState
from workbench.lab.propagation_panel.travel import tolerance_of
from workbench.propagation import BitFlip, Campaign, CampaignPlan, Run, strata
from workbench.propagation.draws import draws_of
from workbench.propagation.executor import Threads
from workbench.propagation.intervals import Rate
from workbench.propagation.trials import Outcome, Trial

OFTEN = 0.8   # seconds between two states that are shown
FAULTS: Mapping[Kind, str] = {"flip": "bit flips", "stuck at 0": "bits stuck at 0", "stuck at 1": "bits stuck at 1"}


@dataclass(frozen=True, eq=False)
class Counted:
    """A campaign, and what it was asked for."""

    campaign: Campaign
    asked: CampaignChoices


@dataclass(eq=False)
class Latest:
    """The campaign after the latest round, and when it was last shown."""

    campaign: Campaign = field(init=False)
    shown: float = -OFTEN

    def is_due(self) -> bool:
        """Whether it is time to show it again: charts are drawn when changes rest."""
        now = time.monotonic()
        due = now - self.shown >= OFTEN
        self.shown = now if due else self.shown
        return due


def count(run: Run, state: PropagationState, job: Job, show: Callable[[Counted], object]) -> None:
    """Run the campaign of this state, showing its trials now and then; raises `Cancelled` when the job is cancelled."""
    where = "" if state.protections else " without protection"
    tried = strata(run.pipeline, run, state.bits, kind=state.fault)
    wanted, asked, latest = state.trials * len(tried), state.campaign, Latest()

    def watch(batches: list[list[Trial]]) -> None:
        trials = *latest.campaign.trials, *(trial for batch in batches for trial in batch)
        campaign = replace(latest.campaign, trials=trials, complete=False)
        job(len(campaign.trials) / wanted, f"{len(campaign.trials):,} of {wanted:,} {FAULTS[state.kind]}{where}")
        if latest.is_due():
            show(Counted(campaign, asked))

    job(0.0, "measuring the round-off floor")
    tolerance = tolerance_of(run.pipeline, state.tolerance)
    plan = CampaignPlan(run.pipeline, run, tried, state.seed, wanted, tolerance=tolerance)
    for campaign in plan.rounds(Threads(backend.threads(), watch), cancel=job):
        latest.campaign = campaign
    show(Counted(latest.campaign, asked))


def in_words(counted: Counted, state: PropagationState) -> str:
    """How many of the faults ended in the outcome of this state, what that says of all, and which choices differ now."""
    (found, tried), rate = ended(counted, state.outcome), counted.campaign.rate(state.outcome)
    so_far = "" if counted.campaign.complete else " so far"
    text = f"{found:,} of {tried:,} {FAULTS[counted.asked.kind]} ended {state.outcome}{so_far}"
    if rate.trials and rate.estimate == rate.estimate:
        up_to = f" (95%: up to {100 * rate.high:.2g}% of all possible ones)"
        text += f"; of all possible ones, {share_text(rate)}" if found else up_to
    now = state.campaign
    other = [name for name in now._fields if getattr(now, name) != getattr(counted.asked, name)]
    return f"{text}. Counted before {' and '.join(other)} changed" if other else text


def share_text(rate: Rate) -> str:
    """The share of all possible faults that end in one way, as `Campaign.rate` defines it: sentences and charts show this.

    >>> share_text(Rate(0.036, 0.028, 0.063, 720))
    '3.6% (95%: 2.8 to 6.3%)'
    """
    if math.isnan(rate.estimate):
        return "a share not known yet"
    return f"{100 * rate.estimate:.2g}% (95%: {100 * rate.low:.2g} to {100 * rate.high:.2g}%)"


def compared(counted: Counted, bare: Counted | None, outcome: Outcome) -> str:
    """The share of all possible faults that ends so with protection, and in the same campaign without it."""
    if bare is None:
        return ""
    before, after = (share_text(each.campaign.rate(outcome)) for each in (bare, counted))
    so_far = "" if counted.campaign.complete else " so far"
    faults = FAULTS[counted.asked.kind]
    return f"of all possible {faults}, {before} end {outcome} without protection, {after} with it{so_far}"


def ended(counted: Counted, outcome: Outcome) -> tuple[int, int]:
    """How many trials ended so, and how many there were."""
    return sum(each[outcome] for each in counted.campaign.counts), len(counted.campaign.trials)


def worst_trial(counted: Counted, stratum: int, outcomes: Sequence[str]) -> Trial | None:
    """The trial of a stratum with the worst outcome, and among those with the largest error."""
    own = [trial for trial in counted.campaign.trials if trial.trial % len(counted.campaign.strata) == stratum]
    if not own:
        return None
    return max(own, key=lambda trial: (outcomes.index(trial.outcome), trial.error or 0.0))


def drawn_bit(run: Run, counted: Counted, trial: Trial) -> int:
    """The bit that was changed in a trial."""
    (fault,) = counted.campaign.strata[trial.trial % len(counted.campaign.strata)]
    assert isinstance(fault, BitFlip) or hasattr(fault, "bit")
    (drawn,) = fault.drawn(run[fault.site], draws_of(counted.campaign.seed, trial.trial, 0))
    return int(drawn.bit)   # type: ignore[attr-defined]
