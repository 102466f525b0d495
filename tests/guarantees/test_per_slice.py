"""The bound of slices itself: what it refuses, how it is written down, and the ends of slices that limits follow from."""

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from archive.slices import hard_fields
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees import Limit, SliceLimits
from workbench.guarantees.per_slice import stated_bound, stated_limit
from workbench.guarantees.slice_ends import SliceEnds


@pytest.mark.parametrize(("bound", "axis", "said"), [
    (0.1, 0, "the bound of slices must be"), ([], 0, "the bound of each slice must be .* got none"),
    ([wb.Absolute(1), 2], 0, "got 2"), (wb.PerSlice(wb.Absolute(1), 0), 0, "the bound of slices must be"),
    ("abc", 0, "the bound of slices must be"), (wb.Relative, 0, "the bound of slices must be"),
    (wb.Absolute(1), True, "axis must be"), (wb.Absolute(1), 1.5, "axis must be"), (wb.Absolute(1), None, "axis must be"),
])
def test_what_is_no_bound_of_slices_is_refused(bound, axis, said):
    with pytest.raises(WorkbenchError, match=said):
        wb.PerSlice(bound, axis)


def test_bounds_and_limits_are_described_and_pickled():
    several = [wb.Relative(0.1), wb.Absolute(2), wb.PointwiseRelative(0.5)]
    for bound in (wb.PerSlice(wb.Relative(0.1), 1), wb.PerSlice(several, 0), wb.PerSlice([wb.Exact()] * 2, 0)):
        assert stated_bound(bound.to_dict()) == bound == pickle.loads(pickle.dumps(bound))
        assert hash(bound) == hash(stated_bound(bound.to_dict()))
    limits = SliceLimits(1, (Limit("absolute", 0.5), Limit("relative", 0.25)))
    assert stated_limit(limits.to_dict()) == limits
    assert wb.PerSlice([wb.Exact()] * 2, 0).eb == 0
    assert "..." in repr(wb.PerSlice([wb.Absolute(1)] * 1000, 0))


def test_a_chunk_that_crosses_limits_is_not_accepted():
    limits = SliceLimits(0, (Limit("absolute", 1.0), Limit("absolute", 2.0)))
    for place in ((slice(0, 2),), (slice(5, 6),), ()):
        with pytest.raises(GuaranteeBroken, match="must hold slices of one limit"):
            limits.at(place)


@given(hard_fields(), st.integers(1, 4))
def test_ends_of_parts_join_to_those_of_all(given_field, parts_along):
    field, axis = given_field
    valid = np.isfinite(field.values) if field.mask is None else np.isfinite(field.values) & ~field.mask
    size = field.values.shape[axis]
    steps = [(start, slice(start, start + parts_along)) for start in range(0, size, parts_along)]
    cut = [(start, (slice(None),) * axis + (place,)) for start, place in steps]
    joined = SliceEnds.joined(size, [(start, SliceEnds.of(field.values[at], axis, valid[at])) for start, at in cut])
    whole = SliceEnds.of(field.values, axis, valid)
    for number in range(size):
        place = (slice(None),) * axis + (number,)
        kept = np.atleast_1d(field.values[place])[np.atleast_1d(valid[place])].tolist()
        assert whole.between(number) == joined.between(number) == ((min(kept), max(kept)) if kept else (0.0, 0.0))


def test_bounds_are_values():
    bound = wb.PerSlice(wb.Relative(0.1), 0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        bound.axis = 1
