from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from workbench.errors import WorkbenchError
from workbench.lab import colours
from workbench.lab.canvas import Canvas
from workbench.lab.description import Axes, Marks, Picture, Reading
from workbench.lab.page import Page
from workbench.lab.part import Part


def picture(value: int = 0, marks: tuple[Marks, ...] = ()) -> Picture:
    return Picture(f"shade {value}", np.full((4, 8), value, np.uint8), (0, 8, 0, 4), marks=marks)


class Screen:
    """A page that notes which fields of a part are sent, and what is told."""

    def __init__(self, part: Part) -> None:
        self.page = Page({"part": part})
        self.fields: list[str] = []
        self.told: list[Any] = []
        self.page.send = self._note   # type: ignore[method-assign]

    def _note(self, content: Any, buffers: Any = None) -> None:
        self.fields += content.get("parts", {}).get("part", {})
        self.told += [content["message"]] if "message" in content else []


def test_pixels_arrive_row_by_row_from_the_top() -> None:
    pixels = np.arange(32, dtype=np.uint8).reshape(8, 4).T   # not contiguous
    canvas = Canvas()
    canvas.show([Picture("waves", pixels, (0, 8, 0, 4))])
    assert canvas.content["pane_0"]["pixels"] == bytes(pixels.ravel())
    assert (canvas.content["pane_0"]["width"], canvas.content["pane_0"]["height"]) == (8, 4)


def test_only_what_changed_is_sent() -> None:
    canvas = Canvas()
    original = picture(1)
    canvas.show([original, picture(2)], home=(0, 8, 0, 4))
    screen = Screen(canvas)
    canvas.show([original, picture(3)], home=(0, 8, 0, 4))
    assert screen.fields == ["pane_1"]


def test_new_marks_on_the_same_pixels_leave_the_pixels_alone() -> None:
    canvas = Canvas()
    plain = picture(1)
    canvas.show([plain])
    screen = Screen(canvas)
    canvas.show([dataclasses.replace(plain, marks=(Marks("points", [[1, 2]], "#fff", "here", ids=np.array([5])),))])
    assert screen.fields == ["marks_0"]
    sent = canvas.content["marks_0"][0]
    assert np.frombuffer(sent["places"], "<f4").tolist() == [1, 2]
    assert np.frombuffer(sent["ids"], "<i4").tolist() == [5]


def test_marks_have_names_and_dashes() -> None:
    canvas = Canvas()
    canvas.show([picture(1, (
        Marks("circles", [[1, 2, 3]], "#fff", "halo", ids=np.array([5]), titles=["halo 1: 40 members"]),
        Marks("lines", [[1, 2, 3, 4]], "#fff", "link", dashed=True),
        Marks("lines", [[1, 2, 3, 4]], "#fff", "link", dash="2 3"),
    ))])
    assert [mark["dash"] for mark in canvas.content["marks_0"]] == ["", "5 4", "2 3"]
    assert canvas.content["marks_0"][0]["titles"] == ["halo 1: 40 members"]
    assert "titles" not in canvas.content["marks_0"][1]


def test_a_new_axis_or_palette_is_sent_with_its_pixels() -> None:
    canvas = Canvas()
    plain = picture(1)
    canvas.show([plain])
    screen = Screen(canvas)
    for change in ({"axes": Axes("x", "y", "nm")}, {"palette": ("#ff0000",)}, {"quantity": "density"}):
        canvas.show([dataclasses.replace(plain, **change)])
    assert screen.fields == ["pane_0"] * 3
    assert canvas.content["pane_0"]["quantity"] == "density"


def test_levels_of_16_bits_are_sent_low_byte_first() -> None:
    canvas = Canvas()
    canvas.show([Picture("fine", np.array([[1, 258]], np.uint16), (0, 2, 0, 1))])
    assert canvas.content["pane_0"]["pixels"] == bytes([1, 0, 2, 1])
    assert canvas.content["pane_0"]["deep"]
    canvas.show([picture(1)])
    assert not canvas.content["pane_0"]["deep"]


def test_the_window_is_that_of_the_state_or_everything() -> None:
    canvas = Canvas()
    canvas.show([picture(1)], home=(0, 8, 0, 4), window=(1, 2, 1, 2))
    assert canvas.content["window"] == [1.0, 2.0, 1.0, 2.0]
    canvas.show([picture(3)], home=(0, 9, 0, 4))
    assert (canvas.content["home"], canvas.content["window"]) == ([0.0, 9.0, 0.0, 4.0], [])


def test_a_place_is_answered_by_the_reader() -> None:
    canvas = Canvas()
    screen = Screen(canvas)
    question = {"does": "read", "token": "a:1", "picture": 1, "x": 2.5, "y": 3}
    canvas.heard(question)
    canvas.reader = lambda picture, x, y: Reading((f"{picture}", f"{x}"), f"at {y}")
    canvas.heard(question)
    canvas.heard({"something": "else"})
    assert screen.told == [{"token": "a:1", "values": ("1", "2.5"), "place": "at 3.0", "lines": ()}]


def test_what_the_reader_does_is_asked_of_the_panel() -> None:
    canvas, asked = Canvas(), []
    canvas.zoom = canvas.fit = canvas.turn_to = asked.append   # type: ignore[assignment]
    canvas.pick = lambda label, chosen: asked.append((label, chosen))   # type: ignore[assignment]
    canvas.heard({"does": "zoom", "window": [0, 1, 0, 2]})
    canvas.heard({"does": "zoom", "window": []})
    canvas.heard({"does": "fit", "pixels": 512})
    canvas.heard({"does": "pick", "label": "halo", "id": 7})
    canvas.heard({"does": "turn", "picture": 1})
    assert asked == [(0, 1, 0, 2), None, 512, ("halo", 7), 1]


def test_panes_that_are_no_more_are_taken_away() -> None:
    canvas = Canvas()
    canvas.show([picture(1), picture(2), picture(3)])
    canvas.show([picture(1)])
    assert (canvas.content["pane_1"], canvas.content["pane_2"]) == ({}, {})


@pytest.mark.parametrize("name", list(colours.ANCHORS))
def test_colour_maps_change_evenly_in_lightness(name: str) -> None:
    red, green, blue = (colours.table(name).astype(float) / 255).T ** 2.2
    lightness = np.cbrt(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    halves = [np.diff(lightness)] if name != "difference" else [np.diff(lightness[:128]), -np.diff(lightness[128:])]
    for steps in halves:
        assert steps.min() > -0.004
        assert steps.sum() > 0.3


def test_masked_cells_have_a_colour_of_their_own() -> None:
    shown = Picture("masked", np.array([[0, 1, 255]], np.uint8), (0, 3, 0, 1), empty=True)
    assert colours.coloured(shown)[0, 0].tolist() == list(colours.NOTHING)
    assert colours.coloured(shown)[0, 2].tolist() == colours.table("values")[255].tolist()


def test_16_bits_and_bytes_have_the_same_colours() -> None:
    coarse = np.arange(256, dtype=np.uint8)[None]
    fine = np.where(coarse == 0, 0, np.rint((coarse.astype(float) - 1) / 254 * 65534 + 1)).astype(np.uint16)
    one, other = (Picture("x", pixels, (0, 1, 0, 1), empty=True) for pixels in (coarse, fine))
    assert np.abs(colours.coloured(one).astype(int) - colours.coloured(other)).max() <= 3
    least = dataclasses.replace(other, pixels=np.array([[0, 1]], np.uint16))
    assert colours.coloured(least)[0, 0].tolist() == list(colours.NOTHING)
    assert colours.coloured(least)[0, 1].tolist() != list(colours.NOTHING)


def test_a_palette_colours_whole_numbers() -> None:
    pixels = np.array([[1, 128, 255]], np.uint8)
    shown = Picture("regions", pixels, (0, 3, 0, 1), low=1, high=3, palette=("#ff0000", "#00ff00", "#0000ff"))
    assert colours.coloured(shown)[0].tolist() == [[255, 0, 0], [0, 255, 0], [0, 0, 255]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Picture("x", np.zeros((2, 2)), (0, 1, 0, 1)), "pixels must be bytes or 16-bit"),
        (lambda: Marks("points", [[0, 0]], "#fff", titles=["a", "b"]), "titles must be one for each of the 1 points"),
        (lambda: Picture("x", np.zeros((2, 2), np.uint8), (0, 1, 0, 1), "jet"), "colours must be one of"),
        (lambda: Marks("stars", [[0, 0]], "#fff"), "shape must be one of"),
        (lambda: Marks("points", [[0, 0]], "#fff", ids=np.array([1, 2])), "one for each of the 1 points; got 2"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: object, message: str) -> None:
    with pytest.raises(WorkbenchError, match=message):
        make()   # type: ignore[operator]
