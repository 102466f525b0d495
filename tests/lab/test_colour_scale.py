"""Skewed fields open on a scale that shows them; all others on a linear one."""

import numpy as np
import pytest

import workbench as wb
from workbench.lab.bounds_panel import BoundsState, draw
from workbench.lab.levels import bytes_of

WAVES = wb.synthetic.gaussian_field((48, 64), 3, seed=1).values.astype(float)
WAVES /= WAVES.std()
HALOS = np.random.default_rng(0).poisson(np.exp(3 * WAVES)).astype(float)


def opened(values, **choices):
    """Whether colours are logarithmic, and their limits."""
    field = wb.Field(values)
    state = BoundsState.for_(field, **choices)
    return state.logarithmic, draw(field, state).pictures[0].limits


@pytest.mark.parametrize(("values", "expected"), [
    (WAVES, (False, "full")),
    (300 + WAVES, (False, "full")),
    (np.exp(3 * WAVES), (True, "full")),                                 # a density
    (HALOS, (True, "full")),                                             # with empty cells
    (np.where(WAVES < -1, np.nan, np.exp(3 * WAVES)), (True, "full")),
    (np.sinh(4 * WAVES), (False, "1-99")),                               # of both signs
    (np.where(np.arange(WAVES.size).reshape(48, 64) == 9, 1e6, 280 + WAVES), (False, "1-99")),   # one outlier
    (np.where(np.arange(64) == 9, 1e6, 280 + WAVES), (False, "full")),   # a column of its own, which percentiles keep
    ((WAVES < 1.5).astype(float), (False, "full")),                      # of two values
    ((WAVES < 1.5).astype("u1"), (False, "full")),
    (np.geomspace(1.0, 1e6, 64 * 48).reshape(64, 48), (True, "full")),
    (np.full((8, 8), 2.5), (False, "full")),
    (np.full((8, 8), np.nan), (False, "full")),
    (HALOS.astype("i4"), (True, "full")),
])
def test_the_scale_suits_the_values(values, expected):
    assert opened(values) == expected


def test_what_is_chosen_stays():
    assert opened(np.exp(3 * WAVES), logarithmic=False) == (False, "1-99")
    assert opened(WAVES + 9, logarithmic=True) == (True, "full")


def test_a_skewed_field_is_no_dark_blank():
    field = wb.Field(np.exp(3 * WAVES))
    pixels = draw(field, BoundsState.for_(field)).pictures[0].pixels / 65535
    linear = bytes_of(field.values, float(field.values.min()), float(field.values.max())) / 255
    assert np.quantile(linear, 0.8) < 0.1
    assert np.diff(np.quantile(pixels, [0.1, 0.9])) > 0.2
