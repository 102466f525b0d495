"""Fits that prediction errors confirm, on masked fields that are smoother than their coasts."""

import numpy as np
import pytest

import workbench as wb
from limits.test_fit import stationary
from limits.test_missing_values import coast
from workbench.limits.correlation import Autoregressive, Matern
from workbench.limits.innovations import innovations
from workbench.limits.neighbour_fit import Predicted


@pytest.mark.parametrize("shape", [(300,), (30, 25), (9, 8, 7)])
def test_a_sample_of_all_cells_has_the_errors_of_all_cells(shape):
    random = np.random.default_rng(1)
    values, inside = random.standard_normal(shape), random.random(shape) < 0.7
    model = Matern(1.0, (2.0,) * len(shape), 1.5, 0.1)
    sample = Predicted.of(values, inside, 0.3, cells=values.size)
    errors, variances = sample.errors(model)
    labels = np.where(inside, 0, -1)
    assert errors / np.sqrt(variances) == pytest.approx(innovations(values, labels, [model], [0.3]).residuals[inside])


@pytest.mark.long
@pytest.mark.parametrize("model", [Matern(4.0, (12.0, 12.0), 2.5), Matern(4.0, (9.0, 15.0), 1.5, 1e-5)], ids=str)
def test_a_smooth_sea_with_a_ragged_coast_is_not_taken_for_smoother_than_it_is(model):
    values, land = stationary(model, (150, 170), 3), coast((150, 170), 4, 0.5)
    found = wb.rate_distortion(wb.Field(values, mask=land), regions=1)
    errors = found.source.innovations.residuals[~land]
    assert 0.5 < np.mean(errors**2) < 2
    assert abs(found.instance(1e-3) - found.pointwise(1e-3)) < 1
    assert not any("no model fits" in warning for warning in found.warnings)


def test_errors_tell_a_right_covariance_from_a_wrong_one():
    values = stationary(Autoregressive(1.0, (0.9, 0.9)), (90, 90), 2)
    sample = Predicted.of(values, np.ones(values.shape, bool), 0.0)
    assert sample.believes(Autoregressive(1.0, (0.9, 0.9)))
    assert not sample.believes(Autoregressive(1.0, (0.99, 0.99)))
    assert sample.deviance(Autoregressive(1.0, (0.9, 0.9))) < sample.deviance(Autoregressive(1.0, (0.8, 0.8)))
