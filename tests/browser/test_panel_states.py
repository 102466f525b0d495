"""Limits and propagation on a small screen as they are used: after a comparison or a campaign, and with all controls."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser.accessibility import serious_findings
from browser.conftest import Opened
from browser.notebook_page import NotebookPage, eventually
from browser.panels import opened_panel, prepared, unfold
from browser.test_screens import hidden

pytestmark = pytest.mark.long
DATA = """import workbench as wb
import numpy as np
from bokeh import __version__ as bokeh
regions = [wb.synthetic.Region(1.0, 0.95), wb.synthetic.Region(0.05, 0.6), wb.synthetic.Region(0.4, 0.1)]
field = wb.synthetic.piecewise_field((128, 128), regions, layout="discs", block=64, seed=3)
density = wb.Field(np.exp(wb.synthetic.gaussian_field((16, 16, 16), seed=1).values))
pipeline = wb.propagation.power_spectrum(density)"""
NOTHING_HIDDEN = dict.fromkeys(("controls", "answer", "pictures", "chart"), 0)
LEAST = 11   # pixels of a row with a name: as high as its letters
# The height of a row in each chart whose rows have names.
ROWS = """version => [...globalThis[Symbol.for(`lossbench.bokeh.${version}`)].index]
    .filter(({model}) => model.yaxis?.[0]?.ticker?.ticks?.length > 1)
    .map(({model, frame}) => {
        const ticks = model.yaxis[0].ticker.ticks, {start, end} = model.y_range;
        return frame.bbox.height / Math.abs(end - start) * (Math.max(...ticks) - Math.min(...ticks)) / (ticks.length - 1);
    })"""


@pytest.fixture(scope="module")
def page(shared: Opened) -> Opened:
    opened = prepared(shared, "panel-states", 768, DATA)
    opened[0].resize(1366, 768)
    return opened


def assert_on_one_screen(notebook: NotebookPage, name: str) -> None:
    """The answer, the pictures and the first chart are visible in both themes, and names of rows do not overlap."""
    for dark in (False, True):
        notebook.dark(dark)
        eventually(lambda: hidden(notebook) == NOTHING_HIDDEN)
        notebook.page.wait_for_timeout(600)
        notebook.screenshot(f"state-{name}-{'dark' if dark else 'light'}")
        assert hidden(notebook) == NOTHING_HIDDEN
        assert serious_findings(notebook.page, ".wb-panel") == []
    rows = notebook.page.evaluate(ROWS, notebook.python("bokeh").strip("'"))
    assert all(height >= LEAST for height in rows), rows
    notebook.dark(False)


def test_limits_after_a_comparison_and_with_all_controls(page: Opened) -> None:
    with opened_panel(page, "wb.lab.limits(field)", "news", seen=".wb-picture:visible") as notebook:
        unfold(notebook)
        assert_on_one_screen(notebook, "limits-controls")
        notebook.press("compare codecs")
        eventually(lambda: notebook.python("not panel.status.busy and 'points' in panel._engine.results()") == "True", 90)
        expect(notebook.page.locator(".wb-panel .wb-answer")).to_contain_text("best codec: ")
        assert_on_one_screen(notebook, "limits-compared-controls")
        notebook.press("▾ more controls")
        assert_on_one_screen(notebook, "limits-compared")


def test_propagation_with_all_controls_and_after_a_campaign(page: Opened) -> None:
    with opened_panel(page, "wb.lab.propagation(pipeline, density, trials=20)", "trace") as notebook:
        unfold(notebook)
        assert_on_one_screen(notebook, "propagation-controls")
        notebook.press("▾ more controls")
        notebook.python("panel.change(tab='protect', twice=True)")
        notebook.press("compare")
        eventually(lambda: notebook.python("'protection' in panel.shown.charts and not panel.status.busy") == "True", 90)
        assert_on_one_screen(notebook, "propagation-protected")
        notebook.python("panel.change(tab='campaign')")
        assert_on_one_screen(notebook, "propagation-campaign")
