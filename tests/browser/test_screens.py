"""Each panel on the screens that people have: the answer, the pictures and the first chart are visible at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from browser.accessibility import serious_findings
from browser.conftest import Opened
from browser.notebook_page import NotebookPage, eventually
from browser.panels import opened_panel, prepared

pytestmark = pytest.mark.long
DATA = """import workbench as wb
field = wb.synthetic.gaussian_field((128, 128), seed=3)
snapshot = wb.synthetic.cosmic_web(n=32, seed=1)
waves = wb.synthetic.gaussian_field((64, 64), seed=1)
pipeline = wb.propagation.derivatives(waves)
archive = wb.compress(wb.synthetic.gaussian_field((64, 64, 64), seed=1), wb.Relative(1e-3), "staged")"""
PANELS = {
    "bounds": ("wb.lab.bounds(field, codec='prequantised', eb=0.05)", "spectra"),
    "clusters": ("wb.lab.clusters(snapshot)", "breakage"),
    "limits": ("wb.lab.limits(field)", "news"),
    "propagation": ("wb.lab.propagation(pipeline, waves)", "trace"),
    "statistics": ("wb.lab.statistics(archive)", "histogram"),
}
SCREENS = [(1366, 768), (1920, 1080), (1000, 768)]
NARROW = 1100   # pixels of a window in which one closes JupyterLab's list of files
MOST_STOPS = 12
# What is to be seen without scrolling, with what is cut off at the bottom or at the right, in pixels.
HIDDEN = """panel => {
    const screen = panel.closest(".jp-WindowedPanel-outer").getBoundingClientRect();
    const [first] = panel.querySelectorAll(".wb-chart");
    const parts = {
        controls: panel.querySelector(".wb-unfolded"), answer: panel.querySelector(".wb-answer"),
        pictures: panel.querySelector(".wb-pictures"), chart: first,
    };
    return Object.entries(parts).map(([name, part]) => {
        const box = part?.getBoundingClientRect();
        const visible = box && box.width > 40 && box.height > 15;
        const out = () => Math.max(0, box.bottom - screen.bottom, box.right - screen.right, screen.top - box.top);
        return [name, visible ? out() : null];
    });
}"""
OVERLAPS = """panel => [...panel.querySelectorAll(".wb-part")].filter((part) => part.scrollWidth > part.clientWidth + 2
    && part.checkVisibility() && part.clientWidth && !part.querySelector("input, select"))
    .map((part) => part.textContent.slice(0, 60))"""
STOPS = """panel => {
    const stops = [...panel.querySelectorAll("button, input, select, summary, a[href], [tabindex]")].filter((each) =>
        each.tabIndex >= 0 && !each.disabled && each.checkVisibility() && !each.closest("[inert]"));
    const first = stops.findIndex((each) => each.closest(".wb-unfolded"));
    const picture = stops.findIndex((each) => each.matches(".wb-picture"));
    return picture - first;
}"""


@pytest.fixture(scope="module")
def page(shared: Opened) -> Opened:
    return prepared(shared, "screens", 768, DATA)


@pytest.fixture(params=list(PANELS))
def panel(request: Any, page: Opened) -> Iterator[tuple[str, NotebookPage]]:
    source, last = PANELS[request.param]
    page[0].resize(*SCREENS[0])
    with opened_panel(page, source, last, seen=".wb-picture:visible") as notebook:
        yield request.param, notebook


def hidden(notebook: NotebookPage) -> dict[str, float | None]:
    """For each part that is to be seen, how much of it is out of the window, when the panel begins at the top."""
    shown = notebook.page.locator(".wb-panel")
    shown.evaluate("panel => panel.scrollIntoView({ block: 'start' })")
    return dict(shown.evaluate(HIDDEN))


def test_the_answer_the_pictures_and_a_chart_are_on_one_screen(panel: tuple[str, NotebookPage]) -> None:
    name, notebook = panel
    for width, height in SCREENS:
        notebook.resize(width, height)
        notebook.show_files(width > NARROW)
        for dark in (False, True):
            notebook.dark(dark)
            eventually(lambda: hidden(notebook) == dict.fromkeys(("controls", "answer", "pictures", "chart"), 0), 10)
            notebook.page.wait_for_timeout(400)
            notebook.screenshot(f"screen-{name}-{width}-{'dark' if dark else 'light'}")
            assert serious_findings(notebook.page, ".wb-panel") == []
        assert notebook.page.locator(".wb-panel").evaluate(OVERLAPS) == []
    notebook.dark(False)
    notebook.show_files(True)


def test_a_keyboard_is_soon_at_the_first_picture(panel: tuple[str, NotebookPage]) -> None:
    _, notebook = panel
    assert 0 < notebook.page.locator(".wb-panel").evaluate(STOPS) <= MOST_STOPS


def test_any_number_of_panels_has_three_widgets_each_and_the_scripts_once(page: Opened) -> None:
    notebook, watch = page
    for source, _ in PANELS.values():
        notebook.run_cell(f"panel = {source}\npanel.wait()\npanel")
    notebook.run_cell("display(panel)")
    eventually(lambda: notebook.page.locator(".wb-panel").count() == len(PANELS) + 1)
    instances = '__import__("ipywidgets").widgets.widget._instances'
    made = notebook.python(f"[type(made).__name__ for made in {instances}.values()]")
    kinds = [kind.strip(" '\n") for kind in made.strip("[]").split(",")]
    assert sorted(kinds) == sorted(["FrontEnd", *["Page", "Layout"] * len(PANELS)])
    assert not (complaints := watch.complaints()), "\n".join(complaints)
