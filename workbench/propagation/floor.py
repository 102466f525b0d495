"""The floor below which an error at a site is rounding.

It is measured: the pipeline runs several times with the values at every site moved by one unit in the last place, up or
down, at random. An error below what this makes of the results says nothing about the perturbation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.propagation.draws import draws_of
from workbench.propagation.error_sizes import relative_error
from workbench.propagation.execution import Intervention
from workbench.propagation.number_format import components
from workbench.propagation.pipeline import Pipeline, Run

FLOOR_RUNS = 3
_SEED = 2**63   # not one that anybody chooses for a trial


def measured_floor(pipeline: Pipeline, run: Run, runs: int = FLOOR_RUNS) -> dict[str, float]:
    """The relative error that rounding alone makes at every site: the largest of several runs.

    >>> from workbench.propagation import Pipeline
    >>> pipeline = Pipeline([("halved", lambda x: x / 2)])
    >>> 0 < measured_floor(pipeline, pipeline.run(np.arange(1.0, 9.0)))["halved"] < 4e-16
    True
    """
    if pipeline.checks:   # which would undo the rounding
        pipeline = pipeline.like(checks={})
        run = replace(run, pipeline=pipeline)
    floor = dict.fromkeys(pipeline.sites, 0.0)
    for number in range(runs):
        moved = pipeline.resume(run, rounding_everywhere(pipeline, run, number))
        for site in pipeline.sites:
            floor[site] = max(floor[site], relative_error(run[site], moved[site], pipeline.categorical(site)))
    return floor


def rounding_everywhere(pipeline: Pipeline, run: Run, number: int) -> Mapping[str, Intervention]:
    """Interventions that move every floating-point value by at most one unit in the last place."""

    def moved(place: int) -> Intervention:
        def intervene(values: Array) -> Array:
            xp = backend.namespace(values)
            copy = values.copy()
            numbers = components(copy)
            step = draws_of(_SEED, number, place).integers(4, size=numbers.shape)
            towards = xp.asarray(np.array([-np.inf, np.inf, np.nan, np.nan])[step]).astype(numbers.dtype)
            numbers[...] = xp.where(xp.isnan(towards), numbers, xp.nextafter(numbers, towards))
            return copy

        return intervene

    floats = [(place, site) for place, site in enumerate(pipeline.sites) if run[site].dtype.kind in "fc"]
    return {site: moved(place) for place, site in floats}
