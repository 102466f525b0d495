"""Cells at borders that were found, assigned again with fitted models."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.data.synthetic import Region, piecewise_field
from workbench.limits.borders import reassigned
from workbench.limits.correlation import Autoregressive
from workbench.limits.field_model import estimate
from workbench.limits.regions import segment
from workbench.limits.sources import piecewise

STRIPES = np.arange(192) // 16 % 2 * np.ones((192, 1), int)
BALL = (sum(axis**2 for axis in np.ogrid[-20:20, -20:20, -20:20]) < 14**2).astype(int)
LINE = np.repeat([0, 1, 0], [1500, 1000, 1500])
KINDS = {"rough and smooth": ((1.0, 0.95), (1.0, 0.5)), "weak and strong": ((1.0, 0.9), (9.0, 0.9))}


def shaken(layout, share, seed):
    """The layout with a share of the cells beside its borders on the wrong side."""
    random, wrong = np.random.default_rng(seed), layout.copy()
    for shift in (-1, 1):
        for axis in range(layout.ndim):
            there = np.roll(layout, shift, axis)
            wrong = np.where((there != layout) & (random.random(layout.shape) < share), there, wrong)
    return wrong


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", [STRIPES, BALL, LINE], ids=["stripes", "ball", "line"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=3, deadline=None)
def test_most_cells_on_the_wrong_side_are_found(layout, kind, seed):
    models = [Autoregressive(variance, (rho,) * layout.ndim) for variance, rho in KINDS[kind]]
    regions = [Region(variance**0.5, rho) for variance, rho in KINDS[kind]]
    values = piecewise_field(layout.shape, regions, seed=seed, layout=layout).values.astype(float)
    before = shaken(layout, 0.4, seed)
    after = reassigned(values, before, models, [0.0, 0.0])
    allowed = 0.7 if layout.ndim == 1 else 0.4   # in 1-D a border is two cells
    chance = 8 if layout.ndim == 1 else 4   # of few wrong cells
    assert (after != layout).sum() <= max(allowed * (before != layout).sum(), chance)


@pytest.mark.long_with("weak and strong")
@pytest.mark.parametrize("kind", [
    pytest.param(kind, marks=[pytest.mark.long] * (kind == "rough and smooth")) for kind in KINDS
])
def test_ragged_borders_that_were_found_cost_less_afterwards(kind):
    models = [Autoregressive(variance, (rho, rho)) for variance, rho in KINDS[kind]]
    regions = [Region(variance**0.5, rho) for variance, rho in KINDS[kind]]
    true = piecewise(STRIPES, models).spectrum()
    field = piecewise_field(STRIPES.shape, regions, seed=3, layout=STRIPES)
    found, first = estimate(field), segment(field)
    assert found.regions.count == first.count == 2
    covariances = [each.covariance for each in found.fits]
    rates = [piecewise(each.labels, covariances).spectrum().rate(1e-3) for each in (first, found.regions)]
    wrong = [min((each.labels != STRIPES).mean(), (each.labels == STRIPES).mean()) for each in (first, found.regions)]
    assert wrong[1] < 0.6 * wrong[0]
    assert abs(rates[1] - true.rate(1e-3)) < 0.6 * abs(rates[0] - true.rate(1e-3))


def test_constant_regions_and_places_without_values_stay_as_they_are():
    random = np.random.default_rng(0)
    labels = np.repeat([0, 1, -1, 2], 20) * np.ones((20, 1), int)
    values = np.where(labels == 1, 5.0, random.standard_normal(labels.shape))
    models = [Autoregressive(1.0, (0.0, 0.0)), None, Autoregressive(9.0, (0.0, 0.0))]
    assert (reassigned(values, labels, models, [0.0, 5.0, 0.0]) == labels).all()


def test_a_map_that_is_given_is_not_changed():
    layout = shaken(STRIPES[:64, :64], 0.4, 1)
    field = piecewise_field((64, 64), [Region(1.0, 0.95), Region(1.0, 0.5)], layout=STRIPES[:64, :64])
    assert (estimate(field, layout).regions.labels == layout).all()
