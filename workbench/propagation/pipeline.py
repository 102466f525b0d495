"""An analysis as named stages between named sites, so that an error can be put in anywhere and watched everywhere.

A site is an array that has a name: an input of the pipeline, or what a stage returns. Stages form a graph without circles.
A run keeps the array at every site; from there, `resume` computes only what depends on the sites that are changed, and
stops where a stage returns the same bits as before. Both are exact: the arrays are those of a whole run.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from workbench.backend import Array
from workbench.errors import WorkbenchError, briefly
from workbench.propagation.computation import Computation, Results, compute
from workbench.propagation.containers import array_of
from workbench.propagation.determinism import require_deterministic
from workbench.propagation.draws import draws_of
from workbench.propagation.execution import Intervention, Interventions, applied, checked_input
from workbench.propagation.graph import as_stage, connected, in_order
from workbench.propagation.names import listed, require_known
from workbench.propagation.perturbation import Perturbation
from workbench.propagation.prediction import first_order
from workbench.propagation.stage import Detected, Stage, StageFailed

if TYPE_CHECKING:
    from workbench.propagation.execution import Check
    from workbench.propagation.protection.findings import Findings
    from workbench.propagation.tolerance import Tolerance


@dataclass(frozen=True, eq=False)
class Run(Mapping[str, Any]):
    """The array at every site of one run.

    `computed` are the stages that were computed for it, in order; a resumed run took the others from the run before.
    `notes` tell what a perturbation did at a site: which bit of which value, or how well the site was compressed.
    """

    pipeline: Pipeline
    raw: Mapping[str, Any]   # as stages returned it, perhaps with labels
    computed: tuple[str, ...]
    notes: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    findings: Mapping[str, Findings] = field(default_factory=dict)   # of the checks of a protected pipeline

    def __getitem__(self, site: str) -> Array:
        return array_of(self.raw[require_known("site", site, self.pipeline.sites)])

    def __iter__(self) -> Iterator[str]:
        return iter(self.pipeline.sites)

    def __len__(self) -> int:
        return len(self.pipeline.sites)

    @property
    def results(self) -> dict[str, Array]:
        """The outputs of the pipeline, by name."""
        return {site: self[site] for site in self.pipeline.outputs}

    def __repr__(self) -> str:
        return f"Run({len(self)} sites, computed {', '.join(self.computed) or 'nothing'})"


class Pipeline:
    """Stages over arrays of NumPy or CuPy: `Pipeline([Stage(...), ...])`.

    A pair of a name and a function stands for a stage; a stage that does not name its inputs reads what the stage before
    writes. `inputs` are the names of the arrays that the pipeline is given, `outputs` of those it returns (by default what
    nothing reads). `boxes` gives the lengths of the periodic box for sites that hold positions, and `tolerance` says when
    two results are equally good (`workbench.propagation.tolerance`).

    >>> pipeline = Pipeline([("contrast", lambda x: x / x.mean() - 1), ("variance", lambda d: (d * d).mean())])
    >>> pipeline.sites
    ['input', 'contrast', 'variance']
    >>> round(float(pipeline(np.array([1.0, 2.0, 3.0]))), 4)
    0.1667
    """

    whole: ClassVar[bool] = False   # whether stages can only be computed together

    def __init__(
        self,
        stages: Iterable[Stage | tuple[str, Callable[..., Any]]],
        *,
        inputs: str | Sequence[str] = "input",
        outputs: str | Sequence[str] | None = None,
        boxes: Mapping[str, Any] | None = None,
        tolerance: Tolerance | None = None,
        name: str = "pipeline",
    ) -> None:
        if isinstance(stages, str) or getattr(stages, "ndim", 1) == 0 or not isinstance(stages, Iterable):
            raise WorkbenchError(f"stages must be a list of stages or of pairs (name, function); got {briefly(stages)}")
        if boxes is not None and not isinstance(boxes, Mapping):
            raise WorkbenchError(f"boxes must be a dictionary of lengths by site, or None; got {briefly(boxes)}")
        if tolerance is not None and not hasattr(tolerance, "damage"):
            raise WorkbenchError(f"tolerance must be within(...) or another of these, or None; got {briefly(tolerance)}")
        if not isinstance(name, str):
            raise WorkbenchError(f"the name of a pipeline must be text; got {briefly(name)}")
        self.name, self.tolerance = name, tolerance
        self.inputs = listed("the inputs of a pipeline", inputs)
        self.stages = in_order(connected([as_stage(each) for each in stages], self.inputs), self.inputs)
        self.sites = [*self.inputs, *(site for stage in self.stages for site in stage.outputs)]
        read = {site for stage in self.stages for site in stage.inputs or ()}
        last = [site for site in self.sites if site not in read]
        self.outputs = tuple(last) if outputs is None else listed("the outputs of a pipeline", outputs)
        self.boxes = dict(boxes or {})
        self.checks: Mapping[str, Sequence[Check]] = {}   # of a protected pipeline, before anybody reads a site
        for site in (*self.outputs, *self.boxes):
            require_known("site", site, self.sites)

    def like(
        self, stages: Iterable[Stage] | None = None, checks: Mapping[str, Sequence[Check]] | None = None
    ) -> Self:
        """The same pipeline with other stages between the same sites, or other checks.

        >>> Pipeline([("double", lambda x: 2 * x)]).like([Stage("double", lambda x: x + x)])(3.0)
        array(6.)
        """
        made = copy.copy(self)
        if stages is not None:
            made.stages = in_order(connected(list(stages), self.inputs), self.inputs)
        if checks is not None:
            made.checks = {require_known("site", site, self.sites): tuple(found) for site, found in checks.items()}
        return made

    def described(self, run: Run) -> dict[str, Any]:
        """What makes the pipeline and its input again, in JSON types, for the file of a campaign; empty if unknown."""
        return {}

    def stage_of(self, site: str) -> Stage | None:
        """The stage that writes a site; None for an input of the pipeline."""
        require_known("site", site, self.sites)
        return next((stage for stage in self.stages if site in stage.outputs), None)

    def categorical(self, site: str) -> bool:
        """Whether a site holds labels, whose values are names rather than sizes."""
        stage = self.stage_of(site)
        return stage is not None and stage.categorical

    def edges(self) -> list[tuple[str, str, str]]:
        """The graph: (site that is read, stage that reads it, site that this writes)."""
        return [
            (read, stage.name, written) for stage in self.stages for read in stage.inputs or () for written in stage.outputs
        ]

    def after(self, sites: str | Iterable[str]) -> list[str]:
        """The given sites and all that depend on them, in order."""
        found = {sites} if isinstance(sites, str) else set(sites)
        for site in found:
            require_known("site", site, self.sites)
        for stage in self.stages:
            if found & set(stage.inputs or ()):
                found |= set(stage.outputs)
        return [site for site in self.sites if site in found]

    def __call__(self, x: Any) -> Any:
        """The output of the pipeline, or a dict of several."""
        results = self.run(x).results
        return next(iter(results.values())) if len(results) == 1 else results

    def run(self, x: Any, at: Interventions | None = None) -> Run:
        """Compute all stages; `at` gives sites another array, or a function of the array that they have.

        >>> pipeline = Pipeline([("double", lambda x: 2 * x), ("sum", lambda x: x.sum())])
        >>> float(pipeline.run(np.ones(3), at={"double": lambda values: values + 1})["sum"])
        9.0
        """
        return self._computed(self.given(x), at or {}, before=None)

    def resume(self, run: Run, at: Interventions) -> Run:
        """Change sites of a finished run, and compute what depends on them.

        >>> pipeline = Pipeline([("double", lambda x: 2 * x), ("sum", lambda x: x.sum())])
        >>> changed = pipeline.resume(pipeline.run(np.ones(3)), {"double": np.zeros(3)})
        >>> float(changed["sum"]), changed.computed
        (0.0, ('sum',))
        """
        if run.pipeline is not self:
            raise WorkbenchError("a run can be resumed by its own pipeline only: give a run that this pipeline returned")
        return self._computed({site: run.raw[site] for site in self.inputs}, at, before=run)

    def perturbed(
        self, run: Run, perturbations: Perturbation | Sequence[Perturbation], seed: int = 0, trial: int = 0
    ) -> Run:
        """A finished run with these perturbations, with the random numbers of one trial.

        >>> from workbench.propagation.bits import BitFlip
        >>> pipeline = Pipeline([("double", lambda x: 2 * x)])
        >>> pipeline.perturbed(pipeline.run(np.ones(3)), BitFlip("input", bit=63, index=1))["double"].tolist()
        [2.0, -2.0, 2.0]
        """
        given = [perturbations] if isinstance(perturbations, Perturbation) else list(perturbations)
        return self.resume(run, self.interventions(given, seed, trial))

    def results(self, run: Run, each: Sequence[Interventions]) -> list[Results | Detected | StageFailed]:
        """The results of a finished run with each of several changes, or the error that a stage or a change has raised.

        They are those of `resume`, bit for bit. Stages compute several runs at once if they can.

        >>> pipeline = Pipeline([("double", lambda x: 2 * x)])
        >>> changes = [{"input": np.ones(1)}, {"double": np.zeros(1)}]
        >>> [float(found["double"][0]) for found in pipeline.results(pipeline.run(np.full(1, 3.0)), changes)]
        [2.0, 0.0]
        """
        given = {site: run.raw[site] for site in self.inputs}
        size = max(len(each), 1) if any(stage.together for stage in self.stages) else 1
        found: list[Results | Detected | StageFailed] = []
        for start in range(0, len(each), size):
            runs = [Computation(self, at, run) for at in each[start : start + size]]
            compute(runs, given, self.stages, self.outputs)
            found += [one.failed or {site: one.values[site] for site in self.outputs} for one in runs]
        return found

    def require_deterministic(self, run: Run) -> None:
        """Refuse a pipeline that does not return the same bits again for the input of this run."""
        require_deterministic(run)

    def first_order(self, run: Run, changes: Mapping[str, Array]) -> dict[str, Array | None]:
        """The change of every site that depends on the changed ones, to first order; None where there is no derivative."""
        return first_order(self.stages, run, changes)

    def interventions(self, perturbations: Sequence[Perturbation], seed: int, trial: int) -> dict[str, Intervention]:
        """What these perturbations do, site by site."""
        by_site: dict[str, list[tuple[int, Perturbation]]] = {}
        for number, perturbation in enumerate(perturbations):
            if not isinstance(perturbation, Perturbation):
                raise WorkbenchError(f"expected a perturbation such as BitFlip or Bounded; got {perturbation!r:.100}")
            by_site.setdefault(require_known("site", perturbation.site, self.sites), []).append((number, perturbation))
        return {
            site: applied([(each, draws_of(seed, trial, number)) for number, each in found], self.boxes.get(site))
            for site, found in by_site.items()
        }

    def given(self, x: Any) -> dict[str, Any]:
        """What the pipeline is given, by the names of its inputs: arrays of numbers, which stages cannot write to."""
        if isinstance(x, Mapping) and not hasattr(x, "dims"):
            for name in x:
                require_known("input", name, self.inputs)
            missing = [name for name in self.inputs if name not in x]
            if missing:
                raise WorkbenchError(f"the pipeline needs all of {', '.join(self.inputs)}; got no {missing[0]}")
            return {name: checked_input(name, x[name]) for name in self.inputs}
        if len(self.inputs) > 1:
            raise WorkbenchError(f"the pipeline needs a dict with {', '.join(self.inputs)}; got {type(x).__name__}")
        return {self.inputs[0]: checked_input(self.inputs[0], x)}

    def _computed(self, given: Mapping[str, Any], at: Interventions, before: Run | None) -> Run:
        for site in at:
            require_known("site", site, self.sites)
        with np.errstate(all="ignore" if at else None):
            found = Computation(self, at, before)
            found.begin(given)
            for stage in self.stages:
                if found.needs(stage):
                    found.take(stage)
                else:
                    found.skip(stage)
        return Run(self, found.values, tuple(found.computed), found.notes, found.findings)

    def __repr__(self) -> str:
        return f"Pipeline({self.name!r}: {' -> '.join(self.sites)})"


def require_pipeline(given: object) -> None:
    """Refuse what is no pipeline."""
    if not isinstance(given, Pipeline):
        raise WorkbenchError(f"expected a pipeline, as wb.propagation.Pipeline([...]) makes; got {briefly(given)}")
