"""What may be chosen, and where to begin."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from lab.bounds_panel.samples import ALL, FIELDS, PARTICLES, sample
from workbench.lab.bounds_panel import BoundsState, applicable, exponents, other_questions
from workbench.lab.bounds_panel.state import nice

WRONG = [
    ({"codec": "sz9"}, "codec must be one of"),
    ({"kind": "loose"}, "the kind of bound must be one of absolute, relative, pointwise; got 'loose'"),
    ({"eb": 0.0}, "must be a positive number; 0 is not one"),
    ({"eb": -1.0}, "must be a positive number"),
    ({"eb": math.nan}, "must be a positive number; nan is not one"),
    ({"eb": math.inf}, "must be a positive number"),
    ({"eb": True}, "must be a positive number"),
    ({"eb": "a lot"}, "the error bound must be a positive number; 'a lot' is not one"),
    ({"kind": "pointwise", "eb": 1.0}, "a pointwise relative error bound must be less than 1; got 1"),
    ({"order": "random"}, "the order must be one of keep, free; got 'random'"),
    ({"axis": -1}, "the axis must be a whole number, at least 0; -1 is not one"),
    ({"index": 1.5}, "the slice must be a whole number, at least 0; 1.5 is not one"),
    ({"time": True}, "time must be a whole number"),
    ({"window": (0, 1)}, "window must be left, right, bottom and top"),
    ({"window": (1, 0, 0, 1)}, "window must be finite, with left < right and bottom < top"),
    ({"window": (0, 1, 0, math.inf)}, "window must be finite, with left < right and bottom < top"),
]


@pytest.mark.parametrize(("fields", "complaint"), WRONG)
def test_what_cannot_be_is_refused_in_a_sentence(fields, complaint):
    with pytest.raises(wb.WorkbenchError, match=complaint):
        BoundsState(**{"codec": "pcodec", **fields})


@pytest.mark.parametrize("name", ALL)
def test_there_is_a_beginning_for_all_data(name):
    data = sample(name)
    state = BoundsState.for_(data)
    low, high = exponents(data, state.kind)
    assert low < math.log10(state.eb) < high
    assert state.eb == nice(state.eb)
    assert state.chosen.id in [codec.id for codec in applicable(data)]


def test_fields_begin_with_the_smallest_codec_and_large_ones_with_a_quick_one():
    assert BoundsState.for_(sample("cube")).codec == "interpolation"
    large = wb.Field(np.zeros((2**11, 2**12), np.float32))
    assert BoundsState.for_(large).codec == ("sz3" if "sz3" in wb.codecs.available() else "interpolation")


@given(st.floats(1e-300, 1e300))
def test_a_bound_is_never_clamped(eb):
    assert BoundsState("pcodec", eb=eb).bound == wb.Absolute(eb)


@given(st.floats(1e-290, 1e290))
def test_nice_numbers_are_near(value):
    assert 0.6 < nice(value) / value < 1.7
    assert f"{nice(value):e}"[0] in "125"


@pytest.mark.parametrize("values", [[0.0], [-1e308, 1e308], [5e-324, 0.0], [np.nan], [1e-40, 2e-40]])
def test_extreme_values_have_a_slider_too(values):
    field = wb.Field(np.array(values))
    low, high = exponents(field, "absolute")
    assert low < high
    assert BoundsState.for_(field).eb > 0


def test_another_kind_is_about_as_strict_and_never_refused():
    field = wb.Field(np.array([0.0, 50.0]))
    start = BoundsState("pcodec", "absolute", eb=0.5)
    assert start.with_kind("relative", field).eb == 0.01
    assert start.with_kind("relative", field).with_kind("absolute", field) == start
    assert start.with_kind("pointwise", field).eb == 0.01
    assert dataclasses.replace(start, eb=1e6).with_kind("pointwise", field).eb == 0.5
    with pytest.raises(wb.WorkbenchError, match="the kind of bound must be one of"):
        start.with_kind("other", field)


def test_looking_elsewhere_is_the_same_question():
    state = BoundsState("pcodec")
    elsewhere = dataclasses.replace(state, axis=1, index=2, time=1, window=[0, 1, 0, 1], logarithmic=True)
    assert elsewhere.question == state.question
    assert elsewhere.window == (0.0, 1.0, 0.0, 1.0)
    for other in ({"eb": 0.5}, {"codec": "zfp"}, {"order": "free"}, {"kind": "relative"},
                  {"codec": wb.codecs.get("pcodec", level=2)}):
        assert dataclasses.replace(state, **other).question != state.question


def test_a_codec_with_options_is_compared_with_the_same_without():
    field = wb.Field(np.arange(100.0).reshape(10, 10))
    ids = {}
    for codec in ("pcodec", wb.codecs.get("pcodec", level=2)):
        ids[codec] = [each.codec.id for each in other_questions(field, BoundsState.for_(field, codec=codec))]
    assert ids[codec].count("pcodec") == 1 > ids["pcodec"].count("pcodec")


@pytest.mark.parametrize("name", ALL)
def test_all_other_codecs_are_to_be_compared_with(name):
    data = sample(name)
    state = BoundsState.for_(data)
    asked = other_questions(data, state)
    ids = [question.codec.id for question in asked]
    assert len(set(ids)) == len(ids) >= 1
    assert state.codec not in ids
    assert all(question.bound == state.bound and question.order == state.order for question in asked)
    assert ("draco" in ids) == (name in PARTICLES and "draco" in wb.codecs.available())
    assert ("pcodec" in ids) == (state.codec != "pcodec")
    assert name in FIELDS or "lattice" in [*ids, state.codec]


def test_codecs_that_cannot_run_here_are_left_out(monkeypatch):
    monkeypatch.setattr("workbench.codecs.available", lambda: ["lattice", "pcodec", "prequantised"])
    data = sample("plane")
    assert BoundsState.for_(data).codec == "prequantised"
    assert [codec.id for codec in applicable(data)] == ["pcodec", "prequantised"]


def test_a_panel_opens_with_the_choices_that_it_is_given():
    cube = wb.Field(np.arange(4.0 * 6 * 8).reshape(4, 6, 8))
    state = BoundsState.for_(cube, codec="zfp", eb=0.07, axis=2)
    assert (state.codec, state.eb, state.index) == ("zfp", 0.07, 4)
    assert BoundsState.for_(cube, index=1).index == 1
    assert BoundsState.for_(cube, kind="relative") == BoundsState.for_(cube).with_kind("relative", cube)
    with pytest.raises(wb.WorkbenchError, match=r"no choice 'codecs' \(did you mean codec\?\); its choices are axis, "):
        BoundsState.for_(cube, codecs="zfp")


@pytest.mark.parametrize(("data", "fields", "complaint"), [
    (np.zeros((4, 6, 8)) + 1, {"axis": 3}, "the axis must be from 0 to 2; got 3"),
    (np.zeros((4, 6, 8)) + 1, {"axis": 1, "index": 6}, "the slice must be from 0 to 5; got 6"),
    (np.zeros((2, 4, 6, 8)) + 1, {"time": 2}, "the time must be from 0 to 1; got 2"),
])
def test_slices_that_the_data_do_not_have_are_refused(data, fields, complaint):
    field = wb.Field(data)
    with pytest.raises(wb.WorkbenchError, match=complaint):
        BoundsState.for_(field, **fields).check(field)
