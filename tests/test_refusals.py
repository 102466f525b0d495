"""Arguments that are nothing of the kind: each is refused in a sentence that says what was expected, before any work."""

import functools
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import workbench as wb

FIELD = wb.Field(np.linspace(0, 1, 900, dtype=np.float32).reshape(9, 10, 10))
PARTICLES = wb.Particles(np.random.default_rng(0).random((64, 3)), box=1.0)
GROUPS = wb.friends_of_friends(PARTICLES)
BOUND = wb.Absolute(0.1)
POINTS = np.asarray(PARTICLES.positions)

Call = Callable[[Any], object]


@functools.cache
def limits() -> wb.limits.RateDistortion:
    return wb.rate_distortion(FIELD)


CALLS: dict[str, Call] = {
    "velocities": lambda x: wb.Particles(POINTS, velocities=x),
    "ids": lambda x: wb.Particles(POINTS, ids=x),
    "masses": lambda x: wb.Particles(POINTS, masses=x),
    "box": lambda x: wb.Particles(POINTS, box=x),
    "mask": lambda x: wb.Field(FIELD.values, mask=x),
    "spacing": lambda x: wb.Field(FIELD.values, spacing=x),
    "metadata": lambda x: wb.Field(FIELD.values, metadata=x),
    "metadata of particles": lambda x: wb.Particles(POINTS, metadata=x),
    "unit": lambda x: wb.friends_of_friends(PARTICLES, unit=x),
    "order": lambda x: wb.compress(FIELD, BOUND, "sz3", order=x),
    "codec": lambda x: wb.compress(FIELD, BOUND, x),
    "keep": lambda x: wb.compress(FIELD, BOUND, "sz3", keep=x),
    "progress": lambda x: wb.compress(FIELD, BOUND, "sz3", progress=x),
    "name of a codec": wb.codecs.get,
    "option of a codec": lambda x: wb.codecs.get("sz3", algorithm=x),
    "order of a comparison": lambda x: wb.compare(PARTICLES, PARTICLES, order=x),
    "codecs of a sweep": lambda x: wb.sweep(FIELD, x, BOUND, workers=1),
    "bounds of a sweep": lambda x: wb.sweep(FIELD, "sz3", x, workers=1),
    "codec of a prediction": lambda x: wb.predict(FIELD, x, BOUND),
    "bounds of a prediction": lambda x: wb.predict(FIELD, "sz3", x),
    "codec of a search": lambda x: wb.find_bound(FIELD, wb.PSNR(40), x),
    "tolerance": wb.KeepMassFunction,
    "min_members": GROUPS.count,
    "other groups": GROUPS.equals,
    "points": lambda x: wb.clusters.kmeans(x, 3),
    "initial": lambda x: wb.clusters.kmeans(POINTS, 3, initial=x),
    "protect": lambda x: wb.clusters.kmeans(POINTS, 3, protect=x),
    "series": wb.open_series,
    "particles of a spectrum": wb.metrics.particle_spectrum,
    "particles of a match": lambda x: wb.metrics.match_halos(PARTICLES, x),
    "particles that moved": lambda x: wb.metrics.displacements(x, PARTICLES),
    "groups of a mass function": lambda x: wb.metrics.mass_function(GROUPS, x),
    "bound of a comparison": lambda x: wb.metrics.pointwise(FIELD, FIELD, bound=x),
    "bound of displacements": lambda x: wb.metrics.displacements(PARTICLES, PARTICLES, bound=x),
    "box of a universe": lambda x: wb.synthetic.cosmic_web(8, box=x),
    "shape": wb.synthetic.gaussian_field,
    "variances": wb.limits.gaussian,
    "stationary": lambda x: wb.limits.gauss_markov(0.5, 1.0, 8, stationary=x),
    "table": lambda x: wb.limits.Sampled(x),
    "regions": lambda x: wb.rate_distortion(FIELD, regions=x),
    "distortion": lambda x: limits().rate(x),
    "excess": lambda x: limits().converse(0.1, x),
}
NEVER = {
    "object": object(), "complex": 1j, "row": np.arange(3.0) - 1, "ragged": [[1, 2], [3]], "bytes": b"a",
    "date": np.datetime64("2020"), "set": {1}, "path": pathlib.Path("/nonexistent/x"), "masked": np.ma.masked,
    "negative": -1.5, "no number": float("nan"),
}


@pytest.mark.parametrize("given", NEVER)
@pytest.mark.parametrize("name", CALLS)
def test_what_is_nothing_of_the_kind_is_refused_in_a_sentence(name: str, given: str) -> None:
    with pytest.raises(wb.WorkbenchError, match=r"[a-z].{15,}"):
        CALLS[name](NEVER[given])


def test_numbers_that_no_count_reaches_are_refused() -> None:
    with pytest.raises(wb.WorkbenchError, match="min_members must be a whole number, between 1 and"):
        wb.metrics.mass_function(GROUPS, GROUPS, min_members=10**30)


PIPELINE = wb.propagation.Pipeline([("double", lambda x: 2 * x), ("sum", lambda x: x.sum())])
FLIP = wb.propagation.BitFlip("double", bit=3, index=0)
GIVEN = np.arange(8.0)
OF_PIPELINES: dict[str, Call] = {
    "stages": wb.propagation.Pipeline,
    "inputs": lambda x: wb.propagation.Pipeline([("double", abs)], inputs=x),
    "outputs": lambda x: wb.propagation.Pipeline([("double", abs)], outputs=x),
    "boxes": lambda x: wb.propagation.Pipeline([("double", abs)], boxes=x),
    "tolerance": lambda x: wb.propagation.Pipeline([("double", abs)], tolerance=x),
    "name of a pipeline": lambda x: wb.propagation.Pipeline([("double", abs)], name=x),
    "outputs of a stage": lambda x: wb.propagation.Stage("double", abs, outputs=x),
    "derivative": lambda x: wb.propagation.Stage("double", abs, derivative=x),
    "linear": lambda x: wb.propagation.Stage("double", abs, linear=x),
    "pipeline of a trace": lambda x: wb.propagation.trace(x, GIVEN, FLIP),
    "pipeline of a campaign": lambda x: wb.propagation.campaign(x, GIVEN, FLIP, until=2),
    "perturbation": lambda x: wb.propagation.trace(PIPELINE, GIVEN, x),
    "perturbations": lambda x: wb.propagation.campaign(PIPELINE, GIVEN, x, until=2),
}


@pytest.mark.parametrize("given", NEVER)
@pytest.mark.parametrize("name", OF_PIPELINES)
def test_pipelines_refuse_what_is_nothing_of_the_kind(name: str, given: str) -> None:
    with pytest.raises(wb.WorkbenchError, match=r"[a-z].{15,}"):
        OF_PIPELINES[name](NEVER[given])


def test_grids_that_fit_into_no_memory_are_refused() -> None:
    for shape in (10**30, (2**31, 2**31)):
        with pytest.raises(wb.WorkbenchError, match="a grid must have at most"):
            wb.synthetic.gaussian_field(shape)
