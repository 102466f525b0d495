"""What a panel shows beside a kernel that is busy, has been restarted, or is gone: never a choice with other figures."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser.notebook_page import NotebookPage
from browser.panels import DECODED, enter, entry, fact, idle
from browser.watch import Watch

pytestmark = pytest.mark.long
CELLS = (
    "import time, workbench as wb\nfield = wb.synthetic.gaussian_field((64, 64), seed=3)",
    "panel = wb.lab.bounds(field, codec='prequantised', eb=0.3)\npanel",
)
DEAF = """while True:
    try:
        time.sleep(60)
    except KeyboardInterrupt:   # ending a kernel interrupts it first, and it would hear the change then
        pass"""
# A change is taken in a thread of its own while a cell runs, unless the panel itself is busy.
BUSY = "from workbench.lab.turns import TURN\nwith TURN:\n    time.sleep(4)"
CONTENT, ABOVE = ".wb-panel .wb-content", ".wb-panel .wb-above"


def opened(notebook: NotebookPage, name: str) -> None:
    notebook.write(f"{name}.ipynb", *CELLS)
    notebook.run_all()
    notebook.drawn(DECODED)
    idle(notebook, "spectra")


def test_a_busy_kernel_is_said_until_it_has_answered(notebook: NotebookPage) -> None:
    opened(notebook, "busy")
    notebook.page.evaluate("code => { probes.kernel().requestExecute({ code }); }", BUSY)
    enter(notebook, "eb", "0.05")
    expect(notebook.page.locator(CONTENT)).to_have_attribute("data-mark", "kernel busy: the change waits", timeout=2000)
    expect(notebook.page.locator(CONTENT)).to_have_attribute("aria-busy", "true")
    idle(notebook, "spectra")
    expect(notebook.page.locator(CONTENT)).to_have_attribute("data-mark", "")
    expect(notebook.page.locator(CONTENT)).to_have_attribute("aria-busy", "false")
    assert notebook.python("panel.state.eb") == entry(notebook, "eb").input_value() == "0.05"


@pytest.mark.parametrize("end", ["restart", "shut down"])
def test_without_its_kernel_a_panel_shows_what_its_figures_are_of_and_takes_no_change(
    notebook: NotebookPage, watch: Watch, end: str
) -> None:
    watch.allow("anceled future|Kernel|kernel|WebSocket|Connection lost")   # what JupyterLab says of its own end
    opened(notebook, end.replace(" ", "-"))
    ratio = fact(notebook, "ratio")
    notebook.page.evaluate("code => { probes.kernel().requestExecute({ code }); }", DEAF)
    enter(notebook, "eb", "0.05")
    entry(notebook, "goal").fill("77")   # and not entered
    if end == "restart":
        notebook.page.evaluate("async () => { await probes.panel().sessionContext.restartKernel(); }")
    else:
        notebook.end_kernel()
    content = notebook.page.locator(CONTENT)
    expect(content).to_have_attribute("data-mark", "not connected: run the cell again")
    expect(content).to_have_attribute("aria-busy", "false")
    assert (entry(notebook, "eb").input_value(), fact(notebook, "ratio")) == ("0.3", ratio)
    assert entry(notebook, "goal").input_value() == "60"
    assert notebook.page.locator(ABOVE).evaluate("above => above.inert")
    asks = "button => button.closest('[inert]') !== null"
    buttons = ("save archive", "download archive", "save report", "download report", "copy code")
    found = [notebook.page.locator(".wb-saving button", has_text=name).evaluate(asks) for name in buttons]
    assert found == [True, True, True, True, False]
    assert content.evaluate("content => getComputedStyle(content, '::after').position") == "static"   # covers no figure
    icons = """panel => [panel, ...panel.querySelectorAll(".jupyter-widgets-disconnected")]
        .map(element => getComputedStyle(element, "::before").content)"""
    assert set(notebook.page.locator(".wb-panel").evaluate(icons)) == {"none"}
    notebook.screenshot(f"lost-{end.replace(' ', '-')}")
