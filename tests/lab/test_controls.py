"""Controls show the state exactly, change nothing by showing it, and ask for what the user moved, chose or typed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from workbench.lab.controls import Choice, LogSlider, Number, Steps, Toggle
from workbench.lab.glossary import meaning


def connected(control: Any, taken: bool = True) -> tuple[Any, list[dict[str, Any]]]:
    asked: list[dict[str, Any]] = []

    def ask(**fields: Any) -> bool:
        asked.append(fields)
        return taken

    control.connect(ask)
    return control, asked


def send(control: Any, **content: Any) -> None:
    """What the browser sends."""
    control.heard({"gesture": 1, **content})


@pytest.mark.parametrize("value", [1e-300, 1e-30, 3.14159e-9, 1e-3, 0.003, 0.07, 0.0123, 0.1 + 0.2, 12345.678, 1e12, 1e300])
def test_a_log_slider_shows_any_value_as_it_is_and_asks_for_nothing(value: float) -> None:
    slider, asked = connected(LogSlider("eb", "bound", 1e-3, 1.0))
    slider.show(SimpleNamespace(eb=value))
    slider.show(SimpleNamespace(eb=value))
    assert asked == []
    assert float(slider.content["shown"]["text"]) == value
    nearest = float(slider.content["texts"][slider.content["shown"]["position"]])
    assert nearest == pytest.approx(min(max(value, 1e-3), 1.0), rel=0.06)


def test_the_ends_of_a_log_slider_stay_whatever_is_shown() -> None:
    slider, _ = connected(LogSlider("eb", "bound", 1e-3, 1.0))
    ends = slider.content["positions"], slider.content["texts"][0], slider.content["texts"][-1]
    assert ends == (61, "0.001", "1")
    for value in (1e9, 1e-30, 0.07):
        slider.show(SimpleNamespace(eb=value))
    assert (slider.content["positions"], slider.content["texts"][0], slider.content["texts"][-1]) == ends


def test_a_log_slider_asks_for_round_numbers_within_its_ends() -> None:
    slider, asked = connected(LogSlider("eps", "fails at most", 1e-3, 0.5))
    slider.moved(1)
    slider.moved(10**6)   # a request from before the ends changed
    assert asked == [{"eps": 0.00112}, {"eps": 0.447}]


def test_what_is_typed_is_asked_for_and_shown_as_it_was_typed() -> None:
    slider, asked = connected(LogSlider("eb", "bound", 1e-3, 1.0))
    slider.show(SimpleNamespace(eb=0.5))
    slider.typed("1.23456789e-17")
    assert asked == [{"eb": 1.23456789e-17}]
    slider.typed("0.0700")
    slider.show(SimpleNamespace(eb=0.07))
    assert slider.content["shown"]["text"] == "0.0700"
    slider.show(SimpleNamespace(eb=0.08))
    assert slider.content["shown"]["text"] == "0.08"


def test_an_answer_bears_the_number_of_the_request_and_a_change_from_code_that_of_the_last() -> None:
    slider, asked = connected(LogSlider("eb", "bound", 1e-3, 1.0))
    slider.show(SimpleNamespace(eb=0.5))
    send(slider, number=7, position=20)
    assert asked == [{"eb": 0.01}]
    assert slider.content["shown"]["answered"] == 7
    slider.show(SimpleNamespace(eb=0.3))
    assert (slider.content["shown"]["answered"], slider.content["shown"]["text"]) == (7, "0.3")


def test_a_refused_entry_stays_until_another_is_taken_or_it_is_forgiven() -> None:
    for control, shown in ((LogSlider("eb", "bound", 1e-3, 1.0), 0.5), (Number("eb", "members", whole=True), 20)):
        control, asked = connected(control, taken=False)
        control.show(SimpleNamespace(eb=shown))
        control.typed("a lot")
        assert asked == [{"eb": "a lot"}]   # which the state refuses in words
        control.show(SimpleNamespace(eb=shown))   # progress of something else
        assert (control.content["shown"]["refused"], control.content["shown"]["text"]) == ("a lot", f"{shown}")
        control.forgive()
        control.show(SimpleNamespace(eb=shown))
        assert control.content["shown"]["refused"] is None
        control.typed("a lot")
        control.connect(lambda **fields: True)
        control.typed("25")
        assert control.content["shown"]["refused"] is None


def test_a_choice_that_is_refused_goes_back() -> None:
    choice, _ = connected(Choice("codec", "codec", ["sz3", "zfp"]), taken=False)
    choice.show(SimpleNamespace(codec="sz3"))
    choice.moved(1)
    assert (choice.content["shown"]["position"], choice.content["shown"]["refused"]) == (0, None)


def test_a_choice_shows_values_that_were_not_among_its_options() -> None:
    choice, asked = connected(Choice("codec", "codec", {"SZ3": "sz3", "ZFP": "zfp"}))
    choice.show(SimpleNamespace(codec="mine"))
    assert asked == []
    assert choice.content["texts"][choice.content["shown"]["position"]] == "mine"
    choice.moved(1)
    assert asked == [{"codec": "zfp"}]


def test_steps_toggles_and_numbers_ask_for_their_values() -> None:
    steps, asked_steps = connected(Steps("index", "slice", 2, 9))
    steps.moved(4)
    steps.typed("5")
    toggle, asked_toggle = connected(Toggle("logarithmic", "log scale"))
    toggle.moved(1)
    number, asked_number = connected(Number("members", "members", whole=True))
    number.typed("25")
    number.typed("2.5")
    assert asked_steps == [{"index": 6}, {"index": 5}]
    assert asked_toggle == [{"logarithmic": True}]
    assert asked_number == [{"members": 25}, {"members": 2.5}]


def test_steps_reach_as_far_as_they_are_told() -> None:
    steps, _ = connected(Steps("index", "slice", 0, 0))
    assert steps.content["positions"] == 1
    steps.show(SimpleNamespace(index=0))
    steps.reach(5)
    assert steps.content["positions"] == 6


def test_the_unit_is_read_aloud_with_the_value() -> None:
    units = {"spacing": "mean spacings", "length": ""}
    slider, _ = connected(LogSlider("b", "b", 0.1, 1.0, spoken=lambda state: units[state.unit]))
    slider.show(SimpleNamespace(b=0.2, unit="spacing"))
    assert slider.content["shown"]["unit"] == "mean spacings"
    slider.show(SimpleNamespace(b=0.2, unit="length"))
    assert slider.content["shown"]["unit"] == ""


def test_the_tooltip_is_the_meaning_in_the_glossary() -> None:
    assert Choice("codec", "codec", ["sz3"]).content["meaning"] == meaning("codec")
    assert LogSlider("bound", "error bound ξ", 1e-3, 1.0, about="error bound").content["meaning"] == meaning("error bound")
    assert Steps("bits", "bits kept", 0, 23).content["meaning"] == ""
