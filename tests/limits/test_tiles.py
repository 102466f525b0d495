"""Codes of fixed rate per tile: against the table of the theory, single tiles, and the exact dispersion of a mismatch."""

import numpy as np
import pytest

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.limits import converse
from workbench.limits.blocks import per_tile_excess
from workbench.limits.correlation import Autoregressive, Matern
from workbench.limits.spectrum import LOG2E, Spectrum
from workbench.limits.tiles import of_each_tile, tile_kinds


@pytest.mark.parametrize(("tiles", "samples", "penalty"), [(1000, 64, 0.47758), (4096, 512, 0.19579), (100, 4096, 0.05835)])
def test_every_tile_pays_what_the_table_says(tiles, samples, penalty):
    kinds = [(Spectrum.of(1.0, samples), float(tiles))]
    assert of_each_tile(converse.converse, kinds, 0.25, 0.01) - 1 == pytest.approx(penalty, abs=5.1e-6)


def test_tiles_of_a_box_are_its_tiles():
    limits = wb.rate_distortion(wb.limits.separable(0.95, (64, 64)), tile=8)
    one = wb.limits.separable(0.95, (8, 8)).spectrum()
    assert limits.converse(0.01, per="tile") == pytest.approx(converse.converse(one, 0.01, per_tile_excess(0.01, 64)))
    assert limits.converse(0.01, per="tile") > limits.converse(0.01) + 0.2
    assert limits.achievable(0.01, per="tile") > limits.converse(0.01, per="tile")
    assert limits.tiled(None).converse(0.01, per="tile") == limits.tiled(None).converse(0.01)
    assert limits.normal_approximation(0.01, per="tile") > limits.normal_approximation(0.01)


@pytest.mark.parametrize("tile", [3, (4, 5)])
def test_kinds_hold_every_sample_once(tile):
    labels = np.random.default_rng(1).integers(-1, 2, (5, 6)).repeat(4, 0).repeat(4, 1)
    kinds = tile_kinds(labels, [Matern(2.0, (3.0, 3.0), 1.5), None], tile)
    assert sum(one.size * number for one, number in kinds) == pytest.approx(np.count_nonzero(labels >= 0))
    total = sum(one.variance * one.size * number for one, number in kinds)
    assert total == pytest.approx(2 * np.count_nonzero(labels == 0))


def test_a_fitted_field_has_bounds_per_tile():
    field = wb.synthetic.piecewise_field((96, 96), [wb.synthetic.Region(1.0, 0.9), wb.synthetic.Region(4.0, 0.5)], seed=2)
    tiled = wb.rate_distortion(field, regions=field.metadata["regions"], tile=8)
    exact = wb.limits.piecewise(field.metadata["regions"], [Autoregressive(1, (0.9, 0.9)), Autoregressive(16, (0.5, 0.5))])
    known = wb.rate_distortion(exact, tile=8)
    assert tiled.converse(0.01, per="tile") == pytest.approx(known.converse(0.01, per="tile"), abs=0.05)


def test_a_code_that_ignores_correlation_varies_more():
    line = wb.rate_distortion(wb.limits.separable(0.95, 1024), tile=4)
    assert line.mismatched_dispersion() == pytest.approx(1.162567 * LOG2E**2, abs=2e-6)
    assert line.dispersion(1e-4) == pytest.approx(0.5 * LOG2E**2)
    plane = wb.rate_distortion(wb.limits.separable(0.9, (256, 256)), tile=8)
    assert plane.mismatched_dispersion() > 1.2 * plane.dispersion(1e-4)


def test_nonsense_is_refused():
    limits = wb.rate_distortion(wb.limits.separable(0.95, (8, 8)), tile=4)
    with pytest.raises(WorkbenchError, match="per must be 'field' or 'tile'"):
        limits.converse(0.1, per="block")
    with pytest.raises(WorkbenchError, match="at most 2048 points"):
        wb.rate_distortion(wb.limits.separable(0.9, (512, 512)), tile=64).mismatched_dispersion()
