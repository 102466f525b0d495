"""An error on its way through a pipeline: the runs with it and without it, how large it is at every site, where it ends.

A stage that raises under an error, or that notices it, does not end the picture: it is replaced by a stand-in that returns
what it returned without the error, and every site behind it counts as not reached.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from workbench.errors import WorkbenchError
from workbench.lab.propagation_panel.state import UNPROTECTED, ChosenProtection
from workbench.lab.remembered import remembered
from workbench.propagation import Detected, Perturbation, Pipeline, Run, Stage, StageFailed, Tolerance, Trace
from workbench.propagation.containers import array_of
from workbench.propagation.determinism import require_deterministic
from workbench.propagation.error_sizes import change_of, lost, relative_error
from workbench.propagation.floor import measured_floor
from workbench.propagation.protected import protected
from workbench.propagation.tolerance import agreed
from workbench.propagation.trace import compared
from workbench.propagation.trials import Outcome, judged, weighed

NOTICED = "noticed the error"
Floor = Mapping[str, float]   # the relative error that rounding alone makes at every site


@dataclass(frozen=True, eq=False)
class Baseline:
    """A finished run without an error: the owner of what is remembered about its arrays."""

    run: Run


@dataclass(frozen=True, eq=False)
class Travel:
    """The changed run, and the run before: that of the baseline, as one of the pipeline with its protections.

    For each site that depends on the perturbed one, `errors` has the relative error, and `lost` the number of values that
    are not finite any more. `stopped` says for each site behind a failure why it was not reached.
    """

    base: Baseline
    original: Run
    changed: Run
    errors: Mapping[str, float]
    lost: Mapping[str, int]
    stopped: Mapping[str, str] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """The size of the arrays that differ from those of the original run."""
        return sum(self.changed[site].nbytes for site in self.errors)

    @property
    def reached(self) -> tuple[str, ...]:
        """The sites with the error, in order."""
        return tuple(site for site in self.errors if site not in self.stopped)

    def difference(self, site: str) -> np.ndarray:
        """The size of the change of every value; infinite where one of both values is not finite."""
        return change_of(self.original[site], self.changed[site])

    def outcome(self, floor: Floor, limit: float | None = None) -> Outcome:
        """What a campaign would count this as, by the tolerance of the pipeline or one with another limit."""
        pipeline = self.original.pipeline
        ends = [site for site in pipeline.outputs if site in self.errors]
        if said := [self.stopped[site] for site in ends if site in self.stopped]:
            return "detected" if NOTICED in said[0] else "crash"
        if not ends:
            return "masked"
        return judged(self.original, self.changed, ends, floor)[1] or weighed(self.damage(limit))

    @property
    def found(self) -> int:
        """How many faults the protections have found."""
        return sum(found.detected for found in self.changed.findings.values())

    def damage(self, limit: float | None = None) -> float:
        """The damage at the end, by the tolerance of the pipeline or with another limit; NaN if it was not reached."""
        if any(site in self.stopped for site in self.original.pipeline.outputs):
            return math.nan

        def found() -> float:
            with np.errstate(all="ignore"):
                tolerance = tolerance_of(self.original.pipeline, limit)
                return float(tolerance.damage(self.original.results, self.changed.results))

        return remembered(self, "propagation: damage", limit, found)


def travel(
    base: Baseline, perturbation: Perturbation, seed: int, trial: int, protection: ChosenProtection = UNPROTECTED,
    limit: float | None = None,
) -> Travel:
    """Put an error into a finished run, and follow it as far as it gets.

    >>> from workbench.propagation import BitFlip
    >>> pipeline = Pipeline([("double", lambda x: 2 * x), ("sum", lambda x: x.sum())])
    >>> found = travel(Baseline(pipeline.run(np.ones(4))), BitFlip("input", bit=63, index=1), seed=0, trial=0)
    >>> dict(found.errors)
    {'input': 1.0, 'double': 1.0, 'sum': 0.5}
    """
    run = protected_run(base, protection)
    stopped: dict[str, str] = {}
    try:
        changed = run.pipeline.perturbed(run, perturbation, seed, trial)
    except (StageFailed, Detected):
        changed, stopped = _as_far_as_possible(run, perturbation, seed, trial)
    pipeline = run.pipeline
    with np.errstate(all="ignore"):   # faults overflow by design
        errors = {
            site: relative_error(run[site], changed[site], pipeline.categorical(site))
            for site in pipeline.after(perturbation.site)
        }
    found = Travel(base, run, changed, errors, {site: lost(run[site], changed[site]) for site in errors}, stopped)
    found.damage(limit)   # computed here, where time may pass, and kept
    return found


def protected_run(base: Baseline, protection: ChosenProtection) -> Run:
    """The run of the baseline, as one of the pipeline with its protections, which change nothing there."""
    how, sites = protection

    def made() -> Run:
        return replace(base.run, pipeline=protected(base.run.pipeline, base.run, how, sites))

    return remembered(base, "propagation: protected", protection, made) if how else base.run


def tolerance_of(pipeline: Pipeline, limit: float | None = None) -> Tolerance:
    """When results of a pipeline are equally good: by its own tolerance, else within 1%, or with another limit."""
    own = agreed(None, pipeline.tolerance)
    return own if limit is None else own.with_limit(limit)


def floor_of(run: Run) -> Floor:
    """The round-off floor of a pipeline, which must return the same bits twice."""
    require_deterministic(run)
    return measured_floor(run.pipeline, run)


def traced(found: Travel, perturbation: Perturbation, floor: Floor) -> Trace:
    """What theory says of an error, site by site, beside what was measured."""
    run = found.original
    with np.errstate(all="ignore"):   # faults overflow by design
        return compared(run.pipeline, run, found.changed, (perturbation,), floor, [perturbation.site])


def _as_far_as_possible(run: Run, perturbation: Perturbation, seed: int, trial: int) -> tuple[Run, dict[str, str]]:
    """The changed run with a stand-in for each stage that fails, and what was said, for each site behind one."""
    pipeline, failed = run.pipeline, dict[str, str]()

    def stand_in(stage: Stage) -> Stage:
        before = tuple(run.raw[site] for site in stage.outputs)
        function = _guarded(stage, before, lambda said: failed.setdefault(stage.name, said))
        return replace(stage, function=function, update=None)

    guarded = pipeline.like([stand_in(stage) for stage in pipeline.stages])
    changed = guarded.perturbed(Run(guarded, run.raw, ()), perturbation, seed, trial)
    stopped: dict[str, str] = {}
    for stage in pipeline.stages:
        if stage.name in failed:
            behind = [site for site in pipeline.after(stage.outputs) if site not in stopped]
            stopped |= dict.fromkeys(behind, failed[stage.name])
    return replace(changed, pipeline=pipeline), stopped


def _guarded(stage: Stage, before: tuple[Any, ...], tell: Callable[[str], object]) -> Callable[..., Any]:
    """The function of a stage; what it returned before where it fails, or returns arrays of another shape."""

    def function(*inputs: Any) -> Any:
        several = len(before) > 1
        try:
            results = stage.function(*inputs)
            listed = tuple(results) if several else (results,)
            shapes = [(array_of(each).shape, array_of(each).dtype) for each in listed]
            if shapes == [(array_of(each).shape, array_of(each).dtype) for each in before]:
                return results
            tell(f"{stage.name} returned arrays of another shape or type")
        except WorkbenchError as error:
            tell(f"{stage.name} {NOTICED}: {error}")
        except Exception as error:   # whatever the code of a user raises under an error
            tell(f"{stage.name} raised {type(error).__name__}: {error}")
        return before if several else before[0]

    return function
