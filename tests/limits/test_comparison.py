"""Codecs beside the bound, where the bound is exact; and what is said of a codec that beats it."""

import numpy as np
import pytest

import workbench as wb
from workbench.data.synthetic import Region, piecewise_field
from workbench.errors import WorkbenchError
from workbench.limits.comparison import row
from workbench.limits.operating_point import LEVERS

LORENZO = wb.codecs.get("sz3", algorithm="lorenzo_reg")


@pytest.fixture(scope="module")
def rough():
    """The field of the reference: 1024 x 1024, correlation 0.95 along both axes."""
    field = piecewise_field((1024, 1024), [Region(1.0, 0.95)], seed=8)
    return field, wb.rate_distortion(field), wb.rate_distortion(wb.limits.separable(0.95, field.shape))


@pytest.mark.long
@pytest.mark.parametrize(("eb", "above_pointwise", "above_rate"), [
    (1e-3, 0.0657, 0.3217), pytest.param(1e-2, 0.0844, 0.3396, marks=pytest.mark.long),
])
def test_sz3_stands_where_it_is_known_to(rough, eb, above_pointwise, above_rate):
    _, fitted, exact = rough
    (point,) = fitted.compare(LORENZO, wb.Absolute(eb))
    bits = point.bits - point.parts["documents"]   # of the chunks alone, as the reference counts them
    for limits in (fitted, exact):
        assert bits - limits.pointwise(eb) == pytest.approx(above_pointwise, abs=0.01)
        assert bits - limits.rate(point.distortion) == pytest.approx(above_rate, abs=0.02)
    assert point.parts["pointwise bound"] == pytest.approx(0.2546, abs=0.005)
    assert sum(point.parts.values()) == pytest.approx(point.gap)
    assert point.bits > fitted.instance(eb)
    assert not point.below


def test_zfp_pays_for_tiles_and_is_tighter_than_asked(rough):
    _, fitted, _ = rough
    (point,) = fitted.compare("zfp", wb.Absolute(1e-3))
    assert point.bits == pytest.approx(13.0576, abs=0.05)
    assert point.parts["tiles"] == pytest.approx(0.836, abs=0.02)
    assert point.tighter == pytest.approx(2.8, abs=0.15)
    assert point.lever == LEVERS["tighter than asked"]


def test_the_best_lever_of_sz3s_default_is_its_predictor(rough):
    _, fitted, _ = rough
    (point,) = fitted.compare("sz3", wb.Absolute(1e-3))
    assert point.gap == pytest.approx(1.7612, abs=0.05)
    assert point.lever == LEVERS["prediction and coding"]


def test_a_codec_below_the_bound_speaks_against_the_model():
    random = np.random.default_rng(1)   # nearly three values: anything but Gaussian
    steps = (random.integers(0, 3, (512, 512)) + 1e-4 * random.standard_normal((512, 512))).astype(np.float32)
    found = wb.rate_distortion(wb.Field(steps)).compare("prequantised", [wb.Absolute(0.45)])
    assert found.points[0].below
    assert "does not describe the field" in row(found[0])["lever"]


def test_by_default_there_are_several_codecs_and_a_table():
    field = piecewise_field((64, 64), [Region(1.0, 0.9)], seed=2)
    found = wb.rate_distortion(field).compare(bounds=[wb.Absolute(0.1), wb.Relative(0.01)])
    assert {point.run.label for point in found} >= {"sz3", "zfp", "prequantised"}
    assert all(point.parts["documents"] > 0.1 for point in found)   # a field of 4096 values is small
    table = found.to_dataframe()
    assert len(table) == len(found)
    assert table["gap"].to_numpy() == pytest.approx([point.gap for point in found])
    assert "<table>" in found._repr_html_()
    assert "operating points" in repr(found)


def test_runs_that_lose_nothing_or_fail_are_left_out():
    field = piecewise_field((64, 64), [Region(1.0, 0.9)], seed=2)
    found = wb.rate_distortion(field).compare(["pcodec", "prequantised"], wb.Absolute(0.01))
    assert [run.label for run in found.left_out] == ["pcodec"]
    assert len(found) == 1
    assert "1 runs left out" in repr(found)
    assert wb.rate_distortion(field).compare("pcodec", wb.Absolute(0.01))._repr_html_().startswith("<p>")


def test_bounds_relative_to_each_value_are_refused():
    field = piecewise_field((64, 64), [Region(1.0, 0.9)], seed=2)
    with pytest.raises(WorkbenchError, match="the same for all values"):
        wb.rate_distortion(field).compare("sz3", wb.PointwiseRelative(0.01))
