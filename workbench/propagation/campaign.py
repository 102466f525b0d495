"""`wb.propagation.campaign`: many faults, counted by what became of them, until the shares are known well enough.

Trials are numbered: trial t belongs to stratum t modulo the number of strata, and draws its random numbers from (seed, t).
They are computed in rounds, on threads, in processes of their own, or on a cluster, with the same outcomes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from workbench import backend
from workbench.arguments import function, positive, whole_number
from workbench.errors import WorkbenchError, briefly
from workbench.progress import Progress, Stoppable
from workbench.propagation.campaign_file import CampaignFile, fingerprint
from workbench.propagation.campaign_result import Campaign
from workbench.propagation.executor import Executor, Threads
from workbench.propagation.floor import measured_floor
from workbench.propagation.isolation import Isolated
from workbench.propagation.perturbation import Perturbation
from workbench.propagation.pipeline import Pipeline, Run, require_pipeline
from workbench.propagation.stopping import Until, due, rule_of, share_done
from workbench.propagation.strata import population
from workbench.propagation.tolerance import Tolerance, agreed
from workbench.propagation.trials import Experiment, Stratum, Trial
from workbench.run.clients import executor_of
from workbench.run.submission import submittable

BATCH = 25    # trials that a worker computes at a time


@dataclass(frozen=True, eq=False)
class CampaignPlan:
    """Everything that decides the outcomes of a campaign: what is tried, how often, what counts as right.

    Each perturbation is a stratum (`strata` makes one for each site and field of bits); what it leaves open is drawn anew
    in every trial. `until` is an `Until`, the half-width of the intervals, or the number of trials in all. `tolerance` says
    which results count as right, by default that of the pipeline, or 1% of each output. With `path`, trials are written
    to a file as they are made, and a campaign with the same pipeline, data and options continues where the file ends.

    `isolate` is for stages that may crash or never end: trials run in other processes, each for at most so many seconds of
    processor time, and a trial that ends its process is a crash with its reason.

    >>> import numpy as np
    >>> from workbench.propagation import BitFlip
    >>> pipeline = Pipeline([("mean", lambda x: x.mean())])
    >>> plan = CampaignPlan(pipeline, np.arange(1.0, 9.0), [BitFlip("input", bit="mantissa")], until=50)
    >>> [len(state.trials) for state in plan.rounds()]
    [0, 25, 50]
    """

    pipeline: Pipeline
    x: Any = field(repr=False)
    perturbations: Sequence[Perturbation | Sequence[Perturbation]]
    seed: int = 0
    until: Until | int | float | None = None
    _: KW_ONLY
    tolerance: Tolerance | None = None
    path: str | Path | None = None
    isolate: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", whole_number("seed", self.seed, 0, 2**64 - 1))
        rule_of(self.until)
        agreed(self.tolerance, None)
        if isinstance(self.isolate, bool):
            raise WorkbenchError(f"isolate must be the seconds of processor time for a trial, or None; got {self.isolate}")
        if self.isolate is not None:
            positive("isolate, seconds of processor time for a trial,", self.isolate)

    @cached_property
    def experiment(self) -> Experiment:
        """The trials of the campaign, as a function of their numbers; the pipeline is run and checked for it."""
        run = self.x if isinstance(self.x, Run) else self.pipeline.run(self.x)
        given = {site: run.raw[site] for site in self.pipeline.inputs}
        strata = _strata(self.perturbations, run)
        self.pipeline.require_deterministic(run)
        limit = agreed(self.tolerance, self.pipeline.tolerance)
        own = limit.damage(run.results, run.results)
        if not own <= 1:
            raise WorkbenchError(f"the tolerance must accept the unperturbed result; its damage there is {own}")
        return Experiment(self.pipeline, given, strata, self.seed, limit, measured_floor(self.pipeline, run))

    def rounds(
        self, executor: Executor | None = None, progress: Progress | None = None, cancel: Stoppable | None = None
    ) -> Iterator[Campaign]:
        """The campaign so far, at its start and after every round; the last one is complete unless it was cancelled."""
        rule, experiment = rule_of(self.until), self.experiment
        runner, strata = executor or Threads(backend.threads()), len(experiment.strata)
        file = None if self.path is None else CampaignFile(Path(self.path), fingerprint(experiment))
        trials = {trial.trial: trial for trial in (file.read() if file else ())}
        with ExitStack() as stack:
            step = experiment.outcomes
            if self.isolate is not None:
                step = stack.enter_context(Isolated(experiment, float(self.isolate))).outcomes
            while True:
                numbers = due(rule, strata, trials)
                yield _result(experiment, trials, complete=not numbers)
                if not numbers or (cancel is not None and cancel.is_set()):
                    return
                batches = [numbers[start : start + BATCH] for start in range(0, len(numbers), BATCH)]
                found = [trial for batch in runner.map("trials", step, batches) for trial in batch]
                if file:
                    file.append(found)
                trials |= {trial.trial: trial for trial in found}
                if progress is not None:
                    progress(share_done(rule, strata, trials), f"{len(trials):,} trials")

    def run(
        self, executor: Executor | None = None, progress: Progress | None = None, cancel: Stoppable | None = None
    ) -> Campaign:
        """All rounds; trials run where the `executor` runs them, by default on threads of this process."""
        return deque(self.rounds(executor, progress, cancel), maxlen=1)[0]


@submittable
def campaign(
    pipeline: Pipeline,
    x: Any,
    perturbations: Sequence[Perturbation | Sequence[Perturbation]],
    seed: int = 0,
    until: Until | int | float | None = None,
    *,
    tolerance: Tolerance | None = None,
    path: str | Path | None = None,
    isolate: float | None = None,
    workers: int | None = None,
    client: Any = None,
    progress: Progress | None = None,
    cancel: Stoppable | None = None,
) -> Campaign:
    """Try each perturbation many times, and count the outcomes.

    `seed`, `until`, `tolerance`, `path` and `isolate` are those of `CampaignPlan`. Trials run on `workers`
    threads or on a Dask `client`, or the address of a scheduler, with the same outcomes. A client is sent the pipeline and
    the data with every 25 trials: for pipelines that compute longer than that takes.

    >>> import numpy as np
    >>> from workbench.propagation import BitFlip
    >>> pipeline = Pipeline([("mean", lambda x: x.mean())])
    >>> found = campaign(pipeline, np.arange(1.0, 9.0), [BitFlip("input", bit="mantissa")], until=100)
    >>> found.rate("crash").estimate, len(found.trials)
    (0.0, 100)
    """
    require_pipeline(pipeline)
    function("progress", progress)
    plan = CampaignPlan(pipeline, x, perturbations, seed, until, tolerance=tolerance, path=path, isolate=isolate)
    if client is None:
        threads = Threads(backend.threads() if workers is None else whole_number("workers", workers, 1, 1024))
        return plan.run(threads, progress, cancel)
    if workers is not None:
        raise WorkbenchError(f"workers counts threads of this process; got {workers!r} and a client: leave one of them out")
    return plan.run(executor_of(client), progress, cancel)


def _strata(perturbations: Sequence[Any], run: Run) -> tuple[Stratum, ...]:
    if not isinstance(perturbations, Perturbation | Iterable) or not getattr(perturbations, "ndim", 1):
        raise WorkbenchError(f"expected perturbations such as BitFlip or Bounded; got {briefly(perturbations)}")
    listed = [perturbations] if isinstance(perturbations, Perturbation) else list(perturbations)
    if not listed:
        raise WorkbenchError("a campaign needs at least one perturbation; got none")
    if strangers := [each for each in listed if not isinstance(each, Perturbation | Sequence)]:
        raise WorkbenchError(f"expected perturbations such as BitFlip or Bounded; got {strangers[0]!r:.100}")
    strata = tuple((each,) if isinstance(each, Perturbation) else tuple(each) for each in listed)
    run.pipeline.interventions([each for stratum in strata for each in stratum], 0, 0)   # refuses unknown sites
    for stratum in strata:
        for each in stratum:
            each.check(run[each.site])
    return strata


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
