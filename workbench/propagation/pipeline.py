"""An analysis as named stages between named sites, so that an error can be put in anywhere and watched everywhere.

A site is an array that has a name: an input of the pipeline, or what a stage returns. Stages form a graph without circles.
A run keeps the array at every site; from there, `resume` computes only what depends on the sites that are changed, and
stops where a stage returns the same bits as before. Both are exact: the arrays are those of a whole run.
"""

from __future__ import annotations

import graphlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.propagation.containers import array_of, protected, with_array
from workbench.propagation.determinism import require_deterministic
from workbench.propagation.draws import draws_of
from workbench.propagation.names import require_known
from workbench.propagation.perturbation import Changed, Perturbation
from workbench.propagation.prediction import first_order
from workbench.propagation.stage import Detected, Stage, StageFailed, Where, _names

if TYPE_CHECKING:
    from workbench.propagation.tolerance import Tolerance

Intervention = Callable[[Array], Any]   # the array at a site -> another one, or a Changed
Interventions = Mapping[str, Any]       # site -> array or intervention


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
        self.name, self.tolerance = name, tolerance
        self.inputs = _names("the inputs of a pipeline", inputs)
        self.stages = _in_order(_connected([_stage(each) for each in stages], self.inputs), self.inputs)
        self.sites = [*self.inputs, *(site for stage in self.stages for site in stage.outputs)]
        read = {site for stage in self.stages for site in stage.inputs or ()}
        last = [site for site in self.sites if site not in read]
        self.outputs = tuple(last) if outputs is None else _names("the outputs of a pipeline", outputs)
        self.boxes = dict(boxes or {})
        for site in (*self.outputs, *self.boxes):
            require_known("site", site, self.sites)

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
        return self._computed(self._given(x), at or {}, before=None)

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
            site: _applied([(each, draws_of(seed, trial, number)) for number, each in found], self.boxes.get(site))
            for site, found in by_site.items()
        }

    def _given(self, x: Any) -> dict[str, Any]:
        if isinstance(x, Mapping) and not hasattr(x, "dims"):
            for name in x:
                require_known("input", name, self.inputs)
            missing = [name for name in self.inputs if name not in x]
            if missing:
                raise WorkbenchError(f"the pipeline needs all of {', '.join(self.inputs)}; got no {missing[0]}")
            return {name: _checked_input(name, x[name]) for name in self.inputs}
        if len(self.inputs) > 1:
            raise WorkbenchError(f"the pipeline needs a dict with {', '.join(self.inputs)}; got {type(x).__name__}")
        return {self.inputs[0]: _checked_input(self.inputs[0], x)}

    def _computed(self, given: Mapping[str, Any], at: Interventions, before: Run | None) -> Run:
        for site in at:
            require_known("site", site, self.sites)
        values: dict[str, Any] = dict(before.raw) if before else {}
        changed: dict[str, Where] = {}   # sites that differ from the run before, and where
        notes: dict[str, Sequence[Mapping[str, Any]]] = {}
        computed: list[str] = []

        def place(site: str, value: Any, where: Where) -> None:
            """Put a value at a site, after the intervention there, and see whether it is new."""
            if site in at:
                done = changed_by(site, value, at[site])
                value, where, notes[site] = with_array(value, done.values), _joined(where, done.where), done.notes
            if before is not None and _same(array_of(before.raw[site]), array_of(value), where):
                return
            values[site], changed[site] = protected(value), where

        for site in self.inputs:
            if before is None or site in at:
                place(site, given[site], None if before is None else _NOWHERE)
        with np.errstate(all="ignore" if at else None):
            for stage in self.stages:
                if before is None or any(site in changed for site in stage.inputs or ()):
                    computed.append(stage.name)
                    for site, (value, where) in zip(stage.outputs, _outputs(stage, values, changed, before), strict=True):
                        place(site, value, where)
                else:
                    for site in stage.outputs:
                        if site in at:
                            place(site, before.raw[site], _NOWHERE)
        return Run(self, values, tuple(computed), notes)

    def __repr__(self) -> str:
        return f"Pipeline({self.name!r}: {' -> '.join(self.sites)})"


_NOWHERE = np.empty(0, np.int64)


def _stage(given: Any) -> Stage:
    if isinstance(given, Stage):
        return given
    if isinstance(given, tuple) and len(given) == 2:
        return Stage(*given)
    raise WorkbenchError(f"a pipeline is made of stages, or of pairs of a name and a function; got {given!r:.100}")


def _connected(stages: Sequence[Stage], inputs: tuple[str, ...]) -> list[Stage]:
    """The stages with the names of all their inputs."""
    if not stages:
        raise WorkbenchError("a pipeline needs at least one stage")
    names = [stage.name for stage in stages]
    sites = [*inputs, *(site for stage in stages for site in stage.outputs)]
    for what, found in (("stages", names), ("sites", sites)):
        twice = sorted({name for name in found if found.count(name) > 1})
        if twice:
            raise WorkbenchError(f"{what} need different names; {twice[0]!r} is there more than once")
    connected, before = [], inputs
    for stage in stages:
        named = stage if stage.inputs is not None else _with_inputs(stage, before)
        for site in named.inputs or ():
            if site not in sites:
                _unknown(f"stage {stage.name!r} reads", site, sites)
        connected.append(named)
        before = stage.outputs
    return connected


def _with_inputs(stage: Stage, inputs: tuple[str, ...]) -> Stage:
    return replace(stage, inputs=inputs)


def _unknown(what: str, site: str, sites: Sequence[str]) -> None:
    try:
        require_known("site", site, sites)
    except WorkbenchError as error:
        raise WorkbenchError(f"{what} {site!r}, but {error}") from None


def _in_order(stages: Sequence[Stage], inputs: tuple[str, ...]) -> tuple[Stage, ...]:
    """The stages, each after those that it reads from, otherwise in the given order."""
    writer = {site: stage.name for stage in stages for site in stage.outputs}
    needs = {stage.name: {writer[site] for site in stage.inputs or () if site in writer} for stage in stages}
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        raise WorkbenchError(f"stages must not go in a circle; got {' -> '.join(reversed(error.args[1]))}") from None
    ordered: list[Stage] = []
    done: set[str] = set()
    while len(ordered) < len(stages):
        stage = next(each for each in stages if each.name not in done and needs[each.name] <= done)
        ordered.append(stage)
        done.add(stage.name)
    return tuple(ordered)


def _checked_input(name: str, given: Any) -> Any:
    array = array_of(given)
    if array.dtype.kind not in "fciub" or array.size == 0:
        raise WorkbenchError(f"{name} must be a non-empty array of numbers; got {array.dtype} of shape {array.shape}")
    return protected(given if hasattr(given, "dims") else array)


def _applied(found: Sequence[tuple[Perturbation, np.random.Generator]], box: Any) -> Intervention:
    """Perturbations of one site, one after the other."""

    def intervene(values: Array) -> Changed:
        done = Changed(values, _NOWHERE)
        for perturbation, draws in found:
            step = perturbation.apply(done.values, draws, box)
            done = Changed(step.values, _joined(done.where, step.where), (*done.notes, *step.notes))
        return done

    return intervene


def changed_by(site: str, value: Any, how: Any) -> Changed:
    """The array at a site after an intervention, which must not change its shape or type."""
    array = array_of(value)
    result = how(array) if callable(how) else how
    done = result if isinstance(result, Changed) else Changed(array_of(result), None)
    if done.values.shape != array.shape or done.values.dtype != array.dtype:
        raise WorkbenchError(
            f"an intervention must keep the shape and type of {site!r}, {array.dtype} of shape {tuple(array.shape)}; "
            f"got {done.values.dtype} of shape {tuple(done.values.shape)}"
        )
    return done


def _outputs(
    stage: Stage, values: Mapping[str, Any], changed: Mapping[str, Where], before: Run | None
) -> list[tuple[Any, Where]]:
    """What a stage returns, and where it may differ from the run before."""
    inputs = [values[site] for site in stage.inputs or ()]
    if before is not None and stage.update is not None:
        where = [changed.get(site, _NOWHERE) for site in stage.inputs or ()]
        update, read, old = stage.update, *([before.raw[s] for s in sites or ()] for sites in (stage.inputs, stage.outputs))
        updated = _guarded(stage, lambda: update(inputs, read, old, where))
        if updated is not None:
            return list(updated)
    found = _guarded(stage, lambda: stage.function(*inputs))
    results = found if len(stage.outputs) > 1 else (found,)
    if not isinstance(results, tuple | list) or len(results) != len(stage.outputs):
        got = f"{len(results)} results" if isinstance(results, tuple | list) else type(results).__name__
        raise StageFailed(f"stage {stage.name!r} must return {', '.join(stage.outputs)} as a tuple; got {got}")
    return [(_checked_output(stage, site, value, before), None) for site, value in zip(stage.outputs, results, strict=True)]


def _guarded(stage: Stage, work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Detected:
        raise
    except Exception as error:
        written = "read-only" in str(error)
        advice = ": a stage must not write into its inputs; copy them first" if written else ""
        raise StageFailed(f"stage {stage.name!r} raised {type(error).__name__}: {error}{advice}") from error


def _checked_output(stage: Stage, site: str, value: Any, before: Run | None) -> Any:
    array = array_of(value)
    if array.dtype.kind not in "fciub":
        raise StageFailed(f"stage {stage.name!r} must return an array of numbers for {site!r}; got {type(value).__name__}")
    if before is not None:
        old = before[site]
        if old.shape != array.shape or old.dtype != array.dtype:
            raise StageFailed(
                f"stage {stage.name!r} must return {old.dtype} of shape {tuple(old.shape)} for {site!r}, as without the "
                f"perturbation; got {array.dtype} of shape {tuple(array.shape)}: return arrays of a fixed shape"
            )
    return value if hasattr(value, "dims") else array


def _joined(one: Where, other: Where) -> Where:
    """Where either may have changed."""
    if one is None or other is None:
        return None
    return other if not len(one) else one if not len(other) else np.union1d(one, other)


def _same(old: Array, new: Array, where: Where) -> bool:
    """Whether two arrays are equal bit for bit; only the given places can differ."""
    if old is new:
        return True
    if where is not None:
        old, new = old.reshape(-1)[where], new.reshape(-1)[where]
    xp = backend.namespace(old, new)
    old, new = xp.ascontiguousarray(old).reshape(-1), xp.ascontiguousarray(new).reshape(-1)
    word = f"u{min(old.dtype.itemsize, 8)}"
    return bool((old.view(word) == new.view(word)).all())
