"""Every panel takes the values that it is given, shows them, computes them once, and can be used by everybody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import expect

from browser.accessibility import serious_findings
from browser.conftest import Opened
from browser.notebook_page import NotebookPage, eventually
from browser.panels import enter, entry, idle, opened_panel, prepared, unfold

pytestmark = pytest.mark.long
DATA = """import workbench as wb
field = wb.synthetic.gaussian_field((64, 64), seed=3)
snapshot = wb.synthetic.cosmic_web(n=24)"""
LATE = 800   # milliseconds in which messages that are late arrive


@dataclass(frozen=True)
class Control:
    """A logarithmic control: its field, a stage that depends on it, and values that are on no position of its slider."""

    label: str
    field: str
    stage: str
    opened: float
    typed: str
    changed: float
    loop: tuple[float, ...]


BOUNDS = (0.5, 0.3, 0.07, 0.013)
PANELS = {
    "bounds": ("field", "spectra", [Control("error bound", "eb", "trial", 0.009, "0.003", 0.0123, BOUNDS)]),
    "clusters": ("snapshot", "breakage", [
        Control("error bound ξ", "bound", "breakage", 0.009, "0.003", 0.0123, BOUNDS),
        Control("linking length b", "linking_length", "halos", 0.19, "0.173", 0.23, (0.3, 0.27, 0.21)),
    ]),
    "limits": ("field", "news", [Control("error bound", "eb", "figures", 0.009, "0.003", 0.0123, BOUNDS)]),
}


@dataclass(frozen=True)
class Shown:
    """A panel on the page."""

    name: str
    page: NotebookPage
    last: str
    controls: list[Control]

    def runs(self, stage: str) -> int:
        """How often a stage has run."""
        return int(self.page.python(f"panel._engine.runs[{stage!r}]"))

    def settles_at(self, control: Control, value: float) -> None:
        """Wait until the panel has computed this value, and shows it."""
        eventually(lambda: self.page.python(f"panel.state.{control.field}") == repr(value))
        idle(self.page, self.last)
        expect(entry(self.page, control.field)).to_have_value(f"{value:g}")
        expect(self.page.slider(control.label)).to_have_attribute("aria-valuetext", f"{value:g}{self.unit(control)}")

    def unit(self, control: Control) -> str:
        """What is read aloud after the value."""
        return " mean spacings" if control.field == "linking_length" else ""


@pytest.fixture(scope="module")
def page(shared: Opened) -> Opened:
    return prepared(shared, "exact", 900, DATA)


@pytest.fixture(scope="module", params=["bounds", "clusters", pytest.param("limits", marks=pytest.mark.long)])
def shown(page: Opened, request: pytest.FixtureRequest) -> Iterator[Shown]:
    data, last, controls = PANELS[request.param]
    choices = ", ".join(f"{control.field}={control.opened}" for control in controls)
    with opened_panel(page, f"wb.lab.{request.param}({data}, {choices})", last, seen=".wb-picture:visible") as notebook:
        if notebook.page.locator(".wb-panel .wb-more").count():
            unfold(notebook)
        yield Shown(request.param, notebook, last, controls)


def test_values_are_taken_as_they_are_shown_as_they_are_and_computed_once(shown: Shown) -> None:
    panel = shown.page
    panel.page.wait_for_timeout(LATE)
    idle(panel, shown.last)
    assert panel.python("{*panel._engine.runs.values()}") == "{1}"   # each stage once
    for control in shown.controls:
        shown.settles_at(control, control.opened)
        before = shown.runs(control.stage)
        enter(panel, control.field, control.typed)
        shown.settles_at(control, float(control.typed))
        panel.python(f"panel.change({control.field}={control.changed})")
        shown.settles_at(control, control.changed)
        panel.python(f"[(panel.change({control.field}=value), panel.wait()) for value in {control.loop}]")
        shown.settles_at(control, control.loop[-1])
        panel.page.wait_for_timeout(LATE)
        shown.settles_at(control, control.loop[-1])
        assert shown.runs(control.stage) - before == 2 + len(control.loop)


def test_a_drag_ends_where_it_ends_and_is_undone_as_one(shown: Shown) -> None:
    panel, control = shown.page, shown.controls[0]
    slider, begun = panel.slider(control.label), float(panel.python(f"panel.state.{control.field}"))
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    panel.page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + box["height"] / 2)
    panel.page.mouse.down()
    panel.page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + box["height"] / 2, steps=20)
    panel.page.mouse.up()
    ended = float(entry(panel, control.field).input_value())
    assert ended != begun
    shown.settles_at(control, ended)
    panel.page.wait_for_timeout(LATE)
    shown.settles_at(control, ended)
    cells = panel.page.locator(".jp-Notebook .jp-Cell").count()
    slider.press("b")   # a key of the notebook's, which adds a cell
    slider.press("Control+z")
    shown.settles_at(control, begun)
    slider.press("Control+Shift+z")
    shown.settles_at(control, ended)
    panel.page.get_by_role("button", name="undo").click()
    shown.settles_at(control, begun)
    assert panel.page.locator(".jp-Notebook .jp-Cell").count() == cells


def test_what_is_absurd_is_taken_and_said_and_nonsense_stays_to_be_corrected(shown: Shown) -> None:
    panel, control = shown.page, shown.controls[0]
    ends = "slider => [slider.min, slider.max].join()"
    before = panel.slider(control.label).evaluate(ends)
    enter(panel, control.field, "1e+09")
    shown.settles_at(control, 1e9)
    expect(panel.page.get_by_role("status").filter(has_text="1e+09, is larger than")).to_be_visible()
    assert panel.slider(control.label).evaluate(ends) == before
    enter(panel, control.field, "abc")
    expect(panel.page.get_by_role("alert")).to_contain_text("must be a positive number; 'abc' is not one")
    expect(entry(panel, control.field)).to_have_attribute("aria-invalid", "true")
    panel.portrait(f"lab-{shown.name}-refused")
    entry(panel, control.field).press("Escape")
    shown.settles_at(control, 1e9)
    expect(panel.page.get_by_role("alert")).to_have_count(0)
    enter(panel, control.field, "0.02")
    shown.settles_at(control, 0.02)


@pytest.mark.long
def test_nothing_keeps_people_out_in_either_theme(shown: Shown) -> None:
    panel = shown.page
    for drawer in panel.page.locator(".wb-drawer > summary").all():
        drawer.click()
    for dark in (False, True):
        panel.dark(dark)
        panel.page.wait_for_timeout(500)   # colours change slowly
        assert serious_findings(panel.page, ".wb-panel") == []
    panel.portrait(f"lab-{shown.name}-controls-dark")
    panel.dark(False)
