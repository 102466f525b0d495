"""Runs of a pipeline in the making, stage by stage: one alone, or several changes of one finished run, side by side.

Side by side, a stage can compute several runs at once (`together`), and an array is let go when nothing reads it any more:
of such runs, only the results are asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.propagation.containers import array_of, protected, with_array
from workbench.propagation.execution import (
    NOWHERE,
    Interventions,
    changed_by,
    checked,
    difference,
    joined,
    outputs_of,
)
from workbench.propagation.stage import Case, Detected, Stage, StageFailed, Where

if TYPE_CHECKING:
    from workbench.propagation.pipeline import Pipeline, Run
    from workbench.propagation.protection.findings import Findings

Results = Mapping[str, Any]   # the outputs of a pipeline, as stages return them


class Computation:
    """One run: the values at its sites so far, and where they differ from those of the run `before`, if there is one."""

    def __init__(self, pipeline: Pipeline, at: Interventions, before: Run | None) -> None:
        self.pipeline, self.at, self.before = pipeline, at, before
        self.values: dict[str, Any] = dict(before.raw) if before else {}
        self.changed: dict[str, Where] = {}
        self.notes: dict[str, Sequence[Mapping[str, Any]]] = {}
        self.findings: dict[str, Findings] = {}
        self.computed: list[str] = []
        self.failed: Detected | StageFailed | None = None

    def begin(self, given: Mapping[str, Any]) -> None:
        """Put the inputs in place."""
        for site in self.pipeline.inputs:
            if self.before is None or site in self.at:
                self._place(site, given[site], None if self.before is None else NOWHERE)

    def needs(self, stage: Stage) -> bool:
        """Whether the stage must be computed: whether anything that it reads is new."""
        return self.before is None or any(site in self.changed for site in stage.inputs or ())

    def case(self, stage: Stage) -> Case:
        """What the stage reads, and what it read and returned in the run before."""
        sites, before = stage.inputs or (), self.before.raw if self.before else {}
        return (
            [self.values[site] for site in sites], [before.get(site) for site in sites],
            [before.get(site) for site in stage.outputs], [self.changed.get(site, NOWHERE) for site in sites],
        )

    def take(self, stage: Stage, outputs: Sequence[tuple[Any, Where]] | None = None) -> None:
        """Put what the stage returns at its sites; it is computed here unless it was before."""
        self.computed.append(stage.name)
        found = outputs_of(stage, self.case(stage), self.before) if outputs is None else outputs
        for site, (value, where) in zip(stage.outputs, found, strict=True):
            self._place(site, value, where, stage)

    def skip(self, stage: Stage) -> None:
        """Leave the sites of a stage as before, except for interventions there."""
        for site in stage.outputs:
            if site in self.at and self.before is not None:
                self._place(site, self.before.raw[site], NOWHERE, stage)

    @contextmanager
    def may_fail(self) -> Iterator[None]:
        """Keep the error of a stage, or of a change that was noticed."""
        try:
            yield
        except (Detected, StageFailed) as error:
            self.failed = error

    def let_go(self, site: str) -> None:
        """Forget the value at a site that nothing reads any more."""
        if site in self.changed:
            del self.changed[site], self.values[site]

    def _place(self, site: str, value: Any, where: Where, stage: Stage | None = None) -> None:
        """Put a value at a site, after the intervention and the checks there, and see whether it is new."""
        if site in self.at:
            done = changed_by(site, value, self.at[site])
            value, where, self.notes[site] = with_array(value, done.values), joined(where, done.where), done.notes
        if checks := self.pipeline.checks.get(site):
            read = [self.values[each] for each in stage.inputs or ()] if stage else []
            value, where, self.findings[site] = checked(checks, read, value, where)
        if self.before is not None:
            differs, where = difference(array_of(self.before.raw[site]), array_of(value), where)
            if not differs:
                return
        self.values[site], self.changed[site] = protected(value), where


def compute(
    runs: Sequence[Computation], given: Mapping[str, Any], stages: Sequence[Stage], kept: Sequence[str]
) -> None:
    """All stages of several changes of one run, of which these sites are kept; a run stops where something fails."""
    last = {site: number for number, stage in enumerate(stages) for site in stage.inputs or ()}
    gone: dict[int, list[str]] = {}
    for site, number in last.items():
        if site not in kept:
            gone.setdefault(number, []).append(site)
    with np.errstate(all="ignore"):
        for run in runs:
            with run.may_fail():
                run.begin(given)
        for number, stage in enumerate(stages):
            runs = [run for run in runs if run.failed is None]
            due: list[Computation] = []
            for run in runs:
                if run.needs(stage):
                    due.append(run)
                    continue
                with run.may_fail():
                    run.skip(stage)
            for run, outputs in zip(due, _together(stage, due), strict=True):
                with run.may_fail():
                    run.take(stage, outputs)
            for run, site in itertools.product(runs, gone.get(number, ())):
                run.let_go(site)


def _together(stage: Stage, runs: Sequence[Computation]) -> Sequence[Any]:
    """What the stage returns in each run; None where it is to be computed alone.

    So are all where the stage fails for one of them: it then fails again in that run, and in no other.
    """
    if stage.together is None or not runs:
        return [None] * len(runs)
    try:
        return stage.together([run.case(stage) for run in runs])
    except Exception:
        return [None] * len(runs)
