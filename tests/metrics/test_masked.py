"""Masked NumPy arrays, as netCDF4 returns them: their mask goes wherever they go."""

import numpy as np
import pytest

import workbench as wb

FILL = 1e20


@pytest.fixture
def ocean():
    """A smooth field whose land holds a fill value."""
    x, y = np.meshgrid(np.linspace(0, 3, 48), np.linspace(0, 2, 40))
    values = (15 + 8 * np.sin(x) * np.cos(y) + np.random.default_rng(0).normal(0, 0.05, x.shape)).astype(np.float32)
    land = (x - 1.5) ** 2 + (y - 1) ** 2 < 0.3
    return np.ma.array(np.where(land, np.float32(FILL), values), mask=land)


@pytest.mark.parametrize("codec", ["sz3", "prequantised", "zfp"])
def test_compress_keeps_the_mask_and_the_bound_of_what_it_leaves(ocean, codec):
    pytest.importorskip({"sz3": "pysz", "zfp": "zfpy"}.get(codec, "numpy"))
    archive = wb.compress(ocean, wb.Relative(1e-3), codec)
    decoded = archive.decompress()
    np.testing.assert_array_equal(decoded.mask, ocean.mask)
    allowed = 1e-3 * float(np.ptp(ocean.compressed()))
    assert np.abs(decoded.values[~ocean.mask].astype("f8") - ocean.compressed()).max() <= allowed
    assert (decoded.values[ocean.mask] == np.float32(FILL)).all()
    assert archive.verify(ocean).passed


def test_compare_counts_valid_cells_only(ocean):
    off = ocean + np.float32(0.25)
    off.data[ocean.mask] = -5
    report = wb.compare(ocean, off)
    assert report["values"] == int((~ocean.mask).sum())
    assert report["max_error"] == pytest.approx(0.25, rel=1e-4)
    assert report["value_range"] == pytest.approx(float(np.ptp(ocean.compressed())))
    for pair in ((wb.Field(ocean), off), (ocean, wb.Field(off))):
        assert wb.compare(*pair)["max_error"] == report["max_error"]


def test_a_sweep_keeps_the_mask(ocean):
    rows = wb.sweep(ocean, "prequantised", wb.Absolute(0.01), workers=1, cache=False).rows
    assert rows[0]["values"] == int((~ocean.mask).sum())
    assert rows[0]["max_error"] <= 0.01


@pytest.mark.long
def test_limits_are_those_of_what_the_mask_leaves(ocean):
    plain = wb.rate_distortion(wb.Field(ocean.data, mask=ocean.mask), regions=1)
    masked = wb.rate_distortion(ocean, regions=1)
    assert masked.rate(0.01) == plain.rate(0.01) < 20
