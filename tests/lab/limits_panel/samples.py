"""Fields of every kind that the panel takes, small, each with everything that the panel computes for it."""

import functools
from unittest import mock

import numpy as np

import workbench as wb
from workbench.lab.limits_panel import LimitsState, theory


@functools.cache
def sample(name):
    return MAKERS[name]()


@functools.cache
def of_all(name):
    """What does not depend on tiles and bounds."""
    model = theory.fit_model(sample(name), LimitsState.for_(sample(name)), quiet)
    return {"model": model, "curves": theory.curves(model, quiet), "news": theory.news(model, quiet)}


@functools.cache
def in_tiles(name, tile):
    """What does not depend on bounds."""
    found, state = of_all(name), LimitsState(1.0, tile)
    tiled = theory.tiled(found["model"], found["curves"], state, quiet)
    with mock.patch.object(theory, "BAND", 3):   # each distortion takes as long as all else
        return {"tiled": tiled, "band": theory.band(found["curves"], tiled, state, quiet)}


@functools.cache
def results(name, tile=4, eb=None):
    """What the stages make of a sample, by name."""
    state = LimitsState(LimitsState.for_(sample(name)).eb if eb is None else eb, tile)
    found = {**of_all(name), **in_tiles(name, tile)}
    figures = theory.figures(found["model"], found["tiled"], state)
    return {**found, "figures": figures, "fixed length": theory.fixed_length(found["tiled"], state, quiet)}


def coast():
    values = wb.synthetic.gaussian_field((16, 20, 24), seed=3).values.copy()
    values[3, 5, 7] = np.nan
    mask = np.zeros(values.shape, bool)
    mask[:, :, :6] = True
    return wb.Field(values, (0.5, 0.25, 1.0), "height", mask, {"units": "m"})


def two():
    regions = [wb.synthetic.Region(1.0, 0.9), wb.synthetic.Region(0.05, 0.3)]
    return wb.synthetic.piecewise_field((64, 64), regions, seed=1)


MAKERS = {
    "line": lambda: wb.synthetic.gaussian_field((1000,), seed=1),
    "plane": lambda: wb.synthetic.piecewise_field((32, 40), [wb.synthetic.Region(1.0, 0.9)], seed=2),
    "two": two,
    "coast": coast,
    "four": lambda: wb.Field(np.random.default_rng(1).normal(size=(4, 8, 9, 10)).cumsum(axis=3)),
}
ALL = list(MAKERS)


def quiet(share, text):
    assert 0 <= share <= 1
    assert text
