"""Ticks: few, round, inside the axis, and told apart by their texts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.charts.description import Axis, limits
from workbench.charts.ticks import MOST, texts, ticks

SIZES = st.floats(1e-200, 1e200)
RAISED = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
NUMBERS = SIZES | SIZES.map(lambda size: -size) | st.just(0.0)


@given(st.lists(NUMBERS, min_size=1, max_size=8), st.booleans())
def test_an_axis_keeps_order_and_has_a_handful_of_ticks(values: list[float], logarithmic: bool) -> None:
    axis = Axis.around("size", values, logarithmic)
    places = axis.share(sorted(value for value in values if value > 0 or not logarithmic))
    assert (np.diff(places) >= 0).all()
    assert ((places >= 0) & (places <= 1)).all()
    marks = ticks(axis.low, axis.high, logarithmic)
    assert marks == sorted(marks)
    assert len(marks) <= MOST + 1
    assert ((axis.share(marks) > -1e-9) & (axis.share(marks) < 1 + 1e-9)).all()
    if axis.high - axis.low > 1e-6 * max(abs(axis.low), abs(axis.high)):
        assert len(marks) >= 2
        assert len(set(texts(marks))) == len(marks)


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e6))
def test_texts_are_the_numbers(low: float, span: float) -> None:
    marks = ticks(low, low + span)
    for mark, text in zip(marks, texts(marks), strict=True):
        plain = text.replace("\N{MINUS SIGN}", "-")
        if set(text) & set(RAISED):
            factor, _, power = plain.translate(dict(zip(map(ord, RAISED), "-0123456789", strict=True))).rpartition("10")
            plain = f"{ {'': '1', '-': '-1'}.get(factor, factor.removesuffix(' · ')) }e{power}"
        assert float(plain) == pytest.approx(mark, rel=1e-12, abs=1e-9 * span)


@pytest.mark.parametrize(("low", "high", "logarithmic", "expected"), [
    (0.0, 0.6, False, ["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6"]),
    (-3, 12, False, ["0", "5", "10"]),
    (0.02, 4.0, True, ["0.03", "0.1", "0.3", "1", "3"]),
    (3e-6, 0.2, True, ["10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹"]),
    (1e-4, 900.0, True, ["0.0001", "0.01", "1", "100"]),
    (1e6, 3e6, False, ["10⁶", "1.5 · 10⁶", "2 · 10⁶", "2.5 · 10⁶", "3 · 10⁶"]),
])
def test_ticks_are_round(low: float, high: float, logarithmic: bool, expected: list[str]) -> None:
    assert texts(ticks(low, high, logarithmic)) == expected


@pytest.mark.parametrize(("values", "expected"), [
    ([1.0, 29.0], False), ([1.0, 30.0], True), ([1e-6, 1e-2], True), ([0.0, 1e6], False), ([-1.0, 100.0], False),
    ([5.0], False), ([], False),
])
def test_an_axis_is_logarithmic_when_values_span_much(values: list[float], expected: bool) -> None:
    assert Axis.around("size", values, None).logarithmic is expected


def test_limits_show_all_that_has_a_place() -> None:
    assert limits([1, 3, np.inf, np.nan], room=0.5) == (0, 4)
    low, high = limits([0.0, 1e-3, 10.0], logarithmic=True)
    assert 0 < low < 1e-3 < 10 < high
    assert all(map(math.isfinite, limits([-1.7e308, 1.7e308])))
    assert all(map(math.isfinite, limits([5e-324, 1.7e308], logarithmic=True)))
