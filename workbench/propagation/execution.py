"""What happens at one site and in one stage of a run: interventions, calls of functions, checks of what they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.propagation.containers import array_of, protected, with_array
from workbench.propagation.perturbation import Changed, Perturbation
from workbench.propagation.rows import FIRST, Rows
from workbench.propagation.stage import Case, Detected, Stage, StageFailed, Where

if TYPE_CHECKING:
    from workbench.propagation.pipeline import Run
    from workbench.propagation.protection.findings import Findings

Intervention = Callable[[Array], Any]   # the array at a site -> another one, or a Changed
Interventions = Mapping[str, Any]       # site -> array or intervention
Check = Callable[[Sequence[Any], Array], "tuple[Array, Findings]"]   # what a stage has read, its result -> as it should be

NOWHERE = np.empty(0, np.int64)


def checked_input(name: str, given: Any) -> Any:
    """An input of a pipeline, protected; what is no array of numbers is refused."""
    array = array_of(given)
    if array.dtype.kind not in "fciub" or array.size == 0:
        raise WorkbenchError(f"{name} must be a non-empty array of numbers; got {array.dtype} of shape {array.shape}")
    if hasattr(given, "dims"):
        return protected(given)
    return protected(array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("=")))


def applied(found: Sequence[tuple[Perturbation, np.random.Generator]], box: Any) -> Intervention:
    """Perturbations of one site, one after the other."""

    def intervene(values: Array) -> Changed:
        done = Changed(values, NOWHERE)
        for perturbation, draws in found:
            step = perturbation.apply(done.values, draws, box)
            done = Changed(step.values, joined(done.where, step.where), (*done.notes, *step.notes))
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


def checked(
    checks: Sequence[Check], read: Sequence[Any], value: Any, where: Where
) -> tuple[Any, Where, Findings]:
    """A value after the checks of its site, where it may differ from the run before, and what was found."""
    array = array_of(value)
    found = None
    with np.errstate(all="ignore"):   # faults overflow
        for check in checks:
            result, seen = check(read, array)
            found = seen if found is None else found + seen
            if seen.detected:
                array, where = result, None
    assert found is not None
    return (with_array(value, array) if found.detected else value), where, found


def outputs_of(stage: Stage, case: Case, before: Run | None) -> list[tuple[Any, Where]]:
    """What a stage returns, and where it may differ from the run before."""
    inputs = case[0]
    if before is not None and stage.update is not None:
        update = stage.update
        updated = _guarded(stage, inputs, lambda: update(*case))
        if updated is not None:
            return list(updated)
    if before is not None and stage.together is not None:
        together = stage.together
        (updated,) = _guarded(stage, inputs, lambda: together([case]))
        return list(updated)
    found = _guarded(stage, inputs, lambda: stage.function(*inputs))
    results = found if len(stage.outputs) > 1 else (found,)
    if not isinstance(results, tuple | list) or len(results) != len(stage.outputs):
        got = f"{len(results)} results" if isinstance(results, tuple | list) else type(results).__name__
        raise StageFailed(f"stage {stage.name!r} must return {', '.join(stage.outputs)} as a tuple; got {got}")
    return [(_checked_output(stage, site, value, before), None) for site, value in zip(stage.outputs, results, strict=True)]


def _guarded(stage: Stage, inputs: Sequence[Any], work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Detected:
        raise
    except Exception as error:
        arrays = zip(stage.inputs or (), map(array_of, inputs), strict=True)
        given = ", ".join(f"{site} ({array.dtype} of shape {tuple(array.shape)})" for site, array in arrays)
        written = "read-only" in str(error)
        advice = ": a stage must not write into its inputs; copy them first" if written else f"; it was given {given}"
        raise StageFailed(f"stage {stage.name!r} raised {type(error).__name__}: {error}{advice}") from error


def _checked_output(stage: Stage, site: str, value: Any, before: Run | None) -> Any:
    try:
        array = array_of(value)
    except WorkbenchError as error:
        raise StageFailed(f"stage {stage.name!r} must return an array of numbers for {site!r}; {error}") from None
    if before is None and not array.size:
        raise StageFailed(f"stage {stage.name!r} must return at least one number for {site!r}; got shape {array.shape}")
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


def joined(one: Where, other: Where) -> Where:
    """Where either may have changed."""
    if one is None or other is None:
        return None
    if not len(one) or not len(other):
        return other if not len(one) else one
    if isinstance(one, Rows) or isinstance(other, Rows):
        return one.joined(other) if isinstance(one, Rows) else other.joined(one)
    return np.union1d(one, other)


def difference(old: Array, new: Array, where: Where) -> tuple[bool, Where]:
    """Whether two arrays differ in any bit, and where they may; only the given places can."""
    if old is new:
        return False, where
    if isinstance(where, Rows):
        rows = where.differing(old, new)
        return len(rows) > 0, rows
    if where is not None:
        old, new = old.reshape(-1)[where], new.reshape(-1)[where]
    xp = backend.namespace(old, new)
    old, new = xp.ascontiguousarray(old).reshape(-1), xp.ascontiguousarray(new).reshape(-1)
    word = f"u{min(old.dtype.itemsize, 8)}"
    old, new = old.view(word), new.view(word)
    if not bool((old[:FIRST] == new[:FIRST]).all()):   # most arrays that differ do so everywhere
        return True, where
    return not bool((old == new).all()), where
