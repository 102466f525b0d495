"""The error at every site to first order, from stage to stage, without running the pipeline with the error.

A linear stage is applied to the error itself, a stage with a derivative is asked for it, and for any other stage the
derivative in the direction of the error is a central difference with a step that balances truncation and rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.propagation.containers import array_of, with_array
from workbench.propagation.error_sizes import root_mean_square
from workbench.propagation.stage import Stage

if TYPE_CHECKING:
    from workbench.propagation.pipeline import Run

TRIES, SHORTER = 3, 1e-3   # of the step, where the stage is not defined at its end


def first_order(stages: Sequence[Stage], run: Run, changes: Mapping[str, Array]) -> dict[str, Array | None]:
    """The change at every site that depends on the changed ones; None where there is no derivative.

    >>> from workbench.propagation import Pipeline
    >>> pipeline = Pipeline([("square", lambda x: x * x), ("sum", lambda s: s.sum(), )])
    >>> run = pipeline.run(np.array([1.0, 2.0]))
    >>> found = first_order(pipeline.stages, run, {"input": np.array([0.5, 0.0])})
    >>> round(float(found["sum"]), 6)
    1.0
    """
    found: dict[str, Array | None] = {
        site: change if np.all(np.isfinite(change)) else None for site, change in changes.items()
    }
    with np.errstate(all="ignore"):
        for stage in stages:
            read = stage.inputs or ()
            if not any(site in found for site in read):
                continue
            given = [found.get(site, 0.0) for site in read]
            known = [change is not None for change in given]
            outputs = _outputs(stage, [run.raw[site] for site in read], given) if all(known) else None
            for place, site in enumerate(stage.outputs):
                change = None if outputs is None else outputs[place]
                if change is not None and site in changes:
                    change = change + changes[site]
                found[site] = change if change is None or bool(np.all(np.isfinite(change))) else None
    return found


def _outputs(stage: Stage, inputs: Sequence[Any], changes: Sequence[Any]) -> list[Array | None] | None:
    """The change of each output; None where the stage has no derivative."""
    arrays = [array_of(value) for value in inputs]
    discrete = (array.dtype.kind not in "fc" for array, d in zip(arrays, changes, strict=True) if np.any(d))
    if stage.categorical or any(discrete):
        return None
    full = [np.zeros_like(array) if np.isscalar(d) else d for array, d in zip(arrays, changes, strict=True)]
    if stage.derivative is not None:
        return _listed(stage, stage.derivative(inputs, full))
    if stage.linear:
        zero = [np.zeros_like(array) for array in arrays]
        return _difference(stage, inputs, full, zero, 1.0)
    step = _step(arrays, full)
    if step == 0:
        return [np.zeros_like(array_of(value)) for value in _listed(stage, stage.function(*inputs))]
    found = None
    for _ in range(TRIES):
        above = [array + step * d for array, d in zip(arrays, full, strict=True)]
        below = [array - step * d for array, d in zip(arrays, full, strict=True)]
        found = _difference(stage, inputs, above, below, 2 * step)
        if found is None or all(change is None or bool(np.all(np.isfinite(change))) for change in found):
            break
        step *= SHORTER   # the stage has no value there, such as the logarithm of a negative number
    return found


def _difference(
    stage: Stage, inputs: Sequence[Any], above: Sequence[Array], below: Sequence[Array], step: float
) -> list[Array | None] | None:
    """The difference of the stage between two places, over the step."""
    results = []
    for place in (above, below):
        given = [with_array(value, array.astype(array_of(value).dtype)) for value, array in zip(inputs, place, strict=True)]
        results.append([array_of(value) for value in _listed(stage, stage.function(*given))])
    return [
        None if high.dtype.kind not in "fc" or high.shape != low.shape else (high - low) / step
        for high, low in zip(*results, strict=True)
    ]


def _step(arrays: Sequence[Array], changes: Sequence[Array]) -> float:
    """How much of the change makes a good step: a small share of the size of the values."""
    steps = []
    for array, change in zip(arrays, changes, strict=True):
        largest = float(abs(change).max()) if change.size else 0.0
        if largest > 0:
            size = root_mean_square(backend.to_host(array))
            steps.append(float(np.finfo(array.dtype).eps) ** (1 / 3) * (size or 1.0) / largest)
    return min(steps, default=0.0)


def _listed(stage: Stage, results: Any) -> list[Any]:
    return list(results) if len(stage.outputs) > 1 else [results]
