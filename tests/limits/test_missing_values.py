"""What is missing never enters a spectrum, whether it is masked, NaN, declared or only recognised."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.data.synthetic import Region, piecewise_field
from workbench.limits.missing_values import without_fills
from workbench.limits.periodogram import periodogram


def coast(shape, seed, share=0.3):
    """A smooth random coast with islands, true on land."""
    frequencies = np.meshgrid(*[np.fft.fftfreq(length) for length in shape], indexing="ij")
    squared = sum(each**2 for each in frequencies)
    squared.flat[0] = np.inf
    rough = np.fft.fftn(np.random.default_rng(seed).standard_normal(shape)) * squared**-0.9
    heights = np.fft.ifftn(rough).real
    return heights < np.quantile(heights, share)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(0, 10**6), st.floats(0.0, 0.7), st.sampled_from([np.nan, 1e20, -999.0, np.inf]))
def test_a_periodogram_does_not_see_what_is_outside(dimensions, seed, share, fill):
    random = np.random.default_rng(seed)
    shape = tuple(random.integers(3, (0, 900, 110, 34)[dimensions], dimensions))
    inside = random.random(shape) >= share
    corner = tuple(slice(0, int(random.integers(1, 4))) for _ in shape)
    inside[corner] = False   # where tapers are almost zero
    inside.flat[-1] = True
    values = random.standard_normal(shape)
    damaged = np.where(inside, values, fill)
    clean, found = (periodogram(each, inside, 0.0) for each in (values, damaged))
    assert np.array_equal(clean.blocks, found.blocks)
    assert np.array_equal(clean.window, found.window)


@pytest.mark.few(1)
@pytest.mark.parametrize(("shape", "where"), [
    ((1500,), "corner"), ((64, 70), "islands"), *(pytest.param(*each, marks=pytest.mark.long) for each in [
        ((1500,), "random"), ((64, 70), "coast"), ((64, 70), "random"), ((64, 70), "corner"), ((14, 16, 18), "coast"),
        ((14, 16, 18), "corner"),
    ]),
])
def test_all_ways_to_say_missing_give_the_same_model(shape, where):
    values = piecewise_field(shape, [Region(1.0, 0.9)], seed=3).values.copy()
    random = np.random.default_rng(4)
    land = np.zeros(shape, bool)
    if where == "coast":
        land = coast(shape, 5)
    elif where == "random":
        land.flat[random.choice(land.size, 20, replace=False)] = True
    elif where == "corner":
        land[(0,) * len(shape)] = True
    else:
        land[tuple(random.integers(0, length, 7) for length in shape)] = True
        land[tuple(slice(10, 14) for _ in shape)] = True
    rates = []
    for fill, mask, attributes in [
        (np.nan, None, {}), (1e20, land, {}), (-3.0, None, {"attributes": {"_FillValue": -3.0}}), (-999.0, None, {}),
    ]:
        damaged = values.copy()
        damaged[land] = fill
        found = wb.rate_distortion(wb.Field(damaged, mask=mask, metadata=attributes), regions=1)
        assert found.source.size == np.count_nonzero(~land)
        rates.append(found.rate(0.01))
        assert found.instance(0.1) < 8
        said = any("left out" in warning for warning in found.warnings)
        assert said == (np.isfinite(fill) and mask is None)
    assert np.ptp(rates) == 0


def test_islands_smaller_than_a_region_are_recognised_too():
    values = piecewise_field((96, 96), [Region(1.0, 0.9)], seed=3).values.copy()
    values[5, 5], values[40:42, 70:73] = 1e20, 1e20
    found, fills = without_fills(wb.Field(values))
    assert found.mask.sum() == 7
    assert [(fill.value, fill.count, fill.declared) for fill in fills] == [(pytest.approx(1e20), 7, False)]


def test_several_fill_values_are_recognised():
    values = piecewise_field((96, 96), [Region(1.0, 0.9)], seed=3).values.copy()
    values[:9], values[20:22] = 1e20, -999.0
    _, fills = without_fills(wb.Field(values))
    assert sorted(fill.count for fill in fills) == [192, 864]


@pytest.mark.parametrize("values", [
    np.array([0.0, 1.0] * 50), np.zeros(9), np.exp(4 * np.random.default_rng(0).standard_normal(5000)),
    np.round(np.random.default_rng(0).standard_normal(500)), np.where(np.arange(100) < 60, 0.0, np.linspace(1, 2, 100)),
    np.append(np.random.default_rng(0).standard_normal(500), 400.0), np.array([5.0]),
], ids="two one log-normal whole land outlier single".split())
def test_values_of_the_field_are_no_fill_values(values):
    assert without_fills(wb.Field(values))[1] == ()


def test_a_value_that_fills_large_patches_is_one_region_with_its_islands():
    values = piecewise_field((128, 128), [Region(1.0, 0.95, 3.0)], seed=3).values.copy()
    land = coast((128, 128), 2, 0.3)
    land[50, 50] = True
    values[land] = 0.0
    found = wb.rate_distortion(wb.Field(values))
    assert found.source.regions.count == 2
    assert np.array_equal(found.source.regions.labels == 1, land)


@pytest.mark.parametrize(
    "shape", [(1,), (2,), (3,), (4,), (1, 1), (2, 2), (1, 7), (5, 3), (2, 2, 2), (1, 1, 5), (2, 1, 2, 1)], ids=str
)
@pytest.mark.parametrize("kind", ["constant", "two values", "noise"])
def test_the_smallest_fields_have_results(shape, kind):
    values = {
        "constant": np.full(shape, 3.0), "two values": np.arange(np.prod(shape)).reshape(shape) % 2.0,
        "noise": np.random.default_rng(0).standard_normal(shape),
    }[kind]
    found = wb.rate_distortion(values)
    low, high = found.interval(0.01)
    assert low <= found.rate(0.01) <= high
    assert np.isfinite([found.instance(0.1), found.pointwise(0.1), found.converse(0.1), found.achievable(0.1)]).all()
    assert found.rate(0.01) == 0 or kind != "constant"
    assert "<table>" in found._repr_html_()
    assert isinstance(found.warnings, tuple)
    assert found.tiled(2).rate(0.01) >= 0


@pytest.mark.parametrize("values", [
    np.repeat([0.0, 1.0], 2048).reshape(64, 64), np.eye(1, 4096, 99).reshape(64, 64), np.full((64, 64), 2.0),
    np.where(np.arange(4096) % 3, np.nan, 1.0).reshape(64, 64),
], ids=["two halves", "one odd cell", "constant", "constant with holes"])
def test_fields_without_variation_have_results(values):
    found = wb.rate_distortion(values)
    assert "<table>" in found._repr_html_()
    assert found.instance(0.1) <= 1e-9 or np.isfinite(found.instance(0.1))
    assert found.gaussianity is None or isinstance(found.gaussianity.cells, int)
    assert found.source.innovations.residuals.shape == values.shape
