"""`wb.propagation.campaign`: many faults, counted by what became of them, until the shares are known well enough.

Trials are numbered: trial t belongs to stratum t modulo the number of strata, and draws its random numbers from (seed, t).
They are computed in rounds, and a stratum ends only between rounds, so neither the number of workers nor an interruption
changes anything.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench import backend
from workbench.arguments import number, whole_number
from workbench.bounds.sweep import Progress, Stoppable
from workbench.errors import WorkbenchError
from workbench.propagation.campaign_file import CampaignFile, fingerprint
from workbench.propagation.campaign_result import Campaign, counted
from workbench.propagation.errors_of_sites import measured_floor
from workbench.propagation.executor import Executor, Threads
from workbench.propagation.intervals import wilson
from workbench.propagation.perturbation import Perturbation
from workbench.propagation.pipeline import Pipeline, Run
from workbench.propagation.strata import population
from workbench.propagation.tolerance import Tolerance, within
from workbench.propagation.trials import OUTCOMES, Experiment, Stratum, Trial

ROUND = 25    # trials of each stratum in a round
BATCH = 25    # trials that a worker computes at a time


@dataclass(frozen=True)
class Until:
    """When a stratum has enough trials: when no Wilson interval of its outcomes is wider than `half_width` to each side.

    No stratum has less than `least` trials, so that looking at the interval does not bias it much, nor more than `most`.
    """

    half_width: float = 0.05
    least: int = 50
    most: int = 2000

    def __post_init__(self) -> None:
        number("half_width", self.half_width, 1e-4, 0.5)
        whole_number("most", self.most, whole_number("least", self.least, 1))

    def enough(self, counts: dict[Any, int]) -> bool:
        """Whether these counts of outcomes suffice."""
        trials = sum(counts.values())
        if trials < self.least:
            return False
        return trials >= self.most or all(wilson(n, trials).half_width <= self.half_width for n in counts.values())


def campaign(
    pipeline: Pipeline,
    x: Any,
    perturbations: Sequence[Perturbation | Sequence[Perturbation]],
    seed: int = 0,
    until: Until | int | float | None = None,
    *,
    tolerance: Tolerance | None = None,
    path: str | Path | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    cancel: Stoppable | None = None,
) -> Campaign:
    """Try each perturbation many times, and count the outcomes.

    Each perturbation is a stratum (`strata` makes one for each site and field of bits); what it leaves open is drawn anew
    in every trial. `until` is an `Until`, the half-width of the intervals, or the number of trials in all. `tolerance` says
    which results count as right, by default that of the pipeline, or 1% of each output. With `path`, trials are written
    to a file as they are made, and a campaign with the same pipeline, data and options continues where the file ends.
    Trials run on `workers` threads, or where the `executor` runs them, with the same outcomes.

    >>> import numpy as np
    >>> from workbench.propagation import BitFlip
    >>> pipeline = Pipeline([("mean", lambda x: x.mean())])
    >>> found = campaign(pipeline, np.arange(1.0, 9.0), [BitFlip("input", bit="mantissa")], until=100)
    >>> found.rate("crash").estimate, len(found.trials)
    (0.0, 100)
    """
    states = iter_campaign(
        pipeline, x, perturbations, seed, until, tolerance=tolerance, path=path, workers=workers, executor=executor,
        progress=progress, cancel=cancel,
    )
    return deque(states, maxlen=1)[0]


def iter_campaign(
    pipeline: Pipeline,
    x: Any,
    perturbations: Sequence[Perturbation | Sequence[Perturbation]],
    seed: int = 0,
    until: Until | int | float | None = None,
    *,
    tolerance: Tolerance | None = None,
    path: str | Path | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    cancel: Stoppable | None = None,
) -> Iterator[Campaign]:
    """The campaign so far, at its start and after every round; the last one is complete unless it was cancelled."""
    rule = _rule(until)
    runner = executor or Threads(backend.threads() if workers is None else whole_number("workers", workers, 1, 1024))
    experiment = _experiment(pipeline, x, perturbations, seed, tolerance)
    file = None if path is None else CampaignFile(Path(path), fingerprint(experiment))
    trials = {trial.trial: trial for trial in (file.read() if file else ())}
    while True:
        due = _due(rule, experiment.strata, trials)
        yield _result(experiment, trials, complete=not due)
        if not due or (cancel is not None and cancel.is_set()):
            return
        batches = [due[start : start + BATCH] for start in range(0, len(due), BATCH)]
        found = [trial for batch in runner.map("trials", experiment.outcomes, batches) for trial in batch]
        if file:
            file.append(found)
        trials |= {trial.trial: trial for trial in found}
        if progress is not None:
            progress(_share(rule, experiment.strata, trials), f"{len(trials):,} trials")


def _experiment(
    pipeline: Pipeline, x: Any, perturbations: Sequence[Any], seed: int, tolerance: Tolerance | None
) -> Experiment:
    run = x if isinstance(x, Run) else pipeline.run(x)
    given = {site: run.raw[site] for site in pipeline.inputs}
    strata = _strata(perturbations, run)
    pipeline.require_deterministic(run)
    limit = tolerance or pipeline.tolerance or within()
    own = limit.damage(run.results, run.results)
    if not own <= 1:
        raise WorkbenchError(f"the tolerance must accept the unperturbed result; its damage there is {own}")
    floor = measured_floor(pipeline, run)
    return Experiment(pipeline, given, strata, whole_number("seed", seed, 0, 2**64 - 1), limit, floor)


def _strata(perturbations: Sequence[Any], run: Run) -> tuple[Stratum, ...]:
    listed = [perturbations] if isinstance(perturbations, Perturbation) else list(perturbations)
    if not listed:
        raise WorkbenchError("a campaign needs at least one perturbation; got none")
    strata = tuple((each,) if isinstance(each, Perturbation) else tuple(each) for each in listed)
    run.pipeline.interventions([each for stratum in strata for each in stratum], 0, 0)   # refuses unknown sites
    for stratum in strata:
        for each in stratum:
            each.check(run[each.site])
    return strata


def _rule(until: Until | int | float | None) -> Until | int:
    if until is None:
        return Until()
    if isinstance(until, Until):
        return until
    if isinstance(until, float):
        return Until(half_width=until)
    return whole_number("until, a number of trials,", until, 1, 10**9)


def _due(rule: Until | int, strata: Sequence[Stratum], trials: dict[int, Trial]) -> list[int]:
    """The numbers of the trials of the next round."""
    count = len(strata)
    if isinstance(rule, int):
        waiting = (trial for trial in range(rule) if trial not in trials)
        return list(itertools.islice(waiting, ROUND * count))
    due: list[int] = []
    for stratum in range(count):
        judged: dict[Any, int] = dict.fromkeys(OUTCOMES, 0)
        for start in range(0, rule.most, ROUND):   # only whole rounds decide, so that an interruption changes nothing
            numbers = [stratum + count * place for place in range(start, min(start + ROUND, rule.most))]
            if missing := [trial for trial in numbers if trial not in trials]:
                due += missing
                break
            for trial in numbers:
                judged[trials[trial].outcome] += 1
            if rule.enough(judged):
                break
    return sorted(due)


def _share(rule: Until | int, strata: Sequence[Stratum], trials: dict[int, Trial]) -> float:
    """How much of the campaign is done: exactly, or as the share of strata that have enough."""
    if isinstance(rule, int):
        return len(trials) / rule
    enough = sum(rule.enough(counts) for counts in counted(trials.values(), len(strata)))
    return enough / len(strata)


def _result(experiment: Experiment, trials: dict[int, Trial], complete: bool) -> Campaign:
    return Campaign(
        strata=experiment.strata,
        populations=tuple(population(stratum, experiment.run) for stratum in experiment.strata),
        trials=tuple(trials[trial] for trial in sorted(trials)),
        seed=experiment.seed,
        tolerance=experiment.tolerance.name,
        floor=dict(experiment.floor),
        complete=complete,
    )
