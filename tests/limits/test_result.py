"""`wb.rate_distortion`: exact for models, close for fields, and candid about what it does not know."""

import re

import numpy as np
import pytest

import workbench as wb
from workbench.data.synthetic import Region, gaussian_field, piecewise_field
from workbench.errors import WorkbenchError
from workbench.limits.spectrum import LOG2E


def exact_limits(field):
    """The bounds by the models that the field was made with."""
    models = field.metadata["models"]
    known = [wb.limits.Autoregressive(model["sigma"] ** 2, (model["rho"],) * len(field.shape)) for model in models]
    return wb.rate_distortion(wb.limits.piecewise(field.metadata["regions"], known))


def test_a_model_is_answered_exactly():
    limits = wb.rate_distortion(wb.limits.gauss_markov(0.5, 1.0, n=50, stationary=False))
    assert limits.rate(0.4) == pytest.approx(0.5 * np.log2(1 / 0.4), rel=1e-9)
    assert limits.dispersion(0.4) == pytest.approx(0.5 * LOG2E**2, rel=1e-9)
    rates = [limits.rate(0.4), limits.converse(0.4), limits.normal_approximation(0.4), limits.achievable(0.4)]
    assert rates == sorted(rates)
    assert limits.interval(0.4) == (limits.rate(0.4),) * 2
    assert "Gauss-Markov" in repr(limits)


def test_tiles_cost_what_the_closed_form_says():
    limits = wb.rate_distortion(wb.limits.separable(0.95, (256, 256)))
    tile = limits.tiled(8)
    assert tile.tile == 8
    edge = (8, 256)
    closed = (1 / edge[0] - 1 / edge[1]) * np.log2(1 / (1 - 0.95**2))
    assert limits.price_of_tiles(8, 1e-5) == pytest.approx(closed, rel=1e-6)
    assert wb.rate_distortion(wb.limits.separable(0.95, (256, 256)), tile=8).rate(0.01) == tile.rate(0.01)


@pytest.mark.parametrize(
    ("shape", "sigma", "rho"), [
        ((512, 512), 1.0, 0.95), *(pytest.param(*each, marks=pytest.mark.long) for each in [
            ((64, 64, 64), 3.0, 0.9), ((2**17,), 0.1, 0.8),
        ]),
    ],
)
def test_a_field_of_one_kind_is_judged_within_a_hundredth_of_a_bit(shape, sigma, rho):
    field = piecewise_field(shape, [Region(sigma, rho)], seed=11)
    limits, exact = wb.rate_distortion(field), exact_limits(field)
    assert limits.source.regions.count == 1
    for share in (1e-4, 0.01, 0.1, 0.5):
        distortion = share * sigma**2
        assert limits.rate(distortion) == pytest.approx(exact.rate(distortion), abs=0.01)
        assert limits.tiled(8).rate(distortion) == pytest.approx(exact.tiled(8).rate(distortion), abs=0.015)
        low, high = limits.interval(distortion)
        assert low - 0.003 <= exact.rate(distortion) <= high + 0.003
        assert low <= limits.rate(distortion) <= high
    assert limits.warnings == ()


@pytest.mark.parametrize("models", [
    (Region(1.0, 0.95), Region(4.0, 0.95)), pytest.param((Region(1.0, 0.95), Region(1.0, 0.5)), marks=pytest.mark.long),
])
def test_two_regions_are_found_and_judged(models):
    field = piecewise_field((512, 512), models, seed=4)
    limits, exact = wb.rate_distortion(field), exact_limits(field)
    found, true = limits.source.regions.labels, field.metadata["regions"]
    assert max(np.mean(found == true), np.mean(found == 1 - true)) >= 0.95
    for distortion in (0.001, 0.1):
        assert limits.rate(distortion) == pytest.approx(exact.rate(distortion), abs=0.012)
    assert limits.price_of_borders(0.001) == pytest.approx(exact.price_of_borders(0.001), abs=0.01)
    assert limits.price_of_one_model(0.001) == pytest.approx(exact.price_of_one_model(0.001), abs=0.05)
    assert "region" in limits._repr_html_()
    assert limits.warnings == ()   # values on the wrong side of a border are no outliers of the field


def test_regions_can_be_given_and_left_out():
    field = piecewise_field((128, 128), [Region(1.0, 0.9), Region(5.0, 0.0)], seed=1)
    where = field.metadata["regions"]
    limits = wb.rate_distortion(field, regions=where)
    assert limits.source.fits[1].covariance.variance == pytest.approx(25, rel=0.1)
    only = wb.rate_distortion(field, regions=np.where(where == 0, 0, -1))
    assert only.source.size == np.count_nonzero(where == 0)
    assert only.variance == pytest.approx(1, abs=0.5)
    assert wb.rate_distortion(field, regions=1).source.regions.count == 1


def test_what_does_not_vary_costs_nothing():
    values = piecewise_field((128, 128), [Region(1.0, 0.9)], seed=1).values.copy()
    values[:, :64] = 7.0
    half = wb.rate_distortion(wb.Field(values))
    assert half.source.size == values.size
    whole = wb.rate_distortion(wb.Field(values[:, 64:]))
    assert half.rate(0.005) == pytest.approx(whole.rate(0.01) / 2, abs=0.02)
    assert half.pointwise(1e-3) < half.rate(1e-7)
    still = wb.rate_distortion(wb.Field(np.full((40, 40), 3.0)))
    assert (still.rate(1e-9), still.converse(1e-9), still.achievable(1e-9), still.variance) == (0.0, 0.0, 0.0, 0.0)
    with pytest.raises(WorkbenchError, match="got a constant field"):
        still.compare()


def test_what_is_masked_or_nan_is_no_sample():
    field = piecewise_field((192, 192), [Region(2.0, 0.9)], seed=6)
    values, mask = field.values.copy(), np.zeros(field.shape, bool)
    values[:30, :40] = np.nan
    mask[100:140, 50:90] = True
    values[mask] = 1e30
    limits = wb.rate_distortion(wb.Field(values, mask=mask))
    assert limits.source.size == field.values.size - 30 * 40 - 40 * 40
    assert limits.rate(0.01) == pytest.approx(exact_limits(field).rate(0.01), abs=0.05)


@pytest.mark.parametrize("shape", [(5000,), (60, 70), (24, 20, 28), (8, 10, 9, 11)])
def test_fields_of_all_dimensions(shape):
    limits = wb.rate_distortion(piecewise_field(shape, [Region(1.0, 0.7)], seed=2), tile=4)
    assert 0 < limits.rate(0.1) < limits.rate(0.01) < 6
    assert limits.instance(1e-3) > limits.instance(1e-2)


def test_a_field_that_is_not_gaussian_is_called_so():
    waves = gaussian_field((192, 192), 2.0, seed=3).values
    limits = wb.rate_distortion(wb.Field(np.exp(2.5 * waves)))
    assert any("not Gaussian" in warning for warning in limits.warnings)
    assert "⚠" in limits._repr_html_()


def test_the_drawing_names_its_lines():
    limits = wb.rate_distortion(piecewise_field((64, 64), [Region(1.0, 0.95), Region(5.0, 0.5)], seed=1))
    drawing = limits.plot(tile=8, codecs=["sz3"]).svg
    named = set(re.findall(r">([^<>]+)</text>", drawing))
    assert {"Gaussian-model bound", "in tiles of 8", "one variance for all", "sz3"} <= named
    assert drawing.count("<polygon") == 1
    assert "fixed length, 0.01 fail" in wb.rate_distortion(wb.limits.memoryless(1.0, 100)).plot().svg
    assert "sz3" not in limits.plot().svg


@pytest.mark.parametrize(("call", "told"), [
    (lambda: wb.rate_distortion("field.npy"), "expected a field"),
    (lambda: wb.rate_distortion(np.zeros((0, 3))), "empty"),
    (lambda: wb.rate_distortion(wb.synthetic.cosmic_web(n=8)), "expected a field"),
    (lambda: wb.rate_distortion(wb.limits.memoryless(1.0, 9), regions=2), "regions must be 'auto' for an exact model"),
    (lambda: wb.rate_distortion(wb.limits.memoryless(1.0, 9), tile=3).rate(0.1), "tile must be None"),
    (lambda: wb.rate_distortion(wb.limits.memoryless(1.0, 9)).rate(0.0), "distortion must be"),
    (lambda: wb.rate_distortion(wb.limits.memoryless(1.0, 9)).rate(float("nan")), "distortion must be"),
    (lambda: wb.rate_distortion(wb.limits.memoryless(1.0, 9)).converse(0.1, 0.6), "eps"),
    (lambda: wb.rate_distortion(wb.limits.memoryless(1.0, 9)).achievable(0.1, 0.0), "eps"),
    (lambda: wb.rate_distortion(np.random.default_rng(0).random((20, 20)), tile=0).rate(0.01), "tile"),
    (lambda: wb.rate_distortion(np.random.default_rng(0).random((20, 20)), regions="some"), "regions must be"),
    (lambda: wb.rate_distortion(np.random.default_rng(0).random((20, 20)), regions=0), "regions must be"),
    (lambda: wb.rate_distortion(np.full((20, 20), np.nan)), "at least one value"),
    (lambda: wb.rate_distortion(wb.Field(np.ones(9), mask=np.ones(9, bool))), "at least one value"),
    (lambda: wb.rate_distortion(np.ones((8, 8), complex)), "values must be float32, .*got complex128"),
    (lambda: wb.rate_distortion(np.array([[1, "a"], [2, None]], object)), "values must be float32, .*got object"),
    (lambda: wb.rate_distortion(np.arange(9.0) * 1e300), r"values must span between 1e-100 and 1e\+100.*got 8e\+300"),
    (lambda: wb.rate_distortion(np.arange(9.0) * 1e-300), r"values must span between .*got 8e-300: multiply the field"),
])
def test_nonsense_is_refused_with_a_sentence(call, told):
    with pytest.raises(WorkbenchError, match=told):
        call()


@pytest.mark.long
def test_a_region_with_a_wild_first_fit_does_not_keep_the_others_together() -> None:
    regions = [wb.synthetic.Region(1.0, 0.95), wb.synthetic.Region(0.05, 0.6), wb.synthetic.Region(0.4, 0.1)]
    field = wb.synthetic.piecewise_field((256, 256), regions, layout="discs", block=128, seed=3)
    assert "in 3 regions" in repr(wb.rate_distortion(field))
