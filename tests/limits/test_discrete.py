"""Rounded, packed and few values: recognised where they are, and nowhere else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.data.synthetic import Region, piecewise_field
from workbench.limits.discrete import conditional_entropy, lattice


def known(values):
    return np.ones(np.shape(values), bool)


@settings(max_examples=30, deadline=None)
@given(st.floats(1e-6, 1e6), st.floats(-100, 100), st.integers(0, 10**6))
def test_a_packed_field_has_its_step(step, offset, seed):
    codes = np.random.default_rng(seed).integers(0, 3000, 4000)
    found = lattice(step * (codes + offset), known(codes))
    assert found.step == pytest.approx(step, rel=1e-6)
    assert not found.few


@pytest.mark.parametrize("step", [0.1, 0.01])
def test_rounded_floats_of_single_precision_are_seen(step):
    values = (np.round(np.random.default_rng(1).standard_normal(20000) / step) * step).astype(np.float32)
    assert lattice(values, known(values)).step == pytest.approx(step, rel=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_continuous_values_are_on_no_lattice(dtype):
    values = piecewise_field((128, 128), [Region(1.0, 0.9)], seed=1).values.astype(dtype)
    assert lattice(values, known(values)) is None
    assert lattice(np.exp(values), known(values)) is None


def test_no_bound_rises_above_exact_values():
    field = piecewise_field((128, 128), [Region(1.0, 0.95)], seed=1)
    limits = wb.rate_distortion(wb.Field(np.round(field.values, 2)), regions=1)
    plain = wb.rate_distortion(field, regions=1)
    assert limits.pointwise(1e-9) == pytest.approx(limits.pointwise(0.005), abs=1e-5)
    assert limits.pointwise(1e-9) == pytest.approx(plain.pointwise(0.005), abs=0.02)
    assert limits.rate(1e-15) < limits.pointwise(1e-9)
    assert limits.instance(1e-9) == pytest.approx(plain.instance(0.005), abs=0.02)
    assert limits.interval(1e-15)[1] < 9
    assert any("multiples of 0.01" in warning for warning in limits.warnings)
    points = limits.compare("prequantised", wb.Absolute(0.005))
    assert not points[0].below


def test_two_values_have_the_entropy_of_their_pattern():
    field = piecewise_field((128, 128), [Region(1.0, 0.95)], seed=1)
    found = wb.rate_distortion(wb.Field((field.values > 0).astype(np.float32)))
    assert any("2 different values" in warning for warning in found.warnings)
    assert 0.3 < found.source.lattice.bits < 0.7


def test_conditional_entropy_is_that_of_a_chain():
    random = np.random.default_rng(2)
    flips = random.random(200_000) < 0.1
    chain = np.cumsum(flips) % 2
    expected = -0.1 * np.log2(0.1) - 0.9 * np.log2(0.9)
    assert conditional_entropy(chain, known(chain)) == pytest.approx(expected, abs=0.01)
    assert conditional_entropy(np.zeros(9, int), known(np.zeros(9))) == 0


@pytest.mark.long
def test_the_map_of_regions_has_a_price():
    field = piecewise_field((128, 128), [Region(1.0, 0.95), Region(5.0, 0.5)], layout="blocks", seed=1)
    several, one = wb.rate_distortion(field), wb.rate_distortion(field, regions=1)
    assert 0.02 < several.price_of_description() < 0.2
    assert one.price_of_description() < 0.01
