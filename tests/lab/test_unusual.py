"""What is unusual for the data, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.lab.unusual import unusual

BOX = wb.Particles(np.random.default_rng(1).uniform(0, 48, (4096, 3)).astype(np.float32), box=48.0)
FIELD = wb.Field(np.random.default_rng(1).normal(size=(64, 64)))


@pytest.mark.parametrize(("data", "bound", "told"), [
    (BOX, 1e9, "larger than the box, 48"),
    (BOX, 4.0, "larger than the mean spacing of particles, 3"),
    (BOX, 1e-30, "below the precision of float32 numbers"),
    (FIELD, 1e9, "larger than half their range"),
    (FIELD, 1.5, "larger than their standard deviation"),
    (FIELD, 1e-30, "below the precision of float64 numbers"),
    (wb.Field(np.full(100, 3.0)), 1e-30, "below the precision"),
])
def test_absurd_bounds_are_said(data: wb.Particles | wb.Field, bound: float, told: str) -> None:
    assert told in unusual(data, wb.Absolute(bound))


def test_usual_bounds_are_no_matter() -> None:
    for bound in (1e-6, 1e-3, 0.1):
        assert unusual(FIELD, wb.Absolute(bound)) == ""
    for bound in (1e-5, 0.01, 1.0):
        assert unusual(BOX, wb.Absolute(bound), [wb.KeepClusters(0.2)]) == ""
    for bound in (wb.Relative(1e-3), wb.PointwiseRelative(1e-9)):
        assert unusual(FIELD, bound) == ""
    assert unusual(wb.Field(np.full(100, np.nan)), wb.Absolute(0.1)) == ""


def test_long_linking_lengths_are_said() -> None:
    assert "the linking length is 2.8 mean spacings" in unusual(BOX, wb.Absolute(0.1), [wb.KeepClusters(2.8)])
