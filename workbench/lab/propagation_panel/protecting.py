"""A pipeline with guards on what its stages read, so that errors are brought back before they spread.

Ranges are learned from the run without an error. There, guards change nothing, so the protected pipeline returns the same
bits, and both ways begin with the same arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from workbench.propagation import Pipeline, Run, Stage
from workbench.propagation.protection import Finite, Guard, Shielded, learn_ranges

Protection = Literal["none", "finite", "range"]
WIDER = 0.2   # on both sides of a learned range, as a share of its width


def guarded(run: Run, protection: Protection) -> Run:
    """The run as one of the pipeline with guards; the run itself without any.

    >>> import numpy as np
    >>> run = Pipeline([("sum", lambda x: x.sum())]).run(np.arange(4.0))
    >>> safe = guarded(run, "range")
    >>> float(safe.pipeline.resume(safe, {"input": np.array([0.0, 1.0, 1e30, 3.0])})["sum"])
    7.6
    """
    if protection == "none":
        return run
    pipeline, guards = run.pipeline, guards_of(run, protection)
    safe = Pipeline(
        [_shielded(stage, guards) for stage in pipeline.stages], inputs=pipeline.inputs, outputs=pipeline.outputs,
        boxes=pipeline.boxes, tolerance=pipeline.tolerance, name=pipeline.name,
    )
    return Run(safe, run.raw, run.computed)


def guards_of(run: Run, protection: Protection) -> dict[str, Guard]:
    """A guard for each site of floating-point or complex numbers: complex numbers have no range."""
    found: dict[str, Guard] = {site: Finite() for site in run if run[site].dtype.kind in "fc"}
    real = {site: run[site] for site in run if run[site].dtype.kind == "f"}
    return found | (learn_ranges([real], WIDER) if protection == "range" and real else {})


def _shielded(stage: Stage, guards: Mapping[str, Guard]) -> Stage:
    """The stage with guards of what it reads; what is known of its errors does not hold for the guards."""
    reads = tuple(guards.get(site) for site in stage.inputs or ())
    if not any(reads):
        return stage
    function = Shielded(stage.function, reads)
    return replace(stage, function=function, linear=False, derivative=None, enclose=None, update=None)
