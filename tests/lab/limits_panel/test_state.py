"""What may be chosen, where to begin, and what is no field."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from lab.limits_panel.samples import ALL, sample
from workbench.lab.bounds_panel import exponents
from workbench.lab.limits_panel import LimitsState, require_field, tile_sides
from workbench.lab.limits_panel.tile_slider import TileSlider

WRONG = [
    ({"eb": 0.0}, "the error bound must be a positive number; 0 is not one"),
    ({"eb": math.nan}, "the error bound must be a positive number; nan is not one"),
    ({"eb": "a lot"}, "the error bound must be a positive number; 'a lot' is not one"),
    ({"eb": 1e-200}, "the square of the error bound must be a positive number; got 1e-200"),
    ({"eb": 1e200}, "the square of the error bound must be a positive number; got 1e\\+200"),
    ({"tile": 0}, "the side of a tile must be a whole number, at least 1; 0 is not one"),
    ({"tile": 8.0}, "the side of a tile must be a whole number"),
    ({"eps": 0.7}, "the chance of failure ε must lie in \\(0, 0.5\\]; got 0.7"),
    ({"eps": 0.0}, "the chance of failure ε must be a positive number; 0 is not one"),
    ({"regions": 0}, "the number of regions, unless 'auto', must be a whole number, at least 1; 0 is not one"),
    ({"regions": "many"}, "the number of regions, unless 'auto', .* at least 1; 'many' is not one"),
    ({"picture": "map"}, "the picture must be one of field, regions, new information; got 'map'"),
    ({"axis": -1}, "the axis must be a whole number, at least 0"),
    ({"index": True}, "the slice must be a whole number"),
    ({"window": (1, 0, 0, 1)}, "window must be finite, with left < right and bottom < top"),
]


@pytest.mark.parametrize(("fields", "complaint"), WRONG)
def test_what_cannot_be_is_refused_in_a_sentence(fields, complaint):
    with pytest.raises(wb.WorkbenchError, match=complaint):
        LimitsState(**{"eb": 0.1, **fields})


@given(st.floats(1e-150, 1e150), st.floats(1e-300, 0.5))
def test_nothing_is_clamped(eb, eps):
    state = LimitsState(eb, eps=eps)
    assert (state.eb, state.eps) == (eb, eps)


@pytest.mark.parametrize("name", ALL)
def test_there_is_a_beginning_for_all_fields(name):
    field = sample(name)
    state = LimitsState.for_(field)
    low, high = exponents(field, "absolute")
    assert low < math.log10(state.eb) < high
    assert 0.01 < state.eb / field.values[field.valid].std() < 0.1


def test_a_panel_opens_with_the_choices_that_it_is_given():
    field = wb.Field(np.random.default_rng(1).normal(size=(8, 10, 12)))
    state = LimitsState.for_(field, eb=0.07, tile=8, axis=2)
    assert (state.eb, state.tile, state.index) == (0.07, 8, 6)
    with pytest.raises(wb.WorkbenchError, match="the slice must be from 0 to 7; got 8"):
        LimitsState.for_(field, index=8).check(field)
    with pytest.raises(wb.WorkbenchError, match=r"a limits panel has no choice 'tiles' \(did you mean tile"):
        LimitsState.for_(field, tiles=8)


def test_tiles_that_make_no_difference_are_not_offered():
    assert tile_sides(wb.Field(np.zeros(4))) == []
    assert tile_sides(wb.Field(np.zeros((5, 3)))) == [4]
    assert tile_sides(wb.Field(np.zeros(10_000)))[-1] == 256


@pytest.mark.parametrize(("data", "complaint"), [
    ("snapshot.hdf5", "data must be a Field or a NumPy array; got str: open files with wb.open"),
    (wb.Particles(np.zeros((3, 3)) + 1.0), "the limits panel needs a field; got Particles.* use wb.lab.bounds"),
    (np.full((16, 16), 2.5), "a field must vary to have a limit; all values are 2.5 and need 0 bits each"),
    (np.full((16, 16), np.nan), "at least 64 values, finite and not masked.*; got 0"),
    (1e200 * np.arange(100.0), r"values must span between 1e-100 and 1e\+100.*; got 9.9e\+201: multiply the field"),
    (np.arange(100), r"wb.lab.limits needs floating-point values; .*: convert with wb.Field\(field.values.astype"),
    (np.arange(30.0), "at least 64 values.*; got 30"),
    (wb.Field(np.arange(100.0), mask=np.arange(100) > 10), "at least 64 values.*; got 11"),
])
def test_what_has_no_limit_is_refused_in_a_sentence(data, complaint):
    with pytest.raises(wb.WorkbenchError, match=complaint):
        require_field(data)


def test_the_slider_of_tiles_shows_what_it_is_told_and_asks_for_what_is_chosen():
    asked = []
    slider = TileSlider("tile", "tiles of", [4, 8])
    slider.connect(lambda **fields: asked.append(fields))
    slider.show(LimitsState(0.1, tile=6))   # which is between its steps
    assert slider.content["texts"] == ["4", "6", "8", "whole field"]
    assert slider.content["shown"]["text"] == "6"
    slider.show(LimitsState(0.1))
    assert slider.content["shown"]["text"] == "whole field"
    assert asked == []
    slider.moved(2)
    assert asked == [{"tile": 8}]
