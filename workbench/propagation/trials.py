"""One trial of a campaign: a perturbation with its own random numbers, and what became of the result.

A trial is a pure function of the seed and its number, so it has the same outcome on any worker. The unperturbed run is
computed once for each process and batch; a trial computes only what depends on its site.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.propagation.computation import Results
from workbench.propagation.containers import array_of
from workbench.propagation.draws import draws_of
from workbench.propagation.error_sizes import lost, relative_error, unlike
from workbench.propagation.freed_memory import keep_freed_memory
from workbench.propagation.perturbation import Perturbation
from workbench.propagation.pipeline import Pipeline, Run
from workbench.propagation.stage import Detected, StageFailed
from workbench.propagation.tolerance import Tolerance
from workbench.propagation.trace import NEAR_THE_FLOOR

Outcome = Literal["masked", "benign", "silent", "detected", "crash"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
MEANING: Mapping[Outcome, str] = {
    "masked": "no more than round-off reaches the result",
    "benign": "the result differs, within the tolerance",
    "silent": "the result is wrong and looks right (silent data corruption)",
    "detected": "the result is not finite, or a stage refused its input",
    "crash": "a stage raised an exception, or in a process of its own, ended that or took too long",
}

NOT_FINITE = "the result is not finite"

Stratum = tuple[Perturbation, ...]


@dataclass(frozen=True)
class Trial:
    """The outcome of one trial. `damage` is that of the tolerance, `error` the largest relative error of an output."""

    trial: int
    outcome: Outcome
    error: float | None
    damage: float | None
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class Experiment:
    """Everything that decides the outcome of a trial, given its number."""

    pipeline: Pipeline
    x: Any
    strata: tuple[Stratum, ...]
    seed: int
    tolerance: Tolerance
    floor: Mapping[str, float]

    @cached_property
    def run(self) -> Run:
        """The unperturbed run, which every trial resumes."""
        keep_freed_memory()
        return self.pipeline.run(self.x)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "run"}   # computed again where it is needed

    def outcomes(self, trials: Sequence[int]) -> list[Trial]:
        """What became of the results in these trials."""
        changes = [
            self.pipeline.interventions(self.strata[trial % len(self.strata)], self.seed, trial) for trial in trials
        ]
        with np.errstate(all="ignore"):   # faults overflow by design
            found = self.pipeline.results(self.run, changes)
            return [self._outcome(trial, each) for trial, each in zip(trials, found, strict=True)]

    def _outcome(self, trial: int, found: Results | Detected | StageFailed) -> Trial:
        if isinstance(found, Detected):
            return Trial(trial, "detected", None, None, str(found))
        if isinstance(found, StageFailed):
            refused = isinstance(found.__cause__, WorkbenchError)
            return Trial(trial, "detected" if refused else "crash", None, None, str(found))
        outputs = [site for site in self.pipeline.outputs if found[site] is not self.run.raw[site]]
        if not outputs:
            return Trial(trial, "masked", 0.0, 0.0)
        results = {site: array_of(value) for site, value in found.items()}
        error, outcome = judged(self.run, results, outputs, self.floor)
        if outcome == "detected":
            return Trial(trial, "detected", None, None, NOT_FINITE)
        damage = float(self.tolerance.damage(self.run.results, results))
        if outcome == "masked":
            return Trial(trial, "masked", error, damage)
        if math.isnan(damage):
            return Trial(trial, "detected", error, None, "the damage is not a number")
        return Trial(trial, weighed(damage), error, damage)


def judged(
    run: Run, changed: Mapping[str, Array], outputs: Sequence[str], floor: Mapping[str, float]
) -> tuple[float, Outcome | None]:
    """The largest relative error of these outputs, and the outcome where the tolerance need not be asked."""
    if any(lost(run[site], changed[site]) for site in outputs):
        return math.inf, "detected"
    errors = {site: relative_error(run[site], changed[site], run.pipeline.categorical(site)) for site in outputs}
    small = all(errors[site] <= NEAR_THE_FLOOR * floor[site] for site in outputs)
    masked = small and not any(unlike(run[site], changed[site]) for site in outputs)
    return max(errors.values()), "masked" if masked else None


def weighed(damage: float) -> Outcome:
    """The outcome by the damage alone: up to 1 is tolerated, and what is not a number is noticed.

    >>> weighed(0.9), weighed(math.inf), weighed(math.nan)
    ('benign', 'silent', 'detected')
    """
    return "detected" if math.isnan(damage) else "benign" if damage <= 1 else "silent"


def drawn(strata: Sequence[Stratum], run: Run, seed: int, trial: int) -> Stratum:
    """The perturbations of a trial with all choices made."""
    found: list[Perturbation] = []
    for number, each in enumerate(strata[trial % len(strata)]):
        found += each.drawn(run[each.site], draws_of(seed, trial, number), run.pipeline.boxes.get(each.site))
    return tuple(found)

