from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from workbench.errors import WorkbenchError
from workbench.lab import colours
from workbench.lab.canvas import Canvas
from workbench.lab.description import Marks, Picture


def picture(value: int = 0, marks: tuple[Marks, ...] = ()) -> Picture:
    return Picture(f"shade {value}", np.full((4, 8), value, np.uint8), (0, 8, 0, 4), marks=marks)


def changes(canvas: Canvas) -> list[str]:
    seen: list[str] = []
    canvas.observe(lambda change: seen.append(change["name"]))
    return seen


def test_pixels_arrive_row_by_row_from_the_top() -> None:
    pixels = np.arange(32, dtype=np.uint8).reshape(8, 4).T   # not contiguous
    canvas = Canvas()
    canvas.show([Picture("waves", pixels, (0, 8, 0, 4))])
    assert canvas.pane_0["pixels"] == bytes(pixels.ravel())
    assert (canvas.pane_0["width"], canvas.pane_0["height"]) == (8, 4)


def test_only_what_changed_is_sent() -> None:
    canvas = Canvas()
    original = picture(1)
    canvas.show([original, picture(2)], home=(0, 8, 0, 4))
    seen = changes(canvas)
    canvas.show([original, picture(3)], home=(0, 8, 0, 4))
    assert seen == ["pane_1"]


def test_new_marks_on_the_same_pixels_leave_the_pixels_alone() -> None:
    canvas = Canvas()
    plain = picture(1)
    canvas.show([plain])
    seen = changes(canvas)
    canvas.show([dataclasses.replace(plain, marks=(Marks("points", [[1, 2]], "#fff", "here", ids=np.array([5])),))])
    assert seen == ["marks_0"]
    sent = canvas.marks_0[0]
    assert np.frombuffer(sent["places"], "<f4").tolist() == [1, 2]
    assert np.frombuffer(sent["ids"], "<i4").tolist() == [5]


def test_panes_that_are_no_more_are_taken_away() -> None:
    canvas = Canvas()
    canvas.show([picture(1), picture(2), picture(3)])
    canvas.show([picture(1)])
    assert (canvas.pane_1, canvas.pane_2) == ({}, {})


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Picture("x", np.zeros((2, 2)), (0, 1, 0, 1)), "pixels must be bytes"),
        (lambda: Picture("x", np.zeros((2, 2), np.uint8), (0, 1, 0, 1), "jet"), "colours must be one of"),
        (lambda: Marks("stars", [[0, 0]], "#fff"), "shape must be one of"),
        (lambda: Marks("points", [[0, 0]], "#fff", ids=np.array([1, 2])), "one for each of the 1 points; got 2"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: object, message: str) -> None:
    with pytest.raises(WorkbenchError, match=message):
        make()   # type: ignore[operator]
