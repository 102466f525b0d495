from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from workbench.lab.controls import Choice, LogSlider, Number, Steps, Toggle


def connected(control: Any) -> tuple[Any, list[dict[str, Any]]]:
    asked: list[dict[str, Any]] = []
    control.connect(lambda **fields: asked.append(fields))
    return control, asked


@pytest.mark.parametrize("value", [1e-30, 3.14159e-9, 1e-3, 1.0, 12345.678, 1e12])
def test_the_log_slider_shows_any_value_and_asks_for_nothing(value: float) -> None:
    slider, asked = connected(LogSlider("eb", "bound", 1e-3, 1.0))
    slider.show(SimpleNamespace(eb=value))
    assert asked == []
    assert float(slider.entry.value) == pytest.approx(value, rel=1e-5)
    assert 10**slider.slider.value == pytest.approx(value, rel=0.13)
    assert slider.slider.min <= slider.slider.value <= slider.slider.max


def test_the_log_slider_asks_for_round_numbers() -> None:
    slider, asked = connected(LogSlider("eb", "bound", 1e-3, 1.0))
    slider.slider.value = -1.05
    assert asked == [{"eb": 0.0891}]


def test_what_is_typed_is_taken_as_it_is() -> None:
    slider, asked = connected(LogSlider("eb", "bound", 1e-3, 1.0))
    slider.entry.value = "1.23456789e-17"
    assert asked == [{"eb": 1.23456789e-17}]


def test_showing_a_value_that_is_between_the_steps_does_not_move_it() -> None:
    slider, asked = connected(LogSlider("eb", "bound", 1e-3, 1.0))
    state = SimpleNamespace(eb=0.0123456)
    slider.show(state)
    slider.show(state)
    assert asked == []
    assert slider.entry.value == "0.0123456"


def test_nonsense_is_asked_for_as_nan_so_that_the_state_refuses_it() -> None:
    for control in (LogSlider("eb", "bound", 1e-3, 1.0), Number("eb", "bound")):
        control, asked = connected(control)
        entry = control.entry if isinstance(control, LogSlider) else control.widget
        entry.value = "a lot"
        assert asked[0]["eb"] != asked[0]["eb"]


def test_a_choice_shows_values_that_were_not_among_its_options() -> None:
    choice, asked = connected(Choice("codec", "codec", {"SZ3": "sz3", "ZFP": "zfp"}))
    choice.show(SimpleNamespace(codec="mine"))
    assert asked == []
    assert choice.widget.value == "mine"
    choice.widget.value = "zfp"
    assert asked == [{"codec": "zfp"}]


def test_steps_and_toggles_ask_for_their_values() -> None:
    steps, asked_steps = connected(Steps("index", "slice", 0, 9))
    steps.widget.value = 4
    toggle, asked_toggle = connected(Toggle("logarithmic", "log scale"))
    toggle.widget.value = True
    number, asked_number = connected(Number("members", "members", whole=True))
    number.widget.value = "25"
    assert [asked_steps, asked_toggle, asked_number] == [[{"index": 4}], [{"logarithmic": True}], [{"members": 25}]]


def test_steps_without_a_choice_are_disabled() -> None:
    steps, _ = connected(Steps("index", "slice", 0, 0))
    assert steps.widget.disabled
    steps.reach(5)
    assert not steps.widget.disabled
