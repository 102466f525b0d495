"""Bounds: what is refused, what they come to for given values, and what is written down about them."""

import json
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound, Limit, PointwiseRelative, Relative, bound_from_dict

BOUNDS = [Absolute, Relative, PointwiseRelative]


@pytest.mark.parametrize("kind", BOUNDS)
@pytest.mark.parametrize(
    ("eb", "message"),
    [
        (-0.1, "must be finite, not negative.*; got -0.1"),
        (math.nan, "must be finite.*; got nan"),
        (math.inf, "must be finite.*; got inf"),
        ("1e-3", "must be a number, such as 0.01.*; got '1e-3'"),
        (True, "must be a number; got True"),
        (None, "must be a number; got None"),
        (1 + 1j, "must be a number"),
        (np.array([0.1]), "must be a number"),
    ],
)
def test_what_cannot_bound_an_error_is_refused(kind, eb, message):
    with pytest.raises(WorkbenchError, match=rf"{kind.__name__}\(eb\) {message}"):
        kind(eb)


def test_a_relative_error_of_one_or_more_bounds_nothing():
    with pytest.raises(WorkbenchError, match="must be finite, not negative and less than 1; got 1"):
        PointwiseRelative(1)
    assert Absolute(7).eb == Relative(7).eb == 7.0
    with pytest.raises(WorkbenchError, match="less than 1; got 1"):
        Limit("relative", 1.0)
    with pytest.raises(WorkbenchError, match="kind of a limit must be 'absolute' or 'relative'; got 'sometimes'"):
        Limit("sometimes", 0.5)


@pytest.mark.parametrize("kind", BOUNDS)
@given(st.floats(0, 1, exclude_max=True))
def test_json_keeps_every_bit_of_a_bound(kind, eb):
    bound = kind(eb)
    again = bound_from_dict(json.loads(json.dumps(bound.to_dict())))
    assert again == bound
    assert type(again) is kind
    assert hash(again) == hash(bound)


def test_bounds_of_different_kinds_differ():
    assert len({kind(0.1) for kind in BOUNDS}) == 3
    assert Absolute(np.float32(0.1)).eb == float(np.float32(0.1))
    assert Absolute(Fraction(1, 4)) == Absolute(0.25)


WRONG = [{}, {"kind": "absolute"}, {"kind": "loose", "eb": 1}, {"kind": "absolute", "eb": 1, "x": 2}]


@pytest.mark.parametrize("described", WRONG)
def test_what_describes_no_bound_is_refused(described):
    with pytest.raises(WorkbenchError, match="a bound must have a kind"):
        bound_from_dict(described)


def test_descriptions_are_sentences():
    assert Absolute(0.001).describe() == "every value within 0.001 of the original"
    assert Relative(0.01).describe() == "every value within 0.01 of the range of the values"
    assert PointwiseRelative(0.5).describe() == "every value within 0.5 of its own size"
    assert {kind(0).describe() for kind in BOUNDS} == {"every value exactly as it was, bit for bit"}


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=20), st.floats(0, 10))
def test_a_relative_bound_is_a_share_of_the_range(values, eb):
    array = np.array(values)
    assert Relative(eb).limit(array) == Limit("absolute", eb * (max(values) - min(values)))
    assert Absolute(eb).limit(array) == Limit("absolute", eb)


def test_the_range_is_that_of_finite_valid_values():
    values = np.array([[np.nan, 1.0, np.inf], [3.0, -np.inf, 1e35]], np.float32)
    valid = values < 1e30
    assert Relative(0.25).limit(values, valid) == Limit("absolute", 0.5)
    assert Relative(0.25).limit(values).value == pytest.approx(0.25e35)
    assert Relative(0.25).limit(np.full(3, np.nan)) == Limit("absolute", 0.0)
    assert Relative(0.25).limit(values, np.zeros(values.shape, bool)) == Limit("absolute", 0.0)


def test_a_constant_array_has_no_room():
    assert Relative(0.5).limit(np.full(10, 7.5)) == Limit("absolute", 0.0)


def test_a_range_beyond_float64_is_no_obstacle():
    values = np.array([-1e308, 1e308])
    assert Relative(0.25).limit(values) == Limit("absolute", 0.5e308)
    assert Relative(3).limit(values) == Limit("absolute", sys.float_info.max)
    narrow = np.array([-3e38, 3e38], np.float32)
    assert Relative(0.5).limit(narrow) == Limit("absolute", 0.5 * 2 * float(np.float32(3e38)))


def test_a_pointwise_bound_is_itself_whatever_the_values():
    assert PointwiseRelative(0.1).limit(np.array([np.nan])) == Limit("relative", 0.1)


def test_the_base_class_promises_nothing():
    with pytest.raises(TypeError, match="abstract"):
        Bound(0.1)


def test_a_share_of_a_range_of_integers_may_be_beyond_all_floats():
    values = np.array([-(2**62), 2**62])
    assert Relative(1e300).limit(values).value == sys.float_info.max
