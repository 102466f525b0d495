"""Gaps are taken apart without a rest, and what is below the bound is called by its name."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.bounds import Run
from workbench.guarantees import Absolute
from workbench.limits.operating_point import LEVERS, OperatingPoint, price_of_pointwise, taken_apart

RUN = Run({"id": "zfp"}, "zfp", Absolute(0.1), figures={"limit": 0.1})
amounts = st.floats(0, 5)


def point(bits=4.0, rate=3.0, interval=(2.9, 3.1), parts=None, tighter=0.0):
    parts = parts or {"prediction and coding": bits - rate}
    return OperatingPoint(RUN, bits, 0.01, rate, interval, 3.2, parts, tighter, 0.0)


@given(st.floats(-3, 10), amounts, amounts, st.floats(0, 1))
def test_parts_sum_to_the_gap(gap, tiles, documents, pointwise):
    parts = taken_apart(gap, tiles, documents, pointwise)
    assert sum(parts.values()) == pytest.approx(gap, abs=1e-12)
    assert parts.get("pointwise bound", 0.0) <= pointwise
    assert set(parts) <= set(LEVERS)


def test_even_errors_cost_a_quarter_of_a_bit_and_gaussian_ones_nothing():
    assert price_of_pointwise(0.5, 0.25 / 3) == pytest.approx(0.5 * math.log2(2 * math.pi * math.e / 12), rel=1e-12)
    assert price_of_pointwise(4.0, 1.0) == 0.0


def test_the_lever_is_what_closes_most_of_the_gap():
    assert point().lever == LEVERS["prediction and coding"]
    assert point(parts={"tiles": 0.8, "prediction and coding": 0.2}).lever == LEVERS["tiles"]
    assert point(tighter=2.0).lever == LEVERS["tighter than asked"]
    assert point(parts={"documents": 0.9, "prediction and coding": 0.05}, tighter=0.05).lever == LEVERS["documents"]


def test_below_the_bound_is_a_matter_of_the_model():
    miracle = point(bits=2.0)
    assert miracle.below
    assert "does not describe the field" in miracle.lever
    assert not point(bits=2.95).below   # which the uncertainty of the estimate explains
    assert point(bits=2.95).gap == pytest.approx(-0.05)
