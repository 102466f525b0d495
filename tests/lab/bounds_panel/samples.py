"""Data of every kind that the panel takes, small."""

import functools

import numpy as np

import workbench as wb


@functools.cache
def sample(name):
    return MAKERS[name]()


def coast():
    values = wb.synthetic.gaussian_field((20, 24, 28), seed=3).values.copy()
    values[3, 5, 7], values[10, 2, 2] = np.nan, np.inf
    mask = np.zeros(values.shape, bool)
    mask[:, :, :6] = True
    return wb.Field(values, (0.5, 0.25, 1.0), "height", mask, {"units": "m"})


def open_cloud(dimensions):
    positions = np.random.default_rng(5).normal(size=(800, dimensions)).astype("f4")
    return wb.Particles(positions)


MAKERS = {
    "line": lambda: wb.synthetic.gaussian_field((3000,), seed=1),
    "plane": lambda: wb.synthetic.gaussian_field((40, 48), seed=1),
    "cube": lambda: wb.synthetic.gaussian_field((16, 18, 20), seed=2),
    "four": lambda: wb.Field(np.random.default_rng(1).normal(size=(3, 8, 9, 10)).cumsum(axis=3)),
    "coast": coast,
    "constant": lambda: wb.Field(np.full((8, 8), 2.5)),
    "nothing": lambda: wb.Field(np.full((8, 8), np.nan)),
    "web": lambda: wb.synthetic.cosmic_web(n=10, seed=2),
    "cloud": lambda: open_cloud(3),
    "flat cloud": lambda: open_cloud(2),
    "one point": lambda: wb.Particles(np.zeros((3, 3)) + 2.0),
}
FIELDS = ["line", "plane", "cube", "four", "coast", "constant", "nothing"]
PARTICLES = ["web", "cloud", "flat cloud", "one point"]
ALL = FIELDS + PARTICLES


def quiet(share, text):
    assert 0 <= share <= 1
    assert text
